"""Random views that compare rows with the clock, and random lives of flows that have them."""

import datetime as dt
import random
import re
from collections import Counter
from zoneinfo import ZoneInfo

import pyarrow as pa

from weirflow.ivm.zset.delta import DeltaBatch

ZONES = (
    "UTC",
    "America/New_York",
    "Europe/Paris",
    "+05:30",
    "America/Havana",  # clocks are put back at midnight's hour
    "Australia/Lord_Howe",  # by half an hour
    "Pacific/Apia",  # which left out a day
    "America/St_Johns",  # a minute after midnight, for some years
)
SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("k", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("d", pa.date32()),
        ("n", pa.timestamp("us")),
        ("s", pa.int64()),
        ("ttl", pa.int32()),
    ]
)
ATOMS = (
    "at > now() - INTERVAL {n} HOUR",
    "at > now() - INTERVAL {n} MINUTE",
    "at > now() - INTERVAL {n} DAY",
    "at >= now() - INTERVAL {m} MONTH",
    "at < now() + INTERVAL {m} MONTH",
    "at <= now()",
    "at = now()",
    "at <> now()",
    "at <=> now()",
    "at + INTERVAL {n} HOUR > current_timestamp()",
    "at + INTERVAL {n} DAY <= current_timestamp",
    "now() - at < INTERVAL {n} HOUR",
    "at - now() <= INTERVAL {n} HOUR",
    "at BETWEEN now() - INTERVAL {n} DAY AND now() + INTERVAL {n} HOUR",
    "at NOT BETWEEN now() - INTERVAL {n} HOUR AND now()",
    "d = current_date()",
    "d <> current_date",
    "d > current_date() - INTERVAL {n} DAY",
    "d + INTERVAL {m} MONTH > current_date()",
    "d >= date_sub(current_date(), {n})",
    "datediff(current_date(), d) <= {n}",
    "datediff(d, curdate()) > -{n}",
    "current_date() - d < INTERVAL {n} DAY",
    "d = CAST(now() - INTERVAL {m} MONTH AS DATE)",
    "d = CAST(now() - INTERVAL {n} DAY AS DATE)",
    "n > localtimestamp() - INTERVAL {n} HOUR",
    "n <= localtimestamp()",
    "s > unix_timestamp() - {n} * 60",
    "unix_timestamp() - s < {n} * 3600",
    "at >= date_trunc('{unit}', now())",
    "date_trunc('{unit}', at) = date_trunc('{unit}', now())",
    "date_trunc('DAY', now() - INTERVAL {n} HOUR) <= at",
    "date_trunc('HOUR', now()) - INTERVAL {m} MONTH < at",
    "year(d) = year(current_date())",
    "trunc(d, 'MONTH') = trunc(current_date(), 'MONTH')",
    "add_months(current_date(), -{m}) < d",
    "last_day(current_date()) = last_day(d)",
    "date_add(d, ttl) >= current_date()",
    "CAST(d AS TIMESTAMP) < now() - INTERVAL {n} HOUR",
    "CAST(current_date() AS TIMESTAMP) <= at",
    "timestampadd({unit}, -{m}, now()) < at",
)
COMBINED = (
    "{a}",
    "{a} AND {b}",
    "{a} OR {b}",
    "NOT ({a})",
    "ttl > 1 AND {a}",
    "{a} AND (ttl < 2 OR NOT ({b}))",
    "CASE WHEN ttl > 1 THEN {a} ELSE {b} END",
    "IF({a}, k = 'a', {b})",
    "({a}) IS NOT NULL AND ({b}) IS NOT TRUE",
)
VIEWS = (
    "SELECT id, at FROM t WHERE {p}",
    "SELECT k, d FROM t WHERE {p}",
    "SELECT id, {p} AS x, CASE WHEN {q} THEN 'hot' ELSE 'cold' END AS y FROM t",
    "SELECT k, COUNT(*) AS n, COUNT(*) FILTER (WHERE {p}) AS m, MAX(CASE WHEN {q} THEN id END) AS x FROM t GROUP BY k",
    "SELECT k, MAX(at) AS m FROM t GROUP BY k HAVING MAX(at) > now() - INTERVAL {h} HOUR",
    "SELECT a.id, b.id AS o FROM t AS a JOIN t AS b ON a.k = b.k AND a.at > now() - INTERVAL {h} HOUR AND b.at < a.at",
    "SELECT a.id, b.id AS o FROM t a LEFT JOIN t b ON a.k = b.k AND a.at > now() - INTERVAL {h} HOUR AND b.d < a.d",
    "SELECT a.id, b.id AS o FROM t a FULL JOIN t b ON a.k = b.k AND a.at <= now() AND (b.d = curdate() OR a.d = b.d)",
    "SELECT DISTINCT k FROM t WHERE {p}",
    "SELECT id FROM t WHERE k IN (SELECT k FROM t WHERE {p})",
    "SELECT id FROM t AS a WHERE NOT EXISTS (SELECT 1 FROM t WHERE k = a.k AND at > now() - INTERVAL {h} HOUR)",
    "SELECT id, at FROM t WHERE {p} ORDER BY at DESC, id LIMIT 2",
)
_UNITS = ("HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
_READINGS = re.compile(r"\b(now|current_timestamp|current_date|curdate|localtimestamp|unix_timestamp)\b(\(\))?")
_SPANS = (
    dt.timedelta(microseconds=1),
    dt.timedelta(seconds=7),
    dt.timedelta(minutes=29),
    dt.timedelta(minutes=30),
    dt.timedelta(hours=1),
    dt.timedelta(hours=5),
    dt.timedelta(days=1),
    dt.timedelta(days=3, hours=1),
    dt.timedelta(days=28),
    dt.timedelta(days=31),
)


def told(sql, reading):
    """A query in which the clock is a constant; NULL before the first reading."""
    shown = "CAST(NULL AS TIMESTAMP)" if reading is None else f"TIMESTAMP'{reading:%Y-%m-%d %H:%M:%S.%f}Z'"
    kinds = {"current_date": "DATE", "curdate": "DATE", "localtimestamp": "TIMESTAMP_NTZ", "unix_timestamp": "BIGINT"}

    def constant(found):
        kind = kinds.get(found[1])
        return shown if kind is None else f"CAST({shown} AS {kind})"

    return _READINGS.sub(constant, sql)


class ClockCase:
    """Views in a zone around a moment at which something happens there, all from one seed."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.zone = self.dice.choice(ZONES)
        self.start = self._start()
        self.views = {f"v{at}": self._view() for at in range(2)}
        self.rows = Counter()
        self._ids = 0

    def _start(self):
        """Shortly before clocks are changed, or a month ends, or any time."""
        dice = self.dice
        year = dice.choice((1999, 2011, 2024, 2025))
        zone = dt.UTC if self.zone in ("UTC", "+05:30") else ZoneInfo(self.zone)
        begin = dt.datetime(year, 1, 1, tzinfo=dt.UTC)
        offsets = [(begin + dt.timedelta(hours=at)).astimezone(zone).utcoffset() for at in range(24 * 366)]
        changes = [at for at in range(1, len(offsets)) if offsets[at] != offsets[at - 1]]
        kind = dice.random()
        if changes and kind < 0.6:
            return begin + dt.timedelta(hours=dice.choice(changes) - dice.randint(1, 5))
        if kind < 0.8:
            return dt.datetime(year, dice.choice((1, 2, 3, 5, 12)), 27, dice.randint(0, 23), tzinfo=dt.UTC)
        return begin + dt.timedelta(seconds=dice.randint(0, 366 * 86_400))

    def _atom(self):
        dice = self.dice
        return dice.choice(ATOMS).format(
            n=dice.choice((1, 2, 24, 30)), m=dice.choice((1, 2, 12)), unit=dice.choice(_UNITS)
        )

    def _view(self):
        dice = self.dice

        def condition():
            return dice.choice(COMBINED).format(a=self._atom(), b=self._atom())

        return dice.choice(VIEWS).format(p=condition(), q=condition(), h=dice.choice((1, 24, 30)))

    def span(self):
        """A length of time."""
        return self.dice.choice(_SPANS) * self.dice.choice((1, 1, 1, 2))

    def row(self, now):
        """A row whose times are near this one, or equal to it, or NULL."""
        dice = self.dice
        self._ids += 1

        def near():
            if dice.random() < 0.1:
                return None
            moved = now + self.span() * dice.choice((-1, -1, 0, 1))
            return moved.replace(microsecond=0) if dice.random() < 0.5 else moved

        at, other = near(), near()
        return (
            self._ids if dice.random() < 0.7 else 0,
            dice.choice(("a", "b", None)),
            at,
            None if other is None else other.date(),
            None if other is None else other.replace(tzinfo=None),
            None if at is None else int(at.timestamp()),
            dice.choice((0, 1, 2, 31, None)),
        )

    def changes(self, now):
        """New rows, and some that go."""
        dice = self.dice
        found = Counter(self.row(now) for _ in range(dice.randint(0, 4)))
        there = list((self.rows + found).elements())
        for row in dice.sample(there, min(len(there), dice.randint(0, 2))):
            found[row] -= 1
        self.rows += Counter()
        for row, weight in found.items():
            self.rows[row] += weight
        self.rows += Counter()
        return delta(found)

    def later(self, now):
        """A later moment: often just when, or just before, a condition on a row may change."""
        dice = self.dice
        if self.rows and dice.random() < 0.5:
            row = dice.choice(list(self.rows))
            found = row[2] or now
            wanted = found + dice.choice((-1, 1)) * self.span() + dt.timedelta(microseconds=dice.choice((-1, 0, 1)))
            if wanted > now:
                return wanted
        return now + self.span()


def delta(changes):
    """Rows and their weights, as a delta."""
    rows = list(changes.items())
    columns = [pa.array([row[at] for row, _ in rows], field.type) for at, field in enumerate(SCHEMA)]
    table = pa.table(columns, schema=SCHEMA)
    weights = pa.array([weight for _, weight in rows], pa.int64())
    return DeltaBatch.from_weighted(table.append_column("_weight", weights), schema=SCHEMA)
