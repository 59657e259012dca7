"""Aggregates over joins, and rows for them of which many have the same key."""

from decimal import Decimal

import pyarrow as pa

SCHEMA = pa.schema(
    [("k", pa.int64()), ("g", pa.string()), ("v", pa.int64()), ("x", pa.float64()), ("d", pa.decimal128(9, 2))]
)
ONE_SIDE = "a.k, count(*) AS n, sum(b.v) AS s, avg(b.x) AS m, sum(b.d) AS d"
VIEWS = {
    "one side": f"SELECT {ONE_SIDE} FROM t a JOIN t b ON a.k = b.k GROUP BY a.k",
    "two tables": f"SELECT {ONE_SIDE} FROM t a JOIN u b ON a.k = b.k GROUP BY a.k",
    "both sides": """
        SELECT a.g, b.g AS h, sum(a.v) AS s, sum(b.v) AS t, sum(a.x) AS x, sum(b.d) AS d, count(a.x) AS n
        FROM t a JOIN t b ON a.k = b.k GROUP BY a.g, b.g""",
    "products": "SELECT a.g, sum(a.v * b.v) AS s, sum(a.x * b.x) AS x FROM t a JOIN t b ON a.k = b.k GROUP BY a.g",
    "of all": "SELECT count(*) AS n, sum(a.v + b.v) AS s FROM t a JOIN t b ON a.k = b.k",
    "no key": "SELECT a.g, count(*) AS n, sum(a.v - b.v) AS s FROM t a CROSS JOIN u b GROUP BY a.g",
    "residual": """
        SELECT a.k, count(*) AS n, sum(b.v) AS s FROM t a JOIN t b ON a.k = b.k AND a.v < b.v + 1 GROUP BY a.k""",
    "filter": """
        SELECT a.k, count(*) FILTER (WHERE a.v > b.v) AS n, sum(b.v) FILTER (WHERE a.x > 0) AS s, count(b.g) AS g
        FROM t a JOIN t b ON a.k = b.k GROUP BY a.k""",
    "distinct": "SELECT a.k, count(DISTINCT b.v) AS n, sum(b.v) AS s FROM t a JOIN t b ON a.k = b.k GROUP BY a.k",
    "extremes": "SELECT a.k, min(b.v) AS s, max(a.g) AS g FROM t a JOIN t b ON a.k = b.k GROUP BY a.k",
    "three": """
        SELECT a.k, count(*) AS n, sum(c.v) AS s FROM t a JOIN t b ON a.k = b.k JOIN u c ON b.k = c.k GROUP BY a.k""",
    "left": """
        SELECT a.k, count(*) AS n, count(b.k) AS m, sum(b.v) AS s FROM t a LEFT JOIN u b ON a.k = b.k GROUP BY a.k""",
    "full": """
        SELECT a.k, b.k AS j, count(*) AS n, sum(a.v) AS r, sum(b.v) AS s
        FROM t a FULL JOIN u b ON a.k = b.k GROUP BY a.k, b.k""",
    "having": """
        SELECT a.g, sum(b.v) AS s FROM t a JOIN t b ON a.k = b.k WHERE a.v <> b.v GROUP BY a.g HAVING count(*) > 2""",
}


EXACT = (-0.5, 0.25, 2.0, 4096.0)
FAR = (1e-300, -1e-300, 1e300, -1e300, 0.1, -0.0, float("inf"))


def row(chance, doubles=EXACT):
    """A random row; of exact doubles, sums do not depend on the order."""
    return {
        "k": chance.choice([None, 1, 1, 1, 2, 3]),
        "g": chance.choice([None, "a", "b"]),
        "v": chance.choice([None, *range(-2, 3)]),
        "x": chance.choice([None, *doubles]),
        "d": chance.choice([None, Decimal("1.25"), Decimal("-0.50")]),
    }
