"""Views of the nearest vectors equal Spark's own expressions over the same rows, bit for bit."""

import math
import random

import pyarrow as pa
import pytest
from support.generator.campaign import seeds
from support.vector_cases import METRICS, VectorCase, rows_of

from weirflow.errors import WeirflowError
from weirflow.ivm.flow import IncrementalFlow

SUM = "aggregate({}, 0D, (total, one) -> total + one)"
DOUBLES = "transform({}, x -> CAST(x AS DOUBLE))"


def by_spark(metric):
    """A distance as Spark computes it, without a function of ours."""
    one, other = DOUBLES.format("q.v"), DOUBLES.format("d.v")
    products = SUM.format(f"zip_with({one}, {other}, (x, y) -> x * y)")
    if metric == "l2":
        return f"sqrt({SUM.format(f'zip_with({one}, {other}, (x, y) -> (x - y) * (x - y))')})"
    if metric == "inner":
        return f"0D - {products}"
    norms = [f"sqrt({SUM.format(f'transform({side}, x -> x * x)')})" for side in (one, other)]
    return f"1D - try_divide({products}, {norms[0]} * {norms[1]})"


def wrong(session, seed):
    case = VectorCase(seed)
    flow = IncrementalFlow()
    for name, (columns, key) in case.sources.items():
        flow.register_source(name, columns, key=key)
    flow.register_view("near", case.sql(), mode="incremental")
    for _ in range(3):
        changed = case.changes()
        flow.tick({name: case.delta(rows, flow.schema(name)) for name, rows in changed.items()})
    for name in case.sources:
        rows = flow.snapshot(name).combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], flow.schema(name))]
        session.from_arrow(pa.Table.from_batches(rows)).spark.createOrReplaceTempView(name)
    # Rows in no order, ranked by Spark: all that a LATERAL with LIMIT does, said otherwise.
    ties = ", ".join(f"d.{one}" for one in case.ties.split(", "))
    order = f"dist NULLS {'FIRST' if case.nulls_first else 'LAST'}, {ties.replace('d.', '')}, tag"
    chosen = "WHERE d.tag = 'a'" if case.filtered else ""
    ranked = (
        f"SELECT q, id AS d, tag, dist FROM (SELECT *, row_number() OVER (PARTITION BY n ORDER BY {order}) AS rank "
        f"FROM (SELECT q.id AS q, q.n, d.id, d.tag, {by_spark(case.metric)} AS dist "
        f"FROM (SELECT *, monotonically_increasing_id() AS n FROM queries) q CROSS JOIN docs d {chosen})) "
        f"WHERE rank <= {case.limit}"
    )
    if case.outer:
        ranked += " UNION ALL SELECT id, NULL, NULL, NULL FROM queries "
        ranked += f"WHERE NOT EXISTS (SELECT 1 FROM docs d {chosen})"
    found = session.sql(ranked).to_arrow()
    mine, theirs = rows_of(flow.snapshot("near")), rows_of(found)
    return None if mine == theirs else (seed, mine - theirs, theirs - mine)


@pytest.mark.parametrize("seed", range(3))
def test_the_nearest_are_those_that_spark_finds(session, seed):
    assert wrong(session, seed) is None


@pytest.mark.campaign
def test_a_hundred_lives_on_spark(session):
    assert [found for seed in seeds(100) if (found := wrong(session, seed)) is not None] == []


@pytest.mark.parametrize("metric", METRICS)
def test_a_sessions_sql_has_the_functions(session, metric):
    case = VectorCase(7)
    case.changes()
    rows = [case.row("docs") for _ in range(20)]
    values = pa.array([None if row[2] is None else list(row[2]) for row in rows], pa.list_(pa.float64()))
    session.from_arrow(pa.table({"v": values})).spark.createOrReplaceTempView("vectors")
    query = f"SELECT vector_distance(a.v, b.v, '{metric}') AS far, vector_norm(a.v) AS norm FROM vectors a, vectors b"
    flow = IncrementalFlow()
    flow.register_source("vectors", "v ARRAY<DOUBLE>")
    flow.tick("vectors", pa.table({"v": values}))
    assert rows_of(session.sql(query).to_arrow()) == rows_of(flow.sql(query))


MEANS = "SELECT g, vector_avg(v) AS mean FROM grouped GROUP BY g"


def test_a_sessions_means_are_those_of_views(session):
    dice = random.Random(4)
    rows = [(one % 5, [dice.gauss(0, 10.0 ** dice.randint(-30, 30)) for _ in range(4)]) for one in range(60)]
    rows += [(0, None), (6, None), (1, [None, 1.0, None, math.nan]), (2, [math.inf] * 4), (2, [-math.inf, 1, 1, 1])]
    rows += [(7, [1e308] * 4)] * 3 + [(8, [])]
    table = pa.table({"g": [one for one, _ in rows], "v": pa.array([one for _, one in rows], pa.list_(pa.float64()))})
    session.from_arrow(table).spark.createOrReplaceTempView("grouped")
    flow = session.flow("means in a session")
    try:
        flow.register_source("grouped", table.schema)
        flow.register_view("means", MEANS, mode="incremental")
        flow.tick("grouped", table)
        mine, theirs = (
            {row["g"]: hexes(row["mean"]) for row in found.to_pylist()}
            for found in (flow.snapshot("means"), session.sql(MEANS).to_arrow())
        )
        assert mine == theirs
        assert mine[6] is None
        assert mine[8] == []
    finally:
        flow.close()
    session.from_arrow(pa.table({"g": [1, 1], "v": [[1.0], [1.0, 2.0]]})).spark.createOrReplaceTempView("grouped")
    with pytest.raises(WeirflowError, match="vectors of one dimension"):
        session.sql(MEANS).to_arrow()


def hexes(vector):
    return None if vector is None else [None if one is None else one.hex() for one in vector]


def test_a_sessions_flow_reads_the_view(session):
    flow = session.flow("vectors in a session")
    try:
        case = VectorCase(3)
        for name, (columns, key) in case.sources.items():
            flow.register_source(name, columns, key=key)
        flow.register_view("near", case.sql(), mode="incremental")
        for _ in range(3):
            flow.tick({name: case.delta(rows, flow.schema(name)) for name, rows in case.changes().items()})
        assert rows_of(flow.snapshot("near")) == case.expected()
        assert "nearest" in flow.explain("near")
    finally:
        flow.close()
