"""WITH RECURSIVE: walks of bounded length by UNION ALL, and fixed points by UNION, which Spark itself refuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.generator.clauses import select_list
from support.generator.expressions import Column, Expressions
from support.generator.kinds import Kind
from support.generator.queries import plain
from support.generator.relations import MOST_ROWS, From, Query, Relation, Relations
from support.generator.scalars import cast
from support.generator.text import Sql, joined, sql

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from support.generator.queries import Queries

_NAME = "walk"
_KINDS = (Kind.INT, Kind.BIGINT, Kind.DOUBLE, Kind.STRING, Kind.DATE, Kind.BOOL, Kind.TIMESTAMP)
"""What a recursion carries: kinds that are one type after a cast, so that the step has the types of the base."""
_JOINS = {"JOIN": "JOIN", "LEFT JOIN": "LEFT JOIN", "LEFT SEMI JOIN": "SEMI JOIN", "LEFT ANTI JOIN": "ANTI JOIN"}


def recursive(queries: Queries) -> Query:
    """A recursive CTE and a query that reads it."""
    dice = queries.dice
    writer = Relations.over(dice, queries.relations, lambda: None)
    base, other = writer.item(), writer.item()
    columns = Expressions(dice, base.columns).readable(_KINDS)
    if not columns:
        return plain(queries)
    nodes = [column for column in columns if _of_kind(other.columns, column.kind)]
    carried, node = dice.choice(columns), dice.choice(nodes or columns)
    hops = _most_hops(base, other, dice) if nodes else 3
    walk = _Walk(dice, carried.kind, node.kind, other)
    union = "UNION" if dice.random() < 0.4 else "UNION ALL"
    if union == "UNION" and nodes and dice.random() < 0.6:
        step, kinds = walk.unbounded(), [carried.kind, node.kind]
    else:
        step, kinds = walk.bounded(hops, alone=not nodes), [carried.kind, node.kind, Kind.INT]
    items = [Column(cast(carried.kind, carried.text), carried.kind), Column(cast(node.kind, node.text), node.kind)]
    items += [Column(sql("0"), Kind.INT)] if len(kinds) > len(items) else []
    first = sql("SELECT {} FROM {}{}", select_list(items), base.text, writer.where(base.columns))
    names = tuple((f"c{place}", kind) for place, kind in enumerate(kinds))
    size = base.size * max(other.size, 1) ** hops if nodes else base.size * (hops + 1)
    reader = queries.reading(Relation(Sql(_NAME, _NAME), names, min(size, MOST_ROWS))).query()
    text = sql(f"WITH RECURSIVE {_NAME} AS ({{}} {union} {{}}) {{}}", first, step, reader.text)
    return Query(text, reader.kinds, reader.size)


@dataclass(frozen=True)
class _Walk:
    """Writes steps from the rows (carried, node) to the next ones by way of another relation."""

    dice: random.Random
    carried: Kind
    node: Kind
    other: From

    def bounded(self, hops: int, *, alone: bool) -> Sql:
        """Any expression makes the next node; the number of hops ends the recursion."""
        own = (*self._own, Column(sql("l.c2"), Kind.INT))
        source, columns = (sql(f"{_NAME} AS l"), own) if alone else self._joined(own)
        inside = Expressions(self.dice, columns)
        found = _of_kind(columns, self.node)
        value = self.dice.choice(found).text if self.dice.random() < 0.6 else inside.of(self.node, depth=1)
        conditions = [sql(f"l.c2 < {hops}")]
        if self.dice.random() < 0.3:
            conditions.append(inside.predicate(depth=1))
        next_node = cast(self.node, value)
        return sql("SELECT l.c0, {}, l.c2 + 1 FROM {} WHERE {}", next_node, source, joined(" AND ", conditions))

    def unbounded(self) -> Sql:
        """Nodes come from columns only, of which there are so many: the recursion ends by itself."""
        if self.carried is self.node and self.dice.random() < 0.3:
            return self._found_in()
        source, columns = self._joined(self._own)
        value = cast(self.node, self.dice.choice(_of_kind(columns, self.node)).text)
        where = sql("")
        if self.dice.random() < 0.3:
            where = sql(" WHERE {}", Expressions(self.dice, columns).predicate(depth=1))
        return sql("SELECT l.c0, {} FROM {}{}", value, source, where)

    @property
    def _own(self) -> tuple[Column, ...]:
        return (Column(sql("l.c0"), self.carried), Column(sql("l.c1"), self.node))

    def _joined(self, own: tuple[Column, ...]) -> tuple[Sql, tuple[Column, ...]]:
        """The recursion joined with the other relation by its node, and the columns that are there then."""
        kind = self.dice.choice(("JOIN", "JOIN", "JOIN", *_JOINS))
        by = self.dice.choice(_of_kind(self.other.columns, self.node))
        conditions = [sql("l.c1 = {}", by.text)]
        if self.dice.random() < 0.3:
            conditions.append(Expressions(self.dice, (*own, *self.other.columns)).predicate(depth=1))
        text = sql(
            f"{_NAME} AS l {kind} {{}} ON {{}}",
            self.other.text,
            joined(" AND ", conditions),
            duck=f"{_NAME} AS l {_JOINS[kind]} {{}} ON {{}}",
        )
        return text, own if "SEMI" in kind or "ANTI" in kind else (*own, *self.other.columns)

    def _found_in(self) -> Sql:
        """Rows of the other relation whose node the recursion has found."""
        columns = _of_kind(self.other.columns, self.node)
        made = [cast(self.node, self.dice.choice(columns).text) for _ in range(2)]
        by = self.dice.choice(columns).text
        return sql(f"SELECT {{}}, {{}} FROM {{}} WHERE {{}} IN (SELECT c1 FROM {_NAME})", *made, self.other.text, by)


def _of_kind(columns: Sequence[Column], kind: Kind) -> list[Column]:
    return [column for column in columns if column.kind is kind]


def _most_hops(base: From, other: From, dice: random.Random) -> int:
    """One to three, as long as there are not too many walks."""
    most = dice.choice((1, 2, 2, 3))
    while most > 1 and base.size * max(other.size, 1) ** most > MOST_ROWS:
        most -= 1
    return most
