"""Aggregates over rows with every kind of value, each as SQL that Spark and both readings of ours take."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from weirflow.sql.typing.type_syntax import parse_ddl

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = tuple[Any, ...]

SOURCES = {
    "t": parse_ddl(
        "id BIGINT, k INT, i INT, l BIGINT, y TINYINT, x DOUBLE, z DOUBLE, s STRING, b BOOLEAN, d DATE, "
        "m DECIMAL(12, 2), r BINARY, n INT"
    )
}
CONSTANT, SPECIAL, FAR = 2, 3, 4
"""Groups whose doubles are all the same, have NaN and infinities, and are very large or small.

They are all zero: of others, such as 0.1, Spark's rounding makes different averages, and noise of their differences.
"""
_TEXTS = ("", "a", "b", "B", "ab", "a,b", "é", "日本", "\U0001f600", "a\U0001f600", "\uffff", " ", "\0")
_INTS = (0, 1, -1, 7, 7, 2**31 - 1, -(2**31), 255)
_LONGS = (0, 1, -1, 2**63 - 1, -(2**63), 2**40, 2**40)
_SPECIAL = (math.nan, math.inf, -math.inf, 1.5, -0.0, 0.0)
_FAR = (1e-30, -3e-25, 2e30, 5e-18, -7e19, 1.0)
_BYTES = (b"", b"\x00", b"\xff", b"a\x80")

EXACT = (
    *(f"{name}({column})" for name in ("bit_and", "bit_or", "bit_xor") for column in ("i", "l", "y")),
    "bit_and(i) FILTER (WHERE i > 0)",
    *("regr_count(x, z)", "regr_avgx(x, m)", "regr_avgy(m, i)"),
    *(f"mode({column}, true)" for column in ("i", "l", "s", "b", "d", "m")),
    "mode(x, true) FILTER (WHERE x <> 0)",
    *("mode() WITHIN GROUP (ORDER BY i)", "mode() WITHIN GROUP (ORDER BY s DESC)"),
    "mode(i, true) FILTER (WHERE b)",
    *("listagg(s) WITHIN GROUP (ORDER BY s)", "listagg(s, ', ') WITHIN GROUP (ORDER BY s DESC)"),
    "string_agg(s, '|') WITHIN GROUP (ORDER BY i DESC NULLS FIRST, s, id)",
    "listagg(i, '-') WITHIN GROUP (ORDER BY i)",
    "listagg(r, X'2C') WITHIN GROUP (ORDER BY r)",
    "listagg(m, ' ') WITHIN GROUP (ORDER BY x, id)",
    "listagg(s, NULL) WITHIN GROUP (ORDER BY d, id) FILTER (WHERE i > 0)",
    *(f"percentile_disc({share}) WITHIN GROUP (ORDER BY i)" for share in ("0", "0.1", "0.5", "0.75", "1")),
    *(
        "percentile_disc(0.3) WITHIN GROUP (ORDER BY l DESC)",
        "percentile_disc(array(0.1D, 0.6D)) WITHIN GROUP (ORDER BY i)",
    ),
    *("percentile_cont(0.5) WITHIN GROUP (ORDER BY i)", "percentile_cont(0.3) WITHIN GROUP (ORDER BY i DESC)"),
    *("percentile_cont(array(0.25D, 0.9D)) WITHIN GROUP (ORDER BY i DESC)", "percentile(i, 0.4, n)"),
    *("percentile(l, array(0.1D, 0.5D), n)", "median(i)"),
    *("count_if(b)", "some(b)", "every(b)", "bool_or(i > 0)", "try_sum(i)", "try_avg(m)", "try_sum(m)"),
    *("any_value(k)", "first(k + 1)", "last(k, true)", "first(k) IGNORE NULLS"),
    "sort_array(array_agg(i))",
    *(f"approx_count_distinct({column})" for column in ("id", "i", "l", "y", "x", "s", "b", "d", "m", "r")),
    *("approx_count_distinct(id, 0.2)", "approx_count_distinct(l, 0.01D)", "approx_count_distinct(s) FILTER (WHERE b)"),
    *(
        "bitmap_construct_agg(abs(CAST(y AS INT)))",
        "bitmap_construct_agg(id * 7)",
        "bitmap_or_agg(r)",
        "bitmap_and_agg(r)",
    ),
    *("count_min_sketch(l, 0.3D, 0.9D, 1)", "count_min_sketch(y, 0.01D, 0.75D, -5)"),
)
"""Calls whose results are the same to the last bit."""
INEXACT = (
    *(f"{name}(x, z)" for name in ("covar_pop", "covar_samp", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy")),
    *(f"{name}(x, z)" for name in ("regr_sxy", "regr_slope", "regr_intercept", "regr_r2", "regr_slope")),
    *("corr(x, z) FILTER (WHERE k < 2)", "corr(z, id) FILTER (WHERE k < 2)"),
    *("skewness(x)", "kurtosis(x)", "skewness(i)", "kurtosis(m)", "try_avg(x)"),
    *("regr_slope(z, x)", "regr_r2(z, x)", "regr_intercept(i, y)", "regr_sxx(y, m)"),
    "regr_avgx(i, y)",
)
"""Calls whose last digits depend on the order in which Spark adds."""
DISTINCT = ("bit_xor(DISTINCT i)", "regr_count(DISTINCT i, l)", "percentile(DISTINCT i, 0.5)")
DISTINCT_INEXACT = ("covar_samp(DISTINCT i, y)", "skewness(DISTINCT y)", "kurtosis(DISTINCT i)")
LISTED = "listagg(DISTINCT s, ';') WITHIN GROUP (ORDER BY s)"
"""For itself: Spark fails with it beside others that are DISTINCT."""
_FRAMES = ("", "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING")
FRAMED_EXACT = (
    *("bit_and(i)", "bit_or(l)", "bit_xor(y)", "mode(i, true)", "mode(s, true)", "mode(d, true)", "count_if(b)"),
    *("listagg(s, '-')", "listagg(r)", "any_value(i)", "any_value(s) IGNORE NULLS", "regr_count(x, z)"),
    "mode(x, true)",
)
FRAMED_INEXACT = (
    "covar_pop(m, y)",
    "skewness(i)",
    "kurtosis(y)",
    "regr_slope(m, y)",
    "regr_avgx(i, y)",
    "regr_sxx(i, y)",
)
"""No products of ``i``: its values are at both ends of INT; where they cancel in a frame Spark's digits are noise."""


def framed(calls: Sequence[str]) -> list[str]:
    """The calls over frames, one after the other."""
    over = "OVER (PARTITION BY k ORDER BY id {})"
    return [f"{call} {over.format(_FRAMES[at % len(_FRAMES)])}" for at, call in enumerate(calls)]


@dataclass(frozen=True)
class Query:
    """Calls over ``t``, the first ``exact`` of them exact; the columns before them say which row is meant."""

    calls: tuple[str, ...]
    exact: int
    key: str | None = None
    rest: str = ""

    @property
    def keys(self) -> int:
        """How many columns say which row is meant."""
        return 0 if self.key is None else 1

    @property
    def text(self) -> str:
        """As SQL."""
        named = [f"{call} AS c{at}" for at, call in enumerate(self.calls)]
        return f"SELECT {', '.join([*([] if self.key is None else [self.key]), *named])} FROM t{self.rest}"


def grouped(exact: Sequence[str], inexact: Sequence[str] = ()) -> Query:
    """Calls over groups."""
    return Query((*exact, *inexact), len(exact), "k", " GROUP BY k")


def ungrouped() -> Query:
    """Some calls over all rows."""
    exact, inexact = (*EXACT[:9], *EXACT[12:24]), ("covar_pop(i, y)", "kurtosis(m)", "regr_slope(y, i)")
    return Query((*exact, *inexact), len(exact))


def windowed() -> Query:
    """All calls over frames."""
    return Query(tuple(framed((*FRAMED_EXACT, *FRAMED_INEXACT))), len(FRAMED_EXACT), "id")


CALLS = [*EXACT, *INEXACT, *DISTINCT, *DISTINCT_INEXACT, LISTED, *framed((*FRAMED_EXACT, *FRAMED_INEXACT))]
"""All of them, one by one."""
QUERIES = {
    "groups": grouped(EXACT, INEXACT),
    "different values of groups": grouped(DISTINCT, DISTINCT_INEXACT),
    "different texts of groups": grouped([LISTED]),
    "all rows": ungrouped(),
    "frames": windowed(),
}


def ticks(seed: int, count: int, size: int) -> list[list[tuple[Row, int]]]:
    """Ticks of new rows and retractions, in the last of which groups come to nothing."""
    draw = random.Random(seed)
    held: list[Row] = []
    made = []
    for number in range(count):
        new = [_row(draw, number * size + at) for at in range(size)]
        last = number == count - 1
        gone = (
            [row for row in held if row[1] == 1 or draw.random() < 0.7] if last else draw.sample(held, len(held) // 3)
        )
        held = [row for row in held if row not in gone] + new
        made.append([*((row, 1) for row in new), *((row, -1) for row in gone)])
    return made


def _row(draw: random.Random, number: int) -> Row:
    k = draw.choice((0, 0, 1, CONSTANT, SPECIAL, FAR, None))
    plain = lambda: round(draw.uniform(-100, 100), draw.choice((0, 2, 15)))  # noqa: E731 - one line
    doubles = {CONSTANT: lambda: 0.0, SPECIAL: lambda: draw.choice(_SPECIAL), FAR: lambda: draw.choice(_FAR)}
    x, z = doubles.get(k, plain)(), plain()
    values = (
        draw.choice(_INTS) if draw.random() < 0.7 else draw.randrange(-50, 50),
        draw.choice(_LONGS),
        draw.randrange(-128, 128),
        x,
        z,
        draw.choice(_TEXTS),
        draw.random() < 0.5,
        date(1, 1, 1) + timedelta(days=draw.choice((0, 3_652_058, 719_162, 719_162))),
        Decimal(draw.randrange(-(10**6), 10**6)).scaleb(-2),
        draw.choice(_BYTES),
        draw.choice((0, 1, 2, 5, 10**12 % 1000)),
    )
    return (number, k, *(None if draw.random() < 0.12 else value for value in values))
