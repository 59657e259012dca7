"""A flow in shards gives what the same flow gives in one piece, delta by delta, however many shards there are."""

import random
import uuid
from collections import Counter
from functools import partial

import pyarrow as pa
import pytest
from support.flow_engine import FlowEngine
from support.generator.campaign import seeds, shown
from support.generator.case import make_case
from support.generator.deltas import Tables
from support.maintained import comparable
from support.together import CountedJobs, together
from support.view_corpus import SOURCES, VIEWS, RandomTables, few_at_a_time

from weirflow.errors import DataError, NotIncremental
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.types import SourceSpread

STACKED = ("grouped", "joined", "left_residual", "top_totals", "excepted_all")


def weighted(schema, changes):
    columns = [pa.array([row[at] for row, _ in changes], field.type) for at, field in enumerate(schema)]
    table = pa.table(columns, schema=schema)
    weights = pa.array([weight for _, weight in changes], pa.int64())
    return DeltaBatch.from_weighted(table.append_column("_weight", weights), schema=schema)


def changed(watch):
    """What a watch was told since it was last asked: for each epoch, the rows and their weights."""
    found = []
    while (one := watch.get(timeout=0)) is not None:
        epoch, delta = one
        found.append((epoch, rows_of(delta.to_arrow())))
    return found


def rows_of(table):
    return Counter(zip(*([comparable(value) for value in column.to_pylist()] for column in table.columns), strict=True))


def in_shards(count, engine=None):
    return PartitionedFlow(f"memory://{uuid.uuid4().hex}", count, InThisProcess(engine), name=f"{count} shards")


class Side:
    """Flows that get the same deltas: one in one piece, the others in so many shards, with sources spread so."""

    def __init__(self, sources, views, shards):
        self.flows = [IncrementalFlow(), *(in_shards(count) for count, _ in shards)]
        for flow, spread in zip(self.flows, [{}, *(spread for _, spread in shards)], strict=True):
            for name, schema in sources.items():
                flow.register_source(name, schema, **({"spread": spread[name]} if name in spread else {}))
            for name, sql in views.items():
                flow.register_view(name, sql)
        self.watches = [{name: flow.watch_output(name) for name in views} for flow in self.flows]

    def tick(self, deltas):
        outcomes = []
        for flow in self.flows:
            try:
                flow.tick(deltas)
                outcomes.append(None)
            except DataError:
                flow.discard()
                outcomes.append("data error")
        assert len(set(outcomes)) == 1, outcomes
        for name in self.watches[0]:
            central, *others = [changed(watches[name]) for watches in self.watches]
            for flow, other in zip(self.flows[1:], others, strict=True):
                assert other == central, (flow.name, name)

    def compare(self):
        for name in self.watches[0]:
            central, *others = [rows_of(flow.snapshot(name)) for flow in self.flows]
            for flow, other in zip(self.flows[1:], others, strict=True):
                assert other == central, (flow.name, name)


def failed(seed):
    """What is wrong with a random case, or None."""
    case = make_case(seed)
    dice = random.Random(seed)
    spread = {name: dice.choice(list(SourceSpread)) for name in case.sources}
    shards = [(1, {}), (2, {}), (7, {}), (3, spread)]
    try:
        side = Side(case.sources, {view.name: view.text.spark for view in case.views}, shards)
    except (NotIncremental, DataError):
        return None
    tables = Tables(list(case.sources))
    for number, tick in enumerate(case.ticks):
        possible, tables = tables.after(tick)
        try:
            side.tick({name: weighted(case.sources[name], rows) for name, rows in possible.items()})
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed says how to see it again
            return f"seed {seed}, tick {number}: {type(error).__name__}: {error}\n{case}"
    side.compare()
    return None


@pytest.mark.parametrize(
    ("shards", "forced"),
    [
        (2, False),
        (7, True),
        *(pytest.param(*one, marks=pytest.mark.campaign) for one in ((1, False), (1, True), (2, True), (7, False))),
    ],
)
def test_views_that_are_recomputed(shards, forced):
    """All of them, or every other one, so that views read what is recomputed and the other way round."""
    stacked = {f"{name}_again": f"SELECT * FROM `{name}`" for name in STACKED}
    views = {**{name: VIEWS[name] for name in STACKED}, **stacked}
    central, flow = IncrementalFlow(), in_shards(shards, FlowEngine())
    for one in (central, flow):
        for name, schema in SOURCES.items():
            one.register_source(name, schema)
        for number, (name, sql) in enumerate(views.items()):
            one.register_view(name, sql, mode="diff" if one is flow and number % 2 == 0 else "auto")
    if forced:
        flow.force_diff_based()
    watches = [{name: one.watch_output(name) for name in views} for one in (central, flow)]
    tables = RandomTables(shards)
    for _ in range(3):
        deltas = {name: weighted(SOURCES[name], rows) for name, rows in tables.changes(most=9).items()}
        summary = central.tick(deltas)
        assert flow.tick(deltas).views == summary.views
        for name in summary.views:
            (epoch, expected), (number, delta) = [watched[name].get(timeout=0) for watched in watches]
            assert (number, delta.checksum()) == (epoch, expected.checksum()), name
            assert delta.canonical().to_arrow() == expected.canonical().to_arrow(), name
    for name in views:
        assert rows_of(flow.snapshot(name)) == rows_of(central.snapshot(name))


def check_corpus(views, shards, spread):
    tables = RandomTables(shards)
    side = Side(SOURCES, views, [(shards, spread)])
    for _ in range(6):
        side.tick({name: weighted(SOURCES[name], rows) for name, rows in tables.changes(most=9).items()})
    side.compare()


@pytest.mark.parametrize(
    ("shards", "spread"),
    [
        (2, {}),
        (3, {"t": "evenly", "u": "everywhere"}),
        (2, {"t": "everywhere", "u": "evenly"}),
        pytest.param(1, {}, marks=pytest.mark.campaign),
        pytest.param(7, {}, marks=pytest.mark.campaign),
        pytest.param(2, {"t": "everywhere", "u": "everywhere"}, marks=pytest.mark.campaign),
    ],
)
def test_the_corpus_of_views(shards, spread):
    """Some in a flow: what a view costs when it is registered grows with those that are there."""
    for views in few_at_a_time(9):
        check_corpus(views, shards, spread)


@pytest.mark.campaign
@pytest.mark.parametrize("shards", [1, 2, 7])
def test_the_corpus_of_views_in_one_flow(shards):
    check_corpus(VIEWS, shards, {})


def test_random_views():
    assert [found for seed in range(5) if (found := failed(seed)) is not None] == []


def check_shared(sources, views, shards, spread, ticks):
    """Ticks that share a job tell what they tell one at a time."""
    central, jobs = IncrementalFlow(), CountedJobs()
    flow = PartitionedFlow(f"memory://{uuid.uuid4().hex}", shards, jobs, name=f"{shards} shards")
    for one, chosen in ((central, {}), (flow, spread)):
        for name, schema in sources.items():
            one.register_source(name, schema, **({"spread": chosen[name]} if name in chosen else {}))
        for name, sql in views.items():
            one.register_view(name, sql)
    watches = [{name: one.watch_output(name) for name in views} for one in (central, flow)]
    done = []
    for deltas in ticks:
        try:
            done.append(central.tick(deltas))
        except DataError:
            central.discard()
            break
    shared = [partial(flow.tick, deltas) for deltas in ticks[: len(done)]]
    for start in range(0, len(shared), 3):
        own = together(flow, shared[start : start + 3])
        assert [one.views for one in own] == [one.views for one in done[start : start + 3]]
    for name in views:
        expected, found = [changed(watched[name]) for watched in watches]
        assert found == expected, (flow.name, name)
        assert rows_of(flow.snapshot(name)) == rows_of(central.snapshot(name)), (flow.name, name)
    assert max(jobs.jobs) == min(3, max(len(done), 1))


@pytest.mark.parametrize(
    ("shards", "spread"), [(2, {}), (3, {"t": "evenly", "u": "everywhere"}), (2, {"t": "everywhere", "u": "evenly"})]
)
def test_the_corpus_of_views_with_ticks_that_share_jobs(shards, spread):
    for views in few_at_a_time(9):
        tables = RandomTables(shards)
        changes = [tables.changes(most=9) for _ in range(6)]
        ticks = [{name: weighted(SOURCES[name], rows) for name, rows in one.items()} for one in changes]
        check_shared(SOURCES, views, shards, spread, ticks)


def shared_failed(seed):
    """What is wrong with ticks of a random case that share jobs, or None."""
    case = make_case(seed)
    tables, ticks = Tables(list(case.sources)), []
    for tick in case.ticks:
        possible, tables = tables.after(tick)
        ticks.append({name: weighted(case.sources[name], rows) for name, rows in possible.items()})
    try:
        check_shared(case.sources, {view.name: view.text.spark for view in case.views}, 1 + seed % 4, {}, ticks)
    except (NotIncremental, DataError):
        return None
    except Exception as error:  # noqa: BLE001 - whatever it is, the seed says how to see it again
        return f"seed {seed}: {type(error).__name__}: {error}\n{case}"
    return None


def test_random_views_with_ticks_that_share_jobs():
    assert [found for seed in range(100, 108) if (found := shared_failed(seed)) is not None] == []


@pytest.mark.campaign
def test_many_random_views(capsys):
    show, found = shown(capsys), []
    for done, seed in enumerate(seeds(2000), 1):
        report = failed(seed)
        if report is not None:
            found.append(report)
            show(report)
        if done % 50 == 0:
            show(f"up to seed {seed}: {len(found)} failures")
    assert found == []
