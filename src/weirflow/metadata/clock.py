"""The clock that says how long ago a database was asked."""

from __future__ import annotations

import time

# Where there is one, a clock that also counts while the machine sleeps.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def monotonic() -> float:
    """Seconds since some moment, the same moment for all processes of a machine; they never go back."""
    return time.clock_gettime(_CLOCK)
