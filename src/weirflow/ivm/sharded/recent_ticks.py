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
        if known and commit.number + 1 != known[-1].number:
            break
        known.append(commit)
        if commit.kind in ("drop", "replace", "restore"):
            break
    if not known:
        return RecentTicks(0, ())
    ticks = [(tick.epoch, tick.outputs) for commit in reversed(known) for tick in commit.ticks]
    return RecentTicks(known[-1].epoch - len(known[-1].ticks), ticks)
