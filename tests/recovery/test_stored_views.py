"""A flow whose views Spark has read, as an earlier version has stored it: opened without Spark, whole, and it goes on.

``stored/views.zip`` was written by ``support/stored_views.py`` when plans of version 1 were first stored with settings.
"""

import zipfile
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from weirflow.ivm.durability.checkup import check_flow
from weirflow.ivm.flow import IncrementalFlow

STORED = Path(__file__).parent / "stored" / "views.zip"


def march_10(hour, minute=0):
    return datetime(2024, 3, 10, hour, minute, tzinfo=UTC)


# What each view has, and what a visit of Cart for five seconds at 08:00 adds.
ROWS = {
    "pipes": ([("/", 3)], [("/cart", 5)]),
    "nulls": ([("/", 3, None), ("/", None, None), ("12", None, 12)], [("/cart", 5, None)]),
    "frame": ([("12", None), ("/", 4)], [("/cart", 5)]),
    "hours": ([(march_10(3), 22, None), (march_10(6), 1, 1), (march_10(7), 3, 3)], [(march_10(8), 4, 5)]),
    "wrapped": ([("/", -(2**31), None), ("/", 2 - 2**31, 1.5), ("12", None, None)], [("/cart", 4 - 2**31, 1.25)]),
}
CHANGED = {
    "titled": ([("Home", 3), ("Cart", None)], [("Home", 3), ("Cart", 5)]),
    "longest": ([("/", march_10(7, 59)), ("/", march_10(6, 59))], [("/cart", march_10(8)), ("/", march_10(7, 59))]),
    "days": ([(date(2024, 3, 9), 1), (date(2024, 3, 10), 2)], [(date(2024, 3, 9), 1), (date(2024, 3, 10), 3)]),
}


@pytest.fixture
def folder(tmp_path):
    with zipfile.ZipFile(STORED) as stored:
        stored.extractall(tmp_path)
    return tmp_path / "flow"


def require(flow, wanted):
    found = {name: Counter(tuple(row.values()) for row in flow.snapshot(name).to_pylist()) for name in flow.views}
    assert found == {name: Counter(rows) for name, rows in wanted.items()}


def test_a_flow_that_spark_has_read_goes_on_without_it(folder):
    before = {name: rows for name, (rows, _) in (ROWS | CHANGED).items()}
    after = {name: rows + more for name, (rows, more) in ROWS.items()}
    after |= {name: rows for name, (_, rows) in CHANGED.items()}
    assert check_flow(folder).is_whole
    with IncrementalFlow("visits", path=folder) as flow:
        require(flow, before)
        flow.tick("visits", [{"at": march_10(8), "page": "/cart", "seconds": 5}])
        require(flow, after)
    with IncrementalFlow("visits", path=folder) as flow:
        require(flow, after)
        assert {one.kind for one in flow.describe().relations} == {"source", "incremental"}
