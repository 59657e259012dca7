"""``RemoteStreams``: the streaming queries of a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from weirflow.arguments import Name, Seconds, Uri, checked
from weirflow.types import QueryState
from weirflow.wire.calls import OfName, SavepointForm, SaveStream, StopStream, StreamForm
from weirflow.wire.errors import error_of

if TYPE_CHECKING:
    from weirflow.client.connection import Connection
    from weirflow.errors import WeirflowError


class RemoteStream:
    """A streaming query that a server runs; it goes on whatever becomes of this handle.

    Attributes:
        name: what it is called.
        id: the same whenever the query goes on from its checkpoint.
    """

    def __init__(self, connection: Connection, form: StreamForm) -> None:
        self.name = form.name
        self.id = form.id
        self._connection = connection
        self._form = form

    @property
    def state(self) -> QueryState:
        """The current state."""
        return QueryState(self._now().state)

    @property
    def message(self) -> str:
        """What it does, in words."""
        return self._now().message

    @property
    def exception(self) -> WeirflowError | None:
        """What has ended it, or has it restart now; None if all is well."""
        found = self._now().error
        return None if found is None else error_of(found)

    @property
    def restarts(self) -> int:
        """How often its restart policy has started it again."""
        return self._now().restarts

    def describe(self) -> str:
        """What it writes, how often rows arrive, and where its progress is kept."""
        return self._form.description

    def last_progress(self) -> dict[str, Any] | None:
        """What its last batch did, as Spark describes it; None before the first."""
        found = self._now().progress
        return None if found is None else dict(json.loads(found))

    @checked
    def stop(self, within: Seconds | None = None) -> None:
        """End it after the current batch, for which it waits at most ``within`` seconds."""
        self._form = self._connection.call("stop_stream", StopStream(self.name, within))

    @checked
    def savepoint(self, name: Name, to: Uri | None = None) -> SavepointForm:
        """Save state and positions of the last batch under a name, where the server keeps checkpoints, or elsewhere."""
        saved: SavepointForm = self._connection.call(
            "save_stream", SaveStream(self.name, name, None if to is None else str(to))
        )
        return saved

    def __repr__(self) -> str:
        return f"<RemoteStream {self.name} {self._form.state}>"

    def _now(self) -> StreamForm:
        if QueryState(self._form.state) not in (QueryState.FINISHED, QueryState.STOPPED, QueryState.FAILED):
            self._form = self._connection.call("stream", OfName(self.name))
        return self._form


class RemoteStreams:
    """The streaming queries of a server. Iterating gives those that run."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __iter__(self) -> Iterator[RemoteStream]:
        return iter(self.active)

    @property
    def active(self) -> list[RemoteStream]:
        """Those that run."""
        return [RemoteStream(self._connection, one) for one in self._connection.call("streams")]

    @checked
    def get(self, name: Name) -> RemoteStream:
        """The one of this name or id; ``StreamNotFound`` if there is none."""
        return RemoteStream(self._connection, self._connection.call("stream", OfName(name)))
