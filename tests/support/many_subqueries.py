"""Queries of many subqueries, in every place where one may stand."""

from __future__ import annotations

from collections.abc import Callable

COUNT = 20
TOTALS = ("SUM(w)", "MAX(w)", "MIN(w)", "COUNT(w)", "COUNT(*)")


def listed(count: int, form: str, between: str = ", ") -> str:
    """A form so many times, each with its number and a total."""
    return between.join(form.format(n=n, total=TOTALS[n % len(TOTALS)]) for n in range(count))


def cased(count: int, condition: str) -> str:
    """One CASE inside the other."""
    inner = "-1"
    for n in range(count):
        inner = f"CASE WHEN v > ({condition.format(n=n, total=TOTALS[n % len(TOTALS)])}) THEN {n} ELSE {inner} END"
    return f"SELECT k, v, {inner} AS c FROM t"


def tower(count: int, condition: str) -> str:
    """One query inside the other."""
    rows = "(SELECT k, v, 0 AS c FROM t)"
    for n in range(count):
        rows = f"(SELECT k, v, c + ({condition.format(n=n, q=f'q{n}')}) AS c FROM {rows} AS q{n})"
    return f"SELECT * FROM {rows} AS q"


ONE_ROW = "SELECT {total} - {n} FROM u"
OF_ITS_KEY = "SELECT {total} - {n} FROM u WHERE u.k = t.k"
FIRST = "SELECT w + {n} FROM u"
BELOW_IT = "SELECT {total} - {n} FROM u WHERE u.k < t.k"
FORMS: dict[str, Callable[[int], str]] = {
    "values": lambda count: f"SELECT {listed(count, f'({ONE_ROW}) AS c{{n}}')}",
    "values beside rows": lambda count: f"SELECT k, {listed(count, f'({ONE_ROW}) AS c{{n}}')} FROM t",
    "values of a key": lambda count: f"SELECT k, {listed(count, f'({OF_ITS_KEY}) AS c{{n}}')} FROM t",
    "values of other keys": lambda count: f"SELECT k, {listed(count, f'({BELOW_IT}) AS c{{n}}')} FROM t",
    "first rows": lambda count: (
        f"SELECT k, {listed(count, f'({FIRST} WHERE u.k = t.k ORDER BY w NULLS FIRST LIMIT 1) AS c{{n}}')} FROM t"
    ),
    "existence": lambda count: (
        f"SELECT k, {listed(count, 'EXISTS (SELECT 1 FROM u WHERE u.k < t.k + {n}) c{n}')} FROM t"
    ),
    "conditions": lambda count: f"SELECT k, v FROM t WHERE {listed(count, f'v > ({ONE_ROW}) - 9', ' AND ')}",
    "alternatives": lambda count: f"SELECT k, v FROM t WHERE {listed(count, f'v > ({BELOW_IT})', ' OR ')}",
    "conditions on groups": lambda count: f"SELECT k, v FROM t WHERE {listed(count, f'v > ({BELOW_IT}) - 9', ' AND ')}",
    "existing groups": lambda count: (
        "SELECT k, v FROM t WHERE "
        + listed(count, "EXISTS (SELECT u.k FROM u WHERE u.w < t.v + {n} GROUP BY u.k HAVING COUNT(*) < 9)", " AND ")
    ),
    "cases": lambda count: cased(count, ONE_ROW),
    "cases of a key": lambda count: cased(count, BELOW_IT),
    "one above the other": lambda count: tower(count, "SELECT COUNT(*) + {n} FROM u WHERE u.w < {q}.k"),
}
