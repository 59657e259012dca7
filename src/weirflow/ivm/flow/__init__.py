"""``IncrementalFlow``: sources, views, ticks; the product around the kernel."""

from weirflow.ivm.flow.incremental import IncrementalFlow
from weirflow.ivm.flow.outputs.watch import OverflowPolicy, Watch
from weirflow.ivm.flow.sinks.sink import Sink
from weirflow.ivm.flow.source import Lateness
from weirflow.ivm.flow.summary import StepSummary
from weirflow.ivm.flow.vector_view import HnswIndex, IvfIndex, VectorViewSpec

__all__ = [
    "HnswIndex",
    "IncrementalFlow",
    "IvfIndex",
    "Lateness",
    "OverflowPolicy",
    "Sink",
    "StepSummary",
    "VectorViewSpec",
    "Watch",
]
