"""From the declared type of a value to the type that msgspec reads; Arrow types by a fixed mapping.

| Arrow | Python |
|---|---|
| null, bool | None, bool |
| int8 to uint64 | int of that range |
| float16, float32, float64 | float, kept with all its digits |
| decimal128, decimal256 | Decimal |
| string, binary and their large and view forms | str, bytes |
| date32, date64; time32, time64[us]; duration to us | date; time; timedelta |
| timestamp to us, without and with a zone | datetime, naive and aware |
| list and its forms | list |
| struct | dict with just these names |
| map | dict |

What is inside an Arrow list, map or struct may be None; the value itself may not.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, TypedDict, get_args, get_origin

from msgspec import Meta

from weirflow.arguments import shown
from weirflow.errors import ConfigError


def is_arrow(declared: Any) -> bool:
    """Whether a declared type is one of Arrow's; asks without loading pyarrow."""
    return type(declared).__module__.partition(".")[0] == "pyarrow"


def python_type(declared: Any) -> Any:
    """The type that msgspec reads.

    Raises:
        ConfigError: it is an Arrow type that Python's own types cannot hold.
    """
    return _from_arrow(declared) if is_arrow(declared) else declared


def element_type(declared: Any, slot: str) -> Any:
    """The type of the elements of list state.

    Raises:
        ConfigError: it is not declared as a list.
    """
    declared = python_type(declared)
    if get_origin(declared) is not list:
        raise ConfigError(f"The list state {slot!r} is declared as {declared!r}.", hint="declare it as list[...]")
    return get_args(declared)[0]


def entry_types(declared: Any, slot: str) -> tuple[Any, Any]:
    """The types of the keys and values of map state.

    Raises:
        ConfigError: it is not declared as a dict.
    """
    declared = python_type(declared)
    if get_origin(declared) is not dict:
        raise ConfigError(f"The map state {slot!r} is declared as {declared!r}.", hint="declare it as dict[..., ...]")
    key, value = get_args(declared)
    return key, value


def type_name(declared: Any) -> str:
    """A type as text, for people."""
    if isinstance(declared, type) and not get_args(declared):
        return declared.__name__
    return shown(declared) if isinstance(declared, int) else str(declared)


def _from_arrow(arrow: Any) -> Any:  # noqa: PLR0911 - one for each family of types
    import pyarrow.types as kinds  # noqa: PLC0415 - only those who declare Arrow types have it loaded

    if kinds.is_struct(arrow):
        return TypedDict("struct", {field.name: _nullable(field.type) for field in arrow})  # type: ignore[operator]
    if kinds.is_map(arrow):
        return dict[_from_arrow(arrow.key_type), _nullable(arrow.item_type)]  # type: ignore[misc]
    if _is_list(kinds, arrow):
        return list[_nullable(arrow.value_type)]  # type: ignore[misc]
    if kinds.is_integer(arrow):
        return _integer(arrow)
    if kinds.is_timestamp(arrow):
        _refuse_nanoseconds(arrow)
        return Annotated[datetime, Meta(tz=arrow.tz is not None)]
    if kinds.is_time(arrow) or kinds.is_duration(arrow):
        _refuse_nanoseconds(arrow)
        return time if kinds.is_time(arrow) else timedelta
    for test, python in (
        (kinds.is_null, None),
        (kinds.is_boolean, bool),
        (kinds.is_floating, float),
        (kinds.is_decimal, Decimal),
        (kinds.is_date, date),
        (lambda one: kinds.is_string(one) or kinds.is_large_string(one) or kinds.is_string_view(one), str),
        (lambda one: kinds.is_binary(one) or kinds.is_large_binary(one) or kinds.is_binary_view(one), bytes),
    ):
        if test(arrow):
            return python
    raise ConfigError(f"State cannot hold values of Arrow's type {arrow}.", hint="see the table in docs/state.md")


def _nullable(arrow: Any) -> Any:
    return _from_arrow(arrow) | None if _from_arrow(arrow) is not None else None


def _is_list(kinds: Any, arrow: Any) -> bool:
    return bool(kinds.is_list(arrow) or kinds.is_large_list(arrow) or kinds.is_fixed_size_list(arrow))


def _integer(arrow: Any) -> Any:
    bits = arrow.bit_width
    # 64 bits are what MessagePack holds; msgspec's bounds would not fit into its own integers.
    if str(arrow) == "uint64":
        return Annotated[int, Meta(ge=0)]
    if str(arrow) == "int64":
        return Annotated[int, Meta(le=(1 << 63) - 1)]
    if str(arrow).startswith("u"):
        return Annotated[int, Meta(ge=0, le=(1 << bits) - 1)]
    return Annotated[int, Meta(ge=-(1 << bits - 1), le=(1 << bits - 1) - 1)]


def _refuse_nanoseconds(arrow: Any) -> None:
    if arrow.unit == "ns":
        raise ConfigError(
            f"State cannot hold values of Arrow's type {arrow}: Python's times have no nanoseconds.",
            hint="use microseconds, or an integer",
        )
