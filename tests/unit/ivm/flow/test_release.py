"""State that lateness makes final is let go, and the views never notice."""

from __future__ import annotations

import datetime as dt

import pytest
from support.late_ticks import COLUMNS, START, VIEWS, minutes, ticks

from weirflow import IncrementalFlow, Lateness
from weirflow.errors import ConfigError


def make(lateness: Lateness | None, views: dict[str, str] = VIEWS) -> IncrementalFlow:
    flow = IncrementalFlow()
    flow.register_source("t", COLUMNS, lateness=lateness)
    flow.register_source("names", "name STRING, v BIGINT", key="name")
    for name, sql in views.items():
        flow.register_view(name, sql)
    return flow


def rows_of(flow: IncrementalFlow, view: str) -> list[str]:
    return sorted(map(str, flow.snapshot(view).to_pylist()))


def state_rows(flow: IncrementalFlow, word: str) -> int:
    circuit = flow._backend._state.program.circuit
    return sum(state.row_count for node in circuit.nodes if node.label == word for state in node.operator.states)


@pytest.fixture(autouse=True)
def released_early(monkeypatch):
    """Small states are worth it, too."""
    monkeypatch.setattr("weirflow.ivm.kernel.runs.spine.LEAST_TO_RELEASE", 1)
    monkeypatch.setattr("weirflow.ivm.flow.state._ROWS_BEFORE_RELEASE", 1)


@pytest.mark.parametrize("keep", [True, False])
def test_views_are_the_same_with_and_without_release(keep):
    flow, other = make(Lateness("at", "5 hours", keep=keep)), make(None)
    for number, delta in enumerate(ticks(36, 12)):
        names = [{"name": "abc"[number % 3], "v": number}]
        assert flow.tick({"t": delta, "names": names}).late == 0
        other.tick({"t": delta, "names": names})
    for name in VIEWS:
        assert rows_of(flow, name) == rows_of(other, name), name


@pytest.mark.parametrize(
    ("view", "word"),
    [
        ("by_window", "aggregate"),
        ("by_hop", "aggregate"),
        ("by_hour", "aggregate"),
        ("by_day", "aggregate"),
        ("seen", "distinct"),
        ("both", "intersect"),
        ("pairs", "aggregate"),
    ],
)
def test_old_groups_leave_the_state_but_not_the_view(view, word):
    flow, other = (make(lateness, {view: VIEWS[view]}) for lateness in (Lateness("at", "2 days"), None))
    for number in range(60):
        delta = [{"at": START + minutes(600 * number + one), "name": f"{one}", "x": one} for one in range(10)]
        flow.tick("t", delta)
        other.tick("t", delta)
    assert rows_of(flow, view) == rows_of(other, view)
    most = {"by_day": 1.0}.get(view, 0.5)  # so few groups that only some of them went
    assert state_rows(flow, word) <= most * state_rows(other, word)


def test_a_source_that_does_not_keep_its_rows_stays_small():
    flow, other = (make(one, {"by_day": VIEWS["by_day"]}) for one in (Lateness("at", "5 hours", keep=False), None))
    for delta in ticks(100, 12):
        flow.tick("t", delta)
        other.tick("t", delta)
    assert flow.snapshot("t").num_rows < 0.3 * other.snapshot("t").num_rows
    assert rows_of(flow, "by_day") == rows_of(other, "by_day")


def test_it_survives_a_restart(tmp_path):
    lateness = Lateness("at", "5 hours", keep=False)
    deltas = list(ticks(60, 12))
    expected = make(None)
    for delta in deltas:
        expected.tick("t", delta)
    for part in (deltas[:25], deltas[25:40], deltas[40:]):
        with IncrementalFlow("kept", path=tmp_path / "flow", checkpoint_every=12) as flow:
            flow.register_source("t", COLUMNS, lateness=lateness)
            flow.register_source("names", "name STRING, v BIGINT", key="name")
            for name, sql in VIEWS.items():
                flow.register_view(name, sql)
            for delta in part:
                flow.tick("t", delta)
            got = {name: rows_of(flow, name) for name in VIEWS}
    assert got == {name: rows_of(expected, name) for name in VIEWS}


class NoEngine:
    """Never gets to run anything."""

    def schema(self, *_):
        raise AssertionError

    run = schema


def test_a_key_and_a_recomputed_view_need_the_rows():
    flow = IncrementalFlow(engine=NoEngine())
    flow.register_source("fleeting", COLUMNS, lateness=Lateness("at", "1 hour", keep=False))
    with pytest.raises(ConfigError, match="reads 'fleeting', which does not keep"):
        flow.register_view("v", "SELECT * FROM fleeting", mode="diff")
    with pytest.raises(ConfigError, match="has a key, so it must keep"):
        flow.register_source("t", COLUMNS, key="name", lateness=Lateness("at", "1 hour", keep=False))


def test_upserts_of_old_rows_still_count():
    flow = IncrementalFlow()
    flow.register_source("t", COLUMNS, key="name", lateness=Lateness("at", "1 minute"))
    flow.register_view(
        "by_hour", "SELECT date_trunc('HOUR', at) AS h, COUNT(*) AS n FROM t GROUP BY date_trunc('HOUR', at)"
    )
    for hour in range(20):
        at = START + dt.timedelta(hours=hour)
        flow.tick("t", [{"at": at, "name": f"{hour}-{number}", "x": number} for number in range(10)])
    flow.tick("t", [{"at": START + dt.timedelta(hours=20), "name": "0-7", "x": 0}])
    assert {row["h"]: row["n"] for row in flow.snapshot("by_hour").to_pylist()}[START] == 9
