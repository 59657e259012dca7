"""GROUP BY window() and session_window(). DuckDB has neither: there a row is repeated for each window that holds it,
and sessions are numbered by a running sum of the gaps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.generator.clauses import aggregate, group_keys, having, select_list
from support.generator.expressions import Column, Expressions
from support.generator.kinds import Kind
from support.generator.queries import grouped
from support.generator.relations import Query
from support.generator.text import Sql, joined, sql

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from support.generator.queries import Queries

_TIMES = (Kind.TIMESTAMP, Kind.NTZ, Kind.DATE)
_UNITS = {"second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6, "day": 86_400 * 10**6}
_MINUTES = (
    ("10 minutes",),
    ("1 day",),
    ("1 hour", "1 hour", "15 minutes"),
    ("10 minutes", "5 minutes"),
    ("10 minutes", "4 minutes"),
    ("9 minutes", "4 minutes", "-3 minutes"),
)
_DAYS = (("1 day",), ("36 hours",), ("7 days", "7 days", "-1 day"), ("2 days", "1 day"), ("3 days", "2 days", "1 hour"))
"""Size, slide and start of windows, for times and for days."""
_GAPS = ("1 second", "5 minutes", "5 minutes", "1 hour")
_DAY_GAPS = ("1 hour", "1 day", "1 day", "2 days")
_TRIES = 4
"""How often a query is written until DuckDB can answer it: most functions beside the windows mean something else."""
_DUCK_FROM = "FROM {1} CROSS JOIN UNNEST([{5}]) AS w(k){2} {6} {7} + {8} > epoch_us({9}) GROUP BY {3}{4}"
_DUCK_SESSIONS = (
    "FROM (SELECT r0.*, SUM(CASE WHEN r0.at_us - r0.before_us <= {5} THEN 0 ELSE 1 END) OVER ({6} ORDER BY r0.at_us) "
    "AS session FROM (SELECT r0.*, epoch_us({7}) AS at_us, LAG(epoch_us({7})) OVER ({6} ORDER BY epoch_us({7})) "
    "AS before_us FROM {1}{2} {8} {7} IS NOT NULL) AS r0) AS r0 GROUP BY {3}{4}"
)


def in_time_windows(queries: Queries) -> Query:
    """Tumbling and sliding windows, beside other keys or alone."""
    return _mostly_compared(lambda: _time_windows(queries))


def in_sessions(queries: Queries) -> Query:
    """Sessions of one relation, of each key or overall."""
    return _mostly_compared(lambda: _sessions(queries))


def _mostly_compared(write: Callable[[], Query]) -> Query:
    query = write()
    for _ in range(_TRIES - 1):
        if isinstance(query.text.duck, str):
            break
        query = write()
    return query


def _time_windows(queries: Queries) -> Query:
    dice = queries.dice
    _, clause, where = queries.source()
    inside = Expressions(dice, clause.columns)
    time = _time(inside)
    if time is None:
        return grouped(queries)
    texts = dice.choice(_DAYS if time.kind is Kind.DATE else _MINUTES)
    size, slide, start, *_ = (*map(_micros, texts), *([_micros(texts[0])] if len(texts) == 1 else []), 0)
    shifts = -(-size // slide)
    begin = sql(
        "window.start",
        time.text,
        duck=f"(epoch_us({{0}}) - (((epoch_us({{0}}) - {start}) % {slide}) + {slide}) % {slide} - w.k * {slide})",
    )
    keys = group_keys(inside, dice.choice((0, 0, 1, 1, 2)))
    items = [*keys, *_bounds(inside, "window", time, begin, sql("{}", begin, duck=f"{{}} + {size}"))]
    items += [aggregate(inside) for _ in range(dice.randint(1, 2))]
    lengths = ", ".join(f"'{text}'" for text in texts)
    call = Sql(sql(f"window({{}}, {lengths})", time.text).spark, begin.duck)
    text = sql(
        "SELECT {0} FROM {1}{2} GROUP BY {3}{4}",
        select_list(items),
        clause.text,
        where,
        _listed([*(key.text for key in keys), call]),
        having(inside),
        ", ".join(map(str, range(shifts))),
        _and(where),
        begin,
        str(size),
        time.text,
        duck=f"SELECT {{0}} {_DUCK_FROM}",
    )
    return Query(text, tuple(item.kind for item in items), clause.size * shifts)


def _sessions(queries: Queries) -> Query:
    dice = queries.dice
    clause, where = queries.single()
    inside = Expressions(dice, clause.columns)
    time = _time(inside)
    if time is None:
        return grouped(queries)
    gap = dice.choice(_DAY_GAPS if time.kind is Kind.DATE else _GAPS)
    keys = group_keys(inside, dice.choice((0, 0, 1, 2)))
    first = sql("session_window.start", duck="MIN(r0.at_us)")
    last = sql("session_window.end", duck=f"MAX(r0.at_us) + {_micros(gap)}")
    items = [*keys, *_bounds(inside, "session_window", time, first, last)]
    items += [aggregate(inside) for _ in range(dice.randint(1, 2))]
    call = sql(f"session_window({{}}, '{gap}')", time.text, duck="r0.session")
    names = [key.text for key in keys]
    text = sql(
        "SELECT {0} FROM {1}{2} GROUP BY {3}{4}",
        select_list(items),
        clause.text,
        where,
        _listed([*names, call]),
        having(inside),
        str(_micros(gap)),
        sql("PARTITION BY {}", _listed(names)) if names else "",
        time.text,
        _and(where),
        duck=f"SELECT {{0}} {_DUCK_SESSIONS}",
    )
    return Query(text, tuple(item.kind for item in items), clause.size)


def _time(inside: Expressions) -> Column | None:
    """A time in scope, or a day made of a number: one of a few that follow each other."""
    times = inside.readable(_TIMES)
    if times:
        return inside.dice.choice(times)
    numbers = inside.readable((Kind.INT,))
    if not numbers:
        return None
    day = sql(
        "date_add(DATE '2024-02-28', pmod({0}, 5))",
        inside.dice.choice(numbers).text,
        duck="(DATE '2024-02-28' + CAST((({0} % 5) + 5) % 5 AS INTEGER))",
    )
    return Column(day, Kind.DATE)


def _bounds(inside: Expressions, name: str, time: Column, start: Sql, end: Sql) -> list[Column]:
    """What is selected of a window: its bounds, or all of it as a struct."""
    kind = Kind.NTZ if time.kind is Kind.NTZ else Kind.TIMESTAMP
    made = "make_timestamp({})" if kind is Kind.NTZ else "make_timestamptz({})"
    first = sql(f"{name}.start", start, duck=made)
    last = sql(f"{name}.end", end, duck=made)
    choice = inside.dice.random()
    if choice < 0.2:
        return [Column(sql(name, first, last, duck="{{'start': {}, 'end': {}}}"), Kind.WINDOW)]
    return [Column(first, kind), Column(last, kind)][: 1 if choice < 0.4 else 2]


def _micros(text: str) -> int:
    number, unit = text.split()
    return int(number) * _UNITS[unit.removesuffix("s")]


def _and(where: Sql) -> str:
    """What comes before one more condition."""
    return "AND" if where.spark else " WHERE"


def _listed(parts: Sequence[Sql]) -> Sql:
    return joined(", ", list(parts))
