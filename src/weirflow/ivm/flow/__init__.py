"""``IncrementalFlow``: sources, views, ticks; the product around the kernel."""

from weirflow.ivm.flow.incremental import IncrementalFlow
from weirflow.ivm.flow.sink import Sink
from weirflow.ivm.flow.source import Lateness
from weirflow.ivm.flow.summary import StepSummary
from weirflow.ivm.flow.watch import OverflowPolicy, Watch

__all__ = ["IncrementalFlow", "Lateness", "OverflowPolicy", "Sink", "StepSummary", "Watch"]
