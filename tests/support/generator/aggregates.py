"""The grammar of aggregates and window functions: one line each."""

from __future__ import annotations

from dataclasses import dataclass

from support.generator.kinds import COMPARED, KEYS, SCALAR, Kind
from support.generator.text import Differs, Sql, sql

K = Kind


@dataclass(frozen=True)
class Aggregate:
    """An aggregate call: the kind it gives, Spark's template, the kinds it takes, DuckDB's template."""

    kind: Kind
    template: str
    holes: tuple[Kind, ...]
    duck: str | Differs | None = None
    distinct: bool = False
    """Whether ``DISTINCT`` may stand before its argument."""
    windowed: bool = True
    """Whether it may be called OVER a window."""


def _a(
    kind: Kind,
    template: str,
    *holes: Kind,
    duck: str | Differs | None = None,
    distinct: bool = False,
    windowed: bool = True,
) -> Aggregate:
    return Aggregate(kind, template, holes, duck, distinct, windowed)


def _aggregates() -> list[Aggregate]:
    # Ordered by the value too, so that ties are between equal values.
    by_both, by = "{0}, named_struct('o', {1}, 'v', {0})", (K.STRING, K.BIGINT, K.DATE)
    deviations = ("stddev", "stddev_pop", "var_samp", "var_pop")
    return [
        *(_a(K.BIGINT, "COUNT(*)") for _ in range(4)),
        *(_a(K.BIGINT, "COUNT({})", kind, distinct=True) for kind in (*KEYS, *KEYS)),
        _a(K.BIGINT, "COUNT(DISTINCT {}, {})", K.INT, K.STRING, duck=Differs.RAISES, windowed=False),
        _a(K.BIGINT, "count_if({})", K.BOOL, duck="COUNT(CASE WHEN {} THEN 1 END)", windowed=False),
        *(_a(K.BIGINT, "SUM({})", kind, distinct=True) for kind in (K.INT, K.BIGINT, K.INT)),
        *(_a(K.DECIMAL, "SUM({})", K.DECIMAL, distinct=True) for _ in range(2)),
        *(_a(K.DOUBLE, "SUM({})", K.DOUBLE, distinct=True) for _ in range(2)),
        _a(K.DOUBLE, "SUM({})", K.FLOAT),
        _a(K.INEXACT, "SUM({})", K.REAL, duck=Differs.INEXACT_SUM),
        *(_a(K.REAL, "AVG({})", kind, distinct=True) for kind in (K.INT, K.DOUBLE)),
        _a(K.DECIMAL, "AVG({})", K.DECIMAL, duck=Differs.DECIMAL_TYPES, distinct=True),
        _a(K.INEXACT, "AVG({})", K.REAL, duck=Differs.INEXACT_SUM),
        *(_a(K.INEXACT, f"{name}({{}})", K.DOUBLE, duck=Differs.INEXACT_SUM) for name in deviations),
        _a(K.INEXACT, "stddev({})", K.INT, duck=Differs.INEXACT_SUM),
        *(_a(kind, f"{name}({{}})", kind) for kind in COMPARED for name in ("MIN", "MAX")),
        *(_a(kind, "MIN({})", kind, duck=Differs.NESTED_ORDER) for kind in (K.INTS, K.STRUCT)),
        *(_a(kind, "MAX({})", kind, duck=Differs.NESTED_ORDER) for kind in (K.INTS, K.STRUCT)),
        *(_a(kind, "MIN({})", kind, distinct=True) for kind in (K.INT, K.BOOL)),
        *(_a(kind, f"min_by({by_both})", kind, K.INT, duck=Differs.NESTED_ORDER, windowed=False) for kind in by),
        *(_a(kind, f"max_by({by_both})", kind, K.INT, duck=Differs.NESTED_ORDER, windowed=False) for kind in by),
        _a(K.BOOL, "bool_and({})", K.BOOL),
        _a(K.BOOL, "bool_or({})", K.BOOL),
        *(_a(K.INT, f"{name}({{}})", K.INT, distinct=True) for name in ("bit_and", "bit_or", "bit_xor")),
        *(_a(kind, "mode({}, true)", kind, duck=Differs.COLLECTED) for kind in (K.INT, K.STRING, K.DATE)),
        _a(K.STRING, "listagg({0}, '-') WITHIN GROUP (ORDER BY {0})", K.STRING, duck=Differs.COLLECTED, windowed=False),
        _a(K.BIGINT, "regr_count({}, {})", K.INT, K.DOUBLE, distinct=True),
        _a(K.BIGINT, "approx_count_distinct({})", K.STRING, duck=Differs.COLLECTED, windowed=False),
        _a(K.INTS, "sort_array(collect_list({}))", K.INT, duck=Differs.COLLECTED, windowed=False),
        _a(K.STRINGS, "sort_array(collect_set({}))", K.STRING, duck=Differs.COLLECTED, windowed=False),
        *(_a(K.INT, "size(collect_set({}))", kind, duck=Differs.COLLECTED, windowed=False) for kind in KEYS),
        _a(K.INEXACT, "percentile({}, 0.3)", K.INT, duck=Differs.INEXACT_SUM, windowed=False),
        _a(K.INEXACT, "median({})", K.DOUBLE, duck=Differs.INEXACT_SUM, windowed=False),
    ]


AGGREGATES = tuple(_aggregates())


def narrowed(value: Sql, kind: Kind) -> Sql:
    """A call's result; DuckDB's sums of decimals have all 38 digits and no room left for the scale of others."""
    return sql("{}", value, duck="CAST({} AS DECIMAL(30, 4))") if kind is K.DECIMAL else value


@dataclass(frozen=True)
class WindowFunction:
    """A function that only a window has: the kind it gives, its template, the kinds it takes."""

    kind: Kind
    template: str
    holes: tuple[Kind, ...] = ()
    total: bool = True
    """Whether its result depends on the order of rows that tie."""
    framed: bool = False


WINDOW_FUNCTIONS = (
    WindowFunction(K.INT, "ROW_NUMBER()"),
    WindowFunction(K.INT, "RANK()", total=False),
    WindowFunction(K.INT, "DENSE_RANK()", total=False),
    WindowFunction(K.REAL, "PERCENT_RANK()", total=False),
    WindowFunction(K.REAL, "CUME_DIST()", total=False),
    WindowFunction(K.INT, "NTILE(2)"),
    WindowFunction(K.INT, "NTILE(3)"),
    *(WindowFunction(kind, "LAG({})", (kind,)) for kind in SCALAR),
    *(WindowFunction(kind, "LEAD({}, 2, {})", (kind, kind)) for kind in SCALAR),
    *(WindowFunction(kind, "FIRST_VALUE({})", (kind,), framed=True) for kind in SCALAR),
    *(WindowFunction(kind, "LAST_VALUE({})", (kind,), framed=True) for kind in SCALAR),
    *(WindowFunction(kind, "NTH_VALUE({}, 2)", (kind,), framed=True) for kind in SCALAR),
)
ROW_FRAMES = (
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
)
PEER_FRAMES = (
    "",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
)
_DISTANCES = {
    K.INT: ("1", "2", None),
    K.BIGINT: ("1", "3", None),
    K.DATE: ("1", "30", "INTERVAL {} DAY"),
    K.TIMESTAMP: ("INTERVAL '1' MINUTE", "INTERVAL '90' MINUTE", None),
    K.NTZ: ("INTERVAL '1' HOUR", "INTERVAL '24' HOUR", None),
}
"""A short and a long distance of values, of one unit as Spark wants it, and how DuckDB writes them."""


def _value_frames(short: str, long: str, duck: str | None) -> tuple[Sql, ...]:
    frames = (
        "RANGE BETWEEN {0} PRECEDING AND {1} FOLLOWING",
        "RANGE BETWEEN {1} PRECEDING AND CURRENT ROW",
        "RANGE BETWEEN UNBOUNDED PRECEDING AND {0} PRECEDING",
        "RANGE BETWEEN {0} FOLLOWING AND UNBOUNDED FOLLOWING",
        "RANGE BETWEEN {1} PRECEDING AND {0} PRECEDING",
    )
    theirs = [(duck or "{}").format(distance) for distance in (short, long)]
    return tuple(Sql(frame.format(short, long), frame.format(*theirs)) for frame in frames)


VALUE_FRAMES = {kind: _value_frames(*distances) for kind, distances in _DISTANCES.items()}
"""Frames of values near the current one: there is one column to order by, of such a kind."""
