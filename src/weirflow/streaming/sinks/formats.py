"""The sinks by the names that ``format()`` takes."""

from __future__ import annotations

from weirflow.streaming.sinks import files, lake_table
from weirflow.streaming.sinks.files import Files
from weirflow.streaming.sinks.kafka_transactions import KafkaTransactions
from weirflow.streaming.sinks.lake_table import LakeTable
from weirflow.streaming.sinks.memory import Memory
from weirflow.streaming.sinks.sink import StreamSink
from weirflow.streaming.sinks.spark_formats import Console, Kafka, Nowhere

_KNOWN = {
    sink.name: sink
    for sink in (
        *map(Files, files.FORMATS),
        *map(LakeTable, lake_table.FORMATS),
        Console(),
        Kafka(),
        KafkaTransactions(),
        Memory(),
        Nowhere(),
    )
}


def sink_of(name: str) -> StreamSink:
    """The sink of this name; one that is not known is Spark's to find."""
    return _KNOWN.get(name) or StreamSink(name)
