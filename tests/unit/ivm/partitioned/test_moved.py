"""State that goes on in other shards, or in one process, though its sources have let go of rows."""

from __future__ import annotations

import datetime as dt
import pickle
import random
import uuid

import pytest
from prometheus_client import CollectorRegistry
from support.flow_engine import FlowEngine
from support.late_ticks import COLUMNS, START
from support.late_ticks import VIEWS as LATE_VIEWS
from support.late_ticks import ticks as late_ticks
from support.let_go import let_go_at_once

from weirflow import IncrementalFlow, Lateness
from weirflow.errors import ConfigError
from weirflow.ivm.durability.manifest import MOVED
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow

LATENESS = Lateness("at", "5 hours", keep=False)
ALL_VIEWS = {
    **LATE_VIEWS,
    "last": "SELECT at, name, x FROM t ORDER BY at DESC, name, x LIMIT 3",
    "last_names": "SELECT name, x FROM t ORDER BY x DESC, name LIMIT 4 OFFSET 2",  # rows do not tell where they were
    "extremes": "SELECT name, MIN(x) AS low, MAX(x) AS high, COUNT(*) AS n, SUM(x - 5) AS s FROM t GROUP BY name",
    "whole": "SELECT MAX(x) AS high, MIN(name) AS low, SUM(x - 8) AS s, COUNT(x) AS n, MAX(at) AS last FROM t",
    "mostly": "SELECT x, MAX(name) AS name, bool_or(x > 4) AS big, bit_or(x) AS bits FROM t GROUP BY x",
    "means": "SELECT x, AVG(CAST(x AS DOUBLE)) AS mean, SUM(x * 0.1) AS s, COUNT(*) AS n FROM t GROUP BY x",
    "ranked": "SELECT at, name, RANK() OVER (PARTITION BY name ORDER BY x, at) AS r FROM t",
    "sessions": "SELECT session_window(at, '20 minutes') AS w, name, COUNT(*) AS n FROM t GROUP BY 1, 2",
    "named_most": "SELECT v, MAX(x) AS most, COUNT(*) AS n FROM t JOIN names ON t.name = names.name GROUP BY v",
    "unnamed": "SELECT at, name FROM t WHERE NOT EXISTS (SELECT 1 FROM names WHERE names.name = t.name AND v > x)",
    "everyone": "SELECT name FROM t UNION ALL SELECT name FROM names",
    "most_seen": "SELECT n, COUNT(*) AS names, MAX(high) AS high FROM extremes GROUP BY n",
}
FEW = ("by_window", "last_names", "extremes", "whole", "ranked", "sessions", "named_most", "unnamed", "most_seen")
VIEWS = {name: ALL_VIEWS[name] for name in FEW}


class OverTheWire(InThisProcess):
    """What tasks are told is what another process would be told."""

    def each(self, shards, work):
        return super().each(shards, pickle.loads(pickle.dumps(work)))


def in_shards(count: int, place: str | None = None) -> PartitionedFlow:
    where = place or f"memory://{uuid.uuid4().hex}"
    return PartitionedFlow(where, count, OverTheWire(), registry=CollectorRegistry())


def made(flow, views=VIEWS):
    flow.register_source("t", COLUMNS, lateness=LATENESS)
    flow.register_source("names", "name STRING, note STRING, v BIGINT, more STRING")
    for name, sql in views.items():
        flow.register_view(name, sql)
    return flow


def ticks(count: int):
    """What both sources get: rows around a time that goes on, and retractions, also of what names are paired with."""
    for number, delta in enumerate(late_ticks(count, 12, late=True)):
        names = [{"name": "abc"[at % 3], "note": f"{at}", "v": at % 4, "more": None} for at in (number, number - 2)]
        yield {
            "t": delta,
            "names": [{**row, "_weight": 1 - 2 * at} for at, row in enumerate(names) if number > 1 or not at],
        }


def rows_of(flow, view):
    return sorted(map(str, flow.snapshot(view).to_pylist()))


def contents(flow, views=VIEWS):
    return {name: rows_of(flow, name) for name in views}


@pytest.fixture(autouse=True)
def released_early(monkeypatch):
    let_go_at_once(monkeypatch)


@pytest.mark.parametrize(
    ("shards", "seed", "views"),
    [
        (2, 0, VIEWS),
        (
            3,
            1,
            {name: ALL_VIEWS[name] for name in ("by_hop", "by_hour", "both", "named", "pairs", "mostly", "everyone")},
        ),
        *(pytest.param(one, one, ALL_VIEWS, marks=pytest.mark.campaign) for one in (1, 2, 3, 7)),
    ],
)
def test_a_flow_that_is_rescaled_is_as_one_that_was_not(shards, seed, views):
    dice = random.Random(seed)
    flow, other = made(in_shards(shards), views), made(IncrementalFlow(), views)
    spreads = ["by use", "evenly", "everywhere"]
    for number, delta in enumerate(ticks(12)):
        assert flow.tick(delta).views == other.tick(delta).views
        if number >= 4 and number % 3 == 1:
            flow.rescale(dice.choice([1, 2, 3, 7]), spread={one: dice.choice(spreads) for one in ("t", "names")})
            assert contents(flow, views) == contents(other, views), (number, flow.partitions)
    assert contents(flow, views) == contents(other, views)
    assert flow.snapshot("t").num_rows < 100 < 12 * 12, "rows were let go"


def test_much_state_is_written_in_several_files(monkeypatch):
    views = {name: VIEWS[name] for name in ("extremes", "last_names")}
    flow, other = made(in_shards(2), views), made(IncrementalFlow(), views)
    monkeypatch.setattr("weirflow.ivm.sharded.worker.moving._AT_ONCE", 100)
    for number, delta in enumerate(ticks(4)):
        assert flow.tick(delta).views == other.tick(delta).views
        flow.rescale(3 - number % 2)
        assert len(flow._backend._coordinator.commit.packs) > 6
    assert contents(flow, views) == contents(other, views)


def test_where_nothing_has_to_be_filled_anew_nothing_is(monkeypatch):
    flow = made(in_shards(2), {"extremes": VIEWS["extremes"]})
    for delta in ticks(2):
        flow.tick(delta)
    monkeypatch.setattr(flow._backend._coordinator._jobs, "_run", None)  # runs the circuit
    flow.rescale(3)
    assert flow.partitions == 3


def restored(kind, place):
    """A flow in so many shards, or in one process, that goes on from a checkpoint."""
    flow = IncrementalFlow(registry=CollectorRegistry()) if kind is None else in_shards(kind)
    plan = flow.restore(place)
    assert set(plan.kept) == set(VIEWS)
    return flow


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (2, 3),
        (2, None),
        (None, 2),
        *(
            pytest.param(*one, marks=pytest.mark.campaign)
            for one in ((2, 2), (3, 2), (3, None), (None, None), (None, 3))
        ),
    ],
)
def test_a_checkpoint_goes_on_in_other_shards_and_in_one_process(tmp_path, before, after):
    flow = made(IncrementalFlow() if before is None else in_shards(before))
    deltas = list(ticks(11))
    for delta in deltas[:8]:
        flow.tick(delta)
    flow.checkpoint(tmp_path / "saved")
    other = restored(after, tmp_path / "saved")
    assert (other.epoch, contents(other)) == (8, contents(flow))
    for delta in deltas[8:]:
        ours, theirs = other.tick(delta), flow.tick(delta)
        assert (ours.epoch, ours.views, ours.late) == (theirs.epoch, theirs.views, theirs.late)
    assert contents(other) == contents(flow)
    # And once more, from there.
    other.checkpoint(tmp_path / "again")
    third = restored(1, tmp_path / "again")
    extra = {"t": [{"at": None, "name": "b", "x": 7}], "names": [{"name": "b", "note": "x", "v": 3, "more": "y"}]}
    assert third.tick(extra).views == flow.tick(extra).views
    assert contents(third) == contents(flow)


def test_what_was_moved_is_kept_and_views_come_and_go_as_before(tmp_path):
    place, deltas = str(tmp_path / "flow"), list(ticks(12))
    with made(in_shards(2, place)) as flow:
        for delta in deltas[:6]:
            flow.tick(delta)
        flow.rescale(3)
        flow.tick(deltas[6])
    other = made(IncrementalFlow())
    for delta in deltas[:7]:
        other.tick(delta)
    with in_shards(5, place) as flow:
        assert flow.partitions == 3
        assert flow._backend._coordinator.commit.format == MOVED, "versions before refuse it"
        for one in (flow, other):
            one.drop("most_seen")
            one.drop("extremes")
            one.register_view("named_last", "SELECT name, MAX(v) AS v FROM names GROUP BY name")
        left = {name for name in VIEWS if name not in ("most_seen", "extremes")} | {"named_last"}
        for number, delta in enumerate(deltas[7:]):
            assert flow.tick(delta).views == other.tick(delta).views
            if number == 1:
                flow.rescale(2)
        assert contents(flow, left) == contents(other, left)


def test_keys_that_look_different_and_are_equal_stay_together():
    views = {
        "by_key": "SELECT f, COUNT(*) AS n, MAX(name) AS last FROM facts GROUP BY f",
        "different": "SELECT DISTINCT f FROM facts",
        "paired": "SELECT facts.name, other.name AS other FROM facts JOIN other ON facts.f = other.f",
    }
    values = [0.0, -0.0, float("nan"), 1.5, None, float("inf")]
    flow, central = in_shards(2), IncrementalFlow()
    for one in (flow, central):
        one.register_source("facts", "at TIMESTAMP, f DOUBLE, name STRING", lateness=LATENESS)
        one.register_source("other", "f DOUBLE, name STRING")
        for name, sql in views.items():
            one.register_view(name, sql)

    def rows(table, step):
        return [
            {"at": None, "f": f, "name": f"{step}"} if table == "facts" else {"f": f, "name": f"o{step}"}
            for f in values
        ]

    for step in range(4):
        for one in (flow, central):
            one.tick({name: rows(name, step) for name in ("facts", "other")})
        flow.rescale([3, 1, 7, 2][step])
        assert contents(flow, views) == contents(central, views)


def test_recomputed_views_and_the_clock_go_along(tmp_path):
    views = {
        "counts": ("SELECT name, COUNT(*) AS n FROM t GROUP BY name", "incremental"),
        "again": ("SELECT name, n + 1 AS m FROM counts", "diff"),
        "over": ("SELECT MAX(m) AS most, COUNT(*) AS n FROM again", "incremental"),
        "recent": ("SELECT at, name FROM t WHERE at > current_timestamp() - INTERVAL 3 HOURS", "incremental"),
    }

    def started(kind):
        if kind is None:
            return IncrementalFlow(engine=FlowEngine(), clock="manual", registry=CollectorRegistry())
        where = f"memory://{uuid.uuid4().hex}"
        return PartitionedFlow(where, kind, InThisProcess(FlowEngine()), clock="manual", registry=CollectorRegistry())

    flows = {kind: started(kind) for kind in (None, 2)}
    for flow in flows.values():
        flow.register_source("t", COLUMNS, lateness=LATENESS)
        for name, (sql, mode) in views.items():
            flow.register_view(name, sql, mode=mode)
    deltas = list(late_ticks(14, 8))
    for number, delta in enumerate(deltas[:8]):
        for flow in flows.values():
            flow.advance(START + dt.timedelta(hours=number))
            flow.tick("t", delta)
        if number == 5:
            flows[2].rescale(3)
    for kind, flow in list(flows.items()):
        flow.checkpoint(tmp_path / f"{kind}")
        for after in (None, 1, 4):
            flows[kind, after] = started(after)
            flows[kind, after].restore(tmp_path / f"{kind}")
    for number, delta in enumerate(deltas[8:], 8):
        for flow in flows.values():
            flow.advance(START + dt.timedelta(hours=number))
            flow.tick("t", delta)
        expected = contents(flows[None], views)
        for kind, flow in flows.items():
            assert contents(flow, views) == expected, kind


NEAR = {
    "near": """
        SELECT q.id AS q, n.id AS d, n.far FROM queries q JOIN LATERAL (
          SELECT id, vector_distance(q.v, docs.v, 'l2') AS far FROM docs ORDER BY far NULLS LAST, id LIMIT 2
        ) n ON true
    """,
    "of_each": """
        SELECT q.id AS q, n.id AS d FROM queries q JOIN LATERAL (
          SELECT id, vector_distance(q.v, shelf.v, 'l2') AS far FROM shelf ORDER BY far NULLS LAST, id LIMIT 3
        ) n ON true
    """,
}


@pytest.mark.parametrize("spread", [pytest.param("by use", marks=pytest.mark.campaign), "everywhere"])
def test_lists_of_the_nearest_are_found_again_where_rows_are_then(tmp_path, spread):
    dice = random.Random(spread)
    central, flow = IncrementalFlow(), in_shards(2)
    flow.register_source("shelf", "id BIGINT, v ARRAY<FLOAT>", spread=spread)
    central.register_source("shelf", "id BIGINT, v ARRAY<FLOAT>")
    for one in (central, flow):
        one.register_source("docs", "at TIMESTAMP, id BIGINT, v ARRAY<FLOAT>", lateness=LATENESS)
        one.register_source("queries", "id BIGINT, v ARRAY<FLOAT>", key="id")
        for name, sql in NEAR.items():
            one.register_view(name, sql)

    def vector():
        return [float(dice.randint(-9, 9)), float(dice.randint(-9, 9))]

    for number in range(7):
        docs = [
            {"at": START + dt.timedelta(hours=9 * number), "id": 10 * number + at, "v": vector()} for at in range(4)
        ]
        gone = [{**row, "_weight": -1} for row in docs[:1]]
        delta = {
            "docs": [{**row, "_weight": 1} for row in docs],
            "queries": [{"id": number % 4, "v": vector()}],
            "shelf": [{"id": number, "v": vector()}],
        }
        for one in (central, flow):
            one.tick(delta)
            one.tick("docs", gone)
        assert contents(flow, NEAR) == contents(central, NEAR), number
        if number % 2:
            flow.rescale([3, 1, 7][number // 2])
    flow.checkpoint(tmp_path / "saved")
    central.checkpoint(tmp_path / "central")
    others = [IncrementalFlow(registry=CollectorRegistry()), in_shards(3), in_shards(3)]
    for other, place in zip(others, ("saved", "saved", "central"), strict=True):
        other.restore(tmp_path / place)
    delta = {"queries": [{"id": 1, "v": vector()}, {"id": 8, "v": vector()}], "shelf": [{"id": 99, "v": vector()}]}
    central.tick(delta)
    for other in others:
        other.tick(delta)
        assert contents(other, NEAR) == contents(central, NEAR)


def test_what_would_fill_views_anew_is_refused_with_the_view_or_the_source(tmp_path):
    flow = made(in_shards(2), {"extremes": VIEWS["extremes"]})
    for delta in ticks(6):
        flow.tick(delta)
    flow.checkpoint(tmp_path / "saved")
    with pytest.raises(ConfigError, match="'t' does not keep rows that are too old"):
        made(in_shards(3), {"extremes": VIEWS["whole"]}).restore(tmp_path / "saved")
