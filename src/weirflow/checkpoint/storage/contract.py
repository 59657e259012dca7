"""The contract every checkpoint storage keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from weirflow.arguments import checked
from weirflow.errors import ObjectNotFound

if TYPE_CHECKING:
    from datetime import datetime

Chunk: TypeAlias = bytes | bytearray | memoryview
Data: TypeAlias = Chunk | Iterable[Chunk]

STREAM_CHUNK = 8 * 1024 * 1024


@dataclass(frozen=True)
class ObjectInfo:
    """What a storage knows about one object.

    Attributes:
        name: the name below the storage's URI.
        size: length in bytes.
        version: opaque; different after every replacement with other bytes. On S3 it is the ETag, so equal bytes may
            share a version: store something unique (an epoch, a fencing token) if that matters. None if the store does
            not report it, as in ``list`` on ``gs://``; then ask ``head``.
        modified: when it was written, by the store's clock. None in the answer of a put to an object store,
            which does not report it; ask ``head``.
    """

    name: str
    size: int
    version: str | None
    modified: datetime | None


class CheckpointStorage(Protocol):
    """Whole objects under names; put-if-absent is the one operation that publishes atomically.

    All methods are synchronous and may be called from any thread. A reader sees a whole object or none, even while it
    is being replaced or after a writer was killed. A put is durable when it returns: on local files the bytes and all
    folder entries are fsynced, on an object store the store has acknowledged them; ``memory://`` lasts as long as the
    process.

    ``data`` is bytes-like, or an iterable of bytes-like chunks if it should not be in memory at once.
    An error raised by that iterable passes through unchanged and nothing is written.

    Names are relative and ``/``-separated (see ``weirflow.checkpoint.storage.names``); a bad one is a ConfigError
    before anything is touched. A name should not also be the folder of other names: local files cannot hold
    both.

    Failures of the store are a StorageError. Unless the method says otherwise, the outcome of such a failed put is
    unknown: the object is there as a whole, or not at all.
    """

    @property
    def uri(self) -> str:
        """Where this storage is, without credentials."""

    @property
    def supports_conditional_update(self) -> bool:
        """Whether ``put_if_match`` works here; False for local files."""

    def put(self, name: str, data: Data) -> ObjectInfo:
        """Write an object, and atomically replace the one that had the name."""

    def put_if_absent(self, name: str, data: Data) -> ObjectInfo:
        """Write an object whose name must be free. If several writers try at once, exactly one succeeds.

        On object stores the whole of ``data`` is held in memory, because these have no conditional streamed upload. Put
        big objects under a unique name, then publish them with a small manifest.

        Raises:
            ObjectExists: the name is taken and its object untouched. If an object store failed to answer and the
                request was repeated, that object can be this call's own; compare it if that matters.
        """

    def put_if_match(self, name: str, data: Data, version: str) -> ObjectInfo:
        """Replace an object only while it has this version. Holds data in memory, like ``put_if_absent``.

        Raises:
            ObjectChanged: it has another version, or is gone; nothing was written.
            UnsupportedError: this storage has no conditional update (local files).
        """

    def get(self, name: str) -> bytes:
        """The whole object.

        Raises:
            ObjectNotFound: no object has this name.
        """

    def map(self, name: str) -> memoryview:
        """The whole object as read-only memory: mapped where it is a local file, so that pages are read when touched.

        Raises:
            ObjectNotFound: no object has this name.
        """

    def get_range(self, name: str, start: int, length: int) -> bytes:
        """The bytes ``[start, start + length)``, like a slice: fewer, or none, where the object ends earlier.

        Raises:
            ObjectNotFound: no object has this name.
        """

    def stream(self, name: str, chunk_size: int = STREAM_CHUNK) -> Iterator[bytes]:
        """The object in order, in non-empty chunks of at most ``chunk_size`` bytes.

        Nothing is opened before you ask for the first chunk; errors come then. All chunks are of one version, even if
        the object is replaced or deleted meanwhile; otherwise the stream fails.

        Raises:
            ObjectNotFound: no object has this name.
        """

    def head(self, name: str) -> ObjectInfo:
        """What is known about an object, without reading it.

        Raises:
            ObjectNotFound: no object has this name.
        """

    @checked
    def exists(self, name: str) -> bool:
        """Whether an object has this name."""
        try:
            self.head(name)
        except ObjectNotFound:
            return False
        return True

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects, or those below a folder such as ``"epochs/"``, by name in code-point order.

        The listing is streamed. Objects that are put or deleted meanwhile may or may not be seen; all others are seen
        once. Files and keys whose names are not valid object names are not shown. A folder that does not exist is
        empty.

        Args:
            prefix: empty, or a folder with its final ``/``.
        """

    def delete(self, name: str) -> None:
        """Remove an object. One that does not exist is not an error."""
