"""Savepoints of queries that run, and queries that begin with one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.errors import ConfigError, StreamConflict, StreamRefused
from weirflow.streaming.savepoint_files import begin_sink_log, last_sink_batch, storage_of_spark
from weirflow.streaming.savepoint_match import require_match
from weirflow.streaming.savepoints import QuerySavepoint, QuerySavepoints, QueryState
from weirflow.streaming.sinks import FILES
from weirflow.streaming.trigger import TriggerKind
from weirflow.types import OutputMode, Profile

if TYPE_CHECKING:
    from weirflow.streaming.checkpoints import CheckpointPlace
    from weirflow.streaming.host import StreamHost
    from weirflow.streaming.launch import Launch
    from weirflow.streaming.support import Asked


def savepoints_of(host: StreamHost, at: str | None) -> QuerySavepoints:
    """The savepoints at a place, or where the Session's profile keeps checkpoints."""
    if at is None and host.profile is Profile.DEV_LOCAL:
        raise ConfigError(
            "The profile dev-local keeps no checkpoints, so it has no place for savepoints.",
            hint="say where they are: a folder or a storage URI",
        )
    return QuerySavepoints(open_checkpoint_storage(host.checkpoints if at is None else at))


class QuerySaver:
    """Makes savepoints of one query.

    Args:
        host: the Session.
        launch: what the writer was told.
        asked: what it asks for.
        place: where the query's checkpoint is.
    """

    def __init__(self, host: StreamHost, launch: Launch, asked: Asked, place: CheckpointPlace) -> None:
        self._host = host
        self._launch = launch
        self._asked = asked
        self._place = place

    def save(self, name: str, to: str | None, *, query: str, query_id: str) -> QuerySavepoint:
        """See ``StreamingQuery.savepoint``."""
        savepoints = savepoints_of(self._host, to)
        if self._place.location is None or self._asked.trigger.kind is TriggerKind.CONTINUOUS:
            raise StreamRefused(
                f"The query {query} has no batches, or no checkpoint that this process can read.",
                hint="use Trigger.processing_time, and tell the query its checkpointLocation",
            )
        return savepoints.create(name, self._place.location, query=query, query_id=query_id, state=self.state())

    def state(self) -> QueryState:
        """What the query is, as far as its state depends on it."""
        from weirflow.spark.streaming_savepoint import state_operators  # noqa: PLC0415 - asks Spark

        operators = self._host.run("read a plan", lambda: state_operators(self._launch.frame))
        return QueryState(list(self._asked.shape.sources), self._asked.mode.value, operators, self._launch.target())

    def restore(self, name: str, at: str | None) -> None:
        """Write the savepoint as the query's checkpoint; what does not fit is refused before.

        Raises:
            StateMismatch: the query is another one than that of the savepoint.
            StreamConflict: checkpoint or folder have rows of other batches.
        """
        savepoints = savepoints_of(self._host, at)
        savepoint = savepoints.get(name)
        require_match(name, savepoint.state, self.state())
        location, launch = self._place.location, self._launch
        if location is None:
            raise ConfigError(
                "A query that begins with a savepoint needs a checkpoint that this process can write.",
                hint='set option("checkpointLocation", ...)',
            )
        if launch.format == "memory" and launch.mode is not OutputMode.COMPLETE:
            raise StreamRefused(
                "A memory sink begins empty, so it would lack the rows from before the savepoint.",
                hint="use OutputMode.COMPLETE, or write somewhere else",
            )
        if launch.format in FILES and not savepoint.is_at(location):
            self._prepare_files(savepoint)
        savepoints.restore(name, location)

    def _prepare_files(self, savepoint: QuerySavepoint) -> None:
        path = self._launch.options.get("path")
        if path is None:
            raise StreamRefused(
                "Whether a table of files is as it was at the savepoint cannot be told.",
                hint='write to a folder with option("path", ...)',
            )
        folder = storage_of_spark(path)
        last = last_sink_batch(folder)
        if last is None:
            begin_sink_log(folder, savepoint.batch)
        elif last != savepoint.batch:
            raise StreamConflict(
                f"{path} has the batches up to {last}, and the savepoint {savepoint.name!r} is of batch "
                f"{savepoint.batch}: rows would be lost or doubled.",
                hint="write to an empty folder",
            )
