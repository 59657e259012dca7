"""FROM clauses: relations, derived tables, VALUES, joins of every kind, LATERAL VIEW; and subqueries in conditions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from support.generator.aggregates import AGGREGATES, narrowed
from support.generator.expressions import Column, Expressions, no_subquery
from support.generator.kinds import KEYS, SCALAR, Kind
from support.generator.scalars import constant, typed_null
from support.generator.text import Differs, Sql, joined, sql

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Sequence

_JOINS = {
    "JOIN": None,
    "INNER JOIN": None,
    "LEFT JOIN": None,
    "RIGHT JOIN": None,
    "FULL JOIN": None,
    "CROSS JOIN": None,
    "LEFT SEMI JOIN": "SEMI JOIN",
    "LEFT ANTI JOIN": "ANTI JOIN",
}
MOST_ROWS = 2000
"""No join is written that could have more rows."""
_VALUE_KINDS = (Kind.INT, Kind.BIGINT, Kind.STRING, Kind.DOUBLE, Kind.DATE)


@dataclass(frozen=True)
class Relation:
    """Something with a name that a query can read, with about how many rows it may have."""

    text: Sql
    columns: tuple[tuple[str, Kind], ...]
    size: int


@dataclass(frozen=True)
class From:
    """A FROM clause and the columns it brings into scope."""

    text: Sql
    columns: tuple[Column, ...]
    size: int


@dataclass(frozen=True)
class Query:
    """A query and the kinds of its columns, which are named c0, c1, ..."""

    text: Sql
    kinds: tuple[Kind, ...]
    size: int

    @property
    def columns(self) -> tuple[tuple[str, Kind], ...]:
        """Names and kinds."""
        return tuple((f"c{place}", kind) for place, kind in enumerate(self.kinds))


@dataclass(frozen=True)
class Relations:
    """Writes FROM clauses over some relations; ``nested`` writes queries for derived tables."""

    dice: random.Random
    known: tuple[Relation, ...]
    nested: Callable[[], Query | None]
    numbers: Iterator[int]

    @classmethod
    def over(cls, dice: random.Random, known: Sequence[Relation], nested: Callable[[], Query | None]) -> Relations:
        """A writer with aliases of its own."""
        return cls(dice, tuple(known), nested, count())

    def clause(self) -> From:
        """One to three joined items, sometimes with a LATERAL VIEW behind."""
        result = self.item()
        for _ in range(self.dice.choice((0, 0, 0, 1, 1, 1, 2))):
            result = self._join(result)
        if self.dice.random() < 0.25:
            result = self._lateral_view(result)
        return result

    def item(self) -> From:
        """A relation, a derived table or VALUES, under an alias."""
        alias = f"r{next(self.numbers)}"
        choice = self.dice.random()
        query = self.nested() if choice < 0.15 else None
        if query is not None:
            return From(sql("({}) AS {}", query.text, alias), _scope(alias, query.columns), query.size)
        if choice > 0.95:
            return self._values(alias)
        shared = self._using(alias) if choice > 0.9 else None
        if shared is not None:
            return shared
        relation = self.dice.choice(self.known)
        return From(sql("{} AS {}", relation.text, alias), _scope(alias, relation.columns), relation.size)

    def where(self, columns: Sequence[Column]) -> Sql:
        """A WHERE clause or nothing; subqueries mostly stand alone between ANDs."""
        dice = self.dice
        if dice.random() < 0.6:
            return sql("")
        parts = []
        if dice.random() < 0.4:
            subquery = self._condition(columns)
            parts += [subquery] if subquery is not None else []
        if not parts or dice.random() < 0.5:
            extra = self.subquery(columns) if dice.random() < 0.2 else no_subquery
            parts.append(Expressions(dice, columns, extra).predicate())
        dice.shuffle(parts)
        return sql(" WHERE {}", joined(" AND ", parts))

    def subquery(self, columns: Sequence[Column]) -> Callable[[Kind], Sql | None]:
        """Sub-expressions that are subqueries, correlated with ``columns`` or not."""

        def extra(kind: Kind) -> Sql | None:
            if self.dice.random() > 0.25:
                return None
            return self._scalar(kind, columns)

        return extra

    def _values(self, alias: str) -> From:
        dice = self.dice
        kinds = [dice.choice(_VALUE_KINDS) for _ in range(dice.randint(1, 3))]

        def value(kind: Kind) -> Sql:
            return typed_null(kind) if dice.random() < 0.1 else constant(kind, dice)

        rows = [sql("({})", joined(", ", [value(kind) for kind in kinds])) for _ in range(dice.randint(1, 4))]
        columns = [(f"c{place}", kind) for place, kind in enumerate(kinds)]
        names = ", ".join(name for name, _ in columns)
        return From(sql("(VALUES {}) AS {}({})", joined(", ", rows), alias, names), _scope(alias, columns), len(rows))

    def _using(self, alias: str) -> From | None:
        """Two relations joined by a column of the same name, as a derived table; None if they have none."""
        one, other = self.dice.choice(self.known), self.dice.choice(self.known)
        names = [column for column in one.columns if column in other.columns and column[1] in KEYS]
        if not names or one.size * other.size > MOST_ROWS:
            return None
        name, kind = self.dice.choice(names)
        left, right = f"{alias}l", f"{alias}r"
        outputs = [(sql(name), kind)]
        for side, relation in ((left, one), (right, other)):
            outputs += [(sql(f"{side}.{column}"), kind) for column, kind in relation.columns if column != name]
        select = joined(", ", [sql(f"{{}} AS c{place}", text) for place, (text, _) in enumerate(outputs)])
        join = self.dice.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        text = sql(
            f"(SELECT {{}} FROM {{}} AS {left} {join} {{}} AS {right} USING ({name})) AS {alias}",
            select,
            one.text,
            other.text,
        )
        columns = [(f"c{place}", kind) for place, (_, kind) in enumerate(outputs)]
        return From(text, _scope(alias, columns), one.size * other.size)

    def _join(self, left: From) -> From:
        right = self.item()
        size = max(left.size, 1) * max(right.size, 1)
        if size > MOST_ROWS:
            return left
        kind = self.dice.choice([*_JOINS, "JOIN", "JOIN", "LEFT JOIN"])
        columns = (*left.columns, *right.columns)
        if kind == "CROSS JOIN":
            return From(sql("{} CROSS JOIN {}", left.text, right.text), columns, size)
        template = f"{{}} {kind} {{}} ON {{}}"
        duck = f"{{}} {_JOINS[kind] or kind} {{}} ON {{}}"
        text = sql(template, left.text, right.text, self._on(left, right), duck=duck)
        if kind in ("LEFT SEMI JOIN", "LEFT ANTI JOIN"):
            return From(text, left.columns, left.size)
        return From(text, columns, size)

    def _on(self, left: From, right: From) -> Sql:
        dice = self.dice
        parts = self._equalities(left.columns, right.columns, dice.choice((1, 1, 1, 2, 0)))
        if not parts or dice.random() < 0.3:
            parts.append(Expressions(dice, (*left.columns, *right.columns)).predicate(depth=1))
        return joined(" AND ", parts)

    def _equalities(self, left: Sequence[Column], right: Sequence[Column], most: int) -> list[Sql]:
        pairs = [(one, other) for one in left for other in right if one.kind is other.kind and one.kind in KEYS]
        self.dice.shuffle(pairs)
        sign = "<=>" if self.dice.random() < 0.1 else "="
        duck = "{} = {}" if sign == "=" else "{} IS NOT DISTINCT FROM {}"
        return [sql(f"{{}} {sign} {{}}", one.text, other.text, duck=duck) for one, other in pairs[:most]]

    def _lateral_view(self, left: From) -> From:
        arrays = [column for column in left.columns if column.kind in (Kind.INTS, Kind.STRINGS)]
        if not arrays:
            return left
        array, number = self.dice.choice(arrays), next(self.numbers)
        kind = Kind.INT if array.kind is Kind.INTS else Kind.STRING
        made = Column(sql(f"g{number}.item"), kind)
        template = f"{{}} LATERAL VIEW explode({{}}) g{number} AS item"
        if self.dice.random() < 0.3:
            outer = template.replace("VIEW", "VIEW OUTER").replace("explode", "posexplode").replace("AS", "AS place,")
            place = Column(sql(f"g{number}.place"), Kind.INT)
            text = sql(outer, left.text, array.text, duck=Differs.OUTER_GENERATOR)
            return From(text, (*left.columns, place, made), left.size * 2)
        duck = f"{{}} CROSS JOIN UNNEST({{}}) AS g{number}(item)"
        return From(sql(template, left.text, array.text, duck=duck), (*left.columns, made), left.size * 2)

    def _condition(self, outer: Sequence[Column]) -> Sql | None:
        """[NOT] EXISTS and [NOT] IN."""
        dice, inner = self.dice, self.item()
        negation = dice.choice(("", "NOT "))
        equalities = self._equalities(outer, inner.columns, 2)
        if dice.random() < 0.5:
            conditions = equalities[: dice.randint(1, 2)]
            if not conditions or dice.random() < 0.3:
                conditions.append(Expressions(dice, (*outer, *inner.columns)).predicate(depth=1))
            text = joined(" AND ", conditions)
            return sql(f"{negation}EXISTS (SELECT 1 FROM {{}} WHERE {{}})", inner.text, text)
        pairs = [
            (one, other) for one in outer for other in inner.columns if one.kind is other.kind and one.kind in SCALAR
        ]
        if not pairs:
            return None
        value, found = dice.choice(pairs)
        where = sql("")
        if dice.random() < 0.3 and equalities:
            where = sql(" WHERE {}", equalities[0])
        elif dice.random() < 0.4:
            where = sql(" WHERE {}", Expressions(dice, inner.columns).predicate(depth=1))
        return sql(f"{{}} {negation}IN (SELECT {{}} FROM {{}}{{}})", value.text, found.text, inner.text, where)

    def _scalar(self, kind: Kind, outer: Sequence[Column]) -> Sql | None:
        """A subquery with one row: an aggregate, correlated by equal columns or not at all."""
        calls = [call for call in AGGREGATES if call.kind is kind]
        if not calls:
            return None
        inner, call = self.item(), self.dice.choice(calls)
        inside = Expressions(self.dice, inner.columns)
        value = sql(call.template, *(inside.of(hole, depth=1) for hole in call.holes), duck=call.duck)
        where = self._equalities(outer, inner.columns, 1) if self.dice.random() < 0.6 else []
        clause = sql(" WHERE {}", where[0]) if where else sql("")
        return sql("(SELECT {} FROM {}{})", narrowed(value, kind), inner.text, clause)


def _scope(alias: str, columns: Sequence[tuple[str, Kind]]) -> tuple[Column, ...]:
    return tuple(Column(sql(f"{alias}.{name}"), kind) for name, kind in columns)
