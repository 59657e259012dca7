"""State is kept by what operators do: what does something else must not take it for its own."""

import pytest

from weirflow import IncrementalFlow
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.ivm.sharded.worker import stage

EXISTS = "EXISTS (SELECT 1 FROM u WHERE u.k = t.k)"


def opened(place, shards):
    return IncrementalFlow(path=place) if shards is None else PartitionedFlow(place, shards, InThisProcess())


@pytest.mark.parametrize("shards", [None, 2])
def test_counts_of_rows_with_and_without_a_match_survive_a_restart(tmp_path, shards):
    place = str(tmp_path / "flow")
    with opened(place, shards) as flow:
        for name in ("t", "u"):
            flow.register_source(name, "k BIGINT")
        flow.register_view("with", f"SELECT COUNT(*) AS n FROM t WHERE {EXISTS}")
        flow.register_view("without", f"SELECT COUNT(*) AS n FROM t WHERE NOT {EXISTS}")
        flow.tick({"t": [{"k": at} for at in range(10)], "u": [{"k": 1}]})
        flow.checkpoint()
    stage._warm.clear()
    with opened(place, shards) as flow:
        flow.tick("t", [{"k": 50}, {"k": 1}])
        found = {name: flow.snapshot(name).to_pylist() for name in ("with", "without")}
    assert found == {"with": [{"n": 2}], "without": [{"n": 10}]}
