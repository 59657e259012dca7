"""Flows with percentiles as an earlier version has stored them, which kept the rows of groups and read them again.

``stored/percentiles.zip`` was written by ``support/stored_percentiles.py`` with the code of commit 09d4cf7.
"""

import zipfile
from collections import Counter
from pathlib import Path

import pytest
from support.stored_percentiles import NAME, NOT_A_NUMBER, SHARDS, TWO, InThisProcess, PartitionedFlow, delta

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.ivm.durability.checkup import check_flow
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.operators.aggregate.operator import Aggregate
from weirflow.ivm.sharded.checkup import check_shards

STORED = Path(__file__).parent / "stored" / "percentiles.zip"
BEFORE = {
    "shops": [
        ("a", "2.0", "[1.0, nan]", "2.0", "2.0"),
        ("b", "-0.0", "[-0.0, 0.0]", "-0.0", "0.0"),
        ("c", "None", "None", "None", "None"),
    ],
    "everywhere": [("2.0", "2.0")],
}
AFTER = {
    "shops": [("a", "3.0", "[1.0, 10.0]", "2.0", "4.0"), *BEFORE["shops"][1:]],
    "everywhere": [("1.5", "2.0")],
}


@pytest.fixture
def folder(tmp_path):
    with zipfile.ZipFile(STORED) as stored:
        stored.extractall(tmp_path)
    return tmp_path


def require(flow, wanted):
    """Numbers are compared as they are written: NaN equals nothing, and zeros of either sign each other."""
    found = {
        name: Counter(
            tuple(one if isinstance(one, str) else repr(one) for one in row.values())
            for row in flow.snapshot(name).to_pylist()
        )
        for name in flow.views
    }
    assert found == {name: Counter(rows) for name, rows in wanted.items()}


def go_on(flow):
    require(flow, BEFORE)
    flow.tick("sales", delta([(11, "a", 4.0, 2)], [TWO, NOT_A_NUMBER]))
    require(flow, AFTER)


def test_a_flow_of_one_process_goes_on(folder):
    path = folder / "flow"
    with IncrementalFlow(NAME, path=path) as flow:
        go_on(flow)
    with IncrementalFlow(NAME, path=path) as flow:
        require(flow, AFTER)
        flow.checkpoint()
    assert check_flow(path).is_whole
    with IncrementalFlow(NAME, path=path) as flow:
        require(flow, AFTER)
        flow.tick("sales", delta([TWO, NOT_A_NUMBER], [(11, "a", 4.0, 2)]))
        require(flow, BEFORE)


def test_its_views_are_not_built_anew(folder, monkeypatch):
    """What sources have let go could not be computed again."""
    steps = []
    whole = Aggregate.step
    monkeypatch.setattr(Aggregate, "step", lambda self, deltas: steps.append(deltas) or whole(self, deltas))
    with IncrementalFlow(NAME, path=folder / "flow") as flow:
        require(flow, BEFORE)
    assert not steps


def test_a_flow_in_shards_goes_on(folder):
    def opened():
        return PartitionedFlow(str(folder / "shards"), SHARDS, InThisProcess(), name=NAME)

    with opened() as flow:
        go_on(flow)
        flow.rescale(3)
        require(flow, AFTER)
    assert check_shards(open_checkpoint_storage(folder / "shards")).is_whole
    with opened() as flow:
        require(flow, AFTER)
