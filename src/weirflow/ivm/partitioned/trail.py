"""``Trail``: the last commits of a flow and their files, which readers may still need, and what can go behind them."""

from __future__ import annotations

import threading
from collections import Counter, deque
from typing import TYPE_CHECKING

from weirflow.failpoints import failpoint
from weirflow.ivm.durability.packs import FOLDER as PACKS
from weirflow.ivm.partitioned.commits import PENDING, commit_name
from weirflow.ivm.partitioned.files import ROWS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from weirflow.ivm.partitioned.commits import Commit, Commits


class Trail:
    """The commits that are kept, oldest first, and how many of them need each file; for several threads."""

    def __init__(self, commits: Commits, kept: Iterable[Commit]) -> None:
        self._lock = threading.Lock()
        self._commits = commits
        self._storage = commits.storage
        self._kept: deque[tuple[int, set[str]]] = deque()
        self._uses: Counter[str] = Counter()
        self._epoch = 0
        for commit in kept:
            self.add(commit)

    def add(self, commit: Commit) -> None:
        """A new commit."""
        files = commit.files
        with self._lock:
            self._kept.append((commit.number, files))
            self._uses.update(files)
            self._epoch = commit.epoch

    def collect(self, keep: int, pinned: Collection[int]) -> None:
        """Delete all commits but the newest ``keep`` and the ``pinned`` ones, and what only they needed."""
        with self._lock:
            old = [one for one in list(self._kept)[:-keep] if one[0] not in pinned]
        for number, files in old:
            failpoint("partitioned.before_collect")
            self._storage.delete(commit_name(number))
            with self._lock:
                self._kept.remove((number, files))
                self._uses.subtract(files)
                gone = sorted(one for one in files if not self._uses[one])
                for file in gone:
                    del self._uses[file]
            for file in gone:
                self._storage.delete(file)

    def sweep(self) -> None:
        """Delete files that no commit needs: those of tasks that were run again, and of ticks that were given up.

        A running tick's files are of a later epoch than the last commit's, and stay.
        """
        with self._lock:
            last, used = self._epoch, set(self._uses)
        for folder in (PACKS, ROWS, PENDING):
            for info in self._storage.list(folder):
                epoch = int(info.name.removeprefix(folder).partition("-")[0])
                if epoch <= last and info.name not in used:
                    self._storage.delete(info.name)
