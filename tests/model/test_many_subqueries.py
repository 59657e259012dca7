"""Twenty subqueries of one query: their plan grows with their number, and the view equals DuckDB's after every tick."""

from collections import Counter

import duckdb
import pytest
from support.maintained import Maintained, duckdb_rows
from support.many_subqueries import COUNT, FORMS, listed
from support.view_corpus import SOURCES, RandomTables

from weirflow.ivm.operators.join.operator import Join
from weirflow.sql.passes.optimize import logical_plan
from weirflow.sql.plan import Field

CATALOG = {name: tuple(Field(one.name, one.type) for one in schema) for name, schema in SOURCES.items()}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_plan_of_twice_as_many_subqueries_is_a_few_times_as_large(form):
    few, many = (logical_plan(form(count), CATALOG).size for count in (COUNT // 2, COUNT))
    assert many < 5 * few


def test_views_of_many_subqueries_equal_recompute_after_every_tick():
    tables = RandomTables(7)
    views = {name.replace(" ", "_"): form(COUNT) for name, form in FORMS.items()}
    maintained = Maintained(SOURCES, views)
    for tick in range(4):
        maintained.tick(tables.changes(most=4))
        with duckdb.connect() as connection:
            for name in SOURCES:
                connection.register(f"{name}_rows", maintained.table(name))
                connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_rows")
            for name, sql in views.items():
                assert maintained.views[name] == duckdb_rows(connection, sql), (tick, name)


def test_a_join_of_joins_passes_on_no_more_rows_than_change(monkeypatch):
    passed_on = []
    step = Join.step

    def counted(self, deltas):
        passed_on.append(len(delta := step(self, deltas)))
        return delta

    monkeypatch.setattr(Join, "step", counted)
    joins = " ".join(f"LEFT JOIN totals g{n} ON g{n}.k = t.k AND g{n}.total <> {100 + n}" for n in range(COUNT))
    chain = f"SELECT t.k, {listed(COUNT, 'g{n}.total + {n} AS c{n}')} FROM t {joins}"
    totals = "SELECT k, SUM(w) AS total FROM u GROUP BY k HAVING SUM(w) <> 5"
    views = Maintained(SOURCES, {"totals": totals, "chain": chain})
    keys = range(8)
    rows = [((k, 0, None), 1) for k in keys]
    views.tick({"t": rows, "u": [((k, k), 1) for k in keys]})
    for tick in range(1, 6):
        changed = [((k, 1), 1) for k in keys if (k + tick) % 2]
        views.tick(
            {"t": [((k, tick - 1, None), -1) for k in keys] + [((k, tick, None), 1) for k in keys], "u": changed}
        )
    totals = {k: k + sum((k + tick) % 2 for tick in range(1, 6)) for k in keys}
    assert views.views["chain"] == Counter(
        (k, *(None if totals[k] == 5 else totals[k] + n for n in range(COUNT))) for k in keys
    )
    assert max(passed_on) <= 10 * len(keys)
