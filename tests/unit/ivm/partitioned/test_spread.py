"""How the rows of sources are spread: hot keys are work for all shards, small tables are on every one."""

import datetime as dt
import uuid

import pyarrow as pa
import pytest

from weirflow import IncrementalFlow, Lateness
from weirflow.errors import ConfigError
from weirflow.ivm.durability.records import decode_rows
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.ivm.sharded.worker import stage

CLICKS = "id BIGINT, page STRING, ms BIGINT"
PAGES = "name STRING, topic STRING"
VIEWS = {
    "totals": "SELECT page, COUNT(*) AS n, SUM(ms) AS total, AVG(ms) AS mean FROM clicks GROUP BY page",
    "slowest": "SELECT page, MAX(ms) AS most, SUM(ms) AS total FROM clicks GROUP BY page",
    "topics": "SELECT topic, COUNT(*) AS n, SUM(ms) AS total FROM clicks JOIN pages ON page = name GROUP BY topic",
    "unknown": "SELECT id, page FROM clicks WHERE NOT EXISTS (SELECT 1 FROM pages WHERE name = page)",
    "unread": "SELECT name FROM pages LEFT ANTI JOIN clicks ON name = page",
    "all_topics": "SELECT topic, COUNT(*) AS pages FROM pages GROUP BY topic",
    "pages_in_all": "SELECT COUNT(*) AS n FROM pages",
    "first_page": "SELECT name FROM pages ORDER BY name LIMIT 1",
    "padded": "SELECT name, id FROM pages LEFT JOIN clicks ON name = page",
    "pairs": "SELECT name, id FROM pages JOIN clicks ON length(name) > ms",
}
SPREAD = {"clicks": "evenly", "pages": "everywhere"}


class Frame:
    """What takes the place of a Spark frame, in several batches."""

    mapInArrow = None  # noqa: N815 - PySpark's name

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def to_batches(self):
        return self._table.to_batches(max_chunksize=7)


def made(flow, spread=None, **options):
    spread = spread or {}
    for name, columns, given in (("clicks", CLICKS, {}), ("pages", PAGES, {"key": "name"})):
        placed = {"spread": spread[name]} if name in spread else {}
        flow.register_source(name, columns, **given, **placed, **options.get(name, {}))
    return flow


def in_shards(count, spread=None, **options):
    return made(PartitionedFlow(f"memory://{uuid.uuid4().hex}", count, InThisProcess()), spread, **options)


def click(number, page="home", ms=1):
    return {"id": number, "page": page, "ms": ms}


def page(number, topic="news"):
    return {"name": f"p{number}", "topic": topic}


def added(row):
    return {**row, "_weight": 1}


def gone(row):
    return {**row, "_weight": -1}


def rows_of(flow, view):
    return sorted(map(str, flow.snapshot(view).to_pylist()))


def exchanges(flow):
    return [line.split(", ", 1)[1] for line in flow.explain().splitlines() if " exchange of " in line]


class Travelled(InThisProcess):
    """Notes how many rows each stage has got."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[int, int] = {}

    def run(self, stages):
        run_stage = stage.run_stage

        def noted(task, shard, parcels, where):
            parcels = list(parcels)
            rows = sum(len(decode_rows(one.rows)) for one in parcels if one.report is None)
            self.rows[task.stage] = self.rows.get(task.stage, 0) + rows
            return run_stage(task, shard, parcels, where)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("weirflow.ivm.sharded.executor.run_stage", noted)
            return super().run(stages)


def test_views_are_those_of_a_flow_in_one_process():
    flow, other = in_shards(3, SPREAD), made(IncrementalFlow())
    early, late = dict(list(VIEWS.items())[::2]), dict(list(VIEWS.items())[1::2])
    for one in (flow, other):
        for name, sql in early.items():
            one.register_view(name, sql)
    deltas = [
        {"clicks": [click(at, f"p{at % 5}", at) for at in range(30)], "pages": [page(at) for at in range(4)]},
        {"pages": [added(page(1, "sport")), added(page(7)), gone(page(3))]},
        {"clicks": [gone(click(3, "p3", 3)), added(click(100, "p7", 2))], "pages": [page(2, "sport")]},
    ]
    for number, delta in enumerate(deltas):
        ours, theirs = flow.tick(delta), other.tick(delta)
        assert (ours.rows_in, ours.views) == (theirs.rows_in, theirs.views), number
        if number == 0:
            for name, sql in late.items():
                flow.register_view(name, sql)
                other.register_view(name, sql)
        stage._warm.clear()
    for name in ("clicks", "pages", *VIEWS):
        assert rows_of(flow, name) == rows_of(other, name), name


def test_nothing_moves_to_a_table_that_is_everywhere():
    view = "SELECT id, topic FROM clicks JOIN pages ON page = name"
    by_use, everywhere = in_shards(3), in_shards(3, SPREAD)
    for flow in (by_use, everywhere):
        flow.register_view("joined", view)
        flow.register_view("totals", "SELECT id, COUNT(*) AS n FROM joined GROUP BY id")
    assert "arrange of #0, by columns 0, 1, 2" in everywhere.explain()
    assert all("clicks" not in line for line in exchanges(everywhere))
    assert len([line for line in everywhere.explain().splitlines() if "arrange" in line and "every shard" in line]) == 2


def test_a_hot_key_is_work_for_all_shards():
    executor = Travelled()
    flow = made(PartitionedFlow(f"memory://{uuid.uuid4().hex}", 4, executor), SPREAD)
    for name in ("totals", "slowest", "topics"):
        flow.register_view(name, VIEWS[name])
    flow.tick("pages", [{"name": "home", "topic": "news"}])
    executor.rows.clear()
    summary = flow.tick("clicks", [click(at, "home", at % 100) for at in range(10_000)])
    assert summary.views == {"totals": 1, "slowest": 1, "topics": 1}
    shares = [report.rows_in for report in flow._backend._coordinator.reports if report.stage == 0]
    assert sum(shares) == 10_000
    assert max(shares) < 1.2 * min(shares)
    # A row of totals from each shard for each view, and nothing but those: the clicks stay where they are.
    assert executor.rows[1] <= 4 * 3
    assert flow.snapshot("slowest").to_pylist() == [{"page": "home", "most": 99, "total": 495_000}]


def test_rows_of_one_key_are_on_one_shard_by_default():
    """Which is why there is a choice."""
    flow = in_shards(4)
    flow.register_view("totals", VIEWS["totals"])
    flow.tick("clicks", [click(at, "home", at % 100) for at in range(1000)])
    assert sorted(report.rows_in for report in flow._backend._coordinator.reports) == [0, 0, 0, 1000]


def test_sums_of_doubles_stay_exact_over_the_shards():
    flow = PartitionedFlow(f"memory://{uuid.uuid4().hex}", 3, InThisProcess())
    other = IncrementalFlow()
    view = """
        SELECT id % 3 AS k, SUM(x) AS s, AVG(x) AS a, stddev_samp(x) AS d, SUM(y) AS y,
               SUM(x) FILTER (WHERE id > 5) AS f
        FROM t GROUP BY id % 3"""
    for one in (flow, other):
        one.register_source("t", "id BIGINT, x DOUBLE, y DECIMAL(20, 4)")
        one.register_view("v", view)
        one.register_view("whole", "SELECT SUM(x) AS s, AVG(y) AS y, COUNT(x) AS n FROM t")
    values = [1e308, 1e308, -1e308, 5e-324, 0.1, None, float("nan"), float("inf"), float("-inf"), -1e308, 2.5, 1e-300]
    rows = [{"id": at, "x": x, "y": at} for at, x in enumerate(values)]
    deltas = [rows, [gone(rows[at]) for at in (6, 7, 8)], [gone(rows[at]) for at in (0, 3, 5)]]
    for delta in deltas:
        assert flow.tick("t", delta).views == other.tick("t", delta).views
        for name in ("v", "whole"):
            assert rows_of(flow, name) == rows_of(other, name)
    assert "aggregate of the shard" in flow.explain()


def test_a_frame_reaches_every_shard():
    flow, other = in_shards(3, SPREAD), made(IncrementalFlow())
    for one in (flow, other):
        one.register_view("topics", VIEWS["topics"])
    pages = pa.Table.from_pylist([page(at, f"t{at % 3}") for at in range(20)])
    clicks = pa.table({"id": range(50), "page": [f"p{at % 25}" for at in range(50)], "ms": range(50)})
    summary = flow.tick({"pages": Frame(pages), "clicks": Frame(clicks)})
    other.tick({"pages": pages, "clicks": clicks})
    assert summary.rows_in == 70
    assert flow.snapshot("pages").num_rows == 20
    assert rows_of(flow, "topics") == rows_of(other, "topics")


def test_late_rows_of_a_table_that_is_everywhere_are_told_once():
    flow = PartitionedFlow(f"memory://{uuid.uuid4().hex}", 3, InThisProcess())
    flow.register_source("days", "at DATE, v BIGINT", lateness=Lateness("at", "1 day"), spread="everywhere")
    flow.register_view("by_day", "SELECT at, SUM(v) AS v FROM days GROUP BY at")
    watch = flow.watch_output("days.late")
    flow.tick("days", [{"at": dt.date(2026, 3, 10), "v": 1}])
    assert flow.tick("days", [{"at": dt.date(2026, 3, 1), "v": 2}, {"at": dt.date(2026, 3, 11), "v": 3}]).late == 1
    assert len(watch.get(timeout=0)[1].inserts()) == 1
    assert sorted(row["v"] for row in flow.snapshot("by_day").to_pylist()) == [1, 3]


def test_sources_can_be_spread_in_another_way_later():
    flow, other = in_shards(2), made(IncrementalFlow())
    for one in (flow, other):
        for name, sql in VIEWS.items():
            one.register_view(name, sql)
        one.tick({"clicks": [click(at, f"p{at % 5}", at) for at in range(30)], "pages": [page(at) for at in range(4)]})
    for shards, spread in ((2, SPREAD), (3, {"pages": "by use"}), (1, {"clicks": "everywhere"}), (2, {})):
        flow.rescale(shards, spread=spread)
        delta = {"clicks": [click(1000 + shards, "p1", shards)], "pages": [page(shards, "new")]}
        assert flow.tick(delta).views == other.tick(delta).views
        for name in ("clicks", "pages", *VIEWS):
            assert rows_of(flow, name) == rows_of(other, name), (shards, name)


def test_it_is_kept(tmp_path):
    with made(PartitionedFlow(str(tmp_path), 2, InThisProcess()), SPREAD) as flow:
        flow.register_view("topics", VIEWS["topics"])
        flow.tick({"clicks": [click(1, "p1", 5)], "pages": [page(1)]})
    with made(PartitionedFlow(str(tmp_path), 2, InThisProcess()), SPREAD) as flow:
        flow.tick("clicks", [click(2, "p1", 6)])
        assert flow.snapshot("topics").to_pylist() == [{"topic": "news", "n": 2, "total": 11}]
        flow.register_source("clicks", CLICKS)
        with pytest.raises(ConfigError, match="are spread 'evenly', not 'by use'"):
            flow.register_source("clicks", CLICKS, spread="by use")


def test_what_cannot_be_is_refused():
    flow = in_shards(2)
    with pytest.raises(ConfigError, match="did you mean 'evenly'"):
        flow.register_source("more", CLICKS, spread="evenli")
    with pytest.raises(ConfigError, match="clics"):
        flow.rescale(2, spread={"clics": "evenly"})
