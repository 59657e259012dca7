"""``PublishedChanges``: changes of a flow in shards, which happen when they are published, and whom they are told."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from weirflow.errors import WeirflowError
from weirflow.ivm.flow.unfinished import Completion, afterwards

if TYPE_CHECKING:
    from weirflow.ivm.flow.outputs.publisher import Publication, Publisher
    from weirflow.ivm.flow.sinks.sink_set import SinkSet
    from weirflow.ivm.sharded.commits import CommittedTick
    from weirflow.ivm.sharded.coordinator import Coordinator
    from weirflow.ivm.sharded.declarations import Declarations
    from weirflow.ivm.sharded.ledger import ChangeNotice
    from weirflow.ivm.zset.batch import Batch


class _Telling(NamedTuple):
    """What tells everyone of a change; it may be repeated."""

    ticked: ChangeNotice
    committed: Completion
    publications: Sequence[Publication]


class PublishedChanges:
    """Lets changes happen, and everyone know of them. Whoever calls holds the flow's lock.

    Args:
        flow: its name.
        coordinator: who publishes what the flow is.
        declared: what is to be defined, or was.
        outputs: the watches and callbacks that are told.
        sinks: those that are told too.
        done: called when all of them were; may be called again.
    """

    def __init__(
        self,
        flow: str,
        coordinator: Coordinator,
        declared: Declarations,
        outputs: Publisher,
        sinks: SinkSet,
        *,
        done: Callable[[ChangeNotice], None],
    ) -> None:
        self._flow = flow
        self._coordinator = coordinator
        self._declared = declared
        self._outputs = outputs
        self._sinks = sinks
        self._done = done
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
            for publication in telling.publications:
                publication.raise_interrupt()

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
        """One epoch after the other is remembered and told."""
        steps: list[Callable[[], None]] = []
        publications = []
        for tick in ticked.ticks:
            changed = self._changed(tick)
            publication = self._outputs.publication(tick.epoch, changed)
            ended = ticked.ended if tick.epoch == ticked.epoch else ()
            steps += [partial(self._remember, tick, changed, ended), publication.run]
            publications.append(publication)
        return _Telling(ticked, Completion([*steps, partial(self._done, ticked)]), publications)

    def _changed(self, tick: CommittedTick) -> dict[str, Batch]:
        """Rows of large outputs are read only if somebody watches them."""
        watched = self._outputs.watched | self._sinks.views
        return {
            name: self._coordinator.changed(refs)
            for name, refs in tick.outputs.items()
            if name in watched or all(ref.data is not None for ref in refs)
        }

    def _remember(self, tick: CommittedTick, changed: Mapping[str, Batch], ended: Sequence[str]) -> None:
        told = {name: changed.get(name) for name in tick.outputs}
        self._outputs.history.append(tick.epoch, {**told, **dict.fromkeys(ended)})
        self._outputs.close(lambda view: view in ended)
        self._sinks.put(tick.epoch, changed)
