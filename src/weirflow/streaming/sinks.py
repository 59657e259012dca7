"""The sinks of streaming queries: which output modes each takes, and what it promises."""

from __future__ import annotations

from dataclasses import dataclass

from weirflow.types import Delivery, OutputMode

FILES = ("parquet", "json", "csv", "orc", "text", "avro")
UPSERTED = ("delta", "iceberg")
FOREACH = "foreach"
FOREACH_BATCH = "foreach_batch"
FLOW = "flow"
KAFKA_TRANSACTIONS = "kafka-transactions"


@dataclass(frozen=True)
class Sink:
    """What is known about a format.

    Attributes:
        name: what ``format()`` takes.
        delivery: how often rows arrive when the query goes on from its checkpoint.
        why: how that comes.
        continuous: whether Spark writes to it without batches.
        own_checkpoint: whether Spark finds a folder for the checkpoint if none is given.
    """

    name: str
    delivery: Delivery
    why: str
    continuous: bool = False
    own_checkpoint: bool = False


_KNOWN = {
    "memory": Sink(
        "memory",
        Delivery.AT_LEAST_ONCE,
        "rows are kept as long as the query's handle",
        continuous=True,
        own_checkpoint=True,
    ),
    "console": Sink(
        "console", Delivery.AT_LEAST_ONCE, "what is printed is printed", continuous=True, own_checkpoint=True
    ),
    "noop": Sink("noop", Delivery.AT_LEAST_ONCE, "nothing is written", continuous=True, own_checkpoint=True),
    "kafka": Sink("kafka", Delivery.AT_LEAST_ONCE, "Spark's producer has no transactions", continuous=True),
    KAFKA_TRANSACTIONS: Sink(
        KAFKA_TRANSACTIONS, Delivery.EXACTLY_ONCE, "each transaction holds the batch, read_committed sees it once"
    ),
    "delta": Sink("delta", Delivery.EXACTLY_ONCE, "each commit holds the query's id and its batch"),
    "iceberg": Sink("iceberg", Delivery.EXACTLY_ONCE, "each snapshot holds the query's id and its batch"),
    FOREACH: Sink(FOREACH, Delivery.AT_LEAST_ONCE, "a repeated batch is given again", own_checkpoint=True),
    FOREACH_BATCH: Sink(
        FOREACH_BATCH, Delivery.AT_LEAST_ONCE, "a repeated batch comes with the same number", own_checkpoint=True
    ),
    FLOW: Sink(FLOW, Delivery.EXACTLY_ONCE, "the flow knows the token of each batch", own_checkpoint=True),
}


def sink_of(name: str) -> Sink:
    """What is known about the sink of this name."""
    if name in FILES:
        return Sink(name, Delivery.EXACTLY_ONCE, "the folder's log names the files of each batch")
    return _KNOWN.get(name) or Sink(name, Delivery.UNKNOWN, "it is no sink of Spark's own")


def promise(sink: Sink, mode: OutputMode) -> tuple[Delivery, str]:
    """How often rows arrive in this mode, and why."""
    if sink.name in UPSERTED and mode is OutputMode.UPDATE:
        return Delivery.EXACTLY_ONCE, "a repeated batch merges to the same rows"
    return sink.delivery, sink.why
