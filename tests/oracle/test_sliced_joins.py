"""Aggregates over joins that are made in slices, and whose equal rows meet once, equal Spark's, types included."""

import random
from collections import Counter

import pyarrow as pa
import pytest
from support.aggregated_joins import SCHEMA, VIEWS, row
from support.maintained import Maintained, comparable

from weirflow.errors import DataError, WeirflowError
from weirflow.ivm.circuit import slices
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.operators.join import operator, pairs
from weirflow.sql.types import nullable


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    monkeypatch.setattr(pairs, "MOST_PAIRS", 3)
    monkeypatch.setattr(slices, "SLICE_PAIRS", 3)
    monkeypatch.setattr(operator, "_FEW_PAIRS", 0)
    monkeypatch.setattr(operator, "_FAN_OUT", 1)


def test_aggregates_over_joins_in_slices_equal_spark(session):
    chance = random.Random(11)
    queries = {f"v{place}": sql for place, sql in enumerate(VIEWS.values())}
    views = Maintained({"t": SCHEMA, "u": SCHEMA}, queries)
    for _ in range(4):
        changes = {}
        for name in "tu":
            held = list(views.tables[name].elements())
            gone = chance.sample(held, min(len(held), 3))
            new = [tuple(row(chance).values()) for _ in range(7)]
            changes[name] = [*((one, -1) for one in gone), *((one, 1) for one in new)]
        views.tick(changes)
    for name in "tu":
        session.register(name, views.table(name))
    for name, sql in queries.items():
        table = session.sql(sql).to_arrow()
        rows = zip(*([comparable(value) for value in column.to_pylist()] for column in table.columns), strict=True)
        assert views.views[name] == Counter(rows), sql
        assert [nullable(kind) for kind in views.schemas[name].types] == [nullable(one) for one in table.schema.types]


OVERFLOWS = {
    "of a sum": "SELECT a.k, sum(b.v) AS s FROM o a JOIN o b ON a.k = b.k GROUP BY a.k",
    "of a product": "SELECT a.k, sum(a.v * b.v) AS s FROM o a JOIN o b ON a.k = b.k GROUP BY a.k",
}
DECIMALS = "SELECT a.k, sum(CAST(b.v AS DECIMAL(38, 19))) AS s FROM o a JOIN o b ON a.k = b.k GROUP BY a.k"


def failures(session, sql):
    """How Spark fails, and how a tick does, over rows that overflow."""
    rows = pa.table({"k": [1, 1, 1], "v": [2**62, 2**62, 2**62]})
    session.register("o", rows)
    with pytest.raises(WeirflowError) as theirs:
        session.sql(sql).to_arrow()
    flow = IncrementalFlow()
    flow.register_source("o", rows.schema)
    flow.register_view("view", sql)
    with pytest.raises(DataError) as ours:
        flow.tick("o", rows)
    return theirs.value, ours.value


@pytest.mark.parametrize("sql", OVERFLOWS.values(), ids=OVERFLOWS.keys())
def test_what_overflows_in_spark_fails_the_tick(session, sql):
    theirs, ours = failures(session, sql)
    assert ours.condition == theirs.condition.partition(".")[0]


def test_a_sum_of_decimals_that_overflows_in_spark_fails_the_tick(session):
    _, ours = failures(session, DECIMALS)
    assert "decimal(38,19)" in ours.message
