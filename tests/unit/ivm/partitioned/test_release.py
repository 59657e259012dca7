"""Lateness in shards: state that is final is let go on each of them, and the views never notice."""

import datetime as dt
import random
import uuid

import pytest

from weirflow import IncrementalFlow, Lateness
from weirflow.errors import ConfigError
from weirflow.ivm.kernel import spine
from weirflow.ivm.partitioned import stage
from weirflow.ivm.partitioned.executor import InThisProcess
from weirflow.ivm.partitioned.flow import PartitionedFlow

START = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
COLUMNS = "at TIMESTAMP, name STRING, x BIGINT"
VIEWS = {
    "by_window": "SELECT window(at, '10 minutes') AS w, SUM(x) AS s, COUNT(DISTINCT name) AS n FROM t GROUP BY 1",
    "by_hour": "SELECT date_trunc('HOUR', at) AS h, name, MIN(x) AS m FROM t GROUP BY 1, 2",
    "by_day": "SELECT CAST(at AS DATE) AS d, COUNT(*) AS n FROM t GROUP BY CAST(at AS DATE)",
    "seen": "SELECT DISTINCT at, name FROM t",
    "over": "SELECT year(w.start) AS y, SUM(s) AS s FROM by_window GROUP BY year(w.start)",
    "named": "SELECT date_trunc('DAY', at) AS d, SUM(x * v) AS s FROM t JOIN names ON t.name = names.name GROUP BY 1",
    "last": "SELECT at, name, x FROM t ORDER BY at DESC, name, x LIMIT 3",
}


def partitioned(shards: int) -> PartitionedFlow:
    return PartitionedFlow(f"memory://{uuid.uuid4().hex}", shards, InThisProcess())


def made(flow, lateness: Lateness | None, views: dict[str, str] = VIEWS):
    flow.register_source("t", COLUMNS, lateness=lateness)
    flow.register_source("names", "name STRING, v BIGINT", key="name")
    for name, sql in views.items():
        flow.register_view(name, sql)
    return flow


def ticks(count: int, rows: int):
    """Rows around a time that goes on, some of them late, with some retractions of rows of the tick before."""
    rng = random.Random(1)
    last: list[dict] = []
    for number in range(count):
        now = START + dt.timedelta(hours=number)
        minutes = [rng.randrange(-120, 120) for _ in range(rows)] + [-1000] * (number % 5 == 0)
        added = [
            {
                "at": now + dt.timedelta(minutes=one),
                "name": rng.choice("abc"),
                "x": rng.randrange(10),
                "_weight": 1,
            }
            for one in minutes
        ]
        yield {
            "t": added + [row | {"_weight": -1} for row in last[:rows:7]],
            "names": [{"name": "abc"[number % 3], "v": number}],
        }
        last = added


def rows_of(flow, view: str) -> list[str]:
    return sorted(map(str, flow.snapshot(view).to_pylist()))


def kept_rows(flow: PartitionedFlow) -> int:
    return sum(report.rows for report in flow._coordinator.reports)


@pytest.fixture(autouse=True)
def released_early(monkeypatch):
    """Small states are worth it, too."""
    monkeypatch.setattr("weirflow.ivm.kernel.spine.LEAST_TO_RELEASE", 1)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(("shards", "warm"), [(1, True), (3, True), (3, False)])
def test_views_and_late_rows_are_those_of_a_flow_in_one_process(shards, warm, keep):
    lateness = Lateness("at", "5 hours", keep=keep)
    flow, other = made(partitioned(shards), lateness), made(IncrementalFlow(), lateness)
    watches = [one.watch_output("t.late") for one in (flow, other)]
    for delta in ticks(40, 12):
        if not warm:
            stage._warm.clear()
        ours, theirs = flow.tick(delta), other.tick(delta)
        assert (ours.late, ours.views) == (theirs.late, theirs.views)
    assert theirs.epoch == 40
    for name in VIEWS:
        assert rows_of(flow, name) == rows_of(other, name), name
    late, expected = ([(epoch, delta.checksum()) for epoch, delta in _all(watch)] for watch in watches)
    assert late == expected
    assert late


def _all(watch):
    while (found := watch.get(timeout=0)) is not None:
        yield found


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("view", ["by_window", "by_hour", "seen"])
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
    flow = made(partitioned(2), Lateness("at", "5 hours", keep=False))
    for delta in ticks(3, 12):
        flow.tick(delta)
    with pytest.raises(ConfigError, match="'t' does not keep rows that are too old"):
        flow.rescale(3)
    flow.rescale(2)


def test_a_view_that_is_replaced_leaves_the_others_as_they_are():
    lateness = Lateness("at", "5 hours", keep=False)
    flow, other = made(partitioned(2), lateness), made(IncrementalFlow(), lateness)
    deltas = list(ticks(40, 12))
    for delta in deltas[:30]:
        flow.tick(delta)
        other.tick(delta)
    before = {name: rows_of(flow, name) for name in VIEWS}
    assert flow.replace_view("seen", "SELECT DISTINCT name FROM t").rebuilt == ("seen",)
    assert {name: rows_of(flow, name) for name in VIEWS if name != "seen"} == {
        name: rows for name, rows in before.items() if name != "seen"
    }
    assert rows_of(flow, "seen") == ["{'name': 'a'}", "{'name': 'b'}", "{'name': 'c'}"]
    other.replace_view("seen", "SELECT DISTINCT name FROM t")
    for delta in deltas[30:]:
        assert flow.tick(delta).views == other.tick(delta).views
