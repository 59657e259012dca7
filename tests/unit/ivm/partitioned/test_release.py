"""Lateness in shards: state that is final is let go on each of them, and the views never notice."""

import datetime as dt
import uuid

import pytest
from support.flow_engine import FlowEngine
from support.late_ticks import COLUMNS, START
from support.late_ticks import VIEWS as LATE_VIEWS
from support.late_ticks import ticks as late_ticks
from support.let_go import let_go_at_once

from weirflow import IncrementalFlow, Lateness
from weirflow.errors import ConfigError
from weirflow.ivm.kernel.runs import spine
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.ivm.sharded.worker import stage

VIEWS = {**LATE_VIEWS, "last": "SELECT at, name, x FROM t ORDER BY at DESC, name, x LIMIT 3"}


def partitioned(shards: int) -> PartitionedFlow:
    return PartitionedFlow(f"memory://{uuid.uuid4().hex}", shards, InThisProcess())


def made(flow, lateness: Lateness | None, views: dict[str, str] = VIEWS):
    flow.register_source("t", COLUMNS, lateness=lateness)
    flow.register_source("names", "name STRING, v BIGINT", key="name")
    for name, sql in views.items():
        flow.register_view(name, sql)
    return flow


def ticks(count: int, rows: int):
    """What both sources get."""
    for number, delta in enumerate(late_ticks(count, rows, late=True)):
        yield {"t": delta, "names": [{"name": "abc"[number % 3], "v": number}]}


def rows_of(flow, view: str) -> list[str]:
    return sorted(map(str, flow.snapshot(view).to_pylist()))


def kept_rows(flow: PartitionedFlow) -> int:
    return sum(report.rows for report in flow._backend._coordinator.reports)


@pytest.fixture(autouse=True)
def released_early(monkeypatch):
    """Small states are worth it, too."""
    monkeypatch.setattr("weirflow.ivm.kernel.runs.spine.LEAST_TO_RELEASE", 1)


ONE_PROCESS = [(1, True, True), (3, True, False), (3, False, True)]
OTHERS = [(1, True, False), (3, True, True), (3, False, False)]


@pytest.mark.parametrize(
    ("shards", "warm", "keep"), [*ONE_PROCESS, *(pytest.param(*one, marks=pytest.mark.campaign) for one in OTHERS)]
)
def test_views_and_late_rows_are_those_of_a_flow_in_one_process(shards, warm, keep):
    lateness = Lateness("at", "5 hours", keep=keep)
    flow, other = made(partitioned(shards), lateness), made(IncrementalFlow(), lateness)
    watches = [one.watch_output("t.late") for one in (flow, other)]
    for delta in ticks(14, 12):
        if not warm:
            stage._warm.clear()
        ours, theirs = flow.tick(delta), other.tick(delta)
        assert (ours.late, ours.views) == (theirs.late, theirs.views)
    assert theirs.epoch == 14
    for name in VIEWS:
        assert rows_of(flow, name) == rows_of(other, name), name
    late, expected = ([(epoch, delta.checksum()) for epoch, delta in _all(watch)] for watch in watches)
    assert late == expected
    assert late


def _all(watch):
    while (found := watch.get(timeout=0)) is not None:
        yield found


@pytest.mark.parametrize(
    ("view", "warm"),
    [
        ("by_window", False),
        ("by_hour", True),
        ("seen", True),
        *(
            pytest.param(*one, marks=pytest.mark.campaign)
            for one in (("by_window", True), ("by_hour", False), ("seen", False))
        ),
    ],
)
def test_old_groups_leave_the_state_but_not_the_view(view, warm):
    flow, other = (made(partitioned(2), one, {view: VIEWS[view]}) for one in (Lateness("at", "2 days"), None))
    for number in range(50):
        if not warm:
            stage._warm.clear()
        rows = [
            {"at": START + dt.timedelta(minutes=600 * number + one), "name": f"{one}", "x": one} for one in range(10)
        ]
        flow.tick("t", rows)
        other.tick("t", rows)
    assert rows_of(flow, view) == rows_of(other, view)
    # The source's rows and the view's stay, at most half of the operator's own state does.
    final = flow.snapshot("t").num_rows + flow.snapshot(view).num_rows
    assert kept_rows(flow) - final <= 0.5 * (kept_rows(other) - final)


def test_state_is_let_go_once_it_has_doubled_even_if_every_task_loads_it_anew(monkeypatch):
    """Each time costs what the state weighs, so it must not happen in each tick."""
    flow = made(partitioned(1), Lateness("at", "5 hours", keep=False), {"by_day": VIEWS["by_day"]})
    let_go = []
    kept = spine.kept_rows
    monkeypatch.setattr(spine, "kept_rows", lambda run, mask: let_go.append(run) or kept(run, mask))
    for delta in ticks(60, 12):
        stage._warm.clear()
        flow.tick(delta)
    assert 0 < len(let_go) < 60
    assert flow.snapshot("t").num_rows < 0.5 * 60 * 12


def test_what_would_fill_views_anew_needs_all_rows():
    flow = PartitionedFlow(f"memory://{uuid.uuid4().hex}", 2, InThisProcess(FlowEngine()))
    made(flow, Lateness("at", "5 hours", keep=False), {"by_day": VIEWS["by_day"]})
    for delta in ticks(3, 12):
        flow.tick(delta)
    with pytest.raises(ConfigError, match="'t' does not keep rows that are too old"):
        flow.force_diff_based("by_day")


def test_a_view_that_is_replaced_leaves_the_others_as_they_are():
    lateness = Lateness("at", "5 hours", keep=False)
    flow, other = made(partitioned(2), lateness), made(IncrementalFlow(), lateness)
    deltas = list(ticks(24, 12))
    for delta in deltas[:18]:
        flow.tick(delta)
        other.tick(delta)
    before = {name: rows_of(flow, name) for name in VIEWS}
    assert flow.replace_view("seen", "SELECT DISTINCT name FROM t").rebuilt == ("seen",)
    assert {name: rows_of(flow, name) for name in VIEWS if name != "seen"} == {
        name: rows for name, rows in before.items() if name != "seen"
    }
    assert rows_of(flow, "seen") == ["{'name': 'a'}", "{'name': 'b'}", "{'name': 'c'}"]
    other.replace_view("seen", "SELECT DISTINCT name FROM t")
    for delta in deltas[18:]:
        assert flow.tick(delta).views == other.tick(delta).views


def test_a_later_view_does_not_fill_the_state_of_an_older_one_from_the_rows_that_are_left(tmp_path, monkeypatch):
    let_go_at_once(monkeypatch)
    with PartitionedFlow(str(tmp_path), 2, InThisProcess()) as flow:
        flow.register_source("t", "at TIMESTAMP, name STRING", lateness=Lateness("at", "1 minute", keep=False))
        flow.register_source("kept", "name STRING")
        flow.register_view("first", "SELECT name, COUNT(*) AS n FROM t GROUP BY name")
        for minute in range(20):
            flow.tick("t", [{"at": dt.datetime(2024, 1, 1, 0, minute, tzinfo=dt.UTC), "name": "a"}])
        assert flow.snapshot("t").num_rows < 20
        for column in ("name, COUNT(*)", "COUNT(*) + 1"):
            with pytest.raises(ConfigError, match="'first' any more: the source 't' has freed rows"):
                flow.register_view("second", f"SELECT {column} AS n FROM t GROUP BY name")
        flow.register_view("same", "SELECT * FROM first")
        flow.register_view("other", "SELECT name, COUNT(*) AS n FROM kept GROUP BY name")
        flow.register_view("another", "SELECT name, COUNT(*) AS n FROM kept GROUP BY name")
        flow.tick({"t": [{"at": dt.datetime(2024, 1, 1, 1, tzinfo=dt.UTC), "name": "a"}], "kept": [{"name": "b"}]})
        assert flow.snapshot("first").to_pylist() == flow.snapshot("same").to_pylist() == [{"name": "a", "n": 21}]
        assert flow.snapshot("other").to_pylist() == flow.snapshot("another").to_pylist() == [{"name": "b", "n": 1}]
