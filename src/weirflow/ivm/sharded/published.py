"""``PublishedChanges``: changes of a flow in shards, which happen when they are published, and whom they are told."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from weirflow.errors import WeirflowError
from weirflow.ivm.flow.unfinished import Completion, afterwards

if TYPE_CHECKING:
    from weirflow.ivm.flow.outputs.publisher import Publication, Publisher
    from weirflow.ivm.flow.sinks.sink_set import SinkSet
    from weirflow.ivm.sharded.coordinator import Coordinator
    from weirflow.ivm.sharded.declarations import Declarations
    from weirflow.ivm.sharded.ledger import ChangeNotice


class _Telling(NamedTuple):
    """What tells everyone of a change; it may be repeated."""

    ticked: ChangeNotice
    committed: Completion
    publication: Publication


class PublishedChanges:
    """Lets changes happen, and everyone know of them. Whoever calls holds the flow's lock.

    Args:
        flow: its name.
        coordinator: who publishes what the flow is.
        declared: what is to be defined, or was.
        outputs: the watches and callbacks that are told.
        sinks: those that are told too.
    """

    def __init__(
        self, flow: str, coordinator: Coordinator, declared: Declarations, outputs: Publisher, sinks: SinkSet
    ) -> None:
        self._flow = flow
        self._coordinator = coordinator
        self._declared = declared
        self._outputs = outputs
        self._sinks = sinks
        self._telling: _Telling | None = None

    @property
    def is_settled(self) -> bool:
        """Whether it is known what the flow is, and everyone was told."""
        return self._coordinator.is_settled

    def settle(self) -> None:
        """Finish what an exception has left, and tell everyone who was not told; every call does that first.

        Raises:
            StorageError: the storage could not be asked what the flow is.
        """
        if self._coordinator.is_settled:
            return
        self._coordinator.settle()
        self._declared.forget_defined()
        ticked = self._coordinator.untold
        if ticked is not None:
            if self._telling is None or self._telling.ticked is not ticked:
                self._telling = self._told(ticked)
            telling = self._telling
            telling.committed.finish()
            self._coordinator.told()
            telling.publication.raise_interrupt()

    def make(self, change: Callable[[], None]) -> None:
        """Let a change happen, and all that follows from it.

        What the change raises is raised; if it is an interrupt, everyone is told first, should it have happened. What
        follows is reported if it fails.
        """
        pending = self._coordinator.pending
        try:
            change()
        except Exception:
            raise
        except BaseException:
            with contextlib.suppress(WeirflowError):  # the next call tries again
                self.settle()
            raise
        # The second time, if something came into the first.
        steps = [self.settle, self.settle, self._sinks.after_tick]
        if pending is not None:
            steps.append(lambda: self._coordinator.tidy(pending))
        afterwards(steps, self._flow, self._coordinator.commit.epoch)

    def _told(self, ticked: ChangeNotice) -> _Telling:
        """Rows of large outputs are read only if somebody watches them."""
        watched = self._outputs.watched | self._sinks.views
        changed = {
            name: self._coordinator.changed(refs)
            for name, refs in ticked.outputs.items()
            if name in watched or all(ref.data is not None for ref in refs)
        }
        told = {name: changed.get(name) for name in ticked.outputs}
        publication = self._outputs.publication(ticked.epoch, changed)

        def remember() -> None:
            self._outputs.history.append(ticked.epoch, {**told, **dict.fromkeys(ticked.ended)})
            self._outputs.close(lambda view: view in ticked.ended)
            self._sinks.put(ticked.epoch, changed)

        return _Telling(ticked, Completion([remember, publication.run]), publication)
