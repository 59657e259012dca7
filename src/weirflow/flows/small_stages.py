"""``SmallStages``: stages that run in this process where little has changed: a job of Spark would cost more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from weirflow.flows.stages import SparkStages
from weirflow.flows.view_schema import view_schema
from weirflow.ivm.sharded.executor import InThisProcess

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.sharded.worker.reports import ShardReport, StageTask

FEW_ROWS = 200_000
"""Up to so many rows of a change are read by this process."""
_SMALL_STATE = 4 << 30
"""Up to so many bytes of state are small: files of this machine are mapped, not copied."""
_SMALL_STATE_ELSEWHERE = 256 << 20
"""Of state in object stores, which is fetched: executors do that side by side."""


class SmallStages(SparkStages):
    """As ``SparkStages``, but for ticks of few rows. What such a tick leaves at hand is at hand for the next one."""

    @property
    @override
    def parallelism(self) -> int:
        return int(self._session.spark.sparkContext.defaultParallelism)  # which needs no native session of its own

    @override
    def run(self, stages: Sequence[StageTask]) -> list[ShardReport]:
        return InThisProcess().run(stages) if is_small(stages) else super().run(stages)

    def here(self, frame: Any) -> pa.Table:
        """The rows of a native frame of few rows, for a tick that is to run here."""
        rows = self._jobs.here(frame)
        return rows.cast(view_schema(rows.schema))


def is_small(stages: Sequence[StageTask]) -> bool:
    """Whether the stages of a tick are worth no job: few rows come in, and the state they may read is not large."""
    first = stages[0]
    if first.fill is not None:
        return False
    given = sum(
        ref.count for tick in first.ticks for own in tick.deltas.values() for refs in own.values() for ref in refs
    )
    packs = {name: pack.size for stage in stages for name, pack in stage.packs.items()}
    most = _SMALL_STATE_ELSEWHERE if "://" in first.uri else _SMALL_STATE
    return given <= FEW_ROWS and sum(packs.values()) <= most
