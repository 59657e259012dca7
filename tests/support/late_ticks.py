"""Rows whose time goes on, and views whose state that makes final."""

from __future__ import annotations

import datetime as dt
import random

START = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
COLUMNS = "at TIMESTAMP, name STRING, x BIGINT"
VIEWS = {
    "by_window": "SELECT window(at, '10 minutes') AS w, SUM(x) AS s, COUNT(DISTINCT name) AS n FROM t GROUP BY 1",
    "by_hop": "SELECT window(at, '10 minutes', '5 minutes') AS w, MAX(x) AS m FROM t GROUP BY 1",
    "by_hour": "SELECT date_trunc('HOUR', at) AS h, name, MIN(x) AS m, collect_set(x) AS xs FROM t GROUP BY 1, 2",
    "by_day": "SELECT CAST(at AS DATE) AS d, COUNT(*) AS n FROM t GROUP BY CAST(at AS DATE)",
    "seen": "SELECT DISTINCT at, name FROM t",
    "both": "SELECT at, name FROM t INTERSECT SELECT at, name FROM t WHERE x > 3",
    "over": "SELECT year(w.start) AS y, SUM(s) AS s FROM by_window GROUP BY year(w.start)",
    "named": "SELECT date_trunc('DAY', at) AS d, SUM(x * v) AS s FROM t JOIN names ON t.name = names.name GROUP BY 1",
    "pairs": "SELECT a.at, COUNT(*) AS n FROM t a JOIN t b ON a.at = b.at GROUP BY a.at",
}


def minutes(count: float) -> dt.timedelta:
    return dt.timedelta(minutes=count)


def ticks(count: int, rows: int, *, late: bool = False):
    """Rows around a time that goes on, some retractions of rows of the tick before, at times a row that is ``late``."""
    rng = random.Random(1)
    last: list[dict] = []
    for number in range(count):
        now = START + minutes(60 * number)
        added = [
            {
                "at": now + minutes(rng.randrange(-120, 120)),
                "name": rng.choice("abc"),
                "x": rng.randrange(10),
                "_weight": 1,
            }
            for _ in range(rows)
        ]
        gone = [row | {"_weight": -1} for row in last[::7]]
        old = [added[0] | {"at": now - minutes(1000)}] if late and number % 5 == 0 else []
        yield added + gone + old
        last = added
