"""Plans over tables that have no other columns than those that are read."""

import pyarrow as pa
import pytest

from weirflow.sql.bind.query import bind_query
from weirflow.sql.passes.narrow_scans import narrow_scans, read_columns
from weirflow.sql.passes.optimize import optimized
from weirflow.sql.plan import Field, Scan
from weirflow.sql.stored import decode_plan, encode_plan
from weirflow.sql.traverse import nodes

CATALOG = {
    "orders": (Field("id", pa.int64()), Field("customer", pa.string()), Field("amount", pa.int64())),
    "customers": (Field("name", pa.string()), Field("region", pa.string())),
}


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("SELECT * FROM orders", {"orders": ["id", "customer", "amount"]}),
        ("SELECT COUNT(*) AS n FROM orders", {"orders": ["id"]}),
        ("SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer", {"orders": ["customer", "amount"]}),
        (
            "SELECT o.id FROM orders o JOIN customers c ON o.customer = c.name",
            {"orders": ["id", "customer"], "customers": ["name"]},
        ),
        (
            "SELECT amount FROM orders WHERE customer IN (SELECT name FROM customers WHERE region = 'x')",
            {"orders": ["customer", "amount"], "customers": ["name", "region"]},
        ),
        ("SELECT a.amount FROM orders a JOIN orders b ON a.id = b.id", {"orders": ["id", "amount"]}),
        ("SELECT id FROM orders UNION SELECT amount FROM orders", {"orders": ["id", "amount"]}),
    ],
)
def test_a_plan_over_narrower_tables_reads_the_same(sql, read):
    whole = bind_query(sql, CATALOG)
    assert read_columns(optimized(whole)) == read
    narrow = decode_plan(encode_plan(narrow_scans(whole, read)))
    assert narrow.fields == whole.fields
    scans = [one for one in nodes(optimized(narrow)) if isinstance(one, Scan)]
    assert {one.name: [field.name for field in one.fields] for one in scans} == read
