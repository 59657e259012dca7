"""Trends: whether an expression rises or falls while the clock goes on, and what may turn it for a while.

Clocks of zones are put back, and the 29th, 30th and 31st of a month have the same day a month before. So what adds days
by the clocks of a zone, or months, rises over the years but not at every moment. Such places are its *turns*: between
the moments at which the time of day there is one of a few, it does not fall.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.errors import NotIncremental, Reason
from weirflow.sql.clock.reading import is_clock, reads_clock
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.types import BIGINT, DATE, DOUBLE, INT, TIMESTAMP, TIMESTAMP_NTZ
from weirflow.sql.zoned import is_fixed, local_time
from weirflow.stack import grows

if TYPE_CHECKING:
    from weirflow.errors import SqlPosition

_FAR = 10**8
_ROUNDED = ("trunc", "last_day", "year", "unix_seconds", "unix_millis", "unix_micros", "unix_date", "truncated_seconds")
_SAME_SIZE = frozenset({"negate", "wrapping_negate", "cast", "legacy_cast"})
_TIMES = (TIMESTAMP, TIMESTAMP_NTZ, DATE)
_WHOLE_UNITS = frozenset({"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "DAYOFYEAR", "WEEK"})


@dataclass(frozen=True)
class Turn:
    """Where an expression may fall for a while.

    Attributes:
        shown: a time, by whose time of day one can tell the moments between which the expression does not fall.
        zone: whose clocks are put back, at certain times of the day; None if only midnight counts.
        months: whether months are added, which are not equally long.
    """

    shown: Expr
    zone: str | None
    months: bool


@dataclass(frozen=True)
class Trend:
    """How an expression changes while the clock goes on.

    Attributes:
        sign: 1 if it rises, -1 if it falls, 0 if it does not depend on the clock.
        even: whether it changes by a microsecond each microsecond.
        turns: where it may do the opposite for a while.
    """

    sign: int
    even: bool = False
    turns: tuple[Turn, ...] = ()


STEADY = Trend(0)


@grows
def trend(expr: Expr) -> Trend:
    """The trend of an expression; ``NotIncremental`` if none is known."""
    if not reads_clock(expr):
        return STEADY
    if is_clock(expr):
        return Trend(1, even=True)
    assert isinstance(expr, Call), "nothing else reads the clock"
    rule = _RULES.get(expr.function)
    found = None if rule is None else rule(expr)
    if found is None:
        raise unfollowed(f"how {expr.function}() of it changes while time passes", expr.position)
    return found


def unfollowed(what: str, position: SqlPosition | None) -> NotIncremental:
    """The refusal of a clock that stands where it cannot be followed."""
    return NotIncremental(
        "The clock (now(), current_timestamp(), current_date()) is followed in conditions such as "
        f"at > now() - INTERVAL 1 HOUR; it is not known {what}.",
        reason=Reason.EXPRESSION_NOT_DETERMINISTIC,
        hint="compare the clock, with intervals added, with what does not depend on it; or put the time into a column",
        position=position,
    )


def _is_near(number: Expr) -> bool:
    """Whether it is a constant that is not so far from zero that a sum might wrap around."""
    while isinstance(number, Call) and number.function in _SAME_SIZE and len(number.arguments) == 1:
        number = number.arguments[0]
    return isinstance(number, Literal) and (number.value is None or abs(number.value) <= _FAR)


def _steady(expr: Expr) -> bool:
    return not reads_clock(expr)


def _cast(call: Call) -> Trend | None:
    inner, kind = call.arguments[0].type, call.type
    found = trend(call.arguments[0])
    if inner in (TIMESTAMP, TIMESTAMP_NTZ) and kind in (TIMESTAMP, TIMESTAMP_NTZ):
        return found
    numbers = kind in (BIGINT, DOUBLE) and inner in (TIMESTAMP, INT, BIGINT, pa.float32())
    if numbers or (inner in _TIMES and kind in _TIMES):
        return replace(found, even=False)
    return None


def _rounded(place: int) -> Callable[[Call], Trend | None]:
    """Rises with one argument, by steps; the others are constants."""

    def rule(call: Call) -> Trend | None:
        others = [one for at, one in enumerate(call.arguments) if at != place]
        if not all(isinstance(one, Literal) for one in others):
            return None
        return replace(trend(call.arguments[place]), even=False)

    return rule


def _shifted(call: Call) -> Trend | None:
    """A date and a number of days or months; as many as that wrap around are not read."""
    moved, by = call.arguments
    if not _is_near(by):
        return None
    return replace(trend(moved), even=False)


def _interval_added(call: Call) -> Trend | None:
    moved, interval = call.arguments
    if not _steady(interval):
        return None
    found = trend(moved)
    if pa.types.is_duration(interval.type):
        return found
    if moved.type == DATE:
        return replace(found, even=False)
    return Trend(found.sign, turns=(*found.turns, Turn(moved, None, months=True)))


def _interval_added_there(call: Call) -> Trend | None:
    moved, interval, zone = call.arguments
    if not _steady(interval):
        return None
    found, where = trend(moved), _zone(zone)
    by_time = pa.types.is_duration(interval.type)
    if by_time and where is None:
        return found
    return _turned(found, local_time(moved, _name(zone)), where, months=not by_time)


def _units_added(call: Call) -> Trend | None:
    unit, count, moved, *zone = call.arguments
    if not isinstance(unit, Literal) or not _is_near(count):
        return None
    found = trend(moved)
    where = _zone(zone[0]) if zone else None
    days = unit.value in _WHOLE_UNITS
    if days and where is None:
        return found
    return _turned(found, local_time(moved, _name(zone[0])) if zone else moved, where, months=not days)


def _shown(call: Call) -> Trend | None:
    moment, zone = call.arguments
    found, where = trend(moment), _zone(zone)
    return found if where is None else _turned(found, call, where)


def _meant(call: Call) -> Trend | None:
    shown, zone = call.arguments
    if shown.type not in (DATE, TIMESTAMP_NTZ):
        return None
    found, where = trend(shown), _zone(zone)
    if where is None:
        return found if shown.type == TIMESTAMP_NTZ else replace(found, even=False)
    return _turned(found, shown, where)


def _truncated_there(call: Call) -> Trend | None:
    unit, moment, zone = call.arguments
    if not isinstance(unit, Literal):
        return None
    found, where = trend(moment), _zone(zone)
    if where is None:
        return replace(found, even=False)
    return _turned(found, local_time(moment, _name(zone)), where)


def _turned(found: Trend, shown: Expr, zone: str | None, *, months: bool = False) -> Trend:
    return Trend(found.sign, turns=(*found.turns, Turn(shown, zone, months=months)))


def _difference(call: Call) -> Trend | None:
    """Of one that depends on the clock and one that does not."""
    *_, left, right = call.arguments
    if call.function == "timestampdiff":  # from, to
        left, right = right, left
    if not _steady(left) and not _steady(right):
        return None
    found = trend(left) if _steady(right) else _opposite(trend(right))
    even = found.even and (call.function == "subtract_timestamps" or _is_even_sum(call))
    return replace(found, even=even)


def _is_even_sum(call: Call) -> bool:
    return call.function in ("add", "subtract") and pa.types.is_duration(call.type)


def _sum(call: Call) -> Trend | None:
    left, right = call.arguments
    if call.type not in (BIGINT, INT, DOUBLE) and not pa.types.is_duration(call.type):
        return None
    if not _steady(left) and not _steady(right):
        return None
    if call.function.startswith("wrapping_") and not _is_near(right if _steady(right) else left):
        return None
    if call.function.endswith("subtract"):
        return _difference(call)
    found = trend(left) if _steady(right) else trend(right)
    return replace(found, even=found.even and _is_even_sum(call))


def _negated(call: Call) -> Trend | None:
    return _opposite(trend(call.arguments[0]))


def _opposite(found: Trend) -> Trend:
    return replace(found, sign=-found.sign)


def _zone(zone: Expr) -> str | None:
    """The zone, if its clocks are ever changed."""
    name = _name(zone)
    return None if is_fixed(name) else name


def _name(zone: Expr) -> str:
    assert isinstance(zone, Literal), "a zone is a constant"
    return str(zone.value)


_RULES: dict[str, Callable[[Call], Trend | None]] = {
    **dict.fromkeys(("cast", "legacy_cast", "try_cast"), _cast),
    **dict.fromkeys(("timestamp_add_interval", "date_add_interval"), _interval_added),
    "local_add": _interval_added_there,
    **dict.fromkeys(("timestampadd", "local_timestampadd"), _units_added),
    "local_time": _shown,
    "utc_time": _meant,
    "local_trunc": _truncated_there,
    **dict.fromkeys(("date_add", "date_sub", "add_months"), _shifted),
    **dict.fromkeys(_ROUNDED, _rounded(0)),
    "date_trunc": _rounded(1),
    **dict.fromkeys(("subtract_timestamps", "subtract_dates", "date_diff", "timestampdiff"), _difference),
    **dict.fromkeys(("add", "subtract", "wrapping_add", "wrapping_subtract"), _sum),
    **dict.fromkeys(("negate", "wrapping_negate"), _negated),
}
"""Functions that rise with the clock, or fall, by the names that plans have for them."""
