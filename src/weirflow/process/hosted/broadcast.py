"""``HostedBroadcastFunction``: a function with a broadcast input as another engine runs it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from typing_extensions import override

from weirflow.errors import ConfigError
from weirflow.process.function import ProcessFunction
from weirflow.process.hosted.function import Host
from weirflow.process.hosted.one_input import HostedProcessFunction

if TYPE_CHECKING:
    from weirflow.process.function import Row

Stage: TypeAlias = Literal["told", "before", "after"]
"""``on_broadcast`` runs; or broadcast state is as it was before this batch; or as ``on_broadcast`` has left it."""


class BroadcastHost(Host, Protocol):
    """A ``Host`` with broadcast state, which is the same for all keys."""

    def at_stage(self, stage: Stage) -> None:
        """Show broadcast state as of a stage. What is written to it counts while it is ``"told"``, else nothing is."""


class HostedBroadcastFunction(HostedProcessFunction):
    """Runs a ``ProcessFunction`` whose broadcast input comes before the rows of a batch; see ``HostedFunction``.

    The last two columns of a row that the engine hands over are the row and something else. Late rows are told here.
    Timers by event time that were due before the batch see broadcast state as it was then.

    Args:
        function: what runs.
        columns: the names of the row's columns.
        event_time: the one with the time of the event.

    Raises:
        ConfigError: it is no ``ProcessFunction``, or has no ``on_broadcast``.
    """

    takes_broadcast = True
    _host: BroadcastHost

    def __init__(self, function: Any, columns: Sequence[str], event_time: str | None) -> None:
        super().__init__(function, columns, event_time)
        if type(function).on_broadcast is ProcessFunction.on_broadcast:
            raise ConfigError(
                f"{self.name} is given a broadcast stream and has no on_broadcast.",
                hint="write on_broadcast, or leave out broadcast=",
            )
        self.judges_late = event_time is not None
        self._told = False
        self._seen: set[Any] = set()

    def told(self, rows: Iterable[Row], now: int, watermark: int) -> None:
        """Run what is broadcast; before all keys of the task."""
        self._set_time(now, watermark)
        self._told = True
        self._store.unset_key()
        self._host.at_stage("told")
        for slot in self._broadcasts:
            slot.writable = True
        with self._user_code("on_broadcast"):
            for row in rows:
                self.function.on_broadcast(self._moment, row)
        for slot in self._broadcasts:
            slot.writable = False
        self._store.flush()
        self._host.at_stage("after")

    @override
    def rows(self, key: Any, rows: Iterable[Sequence[Any]], now: int, watermark: int) -> list[list[dict[str, Any]]]:
        if self._told:
            self._seen.add(key)
        self._host.at_stage("before")
        return super().rows(key, rows, now, watermark)

    @override
    def due(self, key: Any, now: int, watermark: int) -> list[list[dict[str, Any]]]:
        # Those of a key that had rows in this batch are new: older ones have fired before its rows.
        self._host.at_stage("before" if self.time == "event" and key not in self._seen else "after")
        return super().due(key, now, watermark)

    @override
    def _feed(self, key: Any, rows: Iterable[Sequence[Any]]) -> None:
        self._host.at_stage("after")
        self._run(key, (row for *_, row, _ in rows))
