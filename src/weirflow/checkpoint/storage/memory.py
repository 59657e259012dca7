"""Storage in this process's memory: ``memory://`` private, ``memory://name`` shared by name."""

from __future__ import annotations

import threading

from obstore.store import MemoryStore

from weirflow.checkpoint.storage.names import is_name
from weirflow.checkpoint.storage.objects.errors import ErrorTranslator
from weirflow.checkpoint.storage.objects.storage import ObjectStoreStorage
from weirflow.errors import ConfigError

_SCHEME = "memory://"

_shared: dict[str, MemoryStore] = {}
_shared_lock = threading.Lock()


def open_memory(uri: str) -> ObjectStoreStorage:
    """The storage of that name, which lives until the process ends; without a name, a new one of its own.

    As elsewhere, a path is a folder: ``memory://jobs/a`` is the folder ``a/`` of ``memory://jobs``.

    Raises:
        ConfigError: the name cannot be used.
    """
    where = uri[len(_SCHEME) :].rstrip("/")
    if where and (not is_name(where) or any(mark in where for mark in "@?#")):
        raise ConfigError("This memory:// name cannot be used.", hint="use memory:// or memory://name/folder")
    name, _, folder = where.partition("/")
    uri = _SCHEME + where
    return ObjectStoreStorage(uri, _store(name), folder=folder, errors=ErrorTranslator(uri))


def _store(name: str) -> MemoryStore:
    if not name:
        return MemoryStore()
    with _shared_lock:
        return _shared.setdefault(name, MemoryStore())
