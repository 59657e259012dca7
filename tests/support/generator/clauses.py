"""Pieces that queries of several shapes share: select lists, group keys, aggregate calls, HAVING."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.generator.aggregates import AGGREGATES, Aggregate, narrowed
from support.generator.expressions import Column, Expressions
from support.generator.kinds import KEYS, Kind
from support.generator.relations import From, Query
from support.generator.text import Sql, joined, sql

if TYPE_CHECKING:
    from collections.abc import Sequence


def select_list(items: Sequence[Column]) -> Sql:
    """Items under the names c0, c1, ..."""
    return joined(", ", [sql("{} AS c{}", item.text, str(place)) for place, item in enumerate(items)])


def select(template: str, items: Sequence[Column], clause: From, *rest: Sql) -> Query:
    """A template of a select list, a FROM clause and what else comes behind."""
    text = sql(template, select_list(items), clause.text, *rest)
    return Query(text, tuple(item.kind for item in items), clause.size)


def group_keys(inside: Expressions, most: int) -> list[Column]:
    """Columns or expressions to group by, each once."""
    keys: dict[str, Column] = {}
    for _ in range(most):
        found = inside.readable(KEYS)
        key = inside.dice.choice(found) if found and inside.dice.random() < 0.75 else inside.any(depth=1)
        # A constant in GROUP BY would be read as a position.
        if key.kind in KEYS and "." in key.text.spark:
            keys[key.text.spark] = key
    return list(keys.values())


def aggregate(inside: Expressions, *, exact: bool = False) -> Column:
    """An aggregate call, sometimes DISTINCT or with a FILTER."""
    dice = inside.dice
    call = fitting(inside, [call for call in AGGREGATES if not exact or call.kind is not Kind.INEXACT])
    template, duck = call.template, call.duck
    if call.distinct and dice.random() < 0.3:
        template = template.replace("({", "(DISTINCT {", 1)
    filtered = dice.random() < 0.15 and "collect_" not in template
    parts = [inside.of(hole, depth=1) for hole in call.holes]
    if filtered:
        clause = f" FILTER (WHERE {{{len(parts)}}})" if "{0}" in template else " FILTER (WHERE {})"
        template += clause
        duck = duck + clause if isinstance(duck, str) else duck
        parts.append(inside.predicate(depth=1))
    return Column(narrowed(sql(template, *parts, duck=duck), call.kind), call.kind)


def having(inside: Expressions) -> Sql:
    """A HAVING clause or nothing."""
    if inside.dice.random() >= 0.3:
        return sql("")
    call = aggregate(inside, exact=True)
    return sql(" HAVING {}", Expressions(inside.dice, [call]).predicate(depth=1))


def fitting(inside: Expressions, calls: list[Aggregate]) -> Aggregate:
    """A call that has columns to work on, if there is one."""
    here = {column.kind for column in inside.columns}
    found = [call for call in calls if not call.holes or here.intersection(call.holes)]
    return inside.dice.choice(found if found and inside.dice.random() < 0.9 else calls)
