"""``Pins``: the versions of tables that several refreshes read, each the one that was found first."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weirflow.materialized.note import Marks


class Pins:
    """For several threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._marks: Marks = {}

    def pin(self, found: Marks) -> Marks:
        """The versions to read instead of those that were found now: what others have read, and what is new."""
        with self._lock:
            pinned = {name: self._marks.get(name, mark) for name, mark in found.items()}
            self._marks.update({name: mark for name, mark in pinned.items() if mark.version is not None})
            return pinned
