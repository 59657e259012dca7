"""Savepoints of queries that run, and queries that begin with one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.errors import ConfigError, StreamRefused
from weirflow.streaming.savepoints.match import require_match
from weirflow.streaming.savepoints.named import QuerySavepoint, QuerySavepoints, SavedQuery
from weirflow.streaming.trigger import TriggerKind
from weirflow.types import Profile

if TYPE_CHECKING:
    from weirflow.spark.streaming.plan import QueryShape
    from weirflow.streaming.host import StreamHost
    from weirflow.streaming.query.spec import QuerySpec


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
        spec: the query, with its name and its checkpoint.
        shape: what it is made of.
    """

    def __init__(self, host: StreamHost, spec: QuerySpec, shape: QueryShape) -> None:
        self._host = host
        self._spec = spec
        self._shape = shape

    def save(self, name: str, to: str | None, *, query: str, query_id: str) -> QuerySavepoint:
        """See ``StreamingQuery.savepoint``."""
        savepoints = savepoints_of(self._host, to)
        location = self._spec.checkpoint
        if location is None or self._spec.trigger.kind is TriggerKind.CONTINUOUS:
            raise StreamRefused(
                f"The query {query} has no batches, or no checkpoint that this process can read.",
                hint="use Trigger.processing_time, and tell the query its checkpointLocation",
            )
        return savepoints.create(name, location, query=query, query_id=query_id, state=self.state())

    def state(self) -> SavedQuery:
        """What the query is, as far as its state depends on it."""
        from weirflow.spark.streaming.savepoint import state_operators  # noqa: PLC0415 - asks Spark

        spec = self._spec
        operators = self._host.run("read a plan", lambda: state_operators(spec.frame))
        return SavedQuery(list(self._shape.sources), spec.mode.value, operators, spec.sink.target(spec))

    def restore(self, name: str, at: str | None) -> None:
        """Write the savepoint as the query's checkpoint; what does not fit is refused before.

        Raises:
            StateMismatch: the query is another one than that of the savepoint.
            StreamConflict: checkpoint or folder have rows of other batches.
        """
        savepoints = savepoints_of(self._host, at)
        savepoint = savepoints.get(name)
        require_match(name, savepoint.state, self.state())
        location = self._spec.checkpoint
        if location is None:
            raise ConfigError(
                "A query that begins with a savepoint needs a checkpoint that this process can write.",
                hint='set option("checkpointLocation", ...)',
            )
        self._spec.sink.prepare(self._spec, savepoint)
        savepoints.restore(name, location)
