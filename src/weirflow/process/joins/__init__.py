"""Joins of two keyed streams, as functions over keyed state. They drop state that the watermark has passed."""

from weirflow.process.joins.inputs import JoinInput
from weirflow.process.joins.interval import interval_join
from weirflow.process.joins.join import KeyedJoin
from weirflow.process.joins.stream_table import stream_table_join
from weirflow.process.joins.temporal import temporal_join

__all__ = ["JoinInput", "KeyedJoin", "interval_join", "stream_table_join", "temporal_join"]
