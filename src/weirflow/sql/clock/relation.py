"""The relation that holds the reading of a flow's clock: its name and its columns."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from weirflow.sql.types import TIMESTAMP

CLOCK: Final = "the clock"
"""The relation of a flow that holds the clock's reading: one row at most. No source or view can have the name."""
NUMBER, READING = "number", "reading"
CLOCK_SCHEMA: Final = pa.schema([pa.field(NUMBER, pa.int8()), pa.field(READING, TIMESTAMP)])
"""The columns of the relation; the first is its key, and always 0."""
