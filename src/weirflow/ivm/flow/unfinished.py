"""What an interrupt leaves to be done: a change that was begun is taken back, one that was committed is told to all.

A change of a flow has one moment at which it happens: when the ``Undo`` that it began with is replaced by what it
entails, ``Completion``. Whatever is raised before, the change is taken back; whatever is raised after it, the rest is
done. Should even that be interrupted, the next call on the flow does it first. So every step here may be repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weirflow.ivm.durability.records import Entry
    from weirflow.ivm.flow.folder.store import FlowStore

_log = logging.getLogger(__name__)


class Undo:
    """Takes back a change that was begun.

    Args:
        restore: brings the flow's state back to what it was; may be repeated.
        store: whose log is cut to where it ended.
    """

    def __init__(self, restore: Callable[[], None], store: FlowStore | None) -> None:
        self._restore = restore
        self._store = store
        self._mark = None if store is None else store.mark()

    def finish(self) -> None:
        """Take it back."""
        self._restore()
        if self._store is not None and self._mark is not None:
            self._store.rewind(self._mark)


class Completion:
    """Does what a change that has happened entails.

    Args:
        steps: done in this order; each may be repeated.
    """

    def __init__(self, steps: Sequence[Callable[[], None]]) -> None:
        self._steps = steps

    def finish(self) -> None:
        """Do it."""
        for step in self._steps:
            step()


class AtomicChanges:
    """Lets changes of a flow's state happen, each wholly or not at all, whatever is raised on the way.

    Args:
        store: whose log tells of them; None for a flow in memory.
    """

    def __init__(self, store: FlowStore | None) -> None:
        self._store = store
        self._unfinished: Undo | Completion | None = None

    @property
    def is_settled(self) -> bool:
        """Whether nothing was left by an interrupt."""
        return self._unfinished is None

    def settle(self) -> None:
        """Finish what an interrupt has left; every call on the flow does that first."""
        while self._unfinished is not None:
            self._unfinished.finish()
            self._unfinished = None

    def make(
        self,
        apply: Callable[[], Completion],
        entry: Callable[[], Entry] | None,
        undo: Callable[[], None],
        *,
        sync: bool = False,
    ) -> None:
        """Let a change happen.

        Args:
            apply: makes the change in memory, and says what it entails.
            entry: what the log says of it, asked for when it is applied; None for what is not logged.
            undo: takes it back; may be repeated.
            sync: whether it has to survive a power failure, however seldom the log is synced.
        """
        self._unfinished = Undo(undo, self._store)
        try:
            committed = apply()
            if self._store is not None and entry is not None:
                self._store.append(entry(), sync=sync)
            self._unfinished = committed
        except BaseException:
            self.settle()
            raise
        try:
            self.settle()
        except BaseException:
            self.settle()
            raise


def afterwards(steps: Iterable[Callable[[], None]], flow: str, epoch: int) -> None:
    """Do what follows a change that has happened: what fails is reported, what interrupts is raised at the end."""
    interrupt: BaseException | None = None
    for step in steps:
        try:
            step()
        except Exception:  # noqa: BLE001 - whatever it is, it must not look as if the change had not happened
            _log.exception("what follows epoch %d of the flow %s failed", epoch, flow)
        except BaseException as error:  # noqa: BLE001 - raised below
            interrupt = interrupt or error
    if interrupt is not None:
        raise interrupt
