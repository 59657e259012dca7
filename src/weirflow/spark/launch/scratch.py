"""Scratch folders of running Sessions, which never outlive them by more than one start.

A folder is locked while its Session lives; the lock goes with the process, however it dies, so the next start
knows which folders were left behind by a killed one and removes them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "weirflow-session-"
_LOCK = ".lock"


class Scratch:
    """One Session's temporary folder; ``close()`` removes it."""

    def __init__(self) -> None:
        sweep_abandoned()
        self.path, self._lock = _create_locked()
        while not self.path.exists():  # another start took the folder for abandoned before it was locked
            os.close(self._lock)
            self.path, self._lock = _create_locked()

    def close(self) -> None:
        """Remove the folder and all in it. Calling it twice does nothing."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def _create_locked() -> tuple[Path, int]:
    path = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(path / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return path, lock


def sweep_abandoned() -> None:
    """Remove the folders of Sessions whose process is gone; those of other users are left alone."""
    for folder in _unlocked_folders():
        shutil.rmtree(folder, ignore_errors=True)


def _unlocked_folders() -> Iterator[Path]:
    for folder in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:  # being created or removed this moment, or not ours to touch
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # its Session lives
            continue
        else:
            yield folder
        finally:
            os.close(lock)
