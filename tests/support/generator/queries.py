"""Random queries: the writer that takes shapes from a grammar, and the shapes that plain SELECTs have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.generator.aggregates import AGGREGATES, PEER_FRAMES, ROW_FRAMES, VALUE_FRAMES, WINDOW_FUNCTIONS, narrowed
from support.generator.clauses import aggregate, fitting, group_keys, having, select, select_list
from support.generator.expressions import Column, Expressions, no_subquery
from support.generator.kinds import KEYS, NESTED, Kind
from support.generator.relations import From, Query, Relation, Relations
from support.generator.text import Differs, Sql, joined, sql

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

_SET_OPERATIONS = ("UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
_MOST_COLUMNS = 4


@dataclass(frozen=True)
class Grammar:
    """Shapes of queries: those of one SELECT with their weights, and those around others with their shares."""

    shapes: tuple[tuple[Callable[[Queries], Query], int], ...]
    around: tuple[tuple[float, Callable[[Queries], Query]], ...]


@dataclass(frozen=True)
class Queries:
    """Writes queries over some relations, nested up to a depth."""

    dice: random.Random
    relations: tuple[Relation, ...]
    grammar: Grammar
    depth: int = 1

    def query(self) -> Query:
        """A query of any shape."""
        around = self.dice.random()
        if self.depth > 0:
            for share, make in self.grammar.around:
                if around < share:
                    return make(self)
                around -= share
        makers, weights = zip(*self.grammar.shapes, strict=True)
        return self.dice.choices(makers, weights)[0](self)

    def inner(self) -> Queries:
        """The writer of queries inside this one."""
        return Queries(self.dice, self.relations, self.grammar, self.depth - 1)

    def reading(self, relation: Relation) -> Queries:
        """The writer of a query without others inside that mostly reads a relation, maybe twice."""
        often = (relation,) * (len(self.relations) + 1)
        return Queries(self.dice, (*often, *self.relations), self.grammar, 0)

    def source(self) -> tuple[Relations, From, Sql]:
        """FROM and WHERE."""
        writer = Relations.over(self.dice, self.relations, lambda: self.inner().query() if self.depth > 0 else None)
        clause = writer.clause()
        return writer, clause, writer.where(clause.columns)

    def single(self) -> tuple[From, Sql]:
        """FROM one relation, which is called r0, and WHERE."""
        writer = Relations.over(self.dice, self.relations, lambda: self.inner().query() if self.depth > 0 else None)
        item = writer.item()
        return item, writer.where(item.columns)


def plain(queries: Queries, kinds: Sequence[Kind] | None = None) -> Query:
    """SELECT expressions, of given kinds or any, sometimes with scalar subqueries."""
    dice = queries.dice
    writer, clause, where = queries.source()
    extra = writer.subquery(clause.columns) if dice.random() < 0.15 else no_subquery
    inside = Expressions(dice, clause.columns, extra)
    if kinds is None:
        items = [inside.any() for _ in range(dice.randint(1, _MOST_COLUMNS))]
    else:
        items = [Column(inside.of(kind), kind) for kind in kinds]
    return select("SELECT {} FROM {}{}", items, clause, where)


def distinct(queries: Queries) -> Query:
    """SELECT DISTINCT."""
    _, clause, where = queries.source()
    inside = Expressions(queries.dice, clause.columns)
    items = group_keys(inside, queries.dice.randint(1, 3)) or [Column(inside.of(Kind.INT), Kind.INT)]
    return select("SELECT DISTINCT {} FROM {}{}", items, clause, where)


def grouped(queries: Queries) -> Query:
    """GROUP BY, by columns or expressions or nothing, with HAVING."""
    dice = queries.dice
    _, clause, where = queries.source()
    inside = Expressions(dice, clause.columns)
    keys = group_keys(inside, dice.choice((0, 1, 1, 1, 2, 2, 3)))
    items = [*keys, *(aggregate(inside) for _ in range(dice.randint(1, 3)))]
    group = sql("")
    if keys:
        ordinals = dice.random() < 0.2
        names = [sql(str(place + 1)) for place in range(len(keys))] if ordinals else [key.text for key in keys]
        group = sql(" GROUP BY {}", joined(", ", names))
    return select("SELECT {} FROM {}{}{}{}", items, clause, where, group, having(inside))


def grouping_sets(queries: Queries) -> Query:
    """ROLLUP, CUBE and GROUPING SETS over columns. Over no rows DuckDB has a grand total, so it is filtered there."""
    dice = queries.dice
    _, clause, where = queries.source()
    inside = Expressions(dice, clause.columns)
    keys = dice.sample(usable, min(len(usable), dice.choice((2, 2, 3)))) if (usable := inside.readable(KEYS)) else []
    if not keys:
        return grouped(queries)
    names = [key.text for key in keys]
    forms = ("ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), {}, ())")
    form = dice.choice(forms if len(keys) > 1 else forms[:2])
    sets = sql(form, joined(", ", names), *([dice.choice(names)] if "SETS" in form else []))
    aggregates = [aggregate(inside) for _ in range(dice.randint(1, 2))]
    if dice.random() < 0.4:
        aggregates.append(Column(sql("grouping({})", dice.choice(names)), Kind.INT))
    items = [*keys, *aggregates]
    text = sql(
        "SELECT {} FROM {}{} GROUP BY {}",
        select_list(items),
        clause.text,
        where,
        sets,
        duck="SELECT {} FROM {}{} GROUP BY {} HAVING COUNT(*) > 0",
    )
    return Query(text, tuple(item.kind for item in items), clause.size * 2)


def exploded(queries: Queries) -> Query:
    """A generator in the SELECT list."""
    _, clause, where = queries.source()
    inside = Expressions(queries.dice, clause.columns)
    kind, item = queries.dice.choice(((Kind.INTS, Kind.INT), (Kind.STRINGS, Kind.STRING)))
    array = inside.of(kind, depth=1)
    items = [inside.any(depth=1), Column(sql("explode({})", array, duck="UNNEST({})"), item)]
    query = select("SELECT {} FROM {}{}", items, clause, where)
    return Query(query.text, query.kinds, query.size * 2)


def windowed(queries: Queries) -> Query:
    """Window functions beside columns."""
    dice = queries.dice
    _, clause, where = queries.source()
    inside = Expressions(dice, clause.columns)
    usable = inside.readable(KEYS)
    if not usable:
        return plain(queries)
    items = dice.sample(usable, min(len(usable), dice.randint(1, 2)))
    # Rows that tie are told apart by one order only: two would pair their results at random.
    total = [sql(f"{{}} {_direction(dice)}", column.text) for column in dice.sample(usable, len(usable))]
    partition = sql("PARTITION BY {}", dice.choice(usable).text) if dice.random() < 0.7 else sql("")
    items = [*items, *(_over(inside, usable, partition, total) for _ in range(dice.randint(1, 2)))]
    return select("SELECT {} FROM {}{}", items, clause, where)


def set_operation(queries: Queries) -> Query:
    """Two queries of the same kinds, joined by a set operation, sometimes three."""
    dice, inner = queries.dice, queries.inner()
    left = inner.query()
    if not _comparable(left):
        return left
    text, size = sql("({})", left.text), left.size
    for _ in range(dice.choice((1, 1, 2))):
        right = plain(inner, left.kinds)
        text = sql(f"{{}} {dice.choice(_SET_OPERATIONS)} ({{}})", text, right.text)
        size += right.size
    return Query(text, left.kinds, size)


def first_rows(queries: Queries) -> Query:
    """ORDER BY all columns with LIMIT and OFFSET."""
    dice, query = queries.dice, queries.inner().query()
    if not _comparable(query):
        return query
    order = [f"c{place} {_direction(dice)}" for place in range(len(query.kinds))]
    dice.shuffle(order)
    limit = dice.choice(("LIMIT 1", "LIMIT 2", "LIMIT 3", "LIMIT 5", "LIMIT 2 OFFSET 1", "LIMIT 3 OFFSET 2"))
    nested = any(kind in NESTED for kind in query.kinds)
    names = ", ".join(f"c{place}" for place in range(len(query.kinds)))
    text = sql(
        f"SELECT {names} FROM ({{}}) AS q ORDER BY {', '.join(order)} {limit}",
        query.text,
        duck=Differs.NESTED_ORDER if nested else None,
    )
    return Query(text, query.kinds, 5)


def with_cte(queries: Queries) -> Query:
    """WITH one query, read by another, which may read it twice."""
    inner = queries.inner()
    first = inner.query()
    name = f"w{queries.depth}"
    relation = Relation(Sql(name, name), first.columns, first.size)
    second = queries.reading(relation).query()
    return Query(sql("WITH {} AS ({}) {}", name, first.text, second.text), second.kinds, second.size)


def _direction(dice: random.Random) -> str:
    return f"{dice.choice(('ASC', 'DESC'))} NULLS {dice.choice(('FIRST', 'LAST'))}"


def _over(inside: Expressions, usable: Sequence[Column], partition: Sql, total: list[Sql]) -> Column:
    """A window function; where ties would matter, the order is by all columns."""
    dice = inside.dice
    nested = any(column.kind in NESTED for column in usable)
    if dice.random() < 0.5:
        call = dice.choice(WINDOW_FUNCTIONS)
        order = total if call.total else total[: dice.randint(1, len(total))]
        frame = sql(dice.choice((*ROW_FRAMES, *PEER_FRAMES)) if call.framed else "")
        value = sql(call.template, *(inside.of(hole, depth=1) for hole in call.holes))
        kind = call.kind
    else:
        over = fitting(inside, [call for call in AGGREGATES if call.windowed])
        near = [column for column in usable if column.kind in VALUE_FRAMES]
        rows = dice.random() < 0.4
        if near and not rows and dice.random() < 0.4:
            column = dice.choice(near)
            order, frame = [sql(f"{{}} {_direction(dice)}", column.text)], dice.choice(VALUE_FRAMES[column.kind])
        else:
            order = total if rows else total[: dice.choice((0, 1, 1, 2))]
            frame = sql(dice.choice(ROW_FRAMES if rows else PEER_FRAMES) if order else "")
        value = sql(over.template, *(inside.of(hole, depth=1) for hole in over.holes), duck=over.duck)
        kind = over.kind
    clause = sql("ORDER BY {}", joined(", ", order)) if order else sql("")
    duck = Differs.NESTED_ORDER if nested else None
    text = sql("{} OVER ({} {} {})", value, partition, clause, frame, duck=duck)
    return Column(narrowed(text, kind), kind)


def _comparable(query: Query) -> bool:
    """Whether rows can be told apart and ordered in every engine."""
    return all(kind in KEYS for kind in query.kinds)
