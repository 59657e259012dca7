"""What belongs to one process alone, such as a connection: a forked child has a copy of it that must not be touched."""

from __future__ import annotations

import ctypes
import os
from typing import Protocol
from weakref import WeakSet


class Owned(Protocol):
    """Something that only the process may use, or close, that made it."""

    def left_behind(self) -> None:
        """Called in a forked child before anything else: refuse every call from now on, and close nothing."""


_owned: WeakSet[Owned] = WeakSet()


def keep_to_this_process(owned: Owned) -> None:
    """Have an object told in every child that is forked from now on."""
    _owned.add(owned)


def never_finalize(*things: object) -> None:
    """Keep the finalizers of things from running in this process, not even at its end.

    A connection that is closed by a child would say good-bye for its parent.
    """
    for one in things:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))


def _tell() -> None:
    for owned in list(_owned):
        owned.left_behind()


os.register_at_fork(after_in_child=_tell)
