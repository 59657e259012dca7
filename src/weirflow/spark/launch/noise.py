"""What Spark's JVM prints to stderr although nothing is wrong, and users can do nothing about it."""

from __future__ import annotations

import re

# What JVMs say at every start.
_START = re.compile(r"^(WARNING: |Picked up (_JAVA|JAVA_TOOL)_OPTIONS|OpenJDK 64-Bit Server VM warning: )")
# What PySpark prints at every start of a stateful query, each with an empty line behind it.
_WORKER = re.compile(r"^(Starting )?Streaming TransformWithStateInPandas Python worker\b")
# A task that ended, because the user's function raised or the query was stopped, while Spark's thread that serves its
# state waited for the next call: nobody catches that in the JVM, which prints it with the frames below.
_STATE_SERVER = re.compile(r'^Exception in thread "stateConnectionListenerThread" java\.nio\.channels\.\w+Exception\b')
_FRAME = re.compile(r"^\t(at |\.\.\. \d+ more)")


class StderrNoise:
    """Tells noise from what counts, line by line, in the order in which the lines came."""

    def __init__(self) -> None:
        self._empty_lines = 0
        self._in_trace = False

    def has(self, line: str) -> bool:
        """Whether the next line is noise."""
        if self._in_trace and _FRAME.match(line):
            return True
        self._in_trace = bool(_STATE_SERVER.match(line))
        if _WORKER.match(line):
            self._empty_lines += 1  # those of several workers may come behind one another
            return True
        if not line and self._empty_lines:
            self._empty_lines -= 1
            return True
        return self._in_trace or bool(_START.match(line))
