"""The bytes of a log: how a file of records begins, how a record is laid out, and the tail."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TAIL = "tail"
_SUFFIX = ".log"
_MAGIC = b"WFLOG01\n"
_HEADER = struct.Struct("<8s16sQI")
_RECORD = struct.Struct("<QQI")
_TAIL_MAGIC = b"WFTAIL2\n"
_TAIL = struct.Struct("<8s16sQI")
_FIRST_TAIL = struct.Struct("<16sQI")
"""A tail of the first format: how far records were written, which then all had to be there."""

HEADER_SIZE = _HEADER.size
TAIL_SIZE = _TAIL.size


def log_name(first: int) -> str:
    """The name of the file that begins with a record."""
    return f"{first:020d}{_SUFFIX}"


def log_paths(folder: Path) -> list[Path]:
    """The files of a log, in the order of their records."""
    return sorted(folder.glob(f"*{_SUFFIX}")) if folder.is_dir() else []


def first_record(path: Path) -> int:
    """The number of a file's first record, by its name."""
    return int(path.name.removesuffix(_SUFFIX))


def encode_header(identity: bytes, first: int) -> bytes:
    """How a file begins."""
    return _with_checksum(_HEADER.pack(_MAGIC, identity, first, 0))


def decode_header(data: bytes) -> tuple[bytes, int] | None:
    """The identity of the flow and the number of the first record, as a file begins; None if that is not whole."""
    if len(data) < _HEADER.size or zlib.crc32(data[: _HEADER.size - 4]) != _HEADER.unpack_from(data)[-1]:
        return None
    magic, identity, first, _ = _HEADER.unpack_from(data)
    return (identity, first) if magic == _MAGIC else None


def encode_record(number: int, payload: bytes) -> bytes:
    """A record."""
    return _RECORD.pack(number, len(payload), _checksum(number, payload)) + payload


def decode_record(data: bytes, at: int) -> tuple[int, bytes | None, int]:
    """The record at a place: its number, its payload (None if it is not whole), and where it ends."""
    if at + _RECORD.size > len(data):
        return 0, None, len(data)
    number, length, checksum = _RECORD.unpack_from(data, at)
    begin = at + _RECORD.size
    payload = data[begin : begin + length]
    if len(payload) < length or _checksum(number, payload) != checksum:
        return number, None, len(data)
    return number, payload, begin + length


def encode_tail(identity: bytes, number: int) -> bytes:
    """The tail of a log whose records are on the disk up to a number."""
    return _with_checksum(_TAIL.pack(_TAIL_MAGIC, identity, number, 0))


def decode_tail(data: bytes) -> tuple[bytes, int] | None:
    """The identity of the flow and the number of the last record on the disk; None if the tail is not whole."""
    layout = _TAIL if data.startswith(_TAIL_MAGIC) else _FIRST_TAIL
    if len(data) != layout.size or zlib.crc32(data[:-4]) != layout.unpack(data)[-1]:
        return None
    identity, number = layout.unpack(data)[-3:-1]
    return identity, int(number)


def _with_checksum(data: bytes) -> bytes:
    return data[:-4] + struct.pack("<I", zlib.crc32(data[:-4]))


def _checksum(number: int, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(number.to_bytes(8, "little")))
