"""``Manifest``: what a result consists of, whose it is and how long it can be fetched; it is kept beside the parts."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from weirflow.errors import StorageError
from weirflow.server.results.parts import Part  # noqa: TC001 - msgspec reads the annotation

FILE = "manifest.json"
"""What it is called in the folder of a result; without one, a result is not finished."""
_FORMAT = 1


class Manifest(msgspec.Struct, frozen=True):
    """A result that can be fetched.

    Attributes:
        id: by which tickets name it; cannot be guessed.
        owner: the key of the caller that it was made for.
        expires: from when on it cannot be fetched, in seconds since 1970.
        schema: its columns, as bytes of Arrow.
        parts: its files, in the order of the rows.
        is_ordered: whether the rows have an order, so that parts must be read one after the other.
        format: the version of this form.
    """

    id: str
    owner: str
    expires: float
    schema: bytes
    parts: tuple[Part, ...]
    is_ordered: bool = False
    format: int = _FORMAT

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(part.rows for part in self.parts)

    @property
    def size(self) -> int:
        """How many bytes its files have."""
        return sum(part.size for part in self.parts)

    @property
    def columns(self) -> pa.Schema:
        """Its columns."""
        return pa.ipc.read_schema(pa.py_buffer(self.schema))


def to_bytes(manifest: Manifest) -> bytes:
    """A manifest as it is kept."""
    return msgspec.json.encode(manifest)


def from_bytes(content: bytes, where: str) -> Manifest:
    """A manifest that was kept; ``StorageError`` if it is damaged, or of a version that is not known."""
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
        manifest.columns  # noqa: B018 - raises if it is damaged
    except (msgspec.DecodeError, pa.ArrowException, OSError, ValueError) as error:
        raise StorageError(f"The manifest of a result is damaged: {error}.", uri=where) from error
    if manifest.format != _FORMAT:
        raise StorageError(f"A result has a manifest of the version {manifest.format}.", uri=where)
    return manifest
