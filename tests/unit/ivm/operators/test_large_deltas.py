"""Operators take deltas as large as what they hold, and end where they would from nothing."""

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.operators.aggregate.running import RunningExtreme
from weirflow.ivm.zset.delta import DeltaBatch

pytestmark = pytest.mark.usefixtures("either_kernel")

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("x", pa.float64()), ("s", pa.string())])
VIEWS = (
    "SELECT k, count(*) AS n, sum(v) AS v, avg(x) AS x FROM t GROUP BY k",
    "SELECT k, min(v) AS low, max(x) AS high, max(s) AS s, count(DISTINCT v) AS n FROM t GROUP BY k",
    "SELECT DISTINCT k, s FROM t",
    "SELECT k, v, s FROM t ORDER BY v, s DESC LIMIT 7",
    "SELECT k, v, s FROM t ORDER BY x DESC NULLS LAST LIMIT 5 OFFSET 3",
    "SELECT s FROM t ORDER BY k LIMIT 2000",
    "SELECT s FROM t ORDER BY k LIMIT 0",
    "SELECT a.v, b.s FROM t a JOIN u b ON a.v = b.v",
    "SELECT a.v, b.s FROM t a FULL JOIN u b ON a.v = b.v",
    "SELECT v, s FROM t WHERE v IN (SELECT v FROM u)",
    "SELECT v, s FROM t EXCEPT ALL SELECT v, s FROM u",
)


def rows(chance, count):
    return pa.table(
        {
            "k": chance.integers(0, 40, count),
            "v": chance.integers(0, 300, count),
            "x": pa.array(chance.choice([-0.0, 0.0, 1.5, -2.25, np.nan], count), mask=chance.random(count) < 0.1),
            "s": [f"s{number}" for number in chance.integers(0, 30, count)],
        },
        schema=SCHEMA,
    )


def flow_of(tables):
    flow = IncrementalFlow()
    for name in "tu":
        flow.register_source(name, SCHEMA)
    for place, sql in enumerate(VIEWS):
        flow.register_view(f"v{place}", sql)
    flow.tick(tables)
    return flow


def contents(flow):
    return [Counter(map(repr, flow.snapshot(f"v{place}").to_pylist())) for place in range(len(VIEWS))]


@pytest.mark.parametrize(("gone", "come"), [(0, 1500), (400, 100), (700, 700), (1000, 0), (1000, 3000)])
def test_a_tick_ends_where_a_new_flow_begins(monkeypatch, gone, come):
    monkeypatch.setattr("weirflow.ivm.kernel.runs.spine.HEAD_ROWS", 32)
    chance = np.random.default_rng(gone + come)
    before = {"t": rows(chance, 1000), "u": rows(chance, 1000)}
    flow = flow_of(before)
    delta, after = {}, {}
    for name, table in before.items():
        old, new = table.slice(0, gone), rows(chance, come)
        delta[name] = DeltaBatch.from_updates(old, new, schema=SCHEMA)
        after[name] = pa.concat_tables([table.slice(gone), new])
    flow.tick(delta)
    assert contents(flow) == contents(flow_of(after))
    flow.tick({name: DeltaBatch.from_updates(after[name], before[name], schema=SCHEMA) for name in before})
    assert contents(flow) == contents(flow_of(before))


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64()])
@pytest.mark.parametrize("descending", [False, True])
def test_the_extreme_of_many_rows_is_that_found_one_by_one(monkeypatch, kind, descending):
    chance = random.Random(3)
    values = [-2.0, -0.0, 0.0, 1.0, 5.0] if kind == pa.float64() else [-2, 0, 1, 5]
    running = RunningExtreme(kind, descending=descending)
    for _ in range(50):
        count = chance.randrange(1, 60)
        column = pa.array([chance.choice(values) for _ in range(count)], kind)
        weights = np.array([chance.choice([-2, -1, 1, 1, 2]) for _ in range(count)])
        groups = np.array([chance.randrange(12) for _ in range(count)])
        one_by_one = running.best(column, weights, groups, 12)
        with monkeypatch.context() as patch:
            patch.setattr("weirflow.ivm.operators.aggregate.running._FEW", 0)
            assert np.array_equal(running.best(column, weights, groups, 12), one_by_one)
