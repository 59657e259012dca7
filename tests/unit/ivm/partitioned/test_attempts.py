"""Tasks that are run twice: one attempt counts, the other one leaves nothing."""

import random

from support import shop_flow
from support.attempts import TwoAttempts

from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow

TICKS = 10


def test_of_two_attempts_one_counts_and_the_other_is_swept(tmp_path):
    with TwoAttempts(random.Random(1)) as executor, IncrementalFlow() as whole:
        with PartitionedFlow(str(tmp_path), 2, executor) as flow:
            for one in (whole, flow):
                shop_flow.declare(one)
            watches = [[one.watch_output(name) for name in shop_flow.VIEWS] for one in (whole, flow)]
            for number in range(1, TICKS + 1):
                for one in (whole, flow):
                    shop_flow.tick(one, number)
                for expected, found in zip(*watches, strict=True):
                    assert deltas(found) == deltas(expected)
            counted, lost = executor.files
            assert executor.warm > 0
            assert packs(tmp_path) & (lost - counted)
            flow._backend._coordinator._ledger.trail.sweep()
            assert packs(tmp_path) <= counted
            assert shop_flow.contents(flow) == shop_flow.contents(whole)
        # What is left is enough for whoever comes next, with whatever is at hand.
        with PartitionedFlow(str(tmp_path), 2, executor) as flow:
            for one in (whole, flow):
                shop_flow.tick(one, TICKS + 1)
            assert shop_flow.contents(flow) == shop_flow.contents(whole)


def packs(path):
    return {f"packs/{one.name}" for one in (path / "packs").iterdir()}


def deltas(watch):
    found = []
    while (one := watch.get(timeout=0)) is not None:
        found.append((one[0], sorted(map(str, one[1].to_arrow().to_pylist()))))
    return found


def test_a_view_that_was_dropped_and_registered_again_begins_anew(tmp_path):
    with PartitionedFlow(str(tmp_path), 2, InThisProcess()) as flow:
        flow.register_source("s", "k BIGINT")
        flow.register_view("all_rows", "SELECT COUNT(*) AS n FROM s")
        flow.tick("s", [{"k": 1}, {"k": 1}, {"k": 2}])
        for _ in range(3):
            flow.register_view("counts", "SELECT k, COUNT(*) AS n FROM s GROUP BY k")
            assert sorted(map(str, flow.snapshot("counts").to_pylist())) == ["{'k': 1, 'n': 2}", "{'k': 2, 'n': 1}"]
            flow.drop("counts")
