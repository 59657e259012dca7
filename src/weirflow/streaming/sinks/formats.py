"""The sinks by the names that ``format()`` takes."""

from __future__ import annotations

from weirflow.streaming.sinks import files, lake_table
from weirflow.streaming.sinks.files import Files
from weirflow.streaming.sinks.kafka_transactions import KafkaTransactions
from weirflow.streaming.sinks.lake_table import LakeTable
from weirflow.streaming.sinks.memory import Memory
from weirflow.streaming.sinks.sink import StreamSink
from weirflow.types import Delivery

_OR_MORE = Delivery.AT_LEAST_ONCE
_KNOWN = {
    sink.name: sink
    for sink in (
        StreamSink("kafka", _OR_MORE, "Spark's producer has no transactions", continuous=True),
        StreamSink("console", _OR_MORE, "what is printed is printed", continuous=True, own_checkpoint=True),
        StreamSink("noop", _OR_MORE, "nothing is written", continuous=True, own_checkpoint=True),
        *map(Files, files.FORMATS),
        *map(LakeTable, lake_table.FORMATS),
        KafkaTransactions(),
        Memory(),
    )
}


def sink_of(name: str) -> StreamSink:
    """The sink of this name; one that is not known is Spark's to find."""
    return _KNOWN.get(name) or StreamSink(name, has_folders=True)
