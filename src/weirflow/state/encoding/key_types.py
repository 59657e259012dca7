"""From the declared type of a key to what checks, encodes and decodes its keys."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from datetime import date, datetime
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from weirflow.arguments import shown
from weirflow.errors import ConfigError
from weirflow.state.encoding.keys import Key, decode_key_at, encode_key

_SCALARS = (type(None), bool, int, float, str, bytes, date, datetime)
# Equal keys of these types are the same bytes, so that their bytes can be looked up by the key.
_HASHED = (int, str, bytes, bool)


class KeyCodec:
    """Keys of one declared type.

    Attributes:
        name: the type as text, by which stored state knows it again.
        exact: the type whose equal values have equal bytes, or None where that cannot be said.
    """

    def __init__(self, name: str, exact: type | None, lower: Callable[[Any], Key], lift: Callable[[Key], Any]) -> None:
        self.name = name
        self.exact = exact
        self._lower = lower
        self._lift = lift

    def encode(self, key: Any) -> bytes:
        """The bytes of a key; ``TypeError`` or ``ValueError`` if it is not of the type."""
        return encode_key(self._lower(key))

    def decode_at(self, data: bytes, at: int) -> tuple[Any, int]:
        """The key that begins at a place, and the place behind it."""
        key, end = decode_key_at(data, at)
        return self._lift(key), end


def key_codec(declared: Any) -> KeyCodec:
    """What handles keys of a type.

    Raises:
        ConfigError: no key can be of that type.
    """
    name, lower, lift = _parts(declared)
    return KeyCodec(name, declared if declared in _HASHED else None, lower, lift)


_Parts = tuple[str, Callable[[Any], Key], Callable[[Any], Any]]


def _parts(declared: Any) -> _Parts:
    declared = type(None) if declared is None else declared
    origin = get_origin(declared)
    if declared in _SCALARS:
        return _scalar(declared)
    if origin is tuple:
        return _tuple(get_args(declared))
    if origin in (Union, types.UnionType):
        return _union(get_args(declared))
    if isinstance(declared, type) and (fields := _fields(declared)) is not None:
        return _record(declared, fields)
    raise ConfigError(
        f"{shown(declared)} cannot be the type of a key.",
        hint="use bool, int, float, str, bytes, date, datetime, a tuple[...] of these, or a dataclass of them",
    )


def _scalar(declared: type) -> _Parts:
    def lower(key: Any) -> Key:
        if type(key) is declared:
            return key  # type: ignore[return-value]  # it is one of the scalars
        if declared is float and type(key) is int:
            return float(key)
        raise TypeError(f"{type(key).__name__} is not {declared.__name__}")

    return ("None" if declared is type(None) else declared.__name__), lower, _same


def _tuple(arguments: tuple[Any, ...]) -> _Parts:
    if len(arguments) == 2 and arguments[1] is Ellipsis:  # noqa: PLR2004 - tuple[x, ...]
        name, lower_one, lift_one = _parts(arguments[0])
        return (
            f"tuple[{name}, ...]",
            lambda key: tuple(map(lower_one, _a_tuple(key))),
            lambda key: tuple(map(lift_one, key)),
        )
    parts = [_parts(one) for one in arguments]
    lowers, lifts = [part[1] for part in parts], [part[2] for part in parts]

    def lower(key: Any) -> Key:
        if len(_a_tuple(key)) != len(lowers):
            raise TypeError(f"{len(key)} elements are not {len(lowers)}")
        return tuple(one(element) for one, element in zip(lowers, key, strict=True))

    return (
        f"tuple[{', '.join(part[0] for part in parts)}]",
        lower,
        lambda key: tuple(one(element) for one, element in zip(lifts, key, strict=True)),
    )


def _union(arguments: tuple[Any, ...]) -> _Parts:
    """Of scalars alone: what is stored tells them apart."""
    kinds = [type(None) if one is None else one for one in arguments]
    if any(one not in _SCALARS for one in kinds):
        raise ConfigError(f"{arguments} cannot be one key's types.", hint="a union of keys is one of plain types")

    def lower(key: Any) -> Key:
        if type(key) not in kinds:
            raise TypeError(f"{type(key).__name__} is none of {name}")
        return key  # type: ignore[no-any-return]  # it is one of the scalars

    name = " | ".join(sorted(_parts(one)[0] for one in kinds))
    return name, lower, _same


def _record(declared: type, fields: list[str]) -> _Parts:
    """A class of fields is a tuple of them."""
    hints = get_type_hints(declared)
    name, lower_tuple, lift_tuple = _tuple(tuple(hints[field] for field in fields))

    def lower(key: Any) -> Key:
        if type(key) is not declared:
            raise TypeError(f"{type(key).__name__} is not {declared.__name__}")
        return lower_tuple(tuple(getattr(key, field) for field in fields))

    return name, lower, lambda key: declared(**dict(zip(fields, lift_tuple(key), strict=True)))


def _fields(declared: type) -> list[str] | None:
    if dataclasses.is_dataclass(declared):
        return [field.name for field in dataclasses.fields(declared)]
    if issubclass(declared, msgspec.Struct):
        return list(declared.__struct_fields__)
    if issubclass(declared, tuple) and hasattr(declared, "_fields"):
        return list(declared._fields)
    return None


def _a_tuple(key: Any) -> tuple[Any, ...]:
    if type(key) is not tuple:
        raise TypeError(f"{type(key).__name__} is not tuple")
    return key


def _same(key: Any) -> Any:
    return key
