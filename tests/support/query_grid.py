"""A grid of queries: each FROM clause with each SELECT list, each condition, each grouping and each order."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from itertools import product

from weirflow.sql.typing.type_syntax import parse_ddl

SOURCES = {
    "t": parse_ddl("k BIGINT, v INT, s STRING, d DATE, n DECIMAL(9, 2), x DOUBLE, p BOOLEAN"),
    "u": parse_ddl("k BIGINT, w INT, e STRING"),
}
_DAY = dt.date(2024, 2, 28)
ROWS = {
    "t": [
        (1, 1, "a", _DAY, Decimal("1.50"), 0.5, True),
        (1, 2, "b", _DAY, Decimal("-2.25"), -1.5, False),
        (2, 2, "a", dt.date(2024, 3, 1), Decimal("0.00"), 2.0, True),
        (2, 3, "12", dt.date(2023, 12, 31), Decimal("99.99"), 1e6, None),
        (2, 3, "12", dt.date(2023, 12, 31), Decimal("99.99"), 1e6, None),
        (3, None, None, None, None, None, False),
        (None, 4, "", _DAY, Decimal("7.10"), 0.25, True),
        (7, 1, "B", dt.date(1970, 1, 1), Decimal("-0.01"), 3.75, False),
    ],
    "u": [(1, 1, "a"), (1, 3, "x"), (2, 2, "12"), (4, None, "y"), (None, 4, None), (7, 0, "a")],
}
FROMS = (
    "t",
    "t JOIN u USING (k)",
    "t LEFT JOIN u USING (k)",
    "u RIGHT JOIN t USING (k)",
    "t FULL JOIN u USING (k)",
    "t NATURAL JOIN u",
    "t NATURAL LEFT JOIN u",
    "t LEFT SEMI JOIN u ON t.k = u.k",
    "t LEFT ANTI JOIN u ON t.k = u.k AND u.w > 1",
    "(SELECT * FROM t WHERE v IS NOT NULL) AS t",
    "(SELECT k, v + 1 AS v, upper(s) AS s, d, n, x, p FROM t) t",
    "(SELECT * FROM t UNION ALL SELECT * FROM t WHERE p) AS t",
    "(SELECT * FROM t EXCEPT SELECT * FROM t WHERE v > 2) AS t",
    "(SELECT t.* FROM t CROSS JOIN (SELECT 1 AS one) o) AS t",
    "(SELECT t.*, row_number() OVER (PARTITION BY k ORDER BY v, s, d, n, x, p) AS r FROM t) AS t",
    "(SELECT * FROM t ORDER BY v, s, d, n, x, p, k LIMIT 3) AS t",
    "(SELECT DISTINCT * FROM t) t",
    "t LATERAL VIEW explode(array(1, v)) g AS w",
)
PREFIXES = ("", "WITH t AS (SELECT * FROM t WHERE k <> 7) ", "WITH o AS (SELECT max(w) AS m FROM u) ")
ITEMS = (
    "*",
    "t.*",
    "k, v, s",
    "t.k AS s, s AS k",
    "k, v + 1 AS v, v * 2",
    "-v, abs(v), v % 3, v / 2, v div 2",
    "k AS `the key`, `v`, T.K",
    "CASE WHEN v > 1 THEN 'many' WHEN v = 1 THEN s END AS c, coalesce(v, k, 0)",
    "nullif(v, 2), nvl(s, '-'), nvl2(v, 1, 2), ifnull(v, 0), if(p, v, NULL)",
    "s || '-' || v, concat(s, v), concat_ws('/', s, v), upper(s), length(s)",
    "CAST(v AS STRING), CAST(n AS INT), CAST(x AS DECIMAL(5, 1)), CAST(d AS TIMESTAMP), try_cast(s AS INT)",
    "n + v, n * n, n / 3, n % 2, x + n, v + x, n - 1.5",
    "year(d), d + 1, date_add(d, v), d - DATE'2024-01-01', add_months(d, 1), trunc(d, 'month')",
    "v BETWEEN 1 AND 3, s LIKE 'a%', s IN ('a', 'b'), v IS NULL, v <=> NULL, NOT p, p AND v > 1",
    "struct(k, v) AS st, array(v, 1) AS ar, named_struct('a', s).a",
    "round(x, 1), floor(x), ceil(n), round(n), sqrt(abs(x)), greatest(v, 1), least(x, n)",
    "(SELECT max(w) FROM u) AS m, v",
    "(SELECT count(*) FROM u WHERE u.k = t.k) AS c, EXISTS (SELECT 1 FROM u WHERE u.k = t.k) AS ex",
    "k IN (SELECT k FROM u) AS i, v NOT IN (SELECT w FROM u WHERE w IS NOT NULL) AS o",
    "sum(v) OVER (PARTITION BY k) AS a, count(*) OVER () AS b, rank() OVER (ORDER BY v) AS c",
    "lag(v) OVER w AS a, first_value(v) OVER w AS b, v - avg(v) OVER (PARTITION BY t.k) AS c",
)
_WINDOW = " WINDOW w AS (PARTITION BY t.k ORDER BY v, s, d, n, x, p)"
WHERES = (
    "",
    " WHERE v > 1 AND NOT p OR s = 'a'",
    " WHERE t.k IN (SELECT k FROM u WHERE w > 1)",
    " WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.w >= t.v)",
    " WHERE v = (SELECT min(w) FROM u)",
    " WHERE nullif(v, 2) IS NOT NULL",
)
GROUPED = (
    "count(*), count(v), sum(v), avg(v), min(s), max(d)",
    "sum(n), avg(n), sum(x) AS x, count(DISTINCT v)",
    "sum(v) + 1 AS a, max(v) - min(v) AS b, 10 / nullif(count(v), 0) AS c",
    "sum(v) FILTER (WHERE p) AS a, count(*) FILTER (WHERE v > 1) AS b, count_if(p), bool_and(p), any_value(t.k)",
    "sort_array(collect_list(v)) AS a, size(collect_set(s)) AS b, max_by(v, struct(v, s)) AS c",
    "sum(sum(v)) OVER () AS a, rank() OVER (ORDER BY count(*)) AS b",
)
KEYS = (
    ("", ""),
    ("t.k, ", " GROUP BY t.k"),
    ("t.k, ", " GROUP BY 1"),
    ("s, p, ", " GROUP BY s, p"),
    ("v % 2 AS o, ", " GROUP BY v % 2"),
    ("v % 2 AS o, ", " GROUP BY o"),
    ("upper(s) AS s, ", " GROUP BY upper(s)"),
    ("s, p, ", " GROUP BY ROLLUP (s, p)"),
    ("s, p, ", " GROUP BY CUBE (s, p)"),
    ("s, p, ", " GROUP BY GROUPING SETS ((s), (s, p), ())"),
    ("s, p, grouping(s) AS g, grouping_id() AS i, ", " GROUP BY s, p WITH ROLLUP"),
    ("s, p, ", " GROUP BY s, p GROUPING SETS ((s), (p))"),
    ("s, ", " GROUP BY ALL"),
)
HAVINGS = ("", " HAVING count(*) > 1", " HAVING max(v) > (SELECT min(w) FROM u) OR min(p)")
ORDERS = (
    "SELECT k, v, s FROM t ORDER BY {} LIMIT 3",
    "SELECT v AS k, k AS v, s, x FROM t ORDER BY {} LIMIT 2 OFFSET 1",
    "SELECT DISTINCT k, v, s FROM t ORDER BY {} LIMIT 4",
    "SELECT k, v, s FROM t UNION ALL SELECT k, w, e FROM u ORDER BY {} LIMIT 5",
    "SELECT k, count(*) AS v, max(s) AS s FROM t GROUP BY k ORDER BY {} LIMIT 2",
    "SELECT * FROM (SELECT k, v, s FROM t ORDER BY {}) LIMIT 2",
    "SELECT sum(v) FROM (SELECT k, v, s FROM t ORDER BY {} LIMIT 3)",
)
BYS = (
    "k, v, s",
    "1, 2, 3",
    "v DESC, k, s",
    "s NULLS LAST, v DESC NULLS FIRST, k",
    "k + v, v, s",
    "upper(s), 2, 1",
    "v % 2 = 0, v, k, s",
    "k IS NULL DESC, k DESC, v, s",
    "ALL",
)
SETS = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "MINUS")
SIDES = (
    "SELECT k, v FROM t",
    "SELECT k, w FROM u",
    "SELECT v, k FROM t WHERE p",
    "SELECT DISTINCT k, 1 FROM u",
    "SELECT k, n FROM t",
    "SELECT max(k), sum(v) FROM t",
    "VALUES (1, 2), (NULL, 3)",
)


def queries() -> Iterator[str]:
    """Every query of the grid."""
    for source, items, where in product(FROMS, ITEMS, WHERES):
        if where == "" or FROMS.index(source) % len(WHERES) == WHERES.index(where):
            yield f"SELECT {items} FROM {source}{where}{_WINDOW if ' w AS' in items else ''}"
    for prefix, items in product(PREFIXES[1:], ITEMS[:8]):
        yield f"{prefix}SELECT {items} FROM t"
    for (keys, by), calls, having in product(KEYS, GROUPED, HAVINGS):
        source = FROMS[(KEYS.index((keys, by)) + GROUPED.index(calls)) % len(FROMS)]
        yield f"SELECT {keys}{calls} FROM t{by}{having}"
        yield f"SELECT {keys}{calls} FROM {source}{by}{having}"
    for form, by in product(ORDERS, BYS):
        yield form.format(by)
    for left, between, right in product(SIDES, SETS, SIDES):
        yield f"{left} {between} {right}"
    for one, other in product(SETS, SETS):
        yield f"{SIDES[0]} {one} {SIDES[1]} {other} {SIDES[2]}"
        yield f"{SIDES[0]} {one} ({SIDES[1]} {other} {SIDES[2]})"
