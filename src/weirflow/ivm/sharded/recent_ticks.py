"""What the last ticks changed, as the commits that are kept know it: for watches that come back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weirflow.ivm.sharded.commits import Commit
    from weirflow.ivm.sharded.worker.reports import RowsRef


@dataclass(frozen=True)
class RecentTicks:
    """The outputs of all ticks after an epoch, oldest first."""

    after: int
    outputs: Sequence[tuple[int, Mapping[str, list[RowsRef]]]]


def recent_ticks(kept: Sequence[Commit]) -> RecentTicks:
    """The ticks behind the last commit that is not there any more, or that dropped or reshaped something."""
    known: list[Commit] = []
    for commit in reversed(kept):
        if known and not _follows(known[-1], commit):
            break
        known.append(commit)
        if commit.kind in ("drop", "replace", "restore"):
            break
    if not known:
        return RecentTicks(0, ())
    ticks = [(tick.epoch, tick.outputs) for commit in reversed(known) for tick in commit.ticks]
    return RecentTicks(known[-1].epoch - len(known[-1].ticks), ticks)


def _follows(commit: Commit, before: Commit) -> bool:
    """Whether one was made of the other; a coordinator that was late may have left one that nobody went on from."""
    return before.number + 1 == commit.number and (before.fence == commit.fence or commit.kind == "open")
