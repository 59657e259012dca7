"""The archive of Spark's loaded classes, which halves the start of every later JVM.

The first JVM on a machine writes the archive as it exits (about ten seconds, once for each pair of Spark and Java);
later ones map it. The file name holds a fingerprint of Spark's jars and of Java, so a change of either starts anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from weirflow.spark.launch.java import Java

_log = logging.getLogger(__name__)
_UNUSED_SECONDS = 30 * 24 * 3600


class ClassArchive:
    """How one JVM uses the archive: it maps it, writes it at exit, or does without.

    Only one process at a time writes; others that start meanwhile do without. A JVM that is killed leaves no
    archive, and the next one tries again.
    """

    def __init__(self, folder: Path, java: Java, jars: Sequence[Path], *, may_write: bool = True) -> None:
        self._name = f"java{java.major}-{_fingerprint(java, jars)}"
        self._folder = folder
        self._draft: Path | None = None
        self._lock = -1
        self.java_options: tuple[str, ...] = ()
        try:
            self._choose(may_write=may_write)
        except OSError as error:
            _log.warning("no archive of Spark's classes can be kept in %s, so starts are slower: %s", folder, error)

    @property
    def writes_at_exit(self) -> bool:
        """Whether the JVM will write the archive when it exits, which takes several seconds."""
        return self._draft is not None

    def settle(self) -> None:
        """Publish what the JVM wrote. Called once, after the JVM has exited."""
        if self._draft is not None:
            if self._draft.exists():
                # The size in the name tells a whole archive from a torn one, on which a JVM would crash.
                file = self._folder / f"{self._name}-{self._draft.stat().st_size}.jsa"
                self._draft.rename(file)
                _log.info("class archive written to %s", file)
                _remove_unused(self._folder)
            self._draft = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _choose(self, *, may_write: bool) -> None:
        for file in self._folder.glob(f"{self._name}-*.jsa"):
            if file.stem == f"{self._name}-{file.stat().st_size}":
                with contextlib.suppress(PermissionError):  # another user's archive serves as well
                    os.utime(file)
                self.java_options = (f"-XX:SharedArchiveFile={file}",)
                return
            file.unlink()
        if not may_write:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._try_lock():
            self._draft = self._folder / f"{self._name}.{os.getpid()}.draft"
            self._draft.unlink(missing_ok=True)
            self.java_options = (f"-XX:ArchiveClassesAtExit={self._draft}",)

    def _try_lock(self) -> bool:
        lock = os.open(self._folder / f"{self._name}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return False
        self._lock = lock
        return True


def _fingerprint(java: Java, jars: Sequence[Path]) -> str:
    digest = hashlib.sha256(f"{java.executable.resolve()}\n{java.version}".encode())
    for jar in jars:
        status = jar.stat()
        digest.update(f"\n{jar}:{status.st_size}:{status.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]


def _remove_unused(folder: Path) -> None:
    """Archives weigh some 150 MB: drop those no JVM has mapped for a month, and drafts of killed writers."""
    oldest = time.time() - _UNUSED_SECONDS
    for file in [*folder.glob("*.jsa"), *folder.glob("*.draft")]:
        if file.stat().st_mtime < oldest:
            file.unlink(missing_ok=True)
