"""``QuerySavepoints``: states of streaming queries that somebody gave a name, each with files of its own."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from weirflow.checkpoint.names import check_name
from weirflow.checkpoint.sealed import FORMAT, refused, seal, unseal
from weirflow.checkpoint.state_files import StateFiles
from weirflow.checkpoint.state_manifest import FileRef  # noqa: TC001 - msgspec reads it
from weirflow.errors import ConfigError, ObjectExists, ObjectNotFound, StreamConflict, StreamRefused, did_you_mean
from weirflow.spark.streaming_savepoint import StateOperator  # noqa: TC001 - msgspec reads it
from weirflow.streaming.savepoint_files import MARK, METADATA, committed_batch, files_of_batch, storage_of_spark

if TYPE_CHECKING:
    from weirflow.checkpoint.storage import CheckpointStorage

_FOLDER = "query-savepoints/"
_MANIFEST = "savepoint.json"
_ANOTHER = "use another savepoint"
_ATTEMPTS = 5


class QueryState(msgspec.Struct, frozen=True):
    """What a query is, as far as its state and its positions depend on it.

    Attributes:
        sources: the formats it reads as streams, in their order.
        mode: the output mode.
        operators: those that keep state.
        sink: where its rows go, for people.
    """

    sources: list[str]
    mode: str
    operators: list[StateOperator]
    sink: str


class QuerySavepoint(msgspec.Struct, frozen=True):
    """A savepoint: what it is called, when and of what it was made.

    Attributes:
        name: what it is called.
        created: when it was made.
        query: the name of the query.
        query_id: the id of the query.
        batch: the batch after which it was made; a folder of files has the rows up to this one.
        state: what the query was.
        files: by their names in the checkpoint.
    """

    name: str
    created: datetime
    query: str
    query_id: str
    batch: int
    state: QueryState
    files: dict[str, FileRef]
    format: int = FORMAT

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum({ref.object: ref.size for ref in self.files.values()}.values())

    def is_at(self, location: str) -> bool:
        """Whether the checkpoint at a location has begun with this savepoint."""
        return _mark_of(storage_of_spark(location)) == _Mark(self.name, self.created, done=True)

    def describe(self) -> str:
        """What is in it, for people."""
        lines = [
            f"savepoint {self.name} of {self.query} after batch {self.batch}: {self.size:,} bytes",
            f"reads {', '.join(self.state.sources)}; writes {self.state.mode} to {self.state.sink}",
        ]
        for number, operator in enumerate(self.state.operators):
            keys = ", ".join(f"{one.name} {one.type}" for one in operator.keys)
            values = ", ".join(f"{one.name} {one.type}" for one in operator.values)
            lines.append(f"operator {number}: {operator.name} by [{keys}] keeps [{values}]")
        return "\n".join(lines)


class _Mark(msgspec.Struct, frozen=True):
    """Says of a checkpoint which savepoint it was restored from, and whether that was done."""

    savepoint: str
    created: datetime
    done: bool
    format: int = FORMAT


class QuerySavepoints:
    """The savepoints of streaming queries in a storage.

    A savepoint is there when its manifest is, which is put if absent behind its files. It shares no file with
    checkpoints or other savepoints.
    """

    def __init__(self, storage: CheckpointStorage) -> None:
        self._storage = storage

    def create(self, name: str, location: str, *, query: str, query_id: str, state: QueryState) -> QuerySavepoint:
        """Save what a query has committed, while it runs; ``StreamingQuery.savepoint`` calls this.

        Raises:
            ConfigError: the name cannot be used.
            ObjectExists: there is a savepoint of that name; it is untouched.
            StreamRefused: the query has committed no batch yet.
            StorageError: the storage failed; the savepoint is not there.
        """
        if self._storage.exists(_manifest(name)):
            raise self._exists(name)
        checkpoint = storage_of_spark(location)
        for attempt in range(1, _ATTEMPTS + 1):
            batch = committed_batch(checkpoint)
            if batch is None:
                break
            try:
                files = self._save(name, checkpoint, batch)
            except ObjectNotFound:  # the query has gone on far enough to delete it
                if attempt == _ATTEMPTS:
                    raise
            else:
                return self._publish(QuerySavepoint(name, datetime.now(UTC), query, query_id, batch, state, files))
        raise StreamRefused(
            f"The query {query} has committed no batch yet, so there is nothing to save.",
            hint="wait for its first batch, such as by process_all_available()",
        )

    def list(self) -> list[QuerySavepoint]:
        """All savepoints, by name; ``StorageError`` if the manifest of one is damaged."""
        names = [info.name.split("/")[1] for info in self._storage.list(_FOLDER) if info.name.endswith("/" + _MANIFEST)]
        return [self.get(name) for name in names]

    def get(self, name: str) -> QuerySavepoint:
        """A savepoint by name.

        Raises:
            ObjectNotFound: there is none of that name.
            StorageError: its manifest is damaged.
        """
        where = f"{self._storage.uri}/{_manifest(name)}"
        try:
            data = self._storage.get(_manifest(name))
        except ObjectNotFound:
            names = {info.name.split("/")[1] for info in self._storage.list(_FOLDER)}
            raise ObjectNotFound(
                f"There is no savepoint {name!r} of a query at {self._storage.uri}.",
                uri=where,
                hint=did_you_mean(name, sorted(names)),
            ) from None
        found = unseal(data, QuerySavepoint, where, _ANOTHER)
        if found.name != name:
            raise refused(where, f"it is that of {found.name!r}", _ANOTHER)
        return found

    def restore(self, name: str, location: str) -> QuerySavepoint:
        """Write a savepoint as the checkpoint of a query that has an id of its own; every byte is verified.

        A checkpoint that was restored from this savepoint before is left as it is, so that its query goes on.

        Args:
            name: what the savepoint is called.
            location: a folder or storage URI that has no checkpoint.

        Raises:
            ObjectNotFound: there is no such savepoint.
            StreamConflict: there is another checkpoint at the location; it is untouched.
            StorageError: a file is missing or damaged; a query cannot start there.
        """
        savepoint, target = self.get(name), storage_of_spark(location)
        if savepoint.is_at(location):
            return savepoint
        mark, found = _Mark(name, savepoint.created, done=False), _mark_of(target)
        if found != mark and next(iter(target.list()), None) is not None:
            raise StreamConflict(
                f"There is a checkpoint at {location} already, which is not of the savepoint {name!r}.",
                hint="restore to an empty folder, or leave the savepoint out to go on from that checkpoint",
            )
        target.put(MARK, seal(mark))
        files = self._files(name)
        for path in sorted(savepoint.files, key=lambda path: path.startswith("offsets/")):  # Spark looks there first
            target.put(path, files.load(savepoint.files[path]))
        target.put(METADATA, msgspec.json.encode({"id": str(uuid.uuid4())}))
        target.put(MARK, seal(msgspec.structs.replace(mark, done=True)))
        return savepoint

    def delete(self, name: str) -> None:
        """Remove a savepoint and its files. That it does not exist is no error."""
        self._storage.delete(_manifest(name))
        self._files(name).collect(())

    def copy(self, name: str, to: CheckpointStorage, *, new_name: str | None = None) -> QuerySavepoint:
        """Copy a savepoint to another storage, or to another name; every byte is verified.

        Raises:
            ObjectNotFound: there is none of that name.
            ObjectExists: there is one where it shall go; it is untouched.
            StorageError: a file is missing or damaged; there is no copy.
        """
        savepoint, target = self.get(name), QuerySavepoints(to)
        wanted = name if new_name is None else new_name
        if to.exists(_manifest(wanted)):
            raise target._exists(wanted)
        source, files = self._files(name), target._files(wanted)
        copied = {path: source.copy_to(files, ref) for path, ref in savepoint.files.items()}
        return target._publish(msgspec.structs.replace(savepoint, name=wanted, files=copied))

    def _save(self, name: str, checkpoint: CheckpointStorage, batch: int) -> dict[str, FileRef]:
        files = self._files(name)
        return {path: files.save(checkpoint.get(path), "") for path in files_of_batch(checkpoint, batch)}

    def _publish(self, savepoint: QuerySavepoint) -> QuerySavepoint:
        try:
            self._storage.put_if_absent(_manifest(savepoint.name), seal(savepoint))
        except ObjectExists:
            raise self._exists(savepoint.name) from None
        return savepoint

    def _files(self, name: str) -> StateFiles:
        return StateFiles(self._storage, f"{_FOLDER}{name}/files/")

    def _exists(self, name: str) -> ObjectExists:
        where = f"{self._storage.uri}/{_manifest(name)}"
        return ObjectExists(
            f"There is a savepoint {name!r} at {self._storage.uri} already.", uri=where, hint="use another name"
        )


def _manifest(name: str) -> str:
    if "/" in name:
        raise ConfigError(f"{name!r} cannot be the name of a savepoint: it has a slash.")
    return check_name(f"{_FOLDER}{name}/{_MANIFEST}")


def _mark_of(target: CheckpointStorage) -> _Mark | None:
    try:
        return unseal(target.get(MARK), _Mark, f"{target.uri}/{MARK}", "restore to an empty folder")
    except ObjectNotFound:
        return None
