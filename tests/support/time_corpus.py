"""Views over a table of events: windows of time, sessions, and frames whose meaning DuckDB and Spark do not share."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
from support.view_corpus import RandomTables, Row

SOURCES = {
    "e": pa.schema(
        [
            ("id", pa.int64()),
            ("k", pa.string()),
            ("f", pa.float64()),
            ("ts", pa.timestamp("us", "UTC")),
            ("ntz", pa.timestamp("us")),
            ("d", pa.date32()),
            ("v", pa.int64()),
            ("b", pa.int8()),
            ("x", pa.float64()),
            ("dec", pa.decimal128(10, 2)),
        ]
    )
}
TIME_WINDOWS = {
    "tumbling": "SELECT window, COUNT(*) AS n, SUM(v) AS s FROM e GROUP BY window(ts, '10 minutes')",
    "tumbling_parts": "SELECT k, window.start AS a, window.end AS z, MAX(v) AS m FROM e "
    "GROUP BY k, window(ts, '1 hour')",
    "tumbling_start": "SELECT window, COUNT(v) AS n FROM e GROUP BY window(ts, '1 hour', '1 hour', '15 minutes')",
    "tumbling_back": "SELECT window, COUNT(v) AS n FROM e GROUP BY window(ts, '1 hour', '1 hour', '-7 minutes')",
    "tumbling_ntz": "SELECT window, COUNT(*) AS n FROM e GROUP BY window(ntz, '7 minutes')",
    "tumbling_date": "SELECT window, COUNT(*) AS n FROM e GROUP BY window(d, '36 hours')",
    "tumbling_rows": "SELECT id, window(ts, '10 minutes') AS w FROM e",
    "sliding": "SELECT window, COUNT(*) AS n FROM e GROUP BY window(ts, '10 minutes', '5 minutes')",
    "sliding_uneven": "SELECT k, window, SUM(v) AS s FROM e GROUP BY k, window(ts, '10 minutes', '4 minutes')",
    "sliding_start": "SELECT window, COUNT(*) AS n FROM e GROUP BY window(ntz, '9 minutes', '4 minutes', '-3 minutes')",
    "sliding_rows": "SELECT id, window(ts, '10 minutes', '3 minutes') AS w FROM e",
    "sessions": "SELECT k, session_window, COUNT(*) AS n, SUM(v) AS s FROM e "
    "GROUP BY k, session_window(ts, '5 minutes')",
    "sessions_overall": "SELECT session_window.start AS a, session_window.end AS z, COUNT(*) AS n FROM e "
    "GROUP BY session_window(ts, '2 minutes')",
    "sessions_ntz": "SELECT session_window, COUNT(*) AS n FROM e GROUP BY session_window(ntz, '3 minutes')",
    "sessions_floats": "SELECT f, session_window, COUNT(*) AS n FROM e GROUP BY f, session_window(ts, '9 minutes')",
    "sessions_two_keys": "SELECT k, v % 2 AS odd, session_window, MIN(ts) AS a, COUNT(DISTINCT v) AS n FROM e "
    "GROUP BY k, v % 2, session_window(ts, '15 minutes')",
    "sessions_filtered": "SELECT a, n FROM (SELECT k, session_window.start AS a, COUNT(*) AS n FROM e WHERE id % 3 > 0 "
    "GROUP BY k, session_window(ts, '5 minutes') HAVING COUNT(v) > 0) "
    "WHERE k = 'a' AND a > TIMESTAMP'1969-12-31 23:30:00'",
    "sessions_none": "SELECT session_window, COUNT(*) AS n FROM e GROUP BY session_window(ts, '0 minutes')",
    "sessions_alone": "SELECT id, session_window(ts, '5 minutes').start AS a, session_window.end AS z FROM e",
    "sessions_alone_whole": "SELECT id, session_window(ntz, '90 seconds') AS w FROM e",
    "sessions_alone_none": "SELECT id, session_window(ts, '0 minutes').end AS z FROM e",
    "sessions_alone_keys": "SELECT k, CAST(session_window(ts, '5 minutes').end AS DATE) AS z, COUNT(*) AS n FROM e "
    "GROUP BY k, CAST(session_window(ts, '5 minutes').end AS DATE)",
    "sessions_alone_totals": "SELECT k, MAX(session_window(ts, '1 hour').end) AS z, "
    "COUNT(DISTINCT session_window(ts, '1 hour').start) AS n FROM e GROUP BY k",
    "sessions_cast": "SELECT CAST(session_window(ts, '5 minutes').start AS DATE) AS a, COUNT(*) AS n FROM e "
    "GROUP BY session_window(ts, '5 minutes')",
}
FRAMES = {
    "near_times": """
        SELECT id, k, ts, SUM(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 5 MINUTES PRECEDING
                                       AND INTERVAL 2 MINUTES FOLLOWING) AS s,
               COUNT(*) OVER (PARTITION BY k ORDER BY ts DESC RANGE BETWEEN INTERVAL 5 MINUTES PRECEDING
                              AND CURRENT ROW) AS n,
               MIN(v) OVER (PARTITION BY k ORDER BY ntz NULLS LAST RANGE BETWEEN INTERVAL 1 MINUTE FOLLOWING
                            AND INTERVAL 9 MINUTES FOLLOWING) AS m
        FROM e
    """,
    "near_days": """
        SELECT id, k, d, AVG(v) OVER (PARTITION BY k ORDER BY d RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS a,
               MAX(v) OVER (ORDER BY d DESC RANGE BETWEEN INTERVAL '2' DAY PRECEDING AND CURRENT ROW) AS m,
               COUNT(*) OVER (ORDER BY d DESC NULLS FIRST RANGE BETWEEN CURRENT ROW AND 1 FOLLOWING) AS n
        FROM e
    """,
    "near_numbers": """
        SELECT id, v, b, SUM(v) OVER (PARTITION BY k ORDER BY v DESC RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING) AS s,
               COUNT(*) OVER (PARTITION BY k ORDER BY b RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) AS n,
               COUNT(*) OVER (ORDER BY b NULLS LAST RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS later,
               LAST_VALUE(b) OVER (ORDER BY b RANGE BETWEEN 3 PRECEDING AND 1 PRECEDING) AS before
        FROM e
    """,
    "without_nulls": """
        SELECT id, v,
               FIRST_VALUE(v) IGNORE NULLS OVER (PARTITION BY k ORDER BY id) AS first,
               LAST_VALUE(v, true) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS last,
               NTH_VALUE(v, 2) IGNORE NULLS OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 1 PRECEDING
                                                  AND 3 FOLLOWING) AS second,
               NTH_VALUE(v, 2) OVER (PARTITION BY k ORDER BY id) AS second_of_all,
               LAG(v) IGNORE NULLS OVER (PARTITION BY k ORDER BY id) AS lag,
               LAG(v, 2, -1) IGNORE NULLS OVER (PARTITION BY k ORDER BY id) AS lag2,
               LEAD(v, 2, id) IGNORE NULLS OVER (PARTITION BY k ORDER BY id) AS lead2,
               LEAD(v, 0) IGNORE NULLS OVER (PARTITION BY k ORDER BY id) AS itself,
               LEAD(v, -1) IGNORE NULLS OVER (PARTITION BY k ORDER BY id) AS backwards,
               LEAD(v, 40) IGNORE NULLS OVER (PARTITION BY k ORDER BY id) AS nowhere
        FROM e
    """,
    "all_kinds": """
        SELECT id,
               ROUND(STDDEV(x) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 3 PRECEDING AND CURRENT ROW), 6) AS sd,
               AVG(dec) OVER (PARTITION BY k ORDER BY id) AS mean,
               SUM(dec) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS total,
               COUNT(k, v) OVER (PARTITION BY b) AS both,
               MAX_BY(v, id) OVER (PARTITION BY k ORDER BY ts) AS latest,
               MIN_BY(k, CASE WHEN v > 0 THEN id END) OVER (PARTITION BY b) AS earliest,
               ANY_VALUE(v) OVER (PARTITION BY k ORDER BY id) AS some,
               COLLECT_LIST(v) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS list,
               SIZE(COLLECT_SET(v) OVER (PARTITION BY k)) AS different,
               PERCENTILE(v, 0.25) OVER (PARTITION BY k ORDER BY id) AS quarter,
               BOOL_OR(v > 2) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS big,
               PERCENT_RANK() OVER (PARTITION BY k ORDER BY v) AS place,
               CUME_DIST() OVER (PARTITION BY k ORDER BY v DESC) AS share
        FROM e
    """,
}
VIEWS = TIME_WINDOWS | FRAMES

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class RandomEvents(RandomTables):
    """Events some minutes around 1970, so that many are in reach of each other, and some exactly a gap apart."""

    retracting = 0.25

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rows = {name: [] for name in SOURCES}
        self._makers = {"e": self._event}
        self._events = 0

    def _event(self) -> Row:
        dice = self._dice
        self._events += 1
        moment = self._moment()
        plain = self._moment()
        return (
            self._events,
            dice.choice(["a", "b", None]),
            dice.choice([0.0, -0.0, float("nan"), 1.5, None]),
            moment,
            plain and plain.replace(tzinfo=None),
            plain and plain.date() + dt.timedelta(days=dice.randint(-3, 3)),
            self._maybe(-3, 5),
            self._maybe(-3, 5),
            dice.choice([None, 0.5, -2.25, 3.0]),
            None if dice.random() < 0.2 else Decimal(dice.randint(-500, 500)).scaleb(-2),
        )

    def _moment(self) -> Any:
        if self._dice.random() < 0.1:
            return None
        seconds = self._dice.choice([0, 0, 0, 1, 59])
        return _EPOCH + dt.timedelta(minutes=self._dice.randint(-40, 60), seconds=seconds)
