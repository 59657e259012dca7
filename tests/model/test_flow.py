"""Views that are registered late, or over views that keep no rows, are what they would have been from the start."""

from collections import Counter

import pyarrow as pa
import pytest
from support.maintained import comparable
from support.view_corpus import SOURCES, VIEWS, RandomTables

from weirflow import DeltaBatch
from weirflow.ivm.flow import IncrementalFlow


def rows(table: pa.Table) -> Counter:
    columns = [[comparable(value) for value in column.to_pylist()] for column in table.columns]
    return Counter(zip(*columns, strict=True)) if columns else Counter()


def delta(name, changes):
    schema = SOURCES[name]
    columns = {field.name: [row[at] for row, _ in changes] for at, field in enumerate(schema)}
    weights = [weight for _, weight in changes]
    table = pa.table(columns, schema=schema).append_column("_weight", pa.array(weights, pa.int64()))
    return DeltaBatch.from_weighted(table, schema=schema)


def tick(flow, changes):
    flow.tick({name: delta(name, rows) for name, rows in changes.items()})


def new_flow():
    flow = IncrementalFlow()
    for name, schema in SOURCES.items():
        flow.register_source(name, schema)
    return flow


@pytest.mark.parametrize("seed", range(2))
def test_a_view_registered_late_equals_one_registered_at_first(seed):
    tables = RandomTables(seed)
    early, late = new_flow(), new_flow()
    for name, sql in VIEWS.items():
        early.register_view(name, sql)
    waiting = list(VIEWS)
    for step in range(8):
        changes = tables.changes(most=6)
        for flow in (early, late):
            tick(flow, changes)
        # A few more views at each step, so that some read views that were there before and some that come with them.
        for name in waiting[step * 8 : step * 8 + 8]:
            late.register_view(name, VIEWS[name])
        for name in late.views:
            assert rows(late.snapshot(name)) == rows(early.snapshot(name)), (step, name)
    assert set(late.views) == set(VIEWS)


def test_views_over_views_that_keep_no_rows():
    tables = RandomTables(3)
    flow, plain = new_flow(), new_flow()
    for one, kept in ((flow, False), (plain, True)):
        for name in ("grouped", "extremes"):
            one.register_view(name, VIEWS[name], materialized=kept)
        tick(one, RandomTables(3).changes(most=9))
        for name in ("diamond", "on_view", "top_totals"):
            one.register_view(name, VIEWS[name])
    tables.changes(most=9)
    for _ in range(5):
        changes = tables.changes(most=6)
        for one in (flow, plain):
            tick(one, changes)
        for name in ("diamond", "on_view", "top_totals"):
            assert rows(flow.snapshot(name)) == rows(plain.snapshot(name)), name


def test_the_sum_of_watched_deltas_is_the_view():
    tables = RandomTables(5)
    flow = new_flow()
    for name, sql in VIEWS.items():
        flow.register_view(name, sql)
    watches = {name: flow.watch_output(name, snapshot=True) for name in VIEWS}
    for _ in range(6):
        tick(flow, tables.changes(most=6))
    for name, watch in watches.items():
        total = Counter()
        epochs = []
        while (item := watch.get(timeout=0)) is not None:
            epoch, change = item
            epochs.append(epoch)
            batch = change.batch
            values = [[comparable(value) for value in column.to_pylist()] for column in batch.columns]
            for row, weight in zip(zip(*values, strict=True), batch.weights.tolist(), strict=True):
                total[row] += weight
        assert epochs == sorted(set(epochs))
        assert {row: count for row, count in total.items() if count} == dict(rows(flow.snapshot(name))), name
