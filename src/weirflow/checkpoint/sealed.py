"""Sealed files: a checksum, then JSON with a format version. What is damaged or too new is refused by name."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any, TypeVar

import msgspec

from weirflow.errors import StorageError

FORMAT = 1
_SEPARATOR = b"\n"
_PLAIN = b"{"
_WRONG = "its checksum is wrong"
_Content = TypeVar("_Content", bound=msgspec.Struct)


def seal(content: msgspec.Struct) -> bytes:
    """The file of a struct, which has a field ``format``."""
    body = msgspec.json.encode(content)
    return hashlib.sha256(body).hexdigest().encode() + _SEPARATOR + body


def unseal(data: bytes, kind: type[_Content], where: str, hint: str, formats: Collection[int] = (FORMAT,)) -> _Content:
    """What is in a sealed file of one of these formats; ``hint`` is what to do if it cannot be used.

    Raises:
        StorageError: the file is damaged, or of a later format.
    """
    digest, separator, body = data.partition(_SEPARATOR)
    if not separator or hashlib.sha256(body).hexdigest().encode() != digest:
        raise refused(where, _WRONG, hint)
    try:
        found: Any = msgspec.json.decode(body)
        version = found.get("format") if isinstance(found, dict) else None
        if version not in formats:
            raise refused(where, f"its format is {version}, this Weirflow reads {max(formats)}", hint)
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise refused(where, str(error), hint) from error


def unseal_or_plain(data: bytes, kind: type[_Content], where: str, hint: str) -> _Content:
    """What is in a sealed file, or in one of a version that wrote plain JSON: without checksum and format.

    Raises:
        StorageError: the file is damaged, or of a later format.
    """
    if not data.lstrip().startswith(_PLAIN):
        return unseal(data, kind, where, hint)
    try:
        if "format" in msgspec.json.decode(data, type=dict[str, Any]):
            # What has a format was sealed, and has lost its checksum.
            raise refused(where, _WRONG, hint)
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise refused(where, str(error), hint) from error


def refused(where: str, why: str, hint: str) -> StorageError:
    """The error for a file that cannot be used."""
    return StorageError(f"{where} cannot be used: {why}.", uri=where, hint=hint)
