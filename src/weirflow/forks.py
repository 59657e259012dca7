"""What belongs to one process alone, such as a connection: a forked child has a copy of it that must not be touched."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from weakref import WeakSet

_PATIENCE_SECONDS = 10.0
"""How long a fork waits for threads that are in a library; what takes longer is more likely stuck."""


class ProcessResource(Protocol):
    """Something that only the process may use, or close, that made it."""

    def left_behind(self) -> None:
        """Called in a forked child before anything else: refuse every call from now on, and close nothing."""


_owned: WeakSet[ProcessResource] = WeakSet()


def keep_to_this_process(owned: ProcessResource) -> None:
    """Have an object told in every child that is forked from now on."""
    _owned.add(owned)


def never_finalize(*things: object) -> None:
    """Keep the finalizers of things from running in this process, not even at its end.

    A connection that is closed by a child would say good-bye for its parent.
    """
    for one in things:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))


class _Gate:
    """Which threads are where no child may be forked."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.Lock())
        self.inside: set[int] = set()

    def shut(self) -> None:
        """Wait until no other thread is inside, and let none in."""
        end = time.monotonic() + _PATIENCE_SECONDS
        self.changed.acquire()
        while self._others() and (left := end - time.monotonic()) > 0:
            self.changed.wait(left)

    def _others(self) -> set[int]:
        alive = {thread.ident for thread in threading.enumerate()}
        return {one for one in self.inside if one in alive} - {threading.get_ident()}


_gate = _Gate()


@contextmanager
def unforked() -> Iterator[None]:
    """Keep other threads from forking in the block.

    A library in C may hold a lock there. The child would have a copy of the lock, and nobody who lets it go.
    """
    me = threading.get_ident()
    try:
        with _gate.changed:
            _gate.inside.add(me)
        yield
    finally:
        with _gate.changed:
            _gate.inside.discard(me)
            _gate.changed.notify_all()


def _tell() -> None:
    global _gate  # noqa: PLW0603 - its lock is held
    _gate = _Gate()
    for owned in list(_owned):
        owned.left_behind()


os.register_at_fork(
    before=lambda: _gate.shut(),  # noqa: PLW0108 - it is another one in a child
    after_in_parent=lambda: _gate.changed.release(),  # noqa: PLW0108 - as above
    after_in_child=_tell,
)
