"""Child processes that end with the test which started them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

POLL_SECONDS = 0.02
STOP_SECONDS = 10.0
LOG_TAIL_LINES = 40

# Runs in the child before it becomes the program. A preexec_fn would do the same, but forks a process
# that may have gRPC threads: gRPC complains, and so does Python 3.12.
_DIE_WITH_PARENT = """
import os, sys
parent, program = int(sys.argv[1]), sys.argv[2:]
if sys.platform == "linux":
    import ctypes, signal
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the parent was gone before the child began")
os.execvp(program[0], program)
"""


class ChildProcess:
    """A program in a session of its own, logging to a file, killed when the test process dies.

    The kernel kills the child when the *thread* that started it ends, so start it from the main thread.
    The child's own children die at ``stop()``, wherever they moved within the session.

    Args:
        command: the program and its arguments.
        name: how it is called in messages and in the name of its log.
        env: variables on top of this process's; a None value removes one.
        cwd: its working folder; by default a temporary folder of its own, removed by ``stop()``.
    """

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        *,
        name: str,
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.name = name
        self._own_folder = Path(tempfile.mkdtemp(prefix=f"weirflow-test-{name}-"))
        self.log_path = self._own_folder / f"{name}.log"
        merged: dict[str, str | None] = {**os.environ, **(env or {})}
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    "-c",
                    _DIE_WITH_PARENT,
                    str(os.getpid()),
                    *map(os.fspath, command),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={key: value for key, value in merged.items() if value is not None},
                cwd=cwd or self._own_folder,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    @property
    def log(self) -> str:
        """All it has written so far to stdout and stderr."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def wait_until(self, predicate: Callable[[], object], deadline: float, what: str) -> None:
        """Poll ``predicate`` until it is true; fail after ``deadline`` seconds, or when the child ends."""
        end = time.monotonic() + deadline
        while not predicate():
            if self.returncode is not None and not predicate():
                raise AssertionError(f"{self.name} ended with {self.returncode} before {what}\n{self._log_tail()}")
            if time.monotonic() > end:
                raise AssertionError(f"{self.name}: not {what} within {deadline} s\n{self._log_tail()}")
            time.sleep(POLL_SECONDS)

    def wait(self, deadline: float) -> int:
        """Wait for its own end and return the exit code."""
        self.wait_until(lambda: self.returncode is not None, deadline, "ended")
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        """``kill -9`` of the child and of everything it started: the loss of a host, not a clean end."""
        pids = self._session_pids()
        for pid in pids:
            _signal(pid, signal.SIGKILL)
        self._process.wait(STOP_SECONDS)
        wait_gone(pids, STOP_SECONDS)

    def stop(self) -> None:
        """Terminate, then kill whatever is left, and remove the log. Does nothing the second time."""
        if not self._own_folder.exists():
            return
        if self.returncode is None:
            _signal(self.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
        self.kill()
        shutil.rmtree(self._own_folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _session_pids(self) -> set[int]:
        # By session, not by process group: Spark's Python daemon makes a group of its own, and orphans
        # are no longer descendants.
        pids = {pid for pid in psutil.pids() if _session_of(pid) == self.pid}
        return pids | (descendants(self.pid) | {self.pid} if self.returncode is None else set())

    def _log_tail(self) -> str:
        lines = self.log.splitlines()[-LOG_TAIL_LINES:]
        return "\n".join([f"--- the end of {self.log_path} ---", *lines])


def free_port() -> int:
    """A TCP port on 127.0.0.1 that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def accepts(port: int) -> bool:
    """Whether something on 127.0.0.1 accepts connections at ``port`` now."""
    with socket.socket() as client:
        client.settimeout(1.0)
        return client.connect_ex(("127.0.0.1", port)) == 0


def wait_until(predicate: Callable[[], object], deadline: float, what: str) -> None:
    """Poll ``predicate`` until it is true; fail after ``deadline`` seconds."""
    end = time.monotonic() + deadline
    while not predicate():
        if time.monotonic() > end:
            raise AssertionError(f"not {what} within {deadline} s")
        time.sleep(POLL_SECONDS)


def descendants(pid: int) -> set[int]:
    """The processes below ``pid``, at any depth; empty when it is gone."""
    try:
        return {child.pid for child in psutil.Process(pid).children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def java_children(pid: int) -> set[int]:
    """The JVMs below ``pid``, at any depth."""
    return {child for child in descendants(pid) if _program(child) == "java"}


def alive(pids: Iterable[int]) -> set[int]:
    """Those of ``pids`` that still run; a zombie does not."""
    return {pid for pid in pids if _runs(pid)}


def wait_gone(pids: Iterable[int], deadline: float) -> None:
    """Wait until none of ``pids`` runs any more."""
    remaining = set(pids)
    end = time.monotonic() + deadline
    while remaining := alive(remaining):
        if time.monotonic() > end:
            names = ", ".join(f"{pid} ({_program(pid)})" for pid in sorted(remaining))
            raise AssertionError(f"still running after {deadline} s: {names}")
        time.sleep(POLL_SECONDS)


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def _program(pid: int) -> str | None:
    try:
        return psutil.Process(pid).name()
    except psutil.NoSuchProcess:
        return None


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
