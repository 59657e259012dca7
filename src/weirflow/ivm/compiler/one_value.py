"""``first``, ``last`` and ``any_value`` where all rows of a group have the same value, so that any of them will do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from weirflow.ivm.zset.hashing import has_floats
from weirflow.sql.expr import AggregateCall, Call, Column, Expr
from weirflow.sql.functions.aggregates.undetermined import undetermined
from weirflow.sql.plan import Aggregate, Distinct, Filter, Project
from weirflow.sql.types import is_orderable

if TYPE_CHECKING:
    from weirflow.sql.plan import Plan

_FIRSTS = frozenset({"first", "last", "any_value"})


def determined_calls(plan: Aggregate) -> tuple[AggregateCall, ...]:
    """The calls of an aggregate, with ``max`` for those that take any row's value, which is the same for all rows.

    Raises ``NotIncremental`` if it may be another for each of them.
    """
    return tuple(_determined(call, plan) if call.function in _FIRSTS else call for call in plan.calls)


def _determined(call: AggregateCall, plan: Aggregate) -> AggregateCall:
    (value,) = call.arguments
    known = plan.grouping_sets is None and (_follows(value, plan.keys) or _has_one_row(plan))
    if not known or not is_orderable(value.type):
        raise undetermined(call.function, call.position)
    return replace(call, function="max")


def _follows(value: Expr, keys: tuple[Expr, ...]) -> bool:
    """Whether an expression is computed of nothing but keys; zeros of either sign are the same key."""
    return all(column in keys and not has_floats(column.type) for column in _columns(value))


def _columns(expr: Expr) -> Iterator[Column]:
    if isinstance(expr, Column):
        yield expr
    elif isinstance(expr, Call):
        for argument in expr.arguments:
            yield from _columns(argument)


def _has_one_row(plan: Aggregate) -> bool:
    """Whether each group has one row at most: what tells the input's rows apart is among the keys."""
    unique = _unique_columns(plan.input)
    keys = {key.index for key in plan.keys if isinstance(key, Column)}
    return unique is not None and unique <= keys


def _unique_columns(plan: Plan) -> set[int] | None:
    """Columns of which no two rows have the same values, if such are known."""
    match plan:
        case Aggregate(grouping_sets=None):
            return set(range(len(plan.keys)))
        case Distinct():
            return set(range(len(plan.fields)))
        case Filter():
            return _unique_columns(plan.input)
        case Project():
            below = _unique_columns(plan.input)
            places = {one.index: at for at, one in reversed([*enumerate(plan.expressions)]) if isinstance(one, Column)}
            return {places[index] for index in below} if below is not None and below <= places.keys() else None
        case _:
            return None
