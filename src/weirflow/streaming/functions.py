"""The functions that take the batches of a streaming query, one for each kind of sink that has one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from weirflow.errors import TickPending
from weirflow.streaming.batches import BatchGate
from weirflow.streaming.checkpoints import split_options
from weirflow.streaming.sinks import FOREACH_BATCH, KAFKA_TRANSACTIONS, UPSERTED
from weirflow.types import OutputMode

if TYPE_CHECKING:
    from collections.abc import Callable

    from weirflow.streaming.host import StreamHost
    from weirflow.streaming.launch import Launch


class Flow(Protocol):
    """What a flow must be for a query to write to it."""

    def tick(self, source: str, delta: Any, *, token: str) -> Any:
        """Apply a delta, unless one with this token was applied before."""

    @property
    def pending(self) -> bool:
        """Whether a tick failed and waits."""

    def discard(self) -> Any:
        """Forget the tick that failed."""


def batch_function(launch: Launch, host: StreamHost, query_id: Callable[[], str]) -> Callable[[Any, int], Any] | None:
    """What Spark is to give each batch to; None for sinks of Spark's own.

    Args:
        launch: what the writer was told.
        host: where the query runs; over Spark Connect the function is called in another process, which is sent a copy.
        query_id: the query's id; waits until it is known.
    """
    if launch.flow is not None:
        flow, source = launch.flow
        return BatchGate(_ticking(flow, source, query_id), f"A tick of {source}")
    if launch.format in UPSERTED and launch.mode is OutputMode.UPDATE:
        return _merging(launch, remote=host.connect)
    if launch.format == KAFKA_TRANSACTIONS:
        from weirflow.streaming.kafka_sink import KafkaTransactions  # noqa: PLC0415 - only those who write to it

        _, options = split_options(launch.options)
        written = KafkaTransactions(options, query_id, lambda native: host.wrap(native).to_batches())
        return BatchGate(written, f"The transaction for {options['topic']}", written.close)
    if launch.format != FOREACH_BATCH:
        return None
    function = launch.function
    if host.connect:
        return function

    def take(native: Any, number: int) -> None:
        with host.inside():
            function(host.wrap(native), number)

    return BatchGate(take, "The function of foreach_batch")


def _merging(launch: Launch, *, remote: bool) -> Callable[[Any, int], None]:
    from weirflow.spark.streaming_upsert import merging, table_at  # noqa: PLC0415 - imports pyspark

    table = table_at(launch.format, launch.table, launch.options.get("path"))
    merge = merging(table, launch.keys)
    if remote:
        return merge
    main = launch.frame.sparkSession

    def merge_and_show(batch: Any, number: int) -> None:
        merge(batch, number)
        main.catalog.refreshTable(table)  # which may hold on to what was there before

    return BatchGate(merge_and_show, f"The merge into {table}")


def _ticking(flow: Flow, source: str, query_id: Callable[[], str]) -> Callable[[Any, int], None]:
    def tick(batch: Any, number: int) -> None:
        rows = batch.toArrow()
        try:
            flow.tick(source, rows, token=f"{query_id()}/{number}")
        except TickPending:  # somebody else's tick waits, and is left alone
            raise
        except Exception:
            if flow.pending:  # the batch comes again, so its delta need not wait
                flow.discard()
            raise

    return tick
