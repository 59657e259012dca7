"""``Ledger``: what a partitioned flow is now, and how it becomes something else: one commit after the other.

A change happens when its commit has the next number in the storage. Whatever is raised around that moment, the storage
knows, and ``settle`` asks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from weirflow.errors import LeaseLost
from weirflow.ivm.sharded.commits import SHARED, CommittedTick
from weirflow.ivm.sharded.kept_commits import KeptCommits

if TYPE_CHECKING:
    from weirflow.ivm.sharded.commits import Commit, CommitFiles, PendingTick
    from weirflow.ivm.sharded.definition import Blueprint
    from weirflow.ivm.sharded.worker.reports import RowsRef, ShardReport
    from weirflow.metadata import Lease


@dataclass(frozen=True)
class ChangeNotice:
    """What a change did that others are to be told.

    Attributes:
        epoch: the flow's, after it.
        reports: of the tasks.
        outputs: what changed in each view.
        ended: the views whose readers cannot be told, or that are gone.
        earlier: the ticks of the same commit before the one that came to ``epoch``.
        begun: the tick that this is, with those of others behind it.
        evicted: how many deltas sources have forgotten that notice repetitions.
    """

    epoch: int
    reports: Sequence[ShardReport] = ()
    outputs: dict[str, list[RowsRef]] = field(default_factory=dict)
    ended: tuple[str, ...] = ()
    earlier: tuple[CommittedTick, ...] = ()
    begun: PendingTick | None = None
    evicted: int = 0

    @property
    def ticks(self) -> tuple[CommittedTick, ...]:
        """All epochs that readers are told of."""
        return (*self.earlier, CommittedTick(self.epoch, self.outputs))


@dataclass(frozen=True)
class _Change:
    """What the flow would be, whom to tell what, and the tick that waits then."""

    commit: Commit
    blueprint: Blueprint
    untold: ChangeNotice | None
    pending: PendingTick | None


class Ledger:
    """The commits of one flow, as its coordinator writes them. Not for several threads at once.

    Args:
        commits: in the storage.
        lease: says that this is still the flow's coordinator.

    Attributes:
        commit: what the flow is.
        blueprint: its circuit, cut into stages.
        pending: a tick that was begun and not committed.
        untold: what the last commit changed, until somebody sets it to None who has told it.
        trail: the commits that are kept.
    """

    commit: Commit
    blueprint: Blueprint
    trail: KeptCommits

    def __init__(self, commits: CommitFiles, lease: Lease | None) -> None:
        self._commits = commits
        self._lease = lease
        self._change: _Change | None = None
        self.pending: PendingTick | None = None
        self.untold: ChangeNotice | None = None

    def begin(self, commit: Commit, kept: Sequence[Commit], blueprint: Blueprint, fence: int) -> None:
        """Go on from a commit that is there, and write the next ones under a token."""
        self.commit, self.blueprint = commit, blueprint
        self.trail = KeptCommits(self._commits, kept)
        self._fence = fence

    @property
    def is_settled(self) -> bool:
        """Whether it is known what the flow is."""
        return self._change is None

    def publish(
        self,
        commit: Commit,
        blueprint: Blueprint,
        *,
        untold: ChangeNotice | None = None,
        pending: PendingTick | None = None,
    ) -> None:
        """Let the flow be something else.

        Args:
            commit: what it is to be; its number, format and outputs are set here.
            blueprint: of its circuit.
            untold: what others are to be told of it.
            pending: the tick that waits then.

        Raises:
            LeaseLost: another coordinator has taken over; nothing has changed.
            StorageError: it is not known whether it happened: ``settle``.
        """
        self.require_leader()
        change = _Change(self._next(commit, blueprint, untold), blueprint, untold, pending)
        self._change = change
        self._settle(change.commit)

    def settle(self) -> None:
        """Find out what became of a change that something came into while it was published.

        Unless its commit is there, its number is taken by one that changes nothing: then it cannot come any more, even
        if the storage is slow to carry out what it was asked.

        Raises:
            LeaseLost: another coordinator has taken over.
            StorageError: the storage could not be asked.
        """
        if self._change is not None:
            self.require_leader()
            self._settle(self._next(msgspec.structs.replace(self.commit, kind="open"), self.blueprint, None))

    def require_leader(self) -> None:
        """``LeaseLost`` unless this is still the flow's coordinator."""
        if self._lease is not None:
            self._lease.require()

    def _next(self, commit: Commit, blueprint: Blueprint, untold: ChangeNotice | None) -> Commit:
        earlier = [] if untold is None else list(untold.earlier)
        return msgspec.structs.replace(
            commit,
            number=self.commit.number + 1,
            fence=self._fence,
            format=max(SHARED if earlier else 0, blueprint.definition.commit_format),
            outputs={} if untold is None else untold.outputs,
            earlier=earlier,
        )

    def _settle(self, wanted: Commit) -> None:
        change = self._change
        assert change is not None
        try:
            found = self._commits.put(wanted, change.commit)
        except LeaseLost:
            self._change = None
            raise
        self.trail.add(found)
        # Each in one statement without a call: no exception comes between what belongs together.
        if found is change.commit:
            self.commit, self.blueprint, self.untold, self.pending, self._change = (
                found,
                change.blueprint,
                change.untold,
                change.pending,
                None,
            )
        else:
            self.commit, self._change = found, None
