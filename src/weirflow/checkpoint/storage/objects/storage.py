"""Checkpoint storage on anything obstore speaks to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Literal

from typing_extensions import override

from weirflow.arguments import Count, Positive, checked
from weirflow.checkpoint.storage.chunks import views
from weirflow.checkpoint.storage.contract import STREAM_CHUNK, CheckpointStorage, Data, ObjectInfo
from weirflow.checkpoint.storage.names import check_name, check_prefix, is_name
from weirflow.checkpoint.storage.objects.errors import STORE_ERRORS, ErrorTranslator, is_beyond_end
from weirflow.errors import ObjectNotFound, UnsupportedError

# Bytes per part of a streamed upload; S3 takes 10,000 parts, so an object can be 80 GB.
_PART = 8 * 1024 * 1024
_PARTS_AT_ONCE = 4
# Bodies up to this size must be answered as fast as a read.
_SMALL_BODY = 1024 * 1024


@checked
class ObjectStoreStorage(CheckpointStorage):
    """Objects in a bucket, container or process memory; see CheckpointStorage for the contract.

    Args:
        uri: what to show; without credentials.
        store: the obstore store for small requests.
        bulk: the same store with time for big bodies.
        folder: where in the store, without slashes around; empty for all of it.
        errors: makes this storage's errors.
        version_field: which of obstore's two version fields this store compares in conditional updates.
    """

    supports_conditional_update = True

    def __init__(
        self,
        uri: str,
        store: Any,
        *,
        errors: ErrorTranslator,
        bulk: Any = None,
        folder: str = "",
        version_field: Literal["e_tag", "version"] = "e_tag",
    ) -> None:
        self._uri = uri
        self._store = store
        self._bulk = bulk if bulk is not None else store
        self._folder = f"{folder}/" if folder else ""
        self._errors = errors
        self._version_field = version_field

    def __repr__(self) -> str:
        return f"<checkpoint storage {self._uri}>"

    @property
    @override
    def uri(self) -> str:
        return self._uri

    def put(self, name: str, data: Data) -> ObjectInfo:
        """See CheckpointStorage. What is longer than one part is streamed in parts."""
        path = self._path(name)
        rest = views(data)
        first: list[memoryview] = []
        size = 0
        for view in rest:
            first.append(view)
            size += view.nbytes
            if size > _PART:
                return self._put_parts(name, path, chain(first, rest))
        return self._put_whole(name, path, b"".join(first), "overwrite")

    @override
    def put_if_absent(self, name: str, data: Data) -> ObjectInfo:
        path = self._path(name)
        return self._put_whole(name, path, b"".join(views(data)), "create")

    @override
    def put_if_match(self, name: str, data: Data, version: str) -> ObjectInfo:
        path = self._path(name)
        return self._put_whole(name, path, b"".join(views(data)), {self._version_field: version})

    def _put_whole(self, name: str, path: str, body: bytes, mode: str | dict[str, str]) -> ObjectInfo:
        store = self._store if len(body) <= _SMALL_BODY else self._bulk
        try:
            result = store.put(path, body, mode=mode, use_multipart=False)
        except STORE_ERRORS as error:
            raise self._errors.translate(error, "write", name) from None
        return self._written(name, len(body), result)

    def _put_parts(self, name: str, path: str, body: Iterable[memoryview]) -> ObjectInfo:
        source = _Source(body)
        try:
            result = self._bulk.put(path, source, use_multipart=True, chunk_size=_PART, max_concurrency=_PARTS_AT_ONCE)
        except STORE_ERRORS as error:
            if source.error is not None:
                raise source.error from None
            raise self._errors.translate(error, "write", name) from None
        return self._written(name, source.size, result)

    def _written(self, name: str, size: int, result: Any) -> ObjectInfo:
        return ObjectInfo(name, size, result[self._version_field], modified=None)

    @override
    def get(self, name: str) -> bytes:
        path = self._path(name)
        try:
            content: bytes = self._store.get(path).bytes().to_bytes()
        except STORE_ERRORS as error:
            raise self._errors.translate(error, "read", name) from None
        return content

    def map(self, name: str) -> memoryview:
        """See CheckpointStorage; read as a whole."""
        return memoryview(self.get(name))

    @override
    def get_range(self, name: str, start: Count, length: Count) -> bytes:
        path = self._path(name)
        if length == 0:
            self.head(name)
            return b""
        try:
            content: bytes = self._store.get_range(path, start=start, length=length).to_bytes()
        except STORE_ERRORS as error:
            # Stores refuse a range that begins at or after the end; here it is empty, like a slice.
            if is_beyond_end(error):
                return b""
            raise self._errors.translate(error, "read", name) from None
        return content

    @override
    def stream(self, name: str, chunk_size: Positive = STREAM_CHUNK) -> Iterator[bytes]:
        path = self._path(name)
        return self._chunks(name, path, chunk_size)

    def _chunks(self, name: str, path: str, chunk_size: int) -> Iterator[bytes]:
        try:
            # obstore's chunk size is a minimum, and memory gives all at once; ours is a maximum.
            for piece in self._store.get(path).stream(min_chunk_size=chunk_size):
                for start in range(0, len(piece), chunk_size):
                    yield bytes(piece[start : start + chunk_size])
        except STORE_ERRORS as error:
            raise self._errors.translate(error, "read", name) from None

    @override
    def head(self, name: str) -> ObjectInfo:
        path = self._path(name)
        try:
            meta = self._store.head(path)
        except STORE_ERRORS as error:
            raise self._errors.translate(error, "read", name) from None
        return self._info(name, meta)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """See CheckpointStorage.

        Raises:
            UnsupportedError: the store does not list in order of name, as S3 directory buckets do not.
        """
        return self._listed((self._folder + check_prefix(prefix)).rstrip("/"), prefix)

    def _listed(self, path: str, prefix: str) -> Iterator[ObjectInfo]:
        last = ""
        try:
            for page in self._store.list(path or None, chunk_size=1000):
                for meta in page:
                    name = meta["path"].removeprefix(self._folder)
                    if name <= last:
                        raise UnsupportedError(f"{self._uri} does not list its objects in order of name.")
                    last = name
                    if is_name(name):
                        yield self._info(name, meta)
        except STORE_ERRORS as error:
            raise self._errors.translate(error, "list", prefix) from None

    @override
    def delete(self, name: str) -> None:
        path = self._path(name)
        try:
            self._store.delete(path)
        except STORE_ERRORS as error:
            translated = self._errors.translate(error, "delete", name)
            if not isinstance(translated, ObjectNotFound):
                raise translated from None

    def _path(self, name: str) -> str:
        return check_name(self._folder + check_name(name))

    def _info(self, name: str, meta: Any) -> ObjectInfo:
        return ObjectInfo(name, meta["size"], meta[self._version_field], meta["last_modified"])


class _Source:
    """The chunks of an upload, counted. Keeps the error they raised, which may look like one of obstore's."""

    def __init__(self, chunks: Iterable[memoryview]) -> None:
        self._chunks = chunks
        self.size = 0
        self.error: Exception | None = None

    def __iter__(self) -> Iterator[memoryview]:
        try:
            for chunk in self._chunks:
                self.size += chunk.nbytes
                yield chunk
        except Exception as error:
            self.error = error
            raise
