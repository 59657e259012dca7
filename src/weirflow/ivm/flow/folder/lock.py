"""``FolderLock``: one process and object at a time has a flow's folder."""

from __future__ import annotations

import fcntl
import gc
import os
from typing import TYPE_CHECKING

from weirflow.errors import FlowError

if TYPE_CHECKING:
    from pathlib import Path


class FolderLock:
    """The lock of a folder, held from the start. It is let go when the object is gone, however that comes.

    A forked child has a copy of the lock that locks nothing: the folder stays with the process that took it.

    Raises:
        FlowError: another one has it.
    """

    def __init__(self, folder: Path, flow: str) -> None:
        self._owner = os.getpid()
        self._file = -1
        try:
            self._file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._take()
        except BlockingIOError:
            self.release()
            raise FlowError(
                f"The flow {flow!r} in {folder} is open in another process or object.", hint="close it there first"
            ) from None
        except BaseException:
            self.release()
            raise

    def _take(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            gc.collect()  # an open that was interrupted may have left a flow that nobody holds
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @property
    def is_own(self) -> bool:
        """Whether this process took the lock, and not the one it was forked from."""
        return os.getpid() == self._owner

    @property
    def owner(self) -> int:
        """The process that took the lock."""
        return self._owner

    def release(self) -> None:
        """Let others have the folder, even if children live that were forked meanwhile. May be repeated."""
        if self._file < 0:
            return
        if self.is_own:
            fcntl.flock(self._file, fcntl.LOCK_UN)  # closing alone would leave it to the children
        file, self._file = self._file, -1
        os.close(file)

    def __del__(self) -> None:
        self.release()
