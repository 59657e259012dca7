"""Exact percentiles: between two values, or one of the values."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from weirflow.errors import DataError
from weirflow.sql.expr import Literal

if TYPE_CHECKING:
    from weirflow.errors import SqlPosition
    from weirflow.sql.expr import AggregateCall

_FREQUENCY, _DESCENDING = 2, 3
"""Arguments behind the value and the share."""


def percentile(call: AggregateCall) -> Callable[[list[tuple[Any, ...]]], Any]:
    """The fold of ``percentile(value, share, frequency, descending)``, or of ``percentile_disc``.

    The share is one or several, 0.5 without one; a row counts as often as its frequency says, once without one.
    """
    has_share, has_frequency = len(call.arguments) > 1, len(call.arguments) > _FREQUENCY
    descending = len(call.arguments) > _DESCENDING and _constant(call, _DESCENDING)
    at = _one_of if call.function == "percentile_disc" else _between

    def fold(rows: list[tuple[Any, ...]]) -> Any:
        counts: dict[float, int] = {}
        for row in rows:
            times = row[_FREQUENCY] if has_frequency else 1
            if row[0] is not None and times is not None:
                value = float(row[0])
                value = math.nan if math.isnan(value) else value
                counts[value] = counts.get(value, 0) + _checked(times, call.position)
        values = sorted((value for value, times in counts.items() if times), key=nan_last, reverse=bool(descending))
        if not values:
            return None
        ends = list(accumulate(counts[value] for value in values))
        share = rows[0][1] if has_share else 0.5
        return [at(float(one), values, ends) for one in share] if isinstance(share, list) else at(share, values, ends)

    return fold


def nan_last(value: float) -> tuple[bool, float]:
    """NaN is larger than all other doubles; Python alone would leave it where it finds it."""
    return (True, 0.0) if math.isnan(value) else (False, value)


def _between(share: float, values: Sequence[float], ends: Sequence[int]) -> float:
    """By linear interpolation; ``ends`` are the counts of values up to each."""
    place = share * (ends[-1] - 1)
    low = math.floor(place)
    lower, higher = values[bisect_right(ends, low)], values[bisect_right(ends, math.ceil(place))]
    if low == place or lower == higher:
        return lower
    return (low + 1 - place) * lower + (place - low) * higher


def _one_of(share: float, values: Sequence[float], ends: Sequence[int]) -> float:
    """The first value up to which at least the share of all are."""
    return values[bisect_left(ends, share * ends[-1])]


def _checked(times: int, position: SqlPosition | None) -> int:
    if times < 0:
        raise DataError(
            f"The frequency {times} of percentile() is negative.",
            condition="NEGATIVE_VALUES_IN_FREQUENCY_EXPRESSION",
            position=position,
        )
    return times


def _constant(call: AggregateCall, place: int) -> Any:
    argument = call.arguments[place]
    assert isinstance(argument, Literal), "the binder gives a constant"
    return argument.value
