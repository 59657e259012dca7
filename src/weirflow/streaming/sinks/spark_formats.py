"""Sinks that Spark writes to by itself, without anything of ours."""

from __future__ import annotations

from dataclasses import dataclass

from weirflow.streaming.sinks.sink import StreamSink
from weirflow.types import Delivery


@dataclass(frozen=True)
class Console(StreamSink):
    """Prints rows."""

    name: str = "console"
    delivery = Delivery.AT_LEAST_ONCE
    why = "what is printed is printed"
    continuous = True
    own_checkpoint = True
    has_folders = False


@dataclass(frozen=True)
class Nowhere(StreamSink):
    """Computes rows and drops them."""

    name: str = "noop"
    delivery = Delivery.AT_LEAST_ONCE
    why = "nothing is written"
    continuous = True
    own_checkpoint = True
    has_folders = False


@dataclass(frozen=True)
class Kafka(StreamSink):
    """A Kafka topic, without transactions."""

    name: str = "kafka"
    delivery = Delivery.AT_LEAST_ONCE
    why = "Spark's producer has no transactions"
    continuous = True
    has_folders = False
