"""``JobFolder``: what a job keeps on disk, by which it is found, known to be alive and reached.

======== ==========================================================================
lock     locked as long as the job's process lives, however that ends
record   what runs in the job, where it is reached, and how it ended (``JobRecord``)
key      what client and job prove to each other that they know; its owner's alone
log      what the process prints; log.1, log.2, ... what it printed before
======== ==========================================================================
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from weirflow.checkpoint.sealed import refused
from weirflow.errors import ConfigError
from weirflow.streaming.detached.record import JobRecord, read_record, write_record

if TYPE_CHECKING:
    from pathlib import Path

_NAME = re.compile(r"\w[\w.-]{0,99}")
_LOCK, _RECORD, _KEY, _LOG = "lock", "record.json", "key", "log"
_LOG_BYTES = 16 << 20
_OLD_LOGS = 4
_LOCK_SECONDS = 1.0
_POLL_SECONDS = 0.02


class JobFolder:
    """The folder of one job; there need not be one yet.

    Args:
        at: the folder of jobs.
        name: the job's name.

    Raises:
        ConfigError: it cannot be the name of a job.
    """

    def __init__(self, at: Path, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r} cannot be the name of a job.",
                hint='give one of up to 100 letters, digits, ".", "_" and "-" that begins with a letter or digit',
            )
        self.name = name
        self.path = at / name
        self.log = self.path / _LOG

    def create(self) -> None:
        """Make the folder, which is its owner's alone.

        Raises:
            ConfigError: the place cannot be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.mkdir(mode=0o700, exist_ok=True)
            self.log.touch(mode=0o600)
        except OSError as error:
            raise ConfigError(
                f"The job {self.name!r} cannot have its folder in {self.path.parent}: {error}.",
                hint="choose a folder of this machine that you may write to",
            ) from error

    def lock(self) -> int | None:
        """Lock the folder for this process's life, and return the lock; None if a job runs."""
        lock = os.open(self.path / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        end = time.monotonic() + _LOCK_SECONDS  # whoever asks whether the job runs holds the lock for a moment
        while not _locked(lock, fcntl.LOCK_EX):
            if time.monotonic() > end:
                os.close(lock)
                return None
            time.sleep(_POLL_SECONDS)
        return lock

    @property
    def running(self) -> bool:
        """Whether the job's process lives."""
        try:
            lock = os.open(self.path / _LOCK, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise ConfigError(f"The folder of the job {self.name!r} cannot be used: {error}.") from error
        try:
            return not _locked(lock, fcntl.LOCK_SH)
        finally:
            os.close(lock)

    def record(self) -> JobRecord | None:
        """What the job has written down last; None before it has started a query.

        Raises:
            StorageError: it is damaged.
        """
        file = self.path / _RECORD
        hint = f"if the job does not run, remove {self.path} and start it again; its checkpoint is elsewhere"
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise refused(str(file), str(error), hint) from error
        return read_record(content, str(file), hint)

    def write(self, record: JobRecord) -> None:
        """Put down a record in place of the one before, whole or not at all."""
        _put(self.path / _RECORD, write_record(record))

    def key(self) -> bytes:
        """What a client has to know; ``FileNotFoundError`` when no job runs."""
        return (self.path / _KEY).read_bytes()

    def write_key(self, key: bytes) -> None:
        """Put down what clients have to know."""
        _put(self.path / _KEY, key)

    def remove_key(self) -> None:
        """No client is answered any more."""
        (self.path / _KEY).unlink(missing_ok=True)

    def rotate_log(self) -> bool:
        """If the log is large, have it go on in a new file; the job itself calls this, and prints there from then on.

        The last few files are kept, so that a job takes no more than 80 MiB for its logs however long it runs.
        """
        try:
            if self.log.stat().st_size < _LOG_BYTES:
                return False
            for number in range(_OLD_LOGS - 1, 0, -1):
                with contextlib.suppress(FileNotFoundError):
                    self._old_log(number).replace(self._old_log(number + 1))
            self.log.replace(self._old_log(1))
        except FileNotFoundError:  # somebody has taken it away
            pass
        self.log.touch(mode=0o600)
        return True

    def log_tail(self, lines: int) -> str:
        """The last lines of the log; all that are kept for 0."""
        found: list[str] = []
        for file in (self.log, *map(self._old_log, range(1, _OLD_LOGS + 1))):
            with contextlib.suppress(FileNotFoundError):
                found = [*file.read_text(encoding="utf-8", errors="replace").splitlines(), *found]
            if lines and len(found) >= lines:
                break
        return "\n".join(found[-lines:])

    def _old_log(self, number: int) -> Path:
        return self.path / f"{_LOG}.{number}"


def job_folders(at: Path) -> Iterator[JobFolder]:
    """The jobs at a place that have ever had a query, by name."""
    for path in sorted(at.glob(f"*/{_RECORD}")):
        with contextlib.suppress(ConfigError):  # what has another name is not ours
            yield JobFolder(at, path.parent.name)


def _locked(lock: int, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _put(file: Path, content: bytes) -> None:
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as target:
        target.write(content)
        target.flush()
        os.fsync(target.fileno())
    draft.replace(file)
