"""Windows as an earlier version has kept them, by partition alone: they go on, with rows that are nowhere else.

``stored/windows.zip`` was written by ``support/stored_windows.py`` when windows were recomputed by partition.
"""

import zipfile
from collections import Counter
from pathlib import Path

import pytest
from support.stored_windows import VIEWS, laps

from weirflow.ivm.flow import IncrementalFlow

STORED = Path(__file__).parent / "stored" / "windows.zip"


@pytest.fixture
def folder(tmp_path):
    with zipfile.ZipFile(STORED) as stored:
        stored.extractall(tmp_path)
    return tmp_path / "flow"


def rows_of(flow):
    return {name: Counter(tuple(row.values()) for row in flow.snapshot(name).to_pylist()) for name in VIEWS}


def computed(rows):
    """The views over all these rows, in a flow that never ended."""
    with IncrementalFlow("laps") as flow:
        flow.register_source("laps", "at TIMESTAMP, car STRING, seconds DOUBLE")
        for name, sql in VIEWS.items():
            flow.register_view(name, sql)
        flow.tick("laps", rows)
        return rows_of(flow)


def test_windows_of_an_earlier_version_go_on(folder):
    with IncrementalFlow("laps", path=folder) as flow:
        assert flow.snapshot("laps").num_rows < 243  # so that nothing could be built anew
        assert rows_of(flow) == computed(laps(0, 243))
        flow.tick("laps", laps(243, 250))
        assert rows_of(flow) == computed(laps(0, 250))
        flow.checkpoint()
    with IncrementalFlow("laps", path=folder) as flow:
        flow.tick("laps", laps(250, 252))
        assert rows_of(flow) == computed(laps(0, 252))
