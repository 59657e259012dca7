"""For testing your own functions, without Spark: you control clocks, watermarks and crashes."""

from weirflow.testing.clock import ManualClock
from weirflow.testing.process_harness import CoProcessHarness, HarnessSnapshot, ProcessHarness

__all__ = ["CoProcessHarness", "HarnessSnapshot", "ManualClock", "ProcessHarness"]
