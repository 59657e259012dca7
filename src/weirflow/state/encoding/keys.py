"""Keys as bytes: in the order of their values, each ending where its own bytes say, so that tuples share prefixes.

What follows a key must not begin with FF; neither another key does nor the index of a list.

A key is a tag and its content. Tags order the types: None, False, True, int, float, str, bytes, date, datetime without
and with a time zone, tuple.

| type | content |
|---|---|
| int | as many bytes as its size needs, big-endian, the number of bytes in the tag; negative ones complemented |
| int beyond 8 bytes | the number of bytes as 4 bytes, then those; negative ones complemented |
| float | IEEE 754 big-endian, the sign flipped, negative ones complemented; -0.0 is 0.0, NaN is one and the greatest |
| str, bytes | UTF-8, or the bytes; 00 is written as 00 FF; ends with 00 |
| date | days since 0001-01-01, 4 bytes |
| datetime | microseconds since 0001-01-01, 8 bytes; with a time zone in UTC |
| tuple | its elements; ends with 00 |
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import TypeAlias

from weirflow.errors import StateDamaged

Key: TypeAlias = bool | int | float | str | bytes | date | datetime | tuple["Key", ...] | None
"""What can be encoded, by exact type."""

_END = 0x00
_NONE, _FALSE, _TRUE = 0x01, 0x02, 0x03
_HUGE_NEGATIVE, _ZERO, _HUGE = 0x0B, 0x14, 0x1D
_FLOAT, _STR, _BYTES, _DATE, _NAIVE, _AWARE, _TUPLE = 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27

_WORD = 8
_SIGN = 1 << 63
_ALL_64 = (1 << 64) - 1
_ALL_32 = (1 << 32) - 1
_NAN = b"\x21\xff\xf8\0\0\0\0\0\0"
_MICROSECOND = timedelta(microseconds=1)
_FIRST = datetime(1, 1, 1)  # noqa: DTZ001 - the origin of times without a zone
_FIRST_UTC = datetime(1, 1, 1, tzinfo=UTC)
_double = struct.Struct(">d")
_unsigned = struct.Struct(">Q")


def encode_key(key: Key) -> bytes:
    """The bytes of a key.

    >>> encode_key(("ann", 7)).hex(" ")
    '27 22 61 6e 6e 00 15 07 00'

    Raises:
        TypeError: the key, or a part of it, is of no type that can be a key.
        UnicodeEncodeError: a string has lone surrogates.
    """
    encode = _ENCODERS.get(type(key))
    if encode is None:
        raise TypeError(f"{type(key).__name__} cannot be a key")
    return encode(key)


def tuple_prefix(*elements: Key) -> bytes:
    """How the bytes of every tuple begin that begins with these elements.

    >>> encode_key(("ann", 7)).startswith(tuple_prefix("ann"))
    True
    """
    return bytes((_TUPLE,)) + b"".join(map(encode_key, elements))


def decode_key(data: bytes) -> Key:
    """The key in bytes that hold nothing else.

    Raises:
        StateDamaged: they are not the bytes of a key.
    """
    key, end = decode_key_at(data, 0)
    if end != len(data):
        raise _damaged(data)
    return key


def decode_key_at(data: bytes, at: int) -> tuple[Key, int]:
    """The key that begins at a place, and the place behind it.

    Raises:
        StateDamaged: no key begins there.
    """
    try:
        return _decode(data, at)
    except (IndexError, ValueError, OverflowError, struct.error) as error:
        raise _damaged(data) from error


def _encode_int(key: int) -> bytes:
    size = (key.bit_length() + 7) >> 3
    if size <= _WORD:
        if key >= 0:
            return bytes((_ZERO + size,)) + key.to_bytes(size, "big")
        return bytes((_ZERO - size,)) + (key + (1 << 8 * size) - 1).to_bytes(size, "big")
    if key >= 0:
        return bytes((_HUGE,)) + size.to_bytes(4, "big") + key.to_bytes(size, "big")
    complement = key + (1 << 8 * size) - 1
    return bytes((_HUGE_NEGATIVE,)) + (_ALL_32 - size).to_bytes(4, "big") + complement.to_bytes(size, "big")


def _encode_float(key: float) -> bytes:
    if math.isnan(key):
        return _NAN
    # Adding zero makes -0.0 positive.
    (bits,) = _unsigned.unpack(_double.pack(key + 0.0))
    return bytes((_FLOAT,)) + _unsigned.pack(bits ^ _ALL_64 if bits & _SIGN else bits | _SIGN)


def _encode_str(key: str) -> bytes:
    return b"\x22" + key.encode().replace(b"\0", b"\0\xff") + b"\0"


def _encode_bytes(key: bytes) -> bytes:
    return b"\x23" + key.replace(b"\0", b"\0\xff") + b"\0"


def _encode_date(key: date) -> bytes:
    return bytes((_DATE,)) + (key.toordinal() - 1).to_bytes(4, "big")


def _encode_datetime(key: datetime) -> bytes:
    if key.utcoffset() is None:
        return bytes((_NAIVE,)) + _unsigned.pack((key.replace(tzinfo=None) - _FIRST) // _MICROSECOND)
    return bytes((_AWARE,)) + _unsigned.pack((key - _FIRST_UTC) // _MICROSECOND)


def _encode_tuple(key: tuple[Key, ...]) -> bytes:
    return tuple_prefix(*key) + b"\0"


_ENCODERS: dict[type, Callable[..., bytes]] = {
    type(None): lambda _: b"\x01",
    bool: lambda key: b"\x03" if key else b"\x02",
    int: _encode_int,
    float: _encode_float,
    str: _encode_str,
    bytes: _encode_bytes,
    date: _encode_date,
    datetime: _encode_datetime,
    tuple: _encode_tuple,
}


def _decode(data: bytes, at: int) -> tuple[Key, int]:  # noqa: PLR0911 - one for each tag
    tag = data[at]
    at += 1
    if tag <= _TRUE and tag != _END:
        return (None, False, True)[tag - 1], at
    if _HUGE_NEGATIVE <= tag <= _HUGE:
        return _decode_int(data, tag, at)
    match tag:
        case 0x21:
            (bits,) = _unsigned.unpack(_exactly(data, at, 8))
            (number,) = _double.unpack(_unsigned.pack(bits ^ _SIGN if bits & _SIGN else bits ^ _ALL_64))
            return float(number), at + 8
        case 0x22:
            text, at = _decode_bytes(data, at)
            return text.decode(), at
        case 0x23:
            return _decode_bytes(data, at)
        case 0x24:
            return date.fromordinal(int.from_bytes(_exactly(data, at, 4), "big") + 1), at + 4
        case 0x25 | 0x26:
            (microseconds,) = _unsigned.unpack(_exactly(data, at, 8))
            return (_FIRST if tag == _NAIVE else _FIRST_UTC) + microseconds * _MICROSECOND, at + 8
        case 0x27:
            elements = []
            while data[at] != _END:
                element, at = _decode(data, at)
                elements.append(element)
            return tuple(elements), at + 1
        case _:
            raise ValueError(tag)


def _decode_int(data: bytes, tag: int, at: int) -> tuple[int, int]:
    if tag in (_HUGE, _HUGE_NEGATIVE):
        size = int.from_bytes(_exactly(data, at, 4), "big")
        at += 4
        size = size if tag == _HUGE else _ALL_32 - size
    else:
        size = abs(tag - _ZERO)
    number = int.from_bytes(_exactly(data, at, size), "big")
    return number if tag >= _ZERO else number - (1 << 8 * size) + 1, at + size


def _decode_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    end = data.index(b"\0", at)
    while data[end + 1 : end + 2] == b"\xff":
        end = data.index(b"\0", end + 2)
    return data[at:end].replace(b"\0\xff", b"\0"), end + 1


def _exactly(data: bytes, at: int, size: int) -> bytes:
    found = data[at : at + size]
    if len(found) != size:
        raise ValueError(size)
    return found


def _damaged(data: bytes) -> StateDamaged:
    return StateDamaged(f"The bytes {data[:64].hex(' ')} are not those of a key.")
