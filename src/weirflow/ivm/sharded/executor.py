"""What runs the stages of a tick; Spark does, and for tests and small flows this process can."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from typing_extensions import override

from weirflow.ivm.compiler.missing_engine import no_engine
from weirflow.ivm.compiler.settled import under
from weirflow.ivm.sharded.worker.stage import run_stage

if TYPE_CHECKING:
    from weirflow.ivm.compiler.view import RecomputeEngine
    from weirflow.ivm.sharded.worker.distribution import ReadRows
    from weirflow.ivm.sharded.worker.reports import Parcel, ShardReport, StageTask
    from weirflow.sql.settings import SqlSettings


class StageExecutor(Protocol):
    """Runs stages on shards, and moves parcels between them."""

    @property
    def runs(self) -> str:
        """Where it runs, in words for people."""

    def run(self, stages: Sequence[StageTask]) -> list[ShardReport]:
        """Run all stages one after the other, each on all shards; returns the reports of all.

        A lost task is run again. What a task reports counts only if this method returns it.
        """

    def over(self, frame: Any, work: Callable[[Iterable[Any]], Iterator[bytes]]) -> list[bytes]:
        """Run ``work`` on the Arrow batches of a distributed frame, where they are; returns its results."""

    def over_all(self, works: Sequence[tuple[Any, Callable[[Iterable[Any]], Iterator[bytes]]]]) -> list[bytes]:
        """As ``over`` for several frames, each with its own work, together."""

    def each(self, shards: int, work: Callable[[int], bytes]) -> list[bytes]:
        """Run ``work`` for each shard; returns its results, in any order."""

    @property
    def engine(self) -> RecomputeEngine | None:
        """What plans queries without a rule for deltas; without an engine, ``query`` cannot be called."""

    def rows(self, work: ReadRows, shards: int) -> Any:
        """The rows that ``work`` reads on each of the shards, as a distributed frame."""

    def query(
        self,
        sql: str,
        tables: Mapping[str, ReadRows],
        shards: int,
        given: Mapping[str, pa.Table] | None = None,
        settings: SqlSettings | None = None,
    ) -> Any:
        """The result of a query over tables in shards, as a distributed frame for ``over`` or ``table``.

        It may also read the tables that are ``given`` here. Without settings, the query uses the Session's current
        ones.
        """

    def table(self, frame: Any) -> pa.Table:
        """The rows of a distributed frame, in this process."""

    def close(self) -> None:
        """Free what it holds; called when the flow is closed, or could not be opened. Does not fail."""
        return


class DelegatedStages(StageExecutor):
    """Passes everything on to another executor. The base class for executors that do a part of the work themselves.

    Args:
        others: does the work; its owner closes it.
    """

    def __init__(self, others: StageExecutor) -> None:
        self.others = others

    @property
    @override
    def runs(self) -> str:
        return self.others.runs

    @override
    def run(self, stages: Sequence[StageTask]) -> list[ShardReport]:
        return self.others.run(stages)

    @override
    def over(self, frame: Any, work: Callable[[Iterable[Any]], Iterator[bytes]]) -> list[bytes]:
        return self.others.over(frame, work)

    @override
    def over_all(self, works: Sequence[tuple[Any, Callable[[Iterable[Any]], Iterator[bytes]]]]) -> list[bytes]:
        return self.others.over_all(works)

    @override
    def each(self, shards: int, work: Callable[[int], bytes]) -> list[bytes]:
        return self.others.each(shards, work)

    @property
    @override
    def engine(self) -> RecomputeEngine | None:
        return self.others.engine

    @override
    def rows(self, work: ReadRows, shards: int) -> Any:
        return self.others.rows(work, shards)

    @override
    def query(
        self,
        sql: str,
        tables: Mapping[str, ReadRows],
        shards: int,
        given: Mapping[str, pa.Table] | None = None,
        settings: SqlSettings | None = None,
    ) -> Any:
        return self.others.query(sql, tables, shards, given, settings)

    @override
    def table(self, frame: Any) -> pa.Table:
        return self.others.table(frame)


class InThisProcess(StageExecutor):
    """Runs the shards one after the other, here.

    Args:
        engine: what recomputes views; without one they cannot be.
    """

    def __init__(self, engine: RecomputeEngine | None = None) -> None:
        self._engine = engine

    @property
    def runs(self) -> str:
        """Where it runs, in words for people."""
        return "in this process, shard by shard"

    @override
    def run(self, stages: Sequence[StageTask]) -> list[ShardReport]:
        waiting: dict[int, list[Parcel]] = {}
        for task in stages:
            sent: dict[int, list[Parcel]] = {}
            for shard in range(task.shards):
                for target, parcel in run_stage(task, shard, waiting.get(shard, []), "this process"):
                    sent.setdefault(target, []).append(parcel)
            waiting = sent
        return [parcel.report for parcels in waiting.values() for parcel in parcels if parcel.report is not None]

    def over(self, frame: Any, work: Callable[[Iterable[Any]], Iterator[bytes]]) -> list[bytes]:
        """See ``StageExecutor``: what has Arrow batches takes the place of the frame."""
        return list(work(frame.to_batches()))

    @override
    def over_all(self, works: Sequence[tuple[Any, Callable[[Iterable[Any]], Iterator[bytes]]]]) -> list[bytes]:
        return [done for frame, work in works for done in self.over(frame, work)]

    @override
    def each(self, shards: int, work: Callable[[int], bytes]) -> list[bytes]:
        return [work(shard) for shard in range(shards)]

    @property
    @override
    def engine(self) -> RecomputeEngine | None:
        return self._engine

    @override
    def rows(self, work: ReadRows, shards: int) -> pa.Table:
        return pa.Table.from_batches((batch for shard in range(shards) for batch in work(shard)), work.schema)

    @override
    def query(
        self,
        sql: str,
        tables: Mapping[str, ReadRows],
        shards: int,
        given: Mapping[str, pa.Table] | None = None,
        settings: SqlSettings | None = None,
    ) -> pa.Table:
        if self._engine is None:
            raise no_engine()
        read = {name: self.rows(work, shards) for name, work in tables.items()}
        return under(self._engine, settings).run(sql, {**read, **(given or {})})

    @override
    def table(self, frame: pa.Table) -> pa.Table:
        return frame
