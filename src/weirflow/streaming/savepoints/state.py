"""Which files of a query's checkpoint hold one version of its state."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from weirflow.errors import ObjectNotFound, StorageError

if TYPE_CHECKING:
    from weirflow.checkpoint.storage.contract import CheckpointStorage

# Snapshots hold all of a version; the others what it has changed. In Spark's second format an id follows the number.
_VERSION = re.compile(r"(.+/)(\d+)(?:_[^/.]+)?\.(?:delta|snapshot|changelog|zip)")
_SNAPSHOTS = (".snapshot", ".zip")
_CHANGES = (".delta", ".changelog")
# Files of RocksDB that several versions share, by how the note in a snapshot calls them.
_SHARED = {"sstFiles": ("dfsSstFileName", "SSTs/"), "logFiles": ("dfsLogFileName", "logs/")}


def files_of_version(storage: CheckpointStorage, there: set[str], version: int) -> Iterator[str]:
    """The names of the files that a version of the state is made of: the last snapshots and the changes since.

    Args:
        storage: the query's checkpoint; snapshots of RocksDB are read, as they say which files they share.
        there: the names of all files in it.
        version: the number of a batch that is committed, plus one.

    Raises:
        ObjectNotFound: some were deleted.
        StorageError: a snapshot cannot be read.
    """
    stores: defaultdict[str, dict[str, int]] = defaultdict(dict)
    others = []
    for name in sorted(there):
        if found := _VERSION.fullmatch(name):
            stores[found[1]][name] = int(found[2])
        elif name.startswith("state/") and not name.endswith(".crc"):
            others.append(name)
    shared = tuple(store + folder for store in stores for _, folder in _SHARED.values())
    yield from (name for name in others if not name.startswith(shared))
    for store, numbers in stores.items():
        for name in _chain(storage, store, numbers, version):
            yield name
            if name.endswith(".zip"):
                yield from _shared_by(storage, name, store)


def _chain(storage: CheckpointStorage, store: str, numbers: dict[str, int], version: int) -> Iterator[str]:
    if any("_" in name.removeprefix(store) for name in numbers):
        # With ids, which of them go together is written inside, so all are taken that may.
        if version not in numbers.values():
            raise _deleted(storage, store, version)
        yield from (name for name, number in numbers.items() if number <= version)
        return
    for number in range(version, 0, -1):
        if snapshot := next((name for end in _SNAPSHOTS if (name := f"{store}{number}{end}") in numbers), None):
            yield snapshot
            return
        changes = next((name for end in _CHANGES if (name := f"{store}{number}{end}") in numbers), None)
        if changes is None:
            raise _deleted(storage, store, number)
        yield changes


def _shared_by(storage: CheckpointStorage, snapshot: str, store: str) -> Iterator[str]:
    """The files that a snapshot of RocksDB refers to; its note is a version line and then a line of JSON."""
    try:
        with zipfile.ZipFile(io.BytesIO(storage.get(snapshot))) as parts:
            note = json.loads(parts.read("metadata").partition(b"\n")[2])
        for kind, (called, folder) in _SHARED.items():
            for one in note.get(kind) or ():
                yield f"{store}{folder}{one[called]}"
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        where = f"{storage.uri}/{snapshot}"
        raise StorageError(
            f"The snapshot {where} of the state does not say which files it is made of.", uri=where
        ) from error


def _deleted(storage: CheckpointStorage, store: str, number: int) -> ObjectNotFound:
    where = f"{storage.uri}/{store}"
    return ObjectNotFound(f"{where} has no file of version {number}.", uri=where)
