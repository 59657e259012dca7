"""Values as bytes: when they expire (8 bytes, little-endian, only with a time to live), their version, MessagePack.

The version is a varint: 7 bits a byte, the lowest first, the top bit set where another byte follows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from weirflow.arguments import shown
from weirflow.errors import ConfigError, StateDamaged, StateTypeError
from weirflow.state.encoding.value_types import python_type, type_name

if TYPE_CHECKING:
    from weirflow.state.descriptors import StateDescriptor
    from weirflow.state.migrations import Migrations

STAMP = 8
"""Bytes of the time at which a value expires."""
_PLAIN = (bool, int, float, str, bytes)
_MORE = 0x80
_REFUSED = (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError)
_encode = msgspec.msgpack.Encoder().encode


def varint(number: int) -> bytes:
    """A number that is not negative, in as few bytes as it needs.

    >>> varint(300).hex(" ")
    'ac 02'
    """
    found = bytearray()
    while number >= _MORE:
        found.append(number & 0x7F | _MORE)
        number >>= 7
    found.append(number)
    return bytes(found)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a place, and the place behind it; ``IndexError`` if the bytes end before."""
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at += 1
        if byte < _MORE:
            return number, at
        shift += 7


def stamp(expires_at_ms: int) -> bytes:
    """How a value begins that expires at a time."""
    return expires_at_ms.to_bytes(STAMP, "little")


def expiry(data: bytes) -> int:
    """When a value expires that begins with a stamp."""
    return int.from_bytes(data[:STAMP], "little")


class ValueCodec:
    """Values of one slot: what each of its entries holds.

    Args:
        descriptor: the slot.
        declared: the type of an entry.
        migrations: the steps from older versions.

    Raises:
        ConfigError: values cannot be of that type.
    """

    def __init__(self, descriptor: StateDescriptor, declared: Any, migrations: Migrations) -> None:
        self._slot = descriptor.name
        self._version = descriptor.version
        self._migrations = migrations
        self._type = python_type(declared)
        self._name = type_name(declared)
        self._plain = self._type if self._type in _PLAIN else None
        self._class = self._type if _is_record(self._type) else None
        try:
            known = not isinstance(msgspec.inspect.type_info(self._type), msgspec.inspect.CustomType)
            self._decoder = msgspec.msgpack.Decoder(self._type)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"The slot {self._slot!r} cannot hold {self._name}: {error}") from error
        if not known:
            raise ConfigError(
                f"The slot {self._slot!r} cannot hold {self._name}.",
                hint="use Python's own types, dataclasses, msgspec Structs or Arrow types",
            )
        self._decode = self._decoder.decode
        self._head = varint(descriptor.version)
        self._start = 0 if descriptor.ttl is None else STAMP
        self._body = self._start + len(self._head)

    def encode(self, value: Any, key: object, expires: bytes = b"") -> bytes:
        """The bytes of a value, behind the stamp of when it expires.

        Raises:
            StateTypeError: it is not of the slot's type, or cannot be stored.
        """
        if type(value) is self._plain:
            try:
                return expires + self._head + _encode(value)
            except _REFUSED as error:
                raise self._wrong(value, key, error) from error
        return expires + self._head + self._checked(value, key)

    def encode_many(self, values: Sequence[Any], keys: Sequence[object], expires: bytes = b"") -> list[bytes]:
        """As ``encode``, for many at once."""
        head = expires + self._head
        if set(map(type, values)) == {self._plain}:
            # What fails does so again below, where it is known which value it is.
            with suppress(*_REFUSED):
                return [head + _encode(value) for value in values]
        return [self.encode(value, key, expires) for value, key in zip(values, keys, strict=True)]

    def decode(self, data: bytes, key: object) -> Any:
        """The value in bytes, brought to the slot's version.

        Raises:
            MigrationMissing: it is of another version, and no steps lead to the slot's.
            StateDamaged: the bytes are not those of such a value.
        """
        if data.startswith(self._head, self._start):
            try:
                return self._decode(data[self._body :])
            except msgspec.MsgspecError as error:
                raise self._damaged(key, str(error)) from error
        return self._migrated(data, key)

    def decode_many(self, found: Sequence[bytes | None], keys: Sequence[object]) -> list[Any]:
        """As ``decode``, for many at once; None stays None."""
        head, start, body, decode = self._head, self._start, self._body, self._decode
        if {head if data is None else data[start:body] for data in found} == {head}:
            # What fails does so again below, where it is known which value it is.
            with suppress(msgspec.MsgspecError):
                return [None if data is None else decode(data[body:]) for data in found]
        return [None if data is None else self.decode(data, key) for data, key in zip(found, keys, strict=True)]

    def _checked(self, value: Any, key: object) -> bytes:
        """What is stored can be read: it is, before it is written."""
        try:
            if self._class is not None and not isinstance(value, self._class):
                raise TypeError(f"it is a {type(value).__name__}")
            body = _encode(value)
            self._decode(body)
        except _REFUSED as error:
            raise self._wrong(value, key, error) from error
        return body

    def _migrated(self, data: bytes, key: object) -> Any:
        try:
            version, at = read_varint(data, self._start)
        except IndexError:
            raise self._damaged(key, "they end early") from None
        body = self._migrations.migrate(self._slot, version, self._version, data[at:])
        try:
            return self._decode(body)
        except msgspec.MsgspecError as error:
            raise self._damaged(key, f"what was version {version} is not {self._name} after migrations: {error}") from (
                error
            )

    def _wrong(self, value: Any, key: object, error: Exception) -> StateTypeError:
        return StateTypeError(
            f"The slot {self._slot!r} holds {self._name}; for the key {shown(key)} it was given "
            f"{type(value).__name__}: {error}.",
            slot=self._slot,
            key=shown(key),
            hint="nothing was written",
        )

    def _damaged(self, key: object, why: str) -> StateDamaged:
        return StateDamaged(
            f"The value of {self._slot!r} for the key {shown(key)} cannot be read as {self._name}: {why}.",
            hint="if its type has changed, increase the descriptor's version and register a state_migration",
        )


def _is_record(declared: Any) -> bool:
    return isinstance(declared, type) and (dataclasses.is_dataclass(declared) or issubclass(declared, msgspec.Struct))
