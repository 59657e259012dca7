"""Queries over a flow that others change meanwhile."""

import pyarrow as pa
import pytest

from weirflow import IncrementalFlow
from weirflow.ivm.flow import local


@pytest.mark.parametrize("change", ["register", "drop and register with other columns"])
def test_a_flow_that_changes_while_a_query_is_planned(monkeypatch, change):
    """The query is planned anew, and reads what came with it as it was: here a stream, which is read only once."""
    flow = IncrementalFlow()
    flow.register_source("orders", "customer BIGINT, amount BIGINT")
    flow.register_view("totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")
    flow.tick("orders", [{"customer": 1, "amount": 30}, {"customer": 1, "amount": 12}])
    names = pa.table({"customer": [1], "name": ["ann"]})
    planned, plan_query = [], local.plan_query

    def changed_meanwhile(*args):
        found = plan_query(*args)
        if not planned:
            if change == "register":
                flow.register_view("large", "SELECT * FROM orders WHERE amount > 20")
            else:
                flow.drop("totals")
                counted = "SELECT customer, CAST(COUNT(*) AS INT) AS total FROM orders GROUP BY customer"
                flow.register_view("totals", counted)
        planned.append(found)
        return found

    monkeypatch.setattr(local, "plan_query", changed_meanwhile)
    query = "SELECT name, total FROM totals JOIN names USING (customer)"
    rows = flow.sql(query, tables={"names": pa.RecordBatchReader.from_batches(names.schema, names.to_batches())})
    total = 42 if change == "register" else 2
    assert rows.to_pylist() == [{"name": "ann", "total": total}]
    assert len(planned) == 2
