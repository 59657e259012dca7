"""Packs of which little is in use are left by their runs, so that the disk holds about what the flow does."""

import random
from pathlib import Path

import pytest

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.failpoints import watch_failpoints
from weirflow.ivm.durability import packs as packs_module
from weirflow.ivm.durability.checkpoints import Checkpoints
from weirflow.ivm.durability.packs import PackFiles
from weirflow.ivm.flow import IncrementalFlow
from weirflow.observability.metrics import FlowMetrics

ROWS = 2000


def churn(flow, number, uri=None):
    """A table that stays, and another that is replaced whole; then a checkpoint, whose pack holds both."""
    chosen = random.Random(number)
    flow.register_source(f"kept_{number}", "v BIGINT")
    flow.register_source("replaced", "id BIGINT, v BIGINT", key="id")
    flow.register_view("total", "SELECT SUM(v) AS total, MAX(v) AS most FROM replaced")
    flow.tick(
        {
            f"kept_{number}": [{"v": chosen.randrange(1 << 40)} for _ in range(ROWS // 10)],
            "replaced": [{"id": one, "v": chosen.randrange(1 << 40)} for one in range(ROWS)],
        }
    )
    flow.checkpoint(uri)


def in_use(path):
    """Of the newest checkpoint: the bytes of its runs, and of the packs that hold them."""
    manifest = Checkpoints(open_checkpoint_storage(str(path)), FlowMetrics("test")).find(None)
    runs = {ref for state in manifest.states.values() for part in state for ref in part}
    return sum(ref.length for ref in runs), sum(pack.size for pack in manifest.packs.values())


def on_disk(path):
    return sum(file.stat().st_size for file in (Path(path) / "packs").iterdir())


def rows(flow):
    return {name: sorted(map(str, flow.snapshot(name).to_pylist())) for name in (*flow.sources, *flow.views)}


def test_the_disk_holds_twice_the_state_at_most_under_churn(tmp_path):
    with IncrementalFlow(path=tmp_path, fsync=0) as flow:
        for number in range(30):
            churn(flow, number)
            live, held = in_use(tmp_path)
            assert held <= 2 * live
            # The checkpoint before the newest one is kept as well.
            assert on_disk(tmp_path) <= 4 * live
            assert len(flow._backend._store._checkpoints._packs._packs) <= len(list((tmp_path / "packs").iterdir()))
        wanted = rows(flow)
    with IncrementalFlow(path=tmp_path) as flow:
        assert rows(flow) == wanted


def test_a_reopened_flow_compacts_what_it_found(tmp_path):
    for number in range(12):
        with IncrementalFlow(path=tmp_path, fsync=0) as flow:
            churn(flow, number)
            wanted = rows(flow)
    live, held = in_use(tmp_path)
    assert held <= 2 * live
    with IncrementalFlow(path=tmp_path) as flow:
        assert rows(flow) == wanted


@pytest.fixture
def moves():
    """How often runs were moved."""
    seen = []
    watch_failpoints(lambda point: seen.append(point) if point == "compact.before_pack" else None)
    yield seen
    watch_failpoints(None)


def test_a_storage_that_keeps_all_checkpoints_is_not_compacted(tmp_path, moves):
    flow = IncrementalFlow()
    for number in range(12):
        churn(flow, number, tmp_path)
    assert not moves


def runs_of(count):
    flow = IncrementalFlow()
    found = []
    for number in range(count):
        flow.register_source(f"t{number}", "v BIGINT")
        flow.tick(f"t{number}", {"v": list(range(number * 1000, number * 1000 + 1000))})
        found += flow._backend._state.program.store(f"t{number}").arrangement.runs
    assert len(found) == count
    return found


@pytest.mark.parametrize(("allowed", "moved"), [(1.0, [1, 1, 1, 1, 0]), (2.5, [2, 2, 0, 0, 0]), (0.5, [0, 1, 0, 1, 0])])
def test_a_checkpoint_moves_no_more_than_it_may_and_the_next_go_on(monkeypatch, allowed, moved):
    packs = PackFiles(open_checkpoint_storage("memory://moved"))
    runs = runs_of(10)
    places = packs.save(runs, 1)
    size = packs.written // 10
    monkeypatch.setattr(packs_module, "_LEAST_MOVED", int(size * allowed))
    found = []
    for epoch in range(2, 7):
        before = packs.written
        packs.save(runs[:4], epoch, compact=True)
        found.append((packs.written - before) // size)
    assert found == moved
    # What was moved is what it was.
    refs = packs.save(runs[:4], 7)
    again = PackFiles(open_checkpoint_storage("memory://moved")).load(refs, packs.describe(refs))
    assert [run.batch.columns for run in again] == [run.batch.columns for run in runs[:4]]
    assert (refs == places[:4]) is (sum(moved) == 0)


def test_a_pack_that_is_mostly_in_use_stays(monkeypatch):
    packs = PackFiles(open_checkpoint_storage("memory://stays"))
    runs = runs_of(10)
    places = packs.save(runs, 1)
    assert packs.save(runs[:6], 2, compact=True) == places[:6]
