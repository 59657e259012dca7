"""Views that use most of the incremental SQL over two small tables, and random changes to those tables."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Row = tuple[Any, ...]

SOURCES = {
    "t": pa.schema([("k", pa.int64()), ("v", pa.int64()), ("s", pa.string())]),
    "u": pa.schema([("k", pa.int64()), ("w", pa.int64())]),
}
VIEWS = {
    "filtered": "SELECT k, v + 1 AS v1, s FROM t WHERE v > 0 AND s <> 'b'",
    "grouped": "SELECT k, COUNT(*) AS n, COUNT(v) AS nv, SUM(v) AS total FROM t GROUP BY k",
    "having": "SELECT k, SUM(v) AS total FROM t GROUP BY k HAVING COUNT(*) > 1",
    "extremes": "SELECT k, MIN(v) AS low, MAX(v) AS high, MIN(s) AS first FROM t GROUP BY k",
    "different": "SELECT k, COUNT(DISTINCT v) AS n, SUM(DISTINCT v) AS total FROM t GROUP BY k",
    "filtered_calls": "SELECT k, SUM(v) FILTER (WHERE s = 'a') AS a, COUNT(*) FILTER (WHERE v > 0) p FROM t GROUP BY k",
    "overall": "SELECT COUNT(*) AS n, SUM(v) AS total, MIN(v) AS low FROM t",
    "joined": "SELECT t.k, v, w FROM t JOIN u ON t.k = u.k",
    "joined_residual": "SELECT t.k, v, w FROM t JOIN u ON t.k = u.k AND v < w",
    "crossed": "SELECT v, w FROM t CROSS JOIN u WHERE v = w + 1",
    "left_joined": "SELECT t.k, v, w FROM t LEFT JOIN u ON t.k = u.k",
    "left_residual": "SELECT t.k, v, w FROM t LEFT JOIN u ON t.k = u.k AND v < w",
    "right_joined": "SELECT u.k, v, w FROM t RIGHT JOIN u ON t.k = u.k",
    "full_joined": "SELECT t.k AS tk, u.k AS uk, v, w FROM t FULL JOIN u ON t.k = u.k AND v <= w",
    "self_joined": "SELECT a.k, a.v, b.v AS v2 FROM t a JOIN t b ON a.k = b.k AND a.v < b.v",
    "three_joined": "SELECT a.v, u.w, b.s FROM t a JOIN u ON a.k = u.k JOIN t b ON u.w = b.v",
    "distinct_rows": "SELECT DISTINCT k, s FROM t",
    "united": "SELECT k FROM t UNION SELECT k FROM u",
    "united_all": "SELECT k FROM t UNION ALL SELECT k FROM u",
    "intersected": "SELECT k FROM t INTERSECT SELECT k FROM u",
    "intersected_all": "SELECT k FROM t INTERSECT ALL SELECT k FROM u",
    "excepted": "SELECT k FROM t EXCEPT SELECT k FROM u",
    "excepted_all": "SELECT k FROM t EXCEPT ALL SELECT k FROM u",
    "rolled_up": "SELECT k, s, SUM(v) AS total FROM t GROUP BY ROLLUP (k, s)",
    "cubed": "SELECT k, s, COUNT(*) AS n FROM t GROUP BY CUBE (k, s)",
    "on_view": "SELECT total, COUNT(*) AS n FROM grouped GROUP BY total",
    "diamond": "SELECT g.k, g.total, e.high FROM grouped g JOIN extremes e ON g.k = e.k",
    "top": "SELECT k, v, s FROM t ORDER BY v DESC NULLS LAST, k NULLS FIRST, s NULLS FIRST LIMIT 3",
    "top_later": "SELECT k, v, s FROM t ORDER BY v NULLS FIRST, k NULLS FIRST, s NULLS FIRST LIMIT 2 OFFSET 2",
    "top_totals": "SELECT k, total FROM grouped ORDER BY total DESC NULLS LAST, k NULLS FIRST LIMIT 2",
    "ranked": """
        SELECT k, v, s, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v NULLS FIRST, s NULLS FIRST) AS n,
               RANK() OVER (PARTITION BY k ORDER BY v NULLS FIRST) AS r,
               DENSE_RANK() OVER (PARTITION BY s ORDER BY v DESC NULLS LAST) AS d
        FROM t
    """,
    "best": """
        SELECT k, v, s, n, total FROM (
          SELECT k, v, s, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST, s NULLS FIRST) AS n,
                 SUM(v) OVER (PARTITION BY k ORDER BY v DESC NULLS LAST, s NULLS FIRST) AS total
          FROM t
        ) x WHERE n <= 2
    """,
    "tied": """
        SELECT k, v, s, r FROM (SELECT k, v, s, RANK() OVER (PARTITION BY k ORDER BY v NULLS FIRST) AS r FROM t) x
        WHERE 3 > r
    """,
    "stretched": """
        SELECT k, v, s, LAG(v, 2) OVER (PARTITION BY k ORDER BY v NULLS FIRST, s NULLS FIRST) AS before,
               RANK() OVER (PARTITION BY k ORDER BY v NULLS FIRST, s NULLS FIRST) AS r,
               SUM(v) OVER (PARTITION BY k ORDER BY v NULLS FIRST, s NULLS FIRST) AS running,
               SUM(v) OVER (PARTITION BY k ORDER BY v NULLS FIRST, s NULLS FIRST
                            ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS around
        FROM t
    """,
    "framed": """
        SELECT k, v,
               SUM(v) OVER (PARTITION BY k ORDER BY v NULLS FIRST) AS running,
               COUNT(*) OVER (PARTITION BY k) AS n,
               MIN(v) OVER (PARTITION BY k ORDER BY v NULLS FIRST, s NULLS FIRST
                            ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS low,
               MAX(v) OVER (PARTITION BY k) AS high
        FROM t
    """,
    "neighbours": """
        SELECT k, v, LAG(v) OVER (PARTITION BY k ORDER BY v NULLS FIRST, s NULLS FIRST) AS before,
               LEAD(v, 2, 9) OVER (PARTITION BY k ORDER BY v NULLS FIRST, s NULLS FIRST) AS after,
               FIRST_VALUE(v) OVER (PARTITION BY k ORDER BY v NULLS FIRST) AS first,
               NTILE(2) OVER (PARTITION BY k ORDER BY v NULLS FIRST, s NULLS FIRST) AS half
        FROM t
    """,
    "near": """
        SELECT k, v, SUM(v) OVER (PARTITION BY k ORDER BY v NULLS FIRST RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s,
               COUNT(*) OVER (ORDER BY v DESC NULLS LAST RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING) AS n,
               MIN(v) OVER (ORDER BY v NULLS LAST RANGE BETWEEN 2 PRECEDING AND UNBOUNDED FOLLOWING) AS low,
               LAST_VALUE(v) OVER (PARTITION BY s ORDER BY v NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING
                                   AND 2 FOLLOWING) AS last
        FROM t
    """,
    "placed": """
        SELECT k, v, PERCENT_RANK() OVER (PARTITION BY k ORDER BY v NULLS FIRST) AS p,
               CUME_DIST() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST) AS c,
               AVG(v) OVER (PARTITION BY k ORDER BY v NULLS FIRST, s NULLS FIRST
                            ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS mean,
               NTH_VALUE(v, 2) OVER (PARTITION BY k ORDER BY v NULLS FIRST) AS second
        FROM t
    """,
    "in_subquery": "SELECT k, v FROM t WHERE k IN (SELECT k FROM u WHERE w > 0)",
    "not_in_subquery": "SELECT k, v FROM t WHERE v NOT IN (SELECT w FROM u)",
    "existing": "SELECT k, v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.w < t.v)",
    "not_existing": "SELECT k, v FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
    "scalar": "SELECT k, v FROM t WHERE v > (SELECT AVG(w) FROM u)",
    "correlated": "SELECT k, v, (SELECT COUNT(*) FROM u WHERE u.k = t.k) AS n FROM t",
    "correlated_extreme": "SELECT k, v FROM t WHERE v = (SELECT MAX(b.v) FROM t b WHERE b.k = t.k)",
    "derived": "WITH x AS (SELECT k, SUM(v) AS total FROM t GROUP BY k) SELECT x.k, total, w FROM x JOIN u USING (k)",
    "values": "SELECT t.k, name FROM t JOIN (VALUES (1, 'one'), (2, 'two')) AS n(k, name) ON t.k = n.k",
    "cased": "SELECT CASE WHEN v > 0 THEN 'plus' WHEN v < 0 THEN 'minus' ELSE s END AS c, COALESCE(v, 0) AS z FROM t",
}


def few_at_a_time(count: int) -> Iterator[dict[str, str]]:
    """All views, so many at a time, each time with those that they read."""
    names = list(VIEWS)
    for first in range(0, len(names), count):
        chosen = set(names[first : first + count])
        while more := {name for name in names if any(_reads(VIEWS[one], name) for one in chosen)} - chosen:
            chosen |= more
        yield {name: VIEWS[name] for name in names if name in chosen}


def _reads(sql: str, name: str) -> bool:
    return re.search(rf"\b(FROM|JOIN) {name}\b", sql) is not None


class RandomTables:
    """The rows of both tables, changed at random: ``changes`` are what a tick takes."""

    retracting = 0.45
    """The share of changes that take a row back."""

    def __init__(self, seed: int) -> None:
        self._dice = dice = random.Random(seed)
        self.rows: dict[str, list[Row]] = {name: [] for name in SOURCES}
        self._makers: dict[str, Callable[[], Row]] = {
            "t": lambda: (self._maybe(0, 3), self._maybe(-3, 3), dice.choice(["a", "b", "", None])),
            "u": lambda: (self._maybe(0, 3), self._maybe(-3, 3)),
        }

    def changes(self, most: int) -> dict[str, list[tuple[Row, int]]]:
        """Up to ``most`` weighted rows for each table; some retract a row, sometimes one of the same delta."""
        return {name: self._changes(self.rows[name], make, most) for name, make in self._makers.items()}

    def _changes(self, rows: list[Row], make: Callable[[], Row], most: int) -> list[tuple[Row, int]]:
        changes = []
        for _ in range(self._dice.randint(0, most)):
            if rows and self._dice.random() < self.retracting:
                changes.append((rows.pop(self._dice.randrange(len(rows))), -1))
            else:
                rows.append(make())
                changes.append((rows[-1], 1))
        return changes

    def _maybe(self, low: int, high: int) -> int | None:
        return None if self._dice.random() < 0.15 else self._dice.randint(low, high)
