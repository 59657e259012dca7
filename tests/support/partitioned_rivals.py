"""Two processes with leases of one partitioned flow, of which the first is stopped until the second has taken over.

As a script it plays one schedule after the other: ``partitioned_rivals.py METADATA FOLDER SEED...``. Each process notes
what it has published; ``published`` reads it.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from unittest import mock

from support import partitioned_shop
from support.processes import wait_until

from weirflow.errors import LeaseLost, MetadataError
from weirflow.failpoints import PARTITIONED_POINTS, watch_failpoints
from weirflow.ivm.sharded.commits import Commit, CommitFiles
from weirflow.metadata import LeaseKeeper, open_metadata

if TYPE_CHECKING:
    from collections.abc import Callable

TICKS = 22
TTL = 0.5
LOST = 3
SECONDS = 60.0
PR_SET_PDEATHSIG = 1


def published(folder: Path) -> list[tuple[int, int, int]]:
    """Number, epoch and fencing token of each tick that a process took for committed, by number."""
    return sorted(tuple(json.loads(line)) for line in _file(folder, "published").read_text().splitlines())


def commits(folder: Path) -> list[tuple[int, int]]:
    """Number and fencing token of each commit that was put, by number."""
    return sorted(tuple(json.loads(line)) for line in _file(folder, "commits").read_text().splitlines())


def told(folder: Path) -> dict[tuple[int, str], list[str]]:
    """What the watches of both were told."""
    return partitioned_shop.told(_file(folder, "told"))


def _run(uri: str, folder: Path) -> None:
    """Bring the flow to its last tick, under a lease."""
    put = CommitFiles.put

    def put_and_note(self: CommitFiles, commit: Commit, *others: Commit) -> Commit:
        found = put(self, commit, *others)
        note(_file(folder, "commits"), [found.number, found.fence])
        return found

    with mock.patch.object(CommitFiles, "put", put_and_note):
        _run_noted(uri, folder)


def _run_noted(uri: str, folder: Path) -> None:
    with open_metadata(uri) as metadata:
        lease = metadata.acquire(f"flow/{folder}", str(os.getpid()), TTL, wait=SECONDS)
        with LeaseKeeper(lease), partitioned_shop.open_shop(folder / "shop", lease=lease) as flow:
            note(_file(folder, "opened"), [lease.token])
            for epoch in partitioned_shop.run(flow, TICKS, _file(folder, "told")):
                commit = flow._backend._coordinator.commit
                note(_file(folder, "published"), [commit.number, epoch, commit.fence])
        lease.release()


def _first(uri: str, folder: Path, point: str | None, nth: int) -> int:
    """Stops itself at a point when it comes there for the ``nth`` time, or is stopped at any time."""
    seen = 0

    def stop(name: str) -> None:
        nonlocal seen
        seen += name == point
        if name == point and seen == nth:
            os.kill(os.getpid(), signal.SIGSTOP)

    if point is not None:
        watch_failpoints(stop)
    try:
        _run(uri, folder)
    except LeaseLost:
        return LOST
    return 0


def _second(uri: str, folder: Path) -> int:
    """Goes on until all is done, also if it is too slow for its lease, or the first holds a lock of the database."""
    while True:
        try:
            _run(uri, folder)
        except MetadataError:  # LeaseLost is one
            continue
        return 0


def play(uri: str, folder: Path, seed: int) -> str:
    """One schedule; says how the first one ended."""
    chance = random.Random(seed)
    point, nth = chance.choice(PARTITIONED_POINTS), chance.randrange(1, 7)
    at_point = chance.random() < 0.7
    first = _fork(lambda: _first(uri, folder, point if at_point else None, nth))
    opened = _file(folder, "opened")
    # It is the first if it has the lease first; its opening can be where it stops.
    wait_until(lambda: opened.exists() or _stopped(first), SECONDS, "begun")
    second = _fork(lambda: _second(uri, folder))
    if at_point:
        _wait_for(lambda: _stopped(first) or not _alive(first), SECONDS)
    else:
        time.sleep(chance.uniform(0.05, 0.8))
    before = _count(opened)
    while _alive(first) and _count(opened) == before:
        os.kill(first, signal.SIGSTOP)
        _wait_for(lambda: _count(opened) > before, 10 * TTL)
        if _count(opened) == before:  # it may hold a lock of the database, without which nobody gets its lease
            os.kill(first, signal.SIGCONT)
            time.sleep(0.05)
    time.sleep(chance.choice([0.0, 0.0, 0.1, 0.5]))
    status = _wait(first)
    assert _wait(second) == 0, "the second one failed"
    return {LOST: "lost its lease", 0: "was done before"}[status]


def note(file: Path, line: list[int]) -> None:
    """Add a line at once."""
    out = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(out, json.dumps(line).encode() + b"\n")
    os.close(out)


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.jsonl"


def _count(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.exists() else 0


def _fork(call: Callable[[], int]) -> int:
    pid = os.fork()
    if pid == 0:
        _child(call)
    return pid


def _child(call: Callable[[], int]) -> NoReturn:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        os._exit(call())
    except BaseException:  # noqa: BLE001 - the child's own report, whatever it is
        sys.excepthook(*sys.exc_info())
        os._exit(1)


def _alive(pid: int) -> bool:
    """Whether it has not ended; one that has can still be waited for."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _stopped(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # it has ended
        return False


def _wait(pid: int) -> int:
    """Its exit code; it is continued wherever it has stopped."""

    def ended() -> bool:
        if _alive(pid):
            os.kill(pid, signal.SIGCONT)
        return not _alive(pid)

    wait_until(ended, SECONDS, "ended")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _wait_for(predicate: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not predicate():
        time.sleep(0.005)


if __name__ == "__main__":
    os.fsync = os.fdatasync = lambda _: None  # type: ignore[assignment]  # processes die, the machine does not
    open_metadata(sys.argv[1]).close()  # loads the driver once for all
    for text in sys.argv[3:]:
        where = Path(sys.argv[2]) / text
        where.mkdir()
        sys.stdout.write(f"{text} {play(sys.argv[1], where, int(text))}\n")
        sys.stdout.flush()
