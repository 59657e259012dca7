"""``StateManifest``: what a checkpoint of keyed state consists of, as one small file that vouches for all others."""

from __future__ import annotations

import hashlib
from typing import Any, Literal, TypeVar

import msgspec

from weirflow.errors import StorageError
from weirflow.state.catalogue import SlotInfo  # noqa: TC001 - msgspec reads it

FORMAT = 1
EARLIER = "restore an earlier checkpoint (pass epoch=) or another savepoint"
_SEPARATOR = b"\n"
Sealed = TypeVar("Sealed", bound=msgspec.Struct)


class FileRef(msgspec.Struct, frozen=True):
    """A file: the name of the object that holds it, its length and the SHA-256 of its bytes."""

    object: str
    size: int
    sha256: str


class StatePart(msgspec.Struct, frozen=True):
    """The state of one range of key groups.

    Attributes:
        first: the first group.
        end: the group after the last.
        form: ``rocksdb`` for the files of a database, ``entries`` for packs of entries by key group.
        files: by their names in the database, or by key group.
        slots: for each operator.
    """

    first: int
    end: int
    form: Literal["rocksdb", "entries"]
    files: dict[str, FileRef]
    slots: dict[str, list[SlotInfo]]


class StateManifest(msgspec.Struct, frozen=True):
    """A consistent state of a job's operators.

    Attributes:
        epoch: which one it is; later ones are greater.
        fence: the token of whoever wrote it; a greater one has the say.
        parts: of all key groups, in their order.
    """

    epoch: int
    fence: int
    parts: list[StatePart]
    format: int = FORMAT


def seal(content: msgspec.Struct) -> bytes:
    """A file: a checksum, then JSON."""
    body = msgspec.json.encode(content)
    return hashlib.sha256(body).hexdigest().encode() + _SEPARATOR + body


def unseal(data: bytes, kind: type[Sealed], where: str) -> Sealed:
    """What is in a sealed file.

    Raises:
        StorageError: the file is damaged, or of a later format.
    """
    digest, separator, body = data.partition(_SEPARATOR)
    if not separator or hashlib.sha256(body).hexdigest().encode() != digest:
        raise refused(where, "its checksum is wrong")
    try:
        found: Any = msgspec.json.decode(body)
        version = found.get("format") if isinstance(found, dict) else None
        if version != FORMAT:
            raise refused(where, f"its format is {version}, this Weirflow reads {FORMAT}")
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise refused(where, str(error)) from error


def refused(where: str, why: str) -> StorageError:
    """The error for a checkpoint or savepoint that cannot be used."""
    return StorageError(f"{where} cannot be used: {why}.", uri=where, hint=EARLIER)
