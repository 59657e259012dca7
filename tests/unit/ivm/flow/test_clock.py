"""The clock of a flow: what moves it, what it refuses, and what follows it."""

import datetime as dt

import pytest

from weirflow.errors import ConfigError, DataError, NotIncremental, TickPending
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.flow import clock as flow_clock
from weirflow.ivm.operators.clocked.operator import Clocked

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)
RECENT = "SELECT id FROM t WHERE at > now() - INTERVAL 1 HOUR"


def made(**options):
    flow = IncrementalFlow(**{"clock": "manual", **options})
    flow.register_source("t", "id INT, at TIMESTAMP")
    flow.register_view("recent", RECENT)
    return flow


def ids(flow, view="recent"):
    return sorted(flow.snapshot(view).column("id").to_pylist())


def row(number, at):
    return {"id": number, "at": at}


def test_rows_leave_when_their_time_is_over():
    flow = made()
    flow.advance(NOON)
    flow.tick("t", [row(1, NOON), row(2, NOON + HOUR / 2)])
    flow.advance(NOON + HOUR - dt.timedelta(microseconds=1))
    assert ids(flow) == [1, 2]
    assert flow.advance(NOON + HOUR).views == {"recent": 1}
    assert ids(flow) == [2]


def test_a_row_is_retracted_before_and_after_its_time():
    flow = made()
    flow.advance(NOON)
    flow.tick("t", [row(1, NOON), row(2, NOON - 2 * HOUR)])
    flow.tick("t", {"id": [1, 2], "at": [NOON, NOON - 2 * HOUR], "_weight": [-1, -1]})
    assert flow.advance(NOON + 2 * HOUR).rows_out == 0
    assert ids(flow) == []


def test_before_the_first_reading_nothing_is_known_to_be_recent():
    flow = made()
    flow.tick("t", [row(1, NOON)])
    assert flow.clock is None
    assert ids(flow) == []
    flow.advance(NOON)
    assert ids(flow) == [1]


def test_the_clock_does_not_go_back_and_the_same_time_is_an_epoch():
    flow = made()
    flow.advance(NOON)
    with pytest.raises(ConfigError, match="cannot go back"):
        flow.advance(NOON - HOUR)
    assert flow.epoch == 1
    assert flow.advance(NOON).epoch == 2
    assert flow.clock == NOON


@pytest.mark.parametrize("moment", [dt.datetime(2026, 1, 1), NOON.replace(year=1969), NOON.replace(year=9999)])  # noqa: DTZ001 - what is refused
def test_what_is_no_reading_is_refused(moment):
    with pytest.raises(ConfigError):
        made().advance(moment)


def test_another_zone_is_the_same_moment():
    flow = made()
    flow.advance(NOON.astimezone(dt.timezone(dt.timedelta(hours=5))))
    assert flow.clock == NOON


def test_ticks_of_a_flow_with_the_system_clock_read_it(monkeypatch):
    now = [int(NOON.timestamp()) * 1_000_000]
    monkeypatch.setattr(flow_clock, "system_time", lambda: now[0])
    flow = made(clock="system")
    assert flow.clock == NOON
    flow.tick("t", [row(1, NOON)])
    now[0] += 3_600_000_000
    flow.tick("t", [row(2, NOON + HOUR)])
    assert ids(flow) == [2]
    now[0] -= 60_000_000  # put back
    flow.tick("t", [row(3, NOON + HOUR)])
    assert flow.clock == NOON + HOUR


def test_a_flow_without_such_views_has_no_clock(monkeypatch):
    monkeypatch.setattr(flow_clock, "system_time", lambda: pytest.fail("nobody asked"))
    flow = IncrementalFlow()
    flow.register_source("t", "id INT, at TIMESTAMP")
    flow.register_view("all", "SELECT id FROM t")
    assert flow.tick("t", [row(1, NOON)]).rows_out == 1
    assert (flow.clock, flow.sources, flow.readable) == (None, ("t",), ("t", "all"))


def test_a_view_that_is_refused_leaves_no_clock():
    flow = IncrementalFlow()
    flow.register_source("t", "id INT")
    with pytest.raises(NotIncremental):
        flow.register_view("v", "SELECT now() AS n FROM t")
    assert (flow.clock, flow.epoch) == (None, 0)


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL"])
def test_an_outer_join_follows_conditions_on_either_of_its_sides(kind):
    flow = IncrementalFlow(clock="manual")
    for name in "ab":
        flow.register_source(name, "id INT, at TIMESTAMP")
    recent = "at > now() - INTERVAL 1 HOUR"
    sql = f"SELECT a.id, b.id AS o FROM a {kind} JOIN b ON a.id = b.id AND a.{recent} AND b.{recent}"
    flow.register_view("v", sql)
    flow.advance(NOON)
    flow.tick({"a": [row(1, NOON), row(2, NOON), row(3, NOON)], "b": [row(1, NOON), row(2, NOON - HOUR), row(4, NOON)]})
    alone = {"LEFT": [(2, None), (3, None)], "RIGHT": [(None, 2), (None, 4)]}
    alone["FULL"] = alone["LEFT"] + alone["RIGHT"]

    def pairs():
        return sorted(map(tuple, (one.values() for one in flow.snapshot("v").to_pylist())), key=str)

    assert pairs() == sorted([(1, 1), *alone[kind]], key=str)
    flow.advance(NOON + 2 * HOUR)
    apart = {"LEFT": [(1, None)], "RIGHT": [(None, 1)], "FULL": [(1, None), (None, 1)]}
    assert pairs() == sorted([*apart[kind], *alone[kind]], key=str)


@pytest.mark.parametrize("condition", ["greatest(a.at, b.at) > now()", "a.at + make_dt_interval(a.id) > now()"])
def test_an_outer_join_with_the_clock_elsewhere_is_refused(condition):
    flow = IncrementalFlow(clock="manual")
    for name in "ab":
        flow.register_source(name, "id INT, at TIMESTAMP")
    with pytest.raises(NotIncremental, match="both sides of an outer join, or in one that can fail"):
        flow.register_view("v", f"SELECT a.id FROM a LEFT JOIN b ON a.id = b.id AND {condition}")
    flow.register_view("v", f"SELECT a.id FROM a JOIN b ON a.id = b.id AND {condition}")


def test_a_view_may_wait_for_its_source():
    flow = IncrementalFlow(clock="manual")
    flow.register_view("recent", RECENT)
    flow.advance(NOON)
    flow.register_source("t", "id INT, at TIMESTAMP")
    flow.tick("t", [row(1, NOON)])
    assert ids(flow) == [1]


def test_the_clock_is_shown_and_nobody_changes_it_but_time():
    flow = made()
    flow.advance(NOON)
    assert "clock      manual, 2026-01-01 12:00:00+00:00" in str(flow.describe())
    assert "follows the clock" in flow.explain("recent")
    changes = (
        lambda: flow.tick("the clock", [{"number": 0, "reading": NOON}]),
        lambda: flow.drop("the clock"),
        lambda: flow.rescale(2, spread={"the clock": "evenly"}),
    )
    for change in changes:
        with pytest.raises(ConfigError, match="The clock is the flow's own"):
            change()
    flow.tick("t", [row(1, NOON)])
    flow.advance(NOON + 48 * HOUR)
    assert ids(flow) == []


def test_an_advance_that_fails_waits_with_its_reading():
    flow = made()
    flow.register_view("bad", "SELECT id FROM t WHERE CASE WHEN at < now() THEN 1 / (id - 1) > 0 ELSE true END")
    flow.tick("t", [row(1, NOON)])
    flow.advance(NOON)
    with pytest.raises(DataError):
        flow.advance(NOON + HOUR)
    with pytest.raises(TickPending):
        flow.advance(NOON + HOUR)
    flow.discard()
    assert flow.clock == NOON
    assert ids(flow) == [1]


def test_snapshots_of_earlier_epochs_are_of_earlier_readings():
    flow = made()
    flow.advance(NOON)
    flow.tick("t", [row(1, NOON)])
    flow.advance(NOON + HOUR)
    assert flow.snapshot("recent", epoch=2).num_rows == 1
    assert flow.snapshot("recent").num_rows == 0


def test_a_checkpoint_has_the_clock(tmp_path):
    flow = made()
    flow.advance(NOON)
    flow.tick("t", [row(1, NOON)])
    flow.checkpoint(tmp_path)
    other = IncrementalFlow(clock="manual")
    other.restore(tmp_path)
    assert other.clock == NOON
    other.advance(NOON + HOUR)
    assert ids(other) == []


def test_a_view_that_is_replaced_follows_the_clock():
    flow = made()
    flow.advance(NOON)
    flow.tick("t", [row(1, NOON), row(2, NOON - HOUR)])
    flow.replace_view("recent", "SELECT id FROM t WHERE at > now() - INTERVAL 2 HOURS")
    assert ids(flow) == [1, 2]
    flow.advance(NOON + HOUR)
    assert ids(flow) == [1]


def test_queries_read_the_clock_of_the_flow():
    flow = made()
    flow.advance(NOON)
    flow.tick("t", [row(1, NOON), row(2, NOON + HOUR)])
    assert flow.sql("SELECT id FROM t WHERE at <= now()").to_pylist() == [{"id": 1}]


def test_time_that_passes_costs_the_rows_that_cross(monkeypatch):
    looked_at = []
    apply = Clocked._apply
    monkeypatch.setattr(
        Clocked, "_apply", lambda self, rows, now: (looked_at.append(len(rows)), apply(self, rows, now))[1]
    )
    flow = made()
    flow.advance(NOON)
    flow.tick("t", [row(number, NOON + number * dt.timedelta(seconds=1)) for number in range(5000)])
    looked_at.clear()
    flow.advance(NOON + HOUR + dt.timedelta(seconds=2))
    assert looked_at == [3, 3]  # as it was, and as it is
    looked_at.clear()
    flow.advance(NOON + HOUR + dt.timedelta(seconds=2.5))
    assert looked_at == []
