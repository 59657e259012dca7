"""Flows whose sources let go of rows are rescaled at random; every view is what it is in a flow that never was.

And it is what DuckDB computes from all rows that ever were there, for views that mean the same in DuckDB.
"""

import random
import uuid
from collections import Counter

import duckdb
import pyarrow as pa
import pytest
from prometheus_client import CollectorRegistry
from support.generator.campaign import seeds, shown
from support.generator.case import make_case
from support.generator.deltas import Tables
from support.let_go import LATENESS, delta, let_go_at_once, timed_schema, timed_ticks
from support.maintained import comparable, duckdb_rows
from support.view_corpus import SOURCES, VIEWS, RandomTables, few_at_a_time

from weirflow.errors import DataError, NotIncremental
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow

SHARDS = (1, 2, 3, 7)
SPREADS = ("by use", "evenly", "everywhere")
# Over no rows DuckDB returns a grand total, Spark nothing.
EMPTY_DIFFERS = {"rolled_up", "cubed"}


@pytest.fixture(autouse=True)
def released_early(monkeypatch):
    let_go_at_once(monkeypatch)


def in_shards(count):
    return PartitionedFlow(f"memory://{uuid.uuid4().hex}", count, InThisProcess(), registry=CollectorRegistry())


def contents(flow, views):
    found = {}
    for name in views:
        table = flow.snapshot(name)
        columns = [[comparable(value) for value in column.to_pylist()] for column in table.columns]
        found[name] = Counter(zip(*columns, strict=True)) if columns else Counter({(): table.num_rows})
    return found


class GrowingTables(RandomTables):
    """Most rows stay."""

    retracting = 0.2


class Pair:
    """A flow in one process that is left alone, and one in shards whose shards change, or which goes on elsewhere."""

    def __init__(self, sources, views, seed, folder=None):
        self.dice, self.views, self.folder = random.Random(seed), list(views), folder
        self.sources = dict(sources)
        self.central, self.flow = IncrementalFlow(registry=CollectorRegistry()), in_shards(self.dice.choice(SHARDS))
        for name, schema in sources.items():
            self.central.register_source(name, timed_schema(schema), lateness=LATENESS)
            spread = self.dice.choice(SPREADS)
            self.flow.register_source(name, timed_schema(schema), lateness=LATENESS, spread=spread)
        for flow in (self.central, self.flow):
            for name, sql in views.items():
                flow.register_view(name, sql)

    def tick(self, changes):
        deltas = {name: delta(self.sources[name], rows) for name, rows in changes.items() if rows}
        outcomes = []
        for flow in (self.central, self.flow):
            try:
                outcomes.append(flow.tick(deltas).views)
            except DataError:
                flow.discard()
                outcomes.append("data error")
        assert outcomes[0] == outcomes[1]
        self.compare()

    def move(self):
        if self.folder is not None and self.dice.random() < 0.4:
            place = self.folder / uuid.uuid4().hex
            self.flow.checkpoint(place)
            self.flow.close()
            elsewhere = self.dice.random() < 0.5
            if elsewhere:  # by way of one process
                passing = IncrementalFlow(registry=CollectorRegistry())
                passing.restore(place)
                place = self.folder / uuid.uuid4().hex
                passing.checkpoint(place)
            self.flow = in_shards(self.dice.choice(SHARDS))
            self.flow.restore(place)
        else:
            spread = {name: self.dice.choice(SPREADS) for name in self.sources if self.dice.random() < 0.3}
            self.flow.rescale(self.dice.choice(SHARDS), spread=spread)
        self.compare()

    def compare(self):
        expected, found = contents(self.central, self.views), contents(self.flow, self.views)
        wrong = [name for name in self.views if found[name] != expected[name]]
        assert not wrong, (self.flow.partitions, wrong, found[wrong[0]], expected[wrong[0]])

    def close(self):
        self.central.close()
        self.flow.close()


def check_corpus(views, seed, folder, count=6):
    tables = GrowingTables(seed)
    ticks = timed_ticks(SOURCES, [tables.changes(most=9) for _ in range(count)])
    pair, kept = Pair(SOURCES, views, seed, folder), {name: Counter() for name in SOURCES}
    for number, changes in enumerate(ticks):
        pair.tick(changes)
        for name, rows in changes.items():
            for row, weight in rows:
                kept[name][row[:-1]] += weight
        check_duckdb(pair, kept)
        if number:
            pair.move()
    let_go = {name: sum(rows.values()) - pair.flow.snapshot(name).num_rows for name, rows in kept.items()}
    pair.close()
    return sum(let_go.values())


def check_duckdb(pair, kept):
    with duckdb.connect() as connection:
        for name, schema in SOURCES.items():
            rows = list(kept[name].elements())
            table = pa.table(
                [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(schema.types)], schema=schema
            )
            connection.register(f"{name}_rows", table)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_rows")
        for name in ("grouped", "extremes"):
            connection.execute(f"CREATE VIEW {name} AS {VIEWS[name]}")
        found = contents(pair.flow, pair.views)
        for name in pair.views:
            if kept["t"].total() or name not in EMPTY_DIFFERS:
                assert found[name] == duckdb_rows(connection, VIEWS[name]), name


CORPUS = list(few_at_a_time(9))


@pytest.mark.parametrize(
    "part", [pytest.param(one, marks=[] if one == 2 else [pytest.mark.campaign]) for one in range(len(CORPUS))]
)
def test_the_corpus_of_views(part, tmp_path):
    assert check_corpus(CORPUS[part], part, tmp_path, count=5) > 3, "rows were let go"


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20))
def test_the_corpus_of_views_many_times(seed, tmp_path):
    for views in CORPUS:
        check_corpus(views, seed, tmp_path, count=9)


def failed(seed, folder):
    """What is wrong with a random case, or None."""
    case = make_case(seed)
    tables, ticks = Tables(list(case.sources)), []
    for tick in (*case.ticks, *case.ticks):  # twice, so that there is more to move
        possible, tables = tables.after(tick)
        ticks.append(possible)
    try:
        pair = Pair(case.sources, {view.name: view.text.spark for view in case.views}, seed, folder)
    except (NotIncremental, DataError):
        return None
    try:
        for changes in timed_ticks(case.sources, ticks):
            pair.tick(changes)
            pair.move()
    except Exception as error:  # noqa: BLE001 - whatever it is, the seed says how to see it again
        return f"seed {seed}: {type(error).__name__}: {error}\n{case}"
    finally:
        pair.close()
    return None


def test_random_views(tmp_path):
    assert [found for seed in (300,) if (found := failed(seed, tmp_path)) is not None] == []


@pytest.mark.campaign
def test_many_random_views(tmp_path, capsys):
    show, found = shown(capsys), []
    for done, seed in enumerate(seeds(1000), 1):
        report = failed(seed, tmp_path)
        if report is not None:
            found.append(report)
            show(report)
        if done % 50 == 0:
            show(f"up to seed {seed}: {len(found)} failures")
    assert found == []
