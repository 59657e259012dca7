"""Processes that compete for a lease while some of them are stopped, continued and killed.

As a script it plays one schedule after the other: ``lease_players.py URI FOLDER SEED...``. Each process notes when its
lease was valid; ``notes`` reads them.
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import NoReturn

from support.processes import wait_until

PLAYERS = 4
TTL = 0.15
SECONDS = 1.0
PR_SET_PDEATHSIG = 1


def notes(folder: Path) -> dict[int, list[tuple[float, str]]]:
    """For each token, when it was valid and for whom, in the order of time."""
    found: dict[int, list[tuple[float, str]]] = {}
    for file in folder.glob("*.notes"):
        for line in file.read_text().splitlines():
            token, at = line.split()
            found.setdefault(int(token), []).append((float(at), file.stem))
    return {token: sorted(times) for token, times in sorted(found.items())}


def _compete(uri: str, lease_name: str, file: Path, chance: random.Random) -> NoReturn:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    out = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with open_metadata(uri) as metadata:
        while True:
            try:
                lease = metadata.acquire(lease_name, file.stem, TTL, wait=5)
            except MetadataError:
                continue
            # Without a keeper the time runs out while it works, and the next is waiting for that.
            with LeaseKeeper(lease) if chance.random() < 0.5 else nullcontext():
                while True:
                    # Valid afterwards, so valid at this time.
                    at = clock.monotonic()
                    if not lease.valid:
                        break
                    os.write(out, b"%d %.6f\n" % (lease.token, at))
                    time.sleep(0.001)
                    if chance.random() < 0.003:
                        lease.release()


class _Game:
    """One schedule: who is stopped or killed when follows from the seed."""

    def __init__(self, uri: str, folder: Path, seed: int) -> None:
        self._uri, self._folder, self._name = uri, folder, f"game-{seed}"
        self._chance = random.Random(seed)
        self._births = 0
        self._alive: dict[int, Path] = {}
        self._stopped: dict[int, float] = {}

    def play(self) -> None:
        for _ in range(PLAYERS):
            self._bear()
        wait_until(lambda: any(file.exists() and file.stat().st_size for file in self._alive.values()), 20, "begun")
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            time.sleep(self._chance.uniform(0.01, 0.1))
            self._wake()
            victim = self._victim()
            if self._chance.random() < 0.2:
                self._kill(victim)
                self._bear()
            elif victim not in self._stopped:
                os.kill(victim, signal.SIGSTOP)
                self._stopped[victim] = time.monotonic() + self._chance.uniform(0.2, 3) * TTL
        for pid in self._stopped:  # what they find when they go on counts too
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.05)
        for pid in list(self._alive):
            self._kill(pid)

    def _victim(self) -> int:
        """Mostly the one that noted something last."""
        if self._chance.random() < 0.3:
            return self._chance.choice(list(self._alive))
        return max(self._alive, key=lambda pid: self._alive[pid].stat().st_mtime_ns if self._alive[pid].exists() else 0)

    def _wake(self) -> None:
        for pid, until in list(self._stopped.items()):
            if time.monotonic() > until:
                os.kill(pid, signal.SIGCONT)
                del self._stopped[pid]

    def _bear(self) -> None:
        self._births += 1
        file = self._folder / f"{self._births}.notes"
        chance = random.Random(self._chance.random())
        pid = os.fork()
        if pid == 0:
            try:
                _compete(self._uri, self._name, file, chance)
            finally:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        self._alive[pid] = file

    def _kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "a player ended by itself"
        del self._alive[pid]
        self._stopped.pop(pid, None)


if __name__ == "__main__":
    from weirflow.errors import MetadataError
    from weirflow.metadata import LeaseKeeper, clock, open_metadata

    open_metadata(sys.argv[1]).close()  # loads the driver once for all
    for text in sys.argv[3:]:
        where = Path(sys.argv[2]) / text
        where.mkdir()
        _Game(sys.argv[1], where, int(text)).play()
