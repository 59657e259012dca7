"""Random typed expressions over the columns in scope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.generator.dice import risk_of
from support.generator.kinds import SCALAR, UNREAD, Kind
from support.generator.scalars import LITERALS, SCALARS, constant, typed_null
from support.generator.text import Sql, sql

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence


def no_subquery(kind: Kind) -> None:
    """No sub-expression but those of the scope."""
    del kind


@dataclass(frozen=True)
class Column:
    """A column in scope."""

    text: Sql
    kind: Kind


@dataclass(frozen=True)
class Expressions:
    """Writes expressions; ``extra`` adds sub-expressions of a kind that the scope alone cannot have: subqueries."""

    dice: random.Random
    columns: Sequence[Column]
    extra: Callable[[Kind], Sql | None] = no_subquery

    def of(self, kind: Kind, depth: int = 2) -> Sql:
        """An expression of a kind; mostly a column if there is one."""
        dice = self.dice
        if kind is Kind.BOOL and depth > 0 and dice.random() < 0.85:
            return self._call(kind, depth)
        found = [column.text for column in self.columns if column.kind is kind]
        if kind is Kind.BOOL and not found:
            return self._test()
        if depth <= 0 or dice.random() < (0.5 if found else 0.15):
            if found and dice.random() < 0.9:
                return dice.choice(found)
            return typed_null(kind) if dice.random() < 0.1 else constant(kind, dice)
        return self._call(kind, depth)

    def any(self, depth: int = 2) -> Column:
        """An expression of any kind, those of the columns in scope first."""
        kinds = [column.kind for column in self.columns if column.kind not in UNREAD]
        kind = self.dice.choice(kinds) if kinds and self.dice.random() < 0.75 else self.dice.choice(SCALAR)
        return Column(self.of(kind, depth), kind)

    def predicate(self, depth: int = 2) -> Sql:
        """A condition."""
        return self.of(Kind.BOOL, depth)

    def readable(self, kinds: Sequence[Kind]) -> list[Column]:
        """The columns in scope of some kinds."""
        return [column for column in self.columns if column.kind in kinds]

    def _test(self) -> Sql:
        """The shortest condition: of a column, since constants are folded away."""
        columns = self.readable(SCALAR)
        if not columns or self.dice.random() < 0.05:
            return constant(Kind.BOOL, self.dice)
        column = self.dice.choice(columns)
        template = self.dice.choice(("({} IS NOT NULL)", "({} <> {})", "({} >= {})", "({} = {})"))
        return sql(template, column.text, *([constant(column.kind, self.dice)] if template.count("{}") > 1 else []))

    def _call(self, kind: Kind, depth: int) -> Sql:
        special = self.extra(kind)
        if special is not None:
            return special
        productions = SCALARS[kind]
        if not productions:
            return constant(kind, self.dice)
        here = {column.kind for column in self.columns}
        for _ in range(6):
            production = self.dice.choice(productions)
            if production.raises and self.dice.random() > risk_of(self.dice):
                continue
            # Prefer what has columns to work on: constants are folded away.
            if here.intersection(production.holes) or self.dice.random() < 0.1:
                break
        else:
            return self.of(kind, 0)
        parts = [
            self.of(hole, depth - 1) if isinstance(hole, Kind) else sql(self.dice.choice(LITERALS[hole]))
            for hole in production.holes
        ]
        return sql(production.template, *parts, duck=production.duck)
