"""Conditions on the clock: comparisons that become true or false at a moment that follows from the row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from weirflow.sql.clock.reading import is_clock, reads_clock
from weirflow.sql.clock.trend import Turn, trend, unfollowed
from weirflow.sql.expr import Call, Expr
from weirflow.sql.types import BOOLEAN

_MIRRORED = {
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
    "equal": "equal",
    "not_equal": "not_equal",
    "equal_null_safe": "equal_null_safe",
}
_FROM_EQUAL = frozenset({"less", "greater_equal"})
_FROM_ABOVE = frozenset({"less_equal", "greater"})


@dataclass(frozen=True)
class ClockCondition:
    """A comparison of which one side rises, compared with the other, while the clock goes on.

    Attributes:
        rising: the side that rises, or that the other one falls to.
        other: the other side.
        at_equal: whether the comparison changes when ``rising`` comes to equal ``other``.
        above: whether it changes when ``rising`` goes beyond ``other``.
        even: whether their difference changes by a microsecond each microsecond.
        turns: where it may do the opposite for a while.
    """

    rising: Expr
    other: Expr
    at_equal: bool
    above: bool
    even: bool
    turns: tuple[Turn, ...]


def clock_conditions(expr: Expr) -> list[ClockCondition]:
    """All conditions on the clock in an expression, each once.

    Raises:
        NotIncremental: the clock also stands elsewhere, or in a comparison that is not followed.
    """
    found: dict[Expr, ClockCondition] = {}
    for call in clock_comparisons(expr):
        if call not in found:
            found[call] = _condition(call)
    return list(found.values())


def clock_comparisons(expr: Expr) -> Iterator[Call]:
    """The comparisons of an expression that read the clock; ``NotIncremental`` if it also stands elsewhere."""
    ahead = [expr]
    while ahead:
        part = ahead.pop()
        if not reads_clock(part):
            continue
        if is_clock(part) or not isinstance(part, Call):
            raise unfollowed("what to do with it here", part.position if isinstance(part, Call) else None)
        if part.function in _MIRRORED and part.arguments[0].type != BOOLEAN:
            yield part
        else:
            ahead += reversed(part.arguments)


def _condition(call: Call) -> ClockCondition:
    left, right = call.arguments
    first, second = trend(left), trend(right)
    function = call.function
    if first.sign < 0 or second.sign > 0:
        left, right, first, second = right, left, second, first
        function = _MIRRORED[function]
    if first.sign < 0 or second.sign > 0:
        raise unfollowed("which of two sides that both change with it is ahead", call.position)
    even = (first.even or second.even) and 0 in (first.sign, second.sign) and _is_time(left.type)
    return ClockCondition(
        left,
        right,
        at_equal=function not in _FROM_ABOVE,
        above=function not in _FROM_EQUAL,
        even=even,
        turns=first.turns + second.turns,
    )


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_duration(kind))
