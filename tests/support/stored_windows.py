"""Writes what ``recovery/test_stored_windows.py`` opens: windows over a source that has let go of its oldest rows.

To store what another version writes, check it out elsewhere and run, with its own code and this file::

    PYTHONPATH=<checkout>/src python tests/support/stored_windows.py tests/recovery/stored/windows.zip
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from weirflow.ivm.flow import IncrementalFlow, state
from weirflow.ivm.flow.source import Lateness
from weirflow.ivm.kernel.runs import spine

NAME = "laps"
SOURCE = "at TIMESTAMP, car STRING, seconds DOUBLE"
VIEWS = {
    "gaps": "SELECT car, at, lag(seconds) OVER (PARTITION BY car ORDER BY at) AS before FROM laps",
    "places": "SELECT car, at, rank() OVER (PARTITION BY car ORDER BY seconds) AS r FROM laps",
    "totals": "SELECT car, at, SUM(seconds) OVER (PARTITION BY car ORDER BY abs(seconds), at) AS s FROM laps",
    "best": """
        SELECT car, at, seconds FROM (
          SELECT *, row_number() OVER (PARTITION BY car ORDER BY seconds, at) AS n FROM laps
        ) WHERE n <= 2""",
    "both": """
        SELECT car, at, row_number() OVER (PARTITION BY car ORDER BY at) AS n,
               row_number() OVER (PARTITION BY car ORDER BY seconds DESC, at) AS m FROM laps""",
}
FIRST = datetime(2024, 5, 1, tzinfo=UTC)


def laps(begin: int, end: int) -> list[dict[str, Any]]:
    """So many rows, a minute apart."""
    return [
        {"at": FIRST + timedelta(minutes=n), "car": "abc"[n % 3], "seconds": 60 + (n * 7919 % 1000) / 8}
        for n in range(begin, end)
    ]


def write(folder: Path) -> None:
    """The flow, with a checkpoint and a log behind it."""
    # So that few rows are enough for some to be let go.
    spine.LEAST_TO_RELEASE = state._ROWS_BEFORE_RELEASE = 50
    with IncrementalFlow(NAME, path=folder / "flow") as flow:
        flow.register_source("laps", SOURCE, lateness=Lateness("at", "1 hour", keep=False))
        for name, sql in VIEWS.items():
            flow.register_view(name, sql)
        for begin in range(0, 240, 60):
            flow.tick("laps", laps(begin, begin + 60))
        flow.checkpoint()
        flow.tick("laps", laps(240, 243))


def main(target: Path) -> None:
    """Write the archive."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(target, "w", zipfile.ZIP_LZMA) as archive:
        write(Path(folder))
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
