"""``KeptCommits``: the last commits of a flow and their files, which readers may still need, and what can go then."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable

from weirflow.failpoints import failpoint
from weirflow.ivm.durability.packs import FOLDER as PACKS
from weirflow.ivm.sharded.commits import PENDING, Commit, CommitFiles, commit_name
from weirflow.ivm.sharded.worker.files import ROWS


class KeptCommits:
    """The commits that are kept, oldest first, and how many of them need each file.

    ``add`` is for the thread that publishes; an exception leaves it done or not, and it may be repeated. All else is
    for the one thread that tidies up.
    """

    def __init__(self, commits: CommitFiles, kept: Iterable[Commit]) -> None:
        self._commits = commits
        self._storage = commits.storage
        self._new: deque[Commit] = deque()
        self._kept: dict[int, set[str]] = {}
        self._uses: Counter[str] = Counter()
        self._epoch = 0
        for commit in kept:
            self.add(commit)

    def add(self, commit: Commit) -> None:
        """A new commit."""
        self._new.append(commit)

    def collect(self, keep: int, pinned: Collection[int]) -> None:
        """Delete all commits but the newest ``keep`` and the ``pinned`` ones, and what only they needed."""
        self._count()
        for number in [one for one in list(self._kept)[:-keep] if one not in pinned]:
            failpoint("partitioned.before_collect")
            self._storage.delete(commit_name(number))
            files = self._kept.pop(number)
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
        self._count()
        last, used = self._epoch, set(self._uses)
        for folder in (PACKS, ROWS, PENDING):
            for info in self._storage.list(folder):
                epoch = int(info.name.removeprefix(folder).partition("-")[0])
                if epoch <= last and info.name not in used:
                    self._storage.delete(info.name)

    def _count(self) -> None:
        """Take in the commits that are new, each once."""
        while self._new:
            commit = self._new.popleft()
            if commit.number not in self._kept:
                self._kept[commit.number] = commit.files
                self._uses.update(commit.files)
                self._epoch = commit.epoch
