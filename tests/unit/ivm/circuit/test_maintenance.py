"""State is tidied up between ticks: as much as came in, and only where something changed."""

from __future__ import annotations

import pyarrow as pa

from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.kernel.runs.spine import Spine


def numbers(start, count):
    return pa.table({"k": range(start, start + count), "v": range(count)})


def test_many_large_ticks_leave_few_runs():
    flow = IncrementalFlow()
    flow.register_source("numbers", "k BIGINT, v BIGINT")
    flow.register_view("sums", "SELECT k, SUM(v) AS total FROM numbers GROUP BY k")
    for tick in range(60):
        flow.tick("numbers", numbers(tick * 3000, 3000))
    states = [state for node in flow._backend._state.program.circuit.nodes for state in node.operator.states]
    assert sum(state.row_count for state in states) >= 2 * 180_000
    assert max(len(state.runs) for state in states) < 15


def test_views_that_a_tick_does_not_touch_are_left_alone(monkeypatch):
    calls = []
    maintain = Spine.maintain
    monkeypatch.setattr(Spine, "maintain", lambda spine, fuel: calls.append(spine) or maintain(spine, fuel))
    flow = IncrementalFlow()
    for source in ("touched", "untouched"):
        flow.register_source(source, "k BIGINT, v BIGINT")
        flow.register_view(f"{source}_sums", f"SELECT k, SUM(v) AS total FROM {source} GROUP BY k")
    for source in ("untouched", "touched", "touched"):
        flow.tick(source, numbers(0, 10))
    calls.clear()
    flow.tick("touched", numbers(5, 10))
    touched = {id(spine) for spine in calls}
    calls.clear()
    flow.tick("untouched", numbers(5, 10))
    assert touched
    assert touched.isdisjoint(map(id, calls))
