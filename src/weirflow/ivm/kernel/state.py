"""What operators ask of their state, so that another implementation can stand in for the NumPy one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.kernel.runs.spine import StateMark
    from weirflow.ivm.zset.batch import Batch, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class ProbeResult:
    """Stored rows that were found: row i of ``batch`` belongs to the probe row ``probe_index[i]``."""

    probe_index: Int64s
    batch: Batch

    def __len__(self) -> int:
        return len(self.probe_index)


class State(Protocol):
    """State made of immutable runs. One thread uses it at a time; runs may be read by others."""

    @property
    def runs(self) -> tuple[Run, ...]:
        """All of the state, for a checkpoint: runs that were saved once need not be saved again."""

    @property
    def row_count(self) -> int:
        """Stored rows, counting those that cancel each other but were not merged yet."""

    @property
    def nbytes(self) -> int:
        """Bytes of the stored rows, in memory or mapped."""

    def maintain(self, fuel: int) -> int:
        """Merge about ``fuel`` rows in the background of a tick; returns how many were, 0 when all is merged."""

    def adopt(self, runs: Iterable[Run]) -> None:
        """Be the state whose ``runs`` these were."""

    def adopt_without(self, runs: Iterable[Run], columns: int) -> None:
        """As ``adopt``, of runs of a state whose rows have so many more columns in front, the same in all rows."""

    def mark(self) -> StateMark:
        """What it holds now, at no cost; ``rewind`` brings it back."""

    def rewind(self, mark: StateMark) -> None:
        """Hold what was held at a mark. May be repeated, so that it can be done again if something interrupts it."""

    released: int
    """How many rows were left when the last were let go; it decides when the next are."""

    def release(self, column: int, bound: pa.Scalar) -> None:
        """Let go of rows whose ``column`` is below the bound, some time; they are not asked for any more."""
