"""``Place``: the folder of a materialized view, with its states, landmarks and history."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import msgspec

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.checkpoint.sealed import seal, unseal
from weirflow.errors import ObjectNotFound
from weirflow.materialized.history import RefreshRecord
from weirflow.materialized.note import Note

if TYPE_CHECKING:
    from weirflow.flows.sinks.table_commits import TableCommit

FOLDER = "_weirflow"
"""Below a table's folder: names like this are left alone by those who tidy up there."""
_STATE = "state/"
_LANDMARKS = "landmarks/"
_HISTORY = "history/"
_KEPT_RECORDS = 100
_KEPT_LANDMARKS = 10
_HINT = "delete the file: what it says is known otherwise, or is not needed"


class Place:
    """Where a view keeps what is not in its table.

    Args:
        uri: a folder or URI that this process and all executors reach.
    """

    def __init__(self, uri: str) -> None:
        self.uri = _reachable(uri)
        self._storage = open_checkpoint_storage(self.uri)

    # States

    def new_generation(self) -> str:
        """The name of a state that is to be built."""
        return uuid.uuid4().hex

    def state(self, generation: str) -> str:
        """Where a state is."""
        return f"{self.uri.rstrip('/')}/{_STATE}{generation}"

    def forget_other_states(self, kept: str | None) -> None:
        """Delete all states but one: nothing names them."""
        self._delete_below(_STATE, kept=None if kept is None else f"{_STATE}{kept}/")

    def forget(self) -> None:
        """Delete everything."""
        for folder in (_STATE, _LANDMARKS, _HISTORY):
            self._delete_below(folder)

    def _delete_below(self, folder: str, *, kept: str | None = None) -> None:
        for info in list(self._storage.list(folder)):
            if kept is None or not info.name.startswith(kept):
                self._storage.delete(info.name)

    # Landmarks

    def put_landmark(self, version: str, note: Note) -> None:
        """Remember the note of a version of the target, in case that the version is expired below a compaction."""
        self._storage.put(f"{_LANDMARKS}{note.epoch:012d}-{version}.json", seal(note))
        known = [info.name for info in self._storage.list(_LANDMARKS)]
        for name in known[:-_KEPT_LANDMARKS]:
            self._storage.delete(name)

    def landmark(self, commit: TableCommit) -> Note | None:
        """The note of a version that is gone; None if nobody remembers it, or it is not gone."""
        if commit.is_kept:
            return None
        for info in self._storage.list(_LANDMARKS):
            if info.name.endswith(f"-{commit.version}.json"):
                return unseal(self._storage.get(info.name), Note, f"{self.uri}/{info.name}", _HINT)
        return None

    # History

    def put_record(self, record: RefreshRecord) -> None:
        """Remember how a refresh went, and forget the oldest."""
        self._storage.put(f"{_HISTORY}{record.epoch:012d}-{record.attempt}.json", seal(record))
        known = [info.name for info in self._storage.list(_HISTORY)]
        for name in known[:-_KEPT_RECORDS]:
            self._storage.delete(name)

    def records(self, most: int | None = None) -> list[RefreshRecord]:
        """How refreshes went, oldest first; of many only the last ones."""
        found = []
        for info in list(self._storage.list(_HISTORY))[-(most or _KEPT_RECORDS) :]:
            try:
                data = self._storage.get(info.name)
            except ObjectNotFound:  # another process has just forgotten it
                continue
            found.append(unseal(data, RefreshRecord, f"{self.uri}/{info.name}", _HINT))
        return sorted(found, key=lambda one: (one.epoch, one.finished_at))


def _reachable(uri: str) -> str:
    """How our own storage names what Spark names otherwise."""
    if uri.startswith("file:"):
        return "/" + uri.removeprefix("file:").lstrip("/")
    return f"s3://{uri.removeprefix('s3a://')}" if uri.startswith("s3a://") else uri


def fields_of(record: msgspec.Struct) -> dict[str, object]:
    """A record as plain values."""
    plain: dict[str, object] = msgspec.to_builtins(record)
    return plain
