"""``QuerySavepoints``: states of streaming queries that somebody gave a name, each with files of its own."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import msgspec

from weirflow.arguments import Location, Name, checked
from weirflow.checkpoint.keyed_state.manifest import FileRef  # noqa: TC001 - msgspec reads it
from weirflow.checkpoint.named import NamedState, NamedStateFiles
from weirflow.checkpoint.sealed import FORMAT, seal, unseal
from weirflow.errors import ObjectNotFound, StreamConflict, StreamRefused
from weirflow.failpoints import failpoint
from weirflow.spark.streaming.savepoint import StateOperator  # noqa: TC001 - msgspec reads it
from weirflow.streaming.savepoints.files import MARK, METADATA, committed_batch, files_of_batch, storage_of_spark

if TYPE_CHECKING:
    from weirflow.checkpoint.storage.contract import CheckpointStorage

_ATTEMPTS = 5


class SavedQuery(msgspec.Struct, frozen=True):
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


class QuerySavepoint(NamedState, frozen=True):
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

    query: str
    query_id: str
    batch: int
    state: SavedQuery
    files: dict[str, FileRef]
    format: int = FORMAT

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum({ref.object: ref.size for ref in self.files.values()}.values())

    def is_at(self, location: str) -> bool:
        """Whether the checkpoint at a location has begun with this savepoint."""
        found = restored_at(location)
        return found is not None and found.done and found.is_of(self)

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


class RestoreNote(msgspec.Struct, frozen=True):
    """Says of a checkpoint which savepoint it was restored from, and whether that was done.

    Attributes:
        savepoint: the name of the savepoint.
        created: when it was made.
        done: whether all of it is there.
        query_id: the query that was saved; empty if an earlier version has restored it.
        batch: the last batch that both queries have.
    """

    savepoint: str
    created: datetime
    done: bool
    format: int = FORMAT
    query_id: str = ""
    batch: int = -1

    def is_of(self, savepoint: QuerySavepoint) -> bool:
        """Whether it was this savepoint."""
        return (self.savepoint, self.created) == (savepoint.name, savepoint.created)


@checked
class QuerySavepoints(NamedStateFiles[QuerySavepoint]):
    """The savepoints of streaming queries in a storage."""

    _folder = "query-savepoints/"
    _called = "savepoint of a query"
    _remedy = "use another savepoint"
    _kind = QuerySavepoint

    def create(self, name: str, location: str, *, query: str, query_id: str, state: SavedQuery) -> QuerySavepoint:
        """Save what a query has committed, while it runs; ``StreamingQuery.savepoint`` calls this.

        Raises:
            ConfigError: the name cannot be used.
            ObjectExists: there is a savepoint of that name; it is untouched.
            StreamRefused: the query has committed no batch yet.
            ObjectNotFound: the query has deleted, each time it was tried, files before they were copied.
            StorageError: the storage failed; the savepoint is not there.
        """
        self._require_free(name)
        checkpoint = storage_of_spark(location)
        for attempt in range(1, _ATTEMPTS + 1):
            batch = committed_batch(checkpoint)
            if batch is None:
                break
            failpoint("savepoint.before_list")
            try:
                files = self._save(name, checkpoint, batch)
            except ObjectNotFound as error:  # the query has gone on far enough to delete it
                if attempt == _ATTEMPTS:
                    raise ObjectNotFound(
                        f"The query {query} deletes its files faster than they can be saved: {error.message}",
                        uri=error.uri,
                        hint="have it keep more batches with spark.sql.streaming.minBatchesToRetain, "
                        "or wait between them with Trigger.processing_time",
                    ) from error
            else:
                failpoint("savepoint.before_manifest_put")
                return self._publish(QuerySavepoint(name, datetime.now(UTC), query, query_id, batch, state, files))
        raise StreamRefused(
            f"The query {query} has committed no batch yet, so there is nothing to save.",
            hint="wait for its first batch, for example with process_all_available()",
        )

    def restore(self, name: Name, location: Annotated[str, Location()]) -> QuerySavepoint:
        """Write a savepoint as the checkpoint of a query that has an id of its own; every byte is verified.

        A checkpoint that was restored from this savepoint before is left as it is, so that its query goes on.

        Args:
            name: the name of the savepoint.
            location: a folder or storage URI that has no checkpoint.

        Raises:
            ObjectNotFound: there is no such savepoint.
            StreamConflict: there is another checkpoint at the location; it is untouched.
            StorageError: a file is missing or damaged; a query cannot start there.
        """
        savepoint, target = self.get(name), storage_of_spark(location)
        if savepoint.is_at(location):
            return savepoint
        found = restored_at(location)
        if not (found is not None and found.is_of(savepoint)) and next(iter(target.list()), None) is not None:
            raise StreamConflict(
                f"There is a checkpoint at {location} already, which is not of the savepoint {name!r}.",
                hint="restore to an empty folder, or leave the savepoint out to continue from that checkpoint",
            )
        mark = RestoreNote(name, savepoint.created, done=False, query_id=savepoint.query_id, batch=savepoint.batch)
        target.put(MARK, seal(mark))
        files = self._files(name)
        for path in sorted(savepoint.files, key=lambda path: path.startswith("offsets/")):  # Spark looks there first
            target.put(path, files.load(savepoint.files[path]))
        target.put(METADATA, msgspec.json.encode({"id": str(uuid.uuid4())}))
        target.put(MARK, seal(msgspec.structs.replace(mark, done=True)))
        return savepoint

    def _moved(self, savepoint: QuerySavepoint, name: str, move: Callable[[FileRef], FileRef]) -> QuerySavepoint:
        files = {path: move(ref) for path, ref in savepoint.files.items()}
        return msgspec.structs.replace(savepoint, name=name, files=files)

    def _save(self, name: str, checkpoint: CheckpointStorage, batch: int) -> dict[str, FileRef]:
        files = self._files(name)
        saved = {}
        for path in files_of_batch(checkpoint, batch):
            saved[path] = files.save(checkpoint.get(path), "")
            failpoint("savepoint.after_file")
        return saved


def restored_at(location: str) -> RestoreNote | None:
    """What the checkpoint at a location was restored from; None if it was not."""
    target = storage_of_spark(location)
    try:
        return unseal(target.get(MARK), RestoreNote, f"{target.uri}/{MARK}", "restore to an empty folder")
    except ObjectNotFound:
        return None
