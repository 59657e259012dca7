"""What functions mean in a session of another time zone than UTC: the same functions, of what its clocks show.

Plans without these are those of a session in UTC. A moment is an instant, whatever the zone: comparing, sorting and
grouping moments, windows of time and lengths of time below a day look at no clock.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from weirflow.errors import ConfigError, NotIncremental, Reason
from weirflow.sql.expr import Call, Expr, Frame, FrameUnit, Literal, SortKey, WindowCall, ZonedFrame
from weirflow.sql.map_calls import map_calls
from weirflow.sql.plan import Plan, Window
from weirflow.sql.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ
from weirflow.sql.zone_ids import SHORT_IDS

if TYPE_CHECKING:
    from weirflow.errors import SqlPosition

UTC_ZONE: Final = "UTC"
"""What all names of it are read as."""
_UTC_NAMES = frozenset({"UTC", "Etc/UTC", "Z", "GMT", "Etc/GMT", "+00:00", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu"})
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::(\d{2})(?::(\d{2}))?)?")
_MOST_HOURS = 18
_DAY = timedelta(days=1)
_CASTS = {"cast": "local_cast", "try_cast": "try_local_cast", "legacy_cast": "legacy_local_cast"}
"""What casts of arrays, maps and structs are called in a zone."""
_CLOCK_PARTS = frozenset({"hour", "minute", "second", "second_with_fraction", "date_format"})
_SHOWN_BY_CLOCKS = frozenset({"parse_timestamp", "try_parse_timestamp", "make_timestamp", "try_make_timestamp"})
_IN_PATTERNS = frozenset({"date_format", "parse_timestamp", "try_parse_timestamp"})
_QUOTED = re.compile("'[^']*'")
_STARTS_AND_STOPS = 2
_BY_TIME = frozenset({"HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"})


def zone_name(name: str) -> str:
    """A time zone, by one name for all that are UTC, and what a short name of Java's (``PST``) stands for."""
    return UTC_ZONE if name in _UTC_NAMES else SHORT_IDS.get(name, name)


def tzinfo_of(zone: str) -> tzinfo:
    """The clocks of a zone for single times; ``ConfigError`` if this machine knows none of this name."""
    zone = zone_name(zone)
    if zone == UTC_ZONE:
        return UTC
    found = _OFFSET.fullmatch(zone)
    hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:]) if found else (0, 0, 0)
    ahead = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if found and ahead <= timedelta(hours=_MOST_HOURS):
        return timezone(-ahead if found[1] == "-" else ahead)
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(
            f"This machine does not know the time zone {zone!r}.",
            hint="write a region such as 'America/New_York', or an offset such as '+05:30'",
        ) from None


def is_fixed(zone: str) -> bool:
    """Whether the clocks of a zone are never changed."""
    return zone in _UTC_NAMES or _OFFSET.fullmatch(zone) is not None


def plan_there(plan: Plan, zone: str) -> Plan:
    """What a plan of a session in UTC is in a session of that zone.

    Raises:
        NotIncremental: there is something in it that is not computed by the clocks of that zone.
    """
    if zone == UTC_ZONE:
        return plan

    def node_there(node: Plan) -> Plan:
        return (
            replace(node, calls=tuple(_window_there(call, zone) for call in node.calls))
            if isinstance(node, Window)
            else node
        )

    return map_calls(plan, lambda call: there(call, zone), node_there)


def there(call: Call, zone: str) -> Expr:  # noqa: C901, PLR0911 - one for each kind of function
    """What a call in UTC is in a session of that zone; its arguments are what they are there."""
    if zone == UTC_ZONE:
        return call
    name, arguments = call.function, call.arguments
    if name in _CASTS:
        return cast_there(call, zone)
    if name in _IN_PATTERNS and TIMESTAMP in (arguments[0].type, call.type) and _tells_offsets(arguments[1]):
        return replace(call, arguments=(*arguments, Literal(zone, STRING)))
    if name in _CLOCK_PARTS and arguments[0].type == TIMESTAMP:
        return replace(call, arguments=(local_time(arguments[0], zone), *arguments[1:]))
    if name == "date_trunc" and call.type == TIMESTAMP:
        return replace(call, function="local_trunc", arguments=(*arguments, Literal(zone, STRING)))
    if name == "timestamp_add_interval" and call.type == TIMESTAMP and not is_below_a_day(arguments[1]):
        return replace(call, function="local_add", arguments=(*arguments, Literal(zone, STRING)))
    if name == "timestampadd" and call.type == TIMESTAMP and not _is_by_time(arguments[0]):
        return replace(call, function="local_timestampadd", arguments=(*arguments, Literal(zone, STRING)))
    if name in _SHOWN_BY_CLOCKS and call.type == TIMESTAMP:
        shown_there = replace(call, type=TIMESTAMP_NTZ)
        return Call("utc_time", (shown_there, Literal(zone, STRING)), TIMESTAMP, call.position)
    if name in ("months_between", "to_json") or (name == "from_json" and len(arguments) > 1):
        return replace(call, arguments=(*arguments[:-1], Literal(zone, STRING)))
    if name == "sequence" and arguments[0].type == TIMESTAMP:
        if len(arguments) == _STARTS_AND_STOPS or not is_below_a_day(arguments[2]):
            raise NotIncremental(
                f"sequence() of days by the clocks of {zone} is not proven equal to Spark's.",
                reason=Reason.FUNCTION_NOT_PROVEN,
                position=call.position,
            )
        return call
    if name in ("subtract_timestamps", "timestampdiff"):
        shown = tuple(local_time(one, zone) if one.type == TIMESTAMP else one for one in arguments)
        return replace(call, arguments=shown)
    return call


def cast_there(call: Call, zone: str) -> Expr:
    """A cast in a session of that zone; what a clock shows can always be said, so that only texts may fail."""
    inner, kind = call.arguments[0], call.type
    if zone == UTC_ZONE or not looks_at_clocks(inner.type, kind):
        return call
    if inner.type == TIMESTAMP:
        shown = local_time(inner, zone)
        return shown if kind == TIMESTAMP_NTZ else replace(call, function="cast", arguments=(shown,))
    function = _CASTS[call.function]
    if kind == TIMESTAMP:
        function = "utc_time" if call.function == "cast" or inner.type != STRING else "try_utc_time"
    return replace(call, function=function, arguments=(inner, Literal(zone, STRING)))


def local_time(moment: Expr, zone: str) -> Expr:
    """What a clock of a time zone shows."""
    return Call("local_time", (moment, Literal(zone, STRING)), TIMESTAMP_NTZ)


def looks_at_clocks(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast between these types looks at the clocks of a zone."""
    if pa.types.is_nested(source):
        return _has(source, TIMESTAMP) or _has(target, TIMESTAMP)
    return TIMESTAMP in (source, target) and {source, target} & {DATE, STRING, TIMESTAMP_NTZ} != set()


def is_below_a_day(interval: Expr) -> bool:
    """Whether an interval is a constant of which no part is counted in days, which clocks make longer and shorter."""
    if isinstance(interval, Call) and interval.function == "negate":
        return is_below_a_day(interval.arguments[0])
    value = interval.value if isinstance(interval, Literal) else None
    return isinstance(value, timedelta) and abs(value) < _DAY


def require_below_a_day(length: timedelta, zone: str, what: str, position: SqlPosition | None) -> None:
    """``NotIncremental`` for a length of time in days, where clocks make days longer and shorter."""
    if abs(length) >= _DAY and not is_fixed(zone):
        raise NotIncremental(
            f"{what} of a day or more depends on when the clocks of {zone} are changed.",
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
            position=position,
        )


def frame_there(frame: Frame, order: tuple[SortKey, ...], zone: str) -> Frame:
    """A frame in this order, whose bounds may be days by the clocks of that zone."""
    if frame.unit is not FrameUnit.RANGE or not order or order[0].expr.type != TIMESTAMP or is_fixed(zone):
        return frame
    days = any(abs(timedelta(microseconds=bound or 0)) >= _DAY for bound in (frame.start, frame.end))
    return ZonedFrame(frame.unit, frame.start, frame.end, zone) if days else frame


def _window_there(call: WindowCall, zone: str) -> WindowCall:
    return call if call.frame is None else replace(call, frame=frame_there(call.frame, call.order_by, zone))


def _tells_offsets(pattern: Expr) -> bool:
    """Whether a constant pattern has letters of how far clocks are ahead of UTC."""
    value = pattern.value if isinstance(pattern, Literal) else None
    return isinstance(value, str) and not set("OXxZ").isdisjoint(_QUOTED.sub("", value))


def _is_by_time(unit: Expr) -> bool:
    return isinstance(unit, Literal) and unit.value in _BY_TIME


def _has(kind: pa.DataType, wanted: pa.DataType) -> bool:
    return kind == wanted or any(_has(kind.field(index).type, wanted) for index in range(kind.num_fields))
