"""For tests of what users write: clocks, watermarks and crashes under control, without Spark."""

from weirflow.testing.clock import ManualClock
from weirflow.testing.process_harness import CoProcessHarness, HarnessSnapshot, ProcessHarness

__all__ = ["CoProcessHarness", "HarnessSnapshot", "ManualClock", "ProcessHarness"]
