"""Functions of collections, times and JSON over hostile values: themes of rows and the expressions over them."""
# ruff: noqa: E501 - tables of expressions read better in long lines

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from support import written_times

NAN, INF = float("nan"), float("inf")
TEXT, INT = pa.string(), pa.int32()


def array_of(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind))


@dataclass(frozen=True)
class Theme:
    """Rows, expressions over them that fail for none, expressions of constants that fail, and whole queries."""

    rows: pa.Table
    items: list[str]
    failing: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    compiled: bool = False
    """Whether what Spark compiles gives other values than what it interprets; views have those of the first."""


def table(schema: list[tuple[str, pa.DataType]], pools: dict[str, list[Any]], rows: int, seed: int) -> pa.Table:
    """Rows of values drawn from pools, those of a pool at least once if there is room; ``id`` counts them."""
    chance = random.Random(seed)
    columns = [pa.array(range(rows), pa.int64())]
    for name, kind in schema:
        pool = pools[name]
        drawn = [pool[at] if at < len(pool) else chance.choice(pool) for at in range(rows)]
        chance.shuffle(drawn)
        columns.append(pa.array(drawn, kind))
    return pa.table(columns, names=["id", *(name for name, _ in schema)])


def split_items(text: str) -> list[str]:
    """One expression a line."""
    return [line.strip() for line in text.strip().splitlines() if line.strip()]


_INTS = [
    None,
    [],
    [None],
    [1],
    [1, 2, 3],
    [3, 1, None, 3, 1],
    [None, None, 2],
    [5, 4, 3, 2, 1, 0, -1],
    [2**31 - 1, -(2**31)],
]
_DOUBLES = [
    None,
    [],
    [0.0],
    [-0.0, 0.0, NAN, None, NAN],
    [1.5, -1.5, INF, -INF],
    [NAN],
    [-0.0],
    [None, None],
    [0.0, 1.5],
]
_TEXTS = [None, [], ["a"], ["b", "a", None, "a", ""], ["é", "😀", "e\u0301", "z"], ["", None], ["ab", "a", "b"]]
_NESTED = [None, [], [None], [[1, 2], None, []], [[None], [1], [1, None], [1]], [[3], [2], [1], []]]
_STRUCTS = [
    None,
    [],
    [{"a": 1, "b": "x"}, {"a": 1, "b": None}, {"a": 1, "b": "x"}],
    [{"a": None, "b": ""}, {"a": 2, "b": "y"}],
    [None, {"a": 3, "b": "z"}],
]
_MAPS = [None, {}, {"a": 1}, {"b": 2, "c": None}, {"": 0, "😀": -1}]
_OTHER_MAPS = [None, {}, {"x": 1}, {"y": None, "z": 3}]

COLLECTION_SCHEMA = [
    ("ai", array_of(INT)),
    ("bi", array_of(INT)),
    ("ad", array_of(pa.float64())),
    ("bd", array_of(pa.float64())),
    ("at", array_of(TEXT)),
    ("bt", array_of(TEXT)),
    ("aa", array_of(array_of(INT))),
    ("ab", array_of(array_of(INT))),
    ("ast", array_of(pa.struct([("a", INT), ("b", TEXT)]))),
    ("m", pa.map_(TEXT, INT)),
    ("m2", pa.map_(TEXT, INT)),
    ("i", INT),
    ("j", INT),
    ("n", INT),
    ("d", pa.float64()),
    ("t", TEXT),
    ("pairs", TEXT),
    ("ki", array_of(INT)),
    ("c", INT),
]
_POOLS = {
    "ai": _INTS,
    "bi": _INTS,
    "ad": _DOUBLES,
    "bd": _DOUBLES,
    "at": _TEXTS,
    "bt": _TEXTS,
    "aa": _NESTED,
    "ab": _NESTED,
    "ast": _STRUCTS,
    "m": [None if one is None else list(one.items()) for one in _MAPS],
    "m2": [None if one is None else list(one.items()) for one in _OTHER_MAPS],
    "i": [None, 1, 2, -1, -3, 7, -9, 3],
    "j": [None, 0, -1, 1, 2, 5, 2**31 - 1, -(2**31)],
    "n": [None, 0, 1, 3, 10],
    "d": [None, 0.0, -0.0, NAN, 1.5, INF],
    "t": [None, "", "a", "b", "😀", "z"],
    "pairs": [None, "", "a:1,b:2", "a", "k:v:w,x", ":,y:", "é:😀"],
    "ki": [None, [], [1, 2], [3], [7, 8, 9]],
    "c": [None, -3, 0, 2, 100],
}
COLLECTIONS = table(COLLECTION_SCHEMA, _POOLS, 60, seed=18)

ARRAYS = split_items("""
array_append(ai, c)
array_append(at, NULL)
array_append(ad, d)
array_append(aa, ai)
array_prepend(ai, c)
array_prepend(at, t)
array_prepend(ast, named_struct('a', c, 'b', t))
array_insert(ai, i, c)
array_insert(at, i, t)
array_insert(ai, -2, 9)
array_insert(aa, 3, ai)
array_insert(at, i, NULL)
array_compact(ai)
array_compact(at)
array_compact(aa)
array_compact(ast)
array_distinct(ai)
array_distinct(at)
array_distinct(aa)
array_distinct(ast)
array_distinct(ad)
array_union(ai, bi)
array_union(at, bt)
array_union(aa, ab)
array_union(ad, bd)
array_union(ai, array(1, NULL))
array_intersect(ai, bi)
array_intersect(at, bt)
array_intersect(aa, ab)
array_intersect(ad, bd)
array_except(ai, bi)
array_except(at, bt)
array_except(aa, ab)
array_except(ad, bd)
arrays_overlap(ai, bi)
arrays_overlap(at, bt)
arrays_overlap(aa, ab)
arrays_overlap(ad, bd)
array_remove(ai, c)
array_remove(ai, 1)
array_remove(at, t)
array_remove(aa, ai)
array_remove(ad, d)
array_position(ai, c)
array_position(ai, 3)
array_position(at, t)
array_position(aa, ai)
array_position(ad, d)
array_repeat(ai, n)
array_repeat(t, n)
array_repeat(c, 2)
array_repeat(d, j % 3)
array_sort(ai)
array_sort(at)
array_sort(ad)
array_sort(aa)
array_sort(ast)
arrays_zip(ai, bi)
arrays_zip(ai, at, aa)
arrays_zip(at, array(1, 2))
slice(ai, i, n)
slice(at, -3, 2)
slice(aa, 2, n)
sequence(c, n)
sequence(c, 10, if(c <= 10, 4, -4))
sequence(CAST(n AS TINYINT), CAST(3 AS TINYINT))
sequence(CAST(n AS BIGINT), -2L, -1L)
sequence(9223372036854775805L, 9223372036854775807L)
sequence(DATE'2024-01-31', DATE'2024-07-02', INTERVAL 1 MONTH)
sequence(DATE'2024-07-02', date_add(DATE'2024-07-02', -n), INTERVAL -1 DAY)
sequence(DATE'2024-07-02', date_add(DATE'2024-07-02', c))
sequence(date_add(DATE'2020-02-28', n), DATE'2027-02-28', INTERVAL 1 YEAR)
sequence(TIMESTAMP'2024-03-10 00:00:00', TIMESTAMP'2024-03-10 05:00:00', INTERVAL 1 HOUR)
sequence(TIMESTAMP_NTZ'2024-03-31 01:00:00', TIMESTAMP_NTZ'2024-09-10 05:00:00', INTERVAL 1 MONTH)
sequence(TIMESTAMP_NTZ'2024-03-31 01:00:00', TIMESTAMP_NTZ'2024-04-02 05:00:00')
get(ai, j)
get(at, 1)
get(aa, j)
element_at(m, t)
try_element_at(ai, i)
try_element_at(m, t)
flatten(aa)
reverse(ai)
reverse(at)
concat(ai, bi)
concat(at, array('x'), bt)
cardinality(ai)
size(m)
array_size(at)
sort_array(at)
sort_array(ai, false)
array_max(at)
array_min(ad)
map_entries(m)
map_keys(m)
map_contains_key(m, t)
map_contains_key(m, 'a')
map_concat(m, m2)
map_concat(m)
map_concat()
map_from_arrays(ki, array_repeat('v', size(ki)))
map_from_arrays(array_distinct(array_compact(at)), transform(array_distinct(array_compact(at)), x -> length(x)))
map_from_entries(map_entries(m))
map_from_entries(array_distinct(transform(ki, x -> struct(x, x))))
str_to_map(pairs)
str_to_map(pairs, ',')
str_to_map('a=1;b', ';', '=')
""")
ARRAY_FAILURES = (
    "array_insert(array(1, 2), 0, 9)",
    "slice(array(1, 2), 0, 1)",
    "slice(array(1, 2), 1, -1)",
    "sequence(0L, 9223372036854775807L)",
    "sequence(1, 5, -1)",
    "sequence(1, 5, 0)",
    "array_repeat(1, 2147483647)",
    "map_from_arrays(array(1, 2), array(1))",
    "map_from_arrays(array(1, NULL), array(1, 2))",
    "map_from_arrays(array(1, 1), array(1, 2))",
    "map_from_entries(array(struct(1, 2), struct(1, 3)))",
    "map_from_entries(array(struct(1, 2), struct(CAST(NULL AS INT), 3)))",
    "map_concat(map(1, 2), map(1, 3))",
    "str_to_map('a:1,a:2')",
    "try_element_at(array(1), 0)",
)

LAMBDAS = split_items("""
transform(ai, x -> x % 7 + coalesce(c, 0))
transform(ai, (x, i) -> coalesce(x % 5, 0) + i)
transform(at, X -> upper(x) || t)
transform(aa, x -> transform(x, y -> y % 3 + size(x)))
transform(aa, x -> size(x) + coalesce(c, 1))
transform(ast, s -> s.b)
transform(ast, s -> named_struct('k', s.a, 'n', n))
transform(array(1, 2, 3), x -> x * n)
transform(array(1, 2), x -> transform(array(10, 20), y -> x * y))
transform(ai, c -> c % 2)
transform(map_entries(m), e -> concat(e.key, '=', coalesce(e.value, 0)))
transform(sequence(1, n), x -> CASE WHEN x > 0 THEN 10 div x END)
transform(ki, x -> IF(x = 3, NULL, 12 / (x - 3)))
transform(ad, x -> x = d)
filter(ai, x -> x > 1)
filter(ai, (x, i) -> i % 2 = 0)
filter(at, x -> x IS NULL OR length(x) > 1)
filter(aa, x -> exists(x, y -> y = 1))
filter(ast, s -> s.a = 1 AND s.b IS NOT NULL)
filter(ki, x -> x > c)
exists(ai, x -> x > 1)
exists(ai, x -> x IS NULL)
exists(at, x -> x = t)
exists(aa, x -> forall(x, y -> y > 0))
exists(array(1, 0, 2), x -> 1 / nullif(x, 2) > 0)
exists(array(2, 0), x -> 2 / x = 1)
forall(ai, x -> x > 0)
forall(ki, x -> x > 0)
forall(at, x -> length(x) < 3)
forall(array(2, 0), x -> 2 / x > 1)
aggregate(ki, 0, (acc, x) -> acc + x)
aggregate(ki, 0, (acc, x) -> acc + x, acc -> acc * 10)
aggregate(ki, CAST(n AS BIGINT), (acc, x) -> acc * 2 + x)
aggregate(at, '', (acc, x) -> concat(acc, coalesce(x, '?'), t))
aggregate(ai, named_struct('s', 0L, 'n', 0), (acc, x) -> named_struct('s', acc.s + coalesce(x, 0), 'n', acc.n + 1), acc -> acc.s / (acc.n + 1))
reduce(aa, array(0), (acc, x) -> array_append(acc, coalesce(size(x), -1)))
reduce(ki, 1, (a, b) -> a * b, a -> a + coalesce(c, 0))
zip_with(ai, bi, (x, y) -> coalesce(x, 0) % 9 + y % 9)
zip_with(ai, at, (x, y) -> (y, x))
transform(ast, s -> struct(s.a, s.b, s))
transform(ast, s -> struct(s.a + 1, n, s.b AS z))
zip_with(ki, array(1, 2), (x, y) -> concat_ws('-', CAST(x AS STRING), CAST(y AS STRING), t))
array_sort(ai, (l, r) -> CASE WHEN l IS NULL THEN -1 WHEN r IS NULL THEN 1 WHEN l < r THEN 1 WHEN l > r THEN -1 ELSE 0 END)
array_sort(at, (l, r) -> coalesce(length(l), 0) - coalesce(length(r), 0))
array_sort(ast, (l, r) -> CASE WHEN l.a < r.a THEN -1 ELSE 1 END)
array_sort(transform(sequence(1, 200), x -> x * 7919 % 101), (l, r) -> CASE WHEN l % 10 < r % 10 THEN -1 WHEN l % 10 > r % 10 THEN 1 ELSE 0 END)
array_sort(transform(sequence(1, 90), x -> x * 17 % 31), (l, r) -> l % 5 - r % 7)
array_sort(transform(sequence(1, 25), x -> x * 17 % 31), (l, r) -> 1)
map_filter(m, (k, v) -> v > 0)
map_filter(m, (k, v) -> k = t OR v IS NULL)
transform_values(m, (k, v) -> concat(k, ':', coalesce(v, n)))
transform_keys(m, (k, v) -> concat(k, '!'))
transform_keys(m, (k, v) -> length(k) * 100 + coalesce(v, 9))
map_zip_with(m, m2, (k, a, b) -> coalesce(a, 0) + coalesce(b, 0))
map_zip_with(m, map('a', t, 'q', 'x'), (k, a, b) -> concat_ws(',', k, CAST(a AS STRING), b))
size(filter(split(pairs, ','), x -> x LIKE '%:%'))
array_join(transform(ki, x -> CAST(x + 1 AS STRING)), '|')
""")
LAMBDA_FAILURES = (
    "transform(array(1, 0), x -> 1 / x)",
    "exists(array(0, 1), x -> 1 / x > 0)",
    "aggregate(array(1, 2), 2147483647, (a, x) -> a + x)",
    "transform_keys(map(1, 1, 2, 2), (k, v) -> 1)",
    "transform_keys(map(1, 1), (k, v) -> CAST(NULL AS INT))",
)

_MICRO = 1_000_000


def _moments() -> list[int | None]:
    """Around changes of clocks, ends of months and of the calendar."""
    noted = [
        dt.datetime(2024, 3, 10, 7, tzinfo=dt.UTC),
        dt.datetime(2024, 11, 3, 6, tzinfo=dt.UTC),
        dt.datetime(1883, 11, 18, 17, tzinfo=dt.UTC),
        dt.datetime(2024, 2, 29, 23, 59, 59, tzinfo=dt.UTC),
        dt.datetime(2023, 12, 31, 12, tzinfo=dt.UTC),
        dt.datetime(1, 1, 2, 0, 0, tzinfo=dt.UTC),
        dt.datetime(9999, 12, 30, 0, 0, tzinfo=dt.UTC),
        dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    ]
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    starts = [(one - epoch) // dt.timedelta(microseconds=1) for one in noted]
    found = [start + shift for start in starts for shift in (-3_600 * _MICRO, -1, 0, 1_234_567, 12 * 3_600 * _MICRO)]
    return [None, *found, -1_500_000_000_000 * _MICRO, 4_000_000_000_000 * _MICRO]


_WRITTEN = """
2024-03-10 02:30:00|2024-11-03 01:30:00|2024-1-5 1:02:03|20240305|20240229|20230229|202403051|2024-03-05|+12024-03-05|-0044-03-15
0000-01-01|-0000-01-01|+2024-01-01|12024-01-01|2024-13-01|2024-00-10|2024-04-31|05 Mar 2024|5 mar 24|05 March 2024|29 feb 2023
1:04 pm|12:00 AM|12:30 PM|13:04 pm|0:10 AM|23:59:59.9|23:59:59.123456|23:59:59.1234567|23:59:60|24:00:00|10:00:00.| 2024-03-05
2024-03-05T10:11:12|2024-03-05t10:11:12|2024-03-05 10|2024-03-05 1|20240305101112|20240305101112123|x||٢٠٢٤-03-05|2024-03-05x
99|1999|-5|+5|0005|24|7|2024/3/5 7|2024 2024|2024 2023|05.03.2024 10h11
2024-03-10 02:30:00+02|2024-03-10 02:30:00-0530|2024-03-10 02:30:00+05:30|2024-03-10 02:30:00Z|2024-03-10 02:30:00z|2024-11-03 01:30:00+00
2024-03-10 02:30:00+0000|2024-03-10 02:30:00+00:00|2024-03-10 02:30:00+000030|2024-03-10 02:30:00-01:02:03|2024-03-10 02:30:00-010203
2024-03-10 02:30:00+18:00|2024-03-10 02:30:00+18:01|2024-03-10 02:30:00+24:00|2024-03-10 02:30:00+60:00|2024-03-10 02:30:00+05:60|2024-03-10 02:30:00+5
2024-03-10 02:30:00GMT|2024-03-10 02:30:00gmt+5|2024-03-10 02:30:00GMT-05:30|2024-03-10 02:30:00GMT+5:30|2024-03-10 02:30:00GMT+1:99|2024-03-10 02:30:00GMT+01:99
2024-03-10 02:30:00GMT+19|2024-03-10 02:30:00GMT+|2024-03-10 02:30:00GMT+12:30:15|2024-03-10 02:30:00+|2024-03-10 02:30:00 +0100 +0100|2024-03-10 02:30:00 +0100 +0200
2024-03-10 02:30:00٠|2024-03-10 02:30:00+٠٥:٠٠|0000-01-01 00:00:00-18:00|2024-03-10 02:30:00-00|2024-03-10 02:30:00-0000|2024-03-10 02:30:00-00:00
"""
_PATTERNS = """
yyyy-MM-dd HH:mm:ss|yyyy-M-d H:mm:ss|yyyyMMdd|yyyy-MM-dd|dd MMM yyyy|d MMM yy|dd MMMM yyyy|h:mm a|hh:mm a|K:mm a|k:mm:ss
HH:mm:ss.S|HH:mm:ss.SSSSSS|HH:mm:ss[.SSSSSSSSS]|yyyy-MM-dd'T'HH:mm:ss|yyyy-MM-dd[ HH]|yyyyMMddHHmmss|yyyyMMddHHmmssSSS|yy|d|H|h|a|yyyy/M/d H
yyyy yyyy|dd.MM.yyyy HH'h'mm|yyyy-MM-dd'x'|''yyyy
yyyy-MM-dd HH:mm:ssX|yyyy-MM-dd HH:mm:ssXX|yyyy-MM-dd HH:mm:ssXXX|yyyy-MM-dd HH:mm:ssXXXX|yyyy-MM-dd HH:mm:ssXXXXX|yyyy-MM-dd HH:mm:ss[XXX]
yyyy-MM-dd HH:mm:ssx|yyyy-MM-dd HH:mm:ssxx|yyyy-MM-dd HH:mm:ssxxx|yyyy-MM-dd HH:mm:ssxxxx|yyyy-MM-dd HH:mm:ssxxxxx|yyyy-MM-dd HH:mm:ss[ Z][ xx]
yyyy-MM-dd HH:mm:ssZ|yyyy-MM-dd HH:mm:ssZZZ|yyyy-MM-dd HH:mm:ssZZZZ|yyyy-MM-dd HH:mm:ssZZZZZ|yyyy-MM-dd HH:mm:ssO|yyyy-MM-dd HH:mm:ssOOOO|yyyy-MM-dd HH:mm:ss[X][O]
"""
WRITTEN = [text for line in _WRITTEN.strip("\n").split("\n") for text in line.split("|")]
PATTERNS = [text for line in _PATTERNS.strip().split("\n") for text in line.split("|")]
_FORMATS = """
yyyy-MM-dd HH:mm:ss.SSSSSS|y yy yyy yyyy yyyyy yyyyyy|M MM MMM MMMM L LL LLL LLLL|d dd D DD DDD|H HH h hh k kk K KK|m mm s ss S SSS SSSSSSSSS
a|E EE EEE EEEE|Q QQ QQQ QQQQ q qq qqq qqqq|[yyyy][MM]|'T'yyyy''MM '' ' 'd|dd/MM/yyyy é😀
X XX XXX XXXX XXXXX|x xx xxx xxxx xxxxx|Z ZZ ZZZ ZZZZ ZZZZZ|O OOOO|yyyy-MM-dd'T'HH:mm:ss.SSSXXX|'X'HH
"""
FORMATS = [text for line in _FORMATS.strip().split("\n") for text in line.split("|")]


def _quoted(text: str) -> str:
    return '"' + text + '"'


TIME_SCHEMA = [
    ("at", pa.timestamp("us", "UTC")),
    ("later", pa.timestamp("us", "UTC")),
    ("d", pa.date32()),
    ("s", TEXT),
    ("name", TEXT),
    ("y", INT),
    ("mo", INT),
    ("dy", INT),
    ("h", INT),
    ("mi", INT),
    ("sec", pa.decimal128(8, 6)),
    ("n", pa.int64()),
    ("x", pa.float64()),
    ("unit", TEXT),
]
_TIME_POOLS: dict[str, list[Any]] = {
    "at": _moments(),
    "later": _moments()[::-1],
    "d": [None, 0, -1, 19789, 19790, 19782, 19662, -719162, 2932896, 19800, 365, -141428],
    "s": [None, *WRITTEN],
    "name": [None, "MO", "tue", "Wednesday", "thu", "FR", "sa", "SUNDAY", "mon"],
    "y": [None, 2024, 1970, 1, 9999, -44, 2023],
    "mo": [None, 1, 2, 3, 11, 12],
    "dy": [None, 1, 10, 28, 3],
    "h": [None, 0, 1, 2, 23],
    "mi": [None, 0, 30, 59],
    "sec": [None, Decimal(0), Decimal("59.999999"), Decimal(60), Decimal("1.5")],
    "n": [None, 0, -1, 1, 1_709_251_199, -62_135_596_800, 253_402_300_799, 10**12],
    "x": [None, 0.5, -1.9999999, NAN, INF, 1e300, -1e300, 1_709_251_199.25],
    "unit": [None, "year", "MON", "week", "day", "hour", "QUARTER", "nope", "", "SECOND", "dd"],
}
TIME_ROWS = table(TIME_SCHEMA, _TIME_POOLS, 110, seed=4)
TIMES = [
    *(f"date_format(at, {_quoted(one)})" for one in FORMATS),
    *(f"try_to_timestamp(s, {_quoted(one)})" for one in PATTERNS),
    *split_items("""
try_to_date(s, 'yyyy-MM-dd')
try_to_date(s, 'yyyyMMdd')
date_format(d, 'EEEE yyyy-MM-dd HH')
date_format(CAST(at AS TIMESTAMP_NTZ), 'yyyy-MM-dd HH:mm')
date_format(CAST(at AS TIMESTAMP_NTZ), 'yyyy-MM-dd HH:mm XXX')
date_format(d, 'yyyy O')
from_unixtime(n, 'yyyy-MM-dd HH:mm Z')
unix_timestamp(date_format(at, 'yyyy-MM-dd HH:mm:ss xxx'), 'yyyy-MM-dd HH:mm:ss xxx')
to_timestamp_ntz(date_format(at, 'dd.MM.yyyy HH:mm:ss XXXXX'), 'dd.MM.yyyy HH:mm:ss XXXXX')
to_date(date_format(later, 'yyyy-MM-dd HH:mm xx'), 'yyyy-MM-dd HH:mm xx')
try_to_date(s, 'yyyy-MM-dd HH:mm:ssXXX')
from_unixtime(n)
from_unixtime(n, 'yyyy-DDD HH')
from_unixtime(1700000000)
unix_timestamp(at)
unix_timestamp(d)
unix_timestamp(date_format(at, 'yyyy-MM-dd HH:mm:ss.SSS'), 'yyyy-MM-dd HH:mm:ss.SSS')
to_unix_timestamp(later)
unix_timestamp(date_format(at, 'yyyy-MM-dd HH:mm:ss'))
to_unix_timestamp(date_format(at, 'yyyy/MM/dd HH'), 'yyyy/MM/dd HH')
to_timestamp(date_format(at, 'dd.MM.yyyy HH:mm:ss.SSS'), 'dd.MM.yyyy HH:mm:ss.SSS')
to_timestamp_ntz(date_format(at, 'dd.MM.yyyy HH:mm:ss.SSS'), 'dd.MM.yyyy HH:mm:ss.SSS')
to_timestamp_ltz(date_format(at, 'dd.MM.yyyy HH:mm'), 'dd.MM.yyyy HH:mm')
to_date(date_format(at, 'dd.MM.yyyy'), 'dd.MM.yyyy')
from_utc_timestamp(at, 'America/New_York')
from_utc_timestamp(at, 'Asia/Kolkata')
from_utc_timestamp(d, '+05:30')
to_utc_timestamp(at, 'America/New_York')
to_utc_timestamp(later, 'Europe/Berlin')
to_utc_timestamp(at, 'UTC')
convert_timezone('America/New_York', 'Europe/Berlin', CAST(at AS TIMESTAMP_NTZ))
convert_timezone('UTC', 'Asia/Kolkata', TIMESTAMP_NTZ'2024-03-10 02:30:00')
make_timestamp(y, mo, dy, h, mi, sec)
make_timestamp_ltz(y, mo, dy, h, mi, sec)
make_timestamp_ntz(y, mo, dy, h, mi, sec)
make_timestamp(y, mo, dy, h, mi, 7)
make_timestamp(y, mo, dy, h, mi, sec, 'Europe/Berlin')
try_make_timestamp(y, mo, dy * 3, h * 2, mi + 1, sec)
try_make_timestamp_ntz(y, mo + 1, dy, h, mi, sec * 2)
try_make_timestamp_ltz(y, mo, dy, h, mi, sec + 1)
next_day(d, name)
next_day(at, 'FRIDAY')
next_day(d, 'mo')
months_between(at, later)
months_between(at, later, false)
months_between(d, at)
dayname(d)
dayname(at)
monthname(d)
monthname(at)
timestamp_seconds(n)
timestamp_seconds(x)
timestamp_seconds(dy)
timestamp_seconds(sec)
at + make_dt_interval(dy, h, mi, sec)
make_dt_interval(-h, mi) < INTERVAL '1' HOUR
date_part('SECOND', at)
date_part('seconds', CAST(at AS TIMESTAMP_NTZ))
extract(SECOND FROM at)
extract(YEAROFWEEK FROM d)
extract(DAYOFWEEK_ISO FROM at)
extract(DOW FROM at)
datepart('doy', at)
trunc(d, unit)
date_trunc(unit, at)
trunc(at, 'quarter')
date_trunc('week', d)
try_to_timestamp(CAST(y AS STRING), 'y')
try_to_timestamp(CAST(y AS STRING), 'yyy')
"""),
]
TIME_FAILURES = (
    "to_timestamp('x', 'yyyy')",
    "to_date('x', 'yyyy')",
    "to_timestamp('2024 +25:00', 'yyyy xxx')",
    "unix_timestamp('2024 GMT+', 'yyyy O')",
    "unix_timestamp('x')",
    "next_day(DATE'2024-01-01', 'xx')",
    "make_timestamp(2024, 13, 1, 1, 1, 1)",
    "make_timestamp(2024, 2, 30, 1, 1, 1)",
    "make_timestamp(2024, 1, 1, 24, 1, 1)",
    "make_timestamp(2024, 1, 1, 1, 1, 61)",
    "make_timestamp(2024, 1, 1, 1, 1, 60.5)",
)

_DOCUMENTS = [
    None, "", "  ", "null", "1", "1x", "1 x", "truex", "true", '"x"', '"x"y', "[]", "{}", "[1,2,3]", "[1, [2], {\"a\": 3}] x", "[1,2", "[1,]",
    '{"a":1}', '{"a":1} x', '{"a":1,"a":2}', '{"a":1,"a":"x"}', '{"a":null}', '{"a":"x"}', '{"a":1.10}', '{"a":1E5}', '{"a":1e400}', '{"a":-0}', '{"a":-0.0}',
    '{"a":123456789012345678901234567890}', '{"a":{"b":[1, 2.50, "q"]},"c":true}', '{"a":[{"b":1},{"b":"z"}]}', '{"a":[{"b":"z"}]}', '{"a":[{"b":null},{"b":[1]}]}',
    '{"a":[[1,2],[3]]}', '{"a":[["x"]]}', '{"a":[]}', '{"a":["x"]}', '{"a":[null]}', '{"a":"\\u00e9\\n\\/"}', '{"a":"\\ud83d\\ude00"}', '{"a":"tab\there"}', "{'a':'it\"s'}", '{"a":"it\\\'s"}',
    '{a:1}', '{"a":01}', '{"a":NaN}', '{"a":Infinity}', '{"a":-Infinity}', '{"a":INF}', '{"a":+1}', '{"a":.5}', '{"a":1.}', '{"a":1,}', '{"a":1', '{"a"', '{"a":1,"b":tru}', '{"a" :\n { "b" : 1 } }',
    '{"b":1,"a":{"d":1,"c":2}}', '{"b":[],"a":1,"b":2,"0":3}', '{"a":{"b":"bad","d":2.5},"b":7}', '{"a":true,"b":"true"}', '{"a":"NaN","b":"-INF"}', '{"a":2147483648,"b":9223372036854775808}', '{"a":["1",2,null,true,{"x":1}]}', '{"a":{"b":1},"a":{"c":2}}',
    '{"a":1,"a":null}', '{"a":"2024-03-10 02:30:00","b":"2024-03-10"}', '{"a":"2024-03-10T02:30:00.123456789+05:30","b":"2024-3-1T25"}', '{"a":"10/03/2024 02:30 +0130","b":"10/03/2024"}',
    '{"a":"2024-11-03 01:30:00","b":"2024"}', '{"a":"2024-03-10T02:30:00GMT-02:00","b":"2024-03-10GMT"}', '{"a":"x","b":"2024-02-30"}', '{"a":1709251199,"b":19000}', '{"a":9223372036854775807,"b":"19000"}', '{"a":9223372036854775808,"b":"-150000"}',
    '{"a":"1709251199","b":"-719200"}', '{"a":"","b":""}', '{"a":1.5,"b":"+7"}', '{"a":"0000-01-01","b":"-0044-03-15"}', '{"a":"+12024-01-01 10:00:00Z","b":"+12024-01-01"}', '{"a":"1,234.565","b":"1e3"}', '{"a":12345678.905,"b":-0.005}',
    '{"a":1e-400,"b":"0e99999"}', '{"a":" 1","b":"1."}', '{"a":[1.005,"2.5",null],"b":99999999999}', '{"a":["2024-01-01","x"],"b":"-2000000"}', '{"a":"2024-01-01 10:00","b":"2024-01-01 10:00:00 UTC"}', '{"a":"Mar","b":"2147483648"}',
    '{"a":"2024-03-10 02:30:00 America/New_York","b":"2024-11-03 01:30:00 America/New_York"}', '{"a":"2024-07-01T10:00:00Europe/Berlin","b":"1883-11-18 12:00:00 America/New_York"}',
    '{"a":"2024-01-01 10:00:00 Etc/GMT+5","b":"2024-01-01 10:00:00 Asia/Ho_Chi_Minh"}', '{"A":1,"b":{"B":2}}', '[{"a":1}]', '{"a":"\\x"}', '{"":1,"a b":2,"a.b":3}', '{"a":[1,"x",2],"b":1}', '{"a":[{"b":1,"d":0.5},{"b":"x"},null]}', "\ufeff{}", '{"a":{"😀":"x😀"},"b":"😀"}', '{"a":0.1e1,"b":100000000.5}', '{"a":"\\u001f\x7f"}',
]  # fmt: skip
JSON_SCHEMA = [
    ("j", TEXT),
    ("i", pa.int64()),
    ("t", TEXT),
    ("x", pa.float64()),
    ("f", pa.float32()),
    ("b", pa.bool_()),
    ("dec", pa.decimal128(38, 12)),
    ("bin", pa.binary()),
    ("d", pa.date32()),
    ("at", pa.timestamp("us", "UTC")),
    ("ai", array_of(INT)),
    ("st", pa.struct([("a", INT), ("b c", TEXT)])),
    ("m", pa.map_(TEXT, pa.float64())),
    ("mi", pa.map_(INT, TEXT)),
]
_JSON_POOLS: dict[str, list[Any]] = {
    "j": _DOCUMENTS,
    "i": [None, 0, -1, 2**63 - 1, -(2**63)],
    "t": [None, "", 'a"\\/\n\t\b\x01\x1f\x7f', "é😀\u2028"],
    "x": [None, 0.0, -0.0, NAN, INF, -INF, 1e20, 1e-5, 12345678.9, 0.001, 2.0**-44, 1.1],
    "f": [None, 0.0, -0.0, NAN, INF, 1.1, 1e10, 3.4e38],
    "b": [None, True, False],
    "dec": [None, Decimal(0), Decimal("1.5"), Decimal("-0.000000000001"), Decimal("12345678901234567890.123456789012")],
    "bin": [None, b"", b"\x00\xff", b"abc"],
    "d": [None, 0, -719163, 2932897, -800000, 19782],
    "at": _moments(),
    "ai": _INTS,
    "st": [None, {"a": None, "b c": None}, {"a": 1, "b c": "x"}],
    "m": [None, [], [("a", 1.5), ('"', None)], [("x", NAN)]],
    "mi": [None, [], [(1, "x"), (-2, None)]],
}
JSON_ROWS = table(JSON_SCHEMA, _JSON_POOLS, 112, seed=9)
_PATHS = [
    "$",
    "$.a",
    "$.a.b",
    "$.a[0]",
    "$.a[*]",
    "$.a[*].b",
    "$.a[0][*]",
    "$.a[0].b",
    "$[1]",
    "$[*]",
    "$['a b']",
    "$['a.b']",
    "$.c",
    "$[2].a",
]
_SCHEMAS = [
    "1", "-9223372036854775808", "9223372036854775808", "1.5", "true", "null", "[]", "{}", "[{}]", "[[]]", "[null, 1]", "[1, 2.5]", "[1, true]", "[1, 99999999999999999999]",
    "[99999999999999999999, 0.5]", "[1, 1e5]", "{'b': 1, 'a': '', 'B': null, '': 2, 'c d': [], '😀': {}}", "{'a': 1, 'a': 'x'}", "[{'a': 1}, {'a': 2.5, 'b': [1]}, {'b': ['x']}]",
    "123456789012345678901234567890123456789", "[[1], [2.5], []]", "[{'a': {'b': null}}, {'a': 1}]", "{'a': {'x': {}}, 'b': [{}]}", "{'a`b': NaN, '1': 1, '1a': 0}", "'x'", "[1, {}]", "{'a': 1} x", "'2024-01-01'",
]  # fmt: skip
JSON = [
    *(f'get_json_object(j, "{path}")' for path in _PATHS),
    *split_items("""
json_array_length(j)
json_object_keys(j)
from_json(j, 'a INT')
from_json(j, 'a STRING, b INT')
from_json(j, 'a DOUBLE, b BIGINT')
from_json(j, 'a BOOLEAN, b BOOLEAN')
from_json(j, 'a TINYINT, b DOUBLE, A SMALLINT')
from_json(j, 'a ARRAY<INT>, b INT')
from_json(j, 'a ARRAY<STRING>')
from_json(j, 'a ARRAY<ARRAY<BIGINT>>')
from_json(j, 'a STRUCT<b: INT, d: DOUBLE>, b INT')
from_json(j, 'a ARRAY<STRUCT<b: INT, d: DOUBLE>>')
from_json(j, 'struct<a: struct<b: array<string>>, c: boolean>')
from_json(j, 'a INT').a + 1L
from_json(j, 'a TIMESTAMP, b DATE')
from_json(j, 'a DATE, b TIMESTAMP')
from_json(j, 'a TIMESTAMP_NTZ, b TIMESTAMP_NTZ')
from_json(j, 'a DECIMAL(10, 2), b DECIMAL(38, 18)')
from_json(j, 'a DECIMAL(3, 0), b DECIMAL(5, 5)')
from_json(j, 'a ARRAY<DATE>, b DATE')
from_json(j, 'a ARRAY<DECIMAL(4, 2)>')
from_json(j, 'a TIMESTAMP, b DATE', map('timestampFormat', 'dd/MM/yyyy HH:mm xx', 'dateFormat', 'dd/MM/yyyy'))
from_json(j, 'a TIMESTAMP, b DATE', map('TIMESTAMPFORMAT', "yyyy-MM-dd HH:mm:ss", 'dateformat', 'yyyy'))
from_json(j, 'a DATE, b STRING', map('dateFormat', "yyyy-MM-dd HH:mm:ss"))
to_json(named_struct('d', d, 'at', at), map('dateFormat', 'dd/MM/yyyy', 'timestampFormat', 'EEE dd MMM yyyy HH:mm:ss.SSS XXX'))
to_json(named_struct('at', at, 'n', i, 'ntz', CAST(at AS TIMESTAMP_NTZ)), map('timestampFormat', 'yyyy"\\\\"', 'ignoreNullFields', 'FALSE'))
to_json(array(named_struct('i', i, 's', st)), map('ignoreNullFields', 'false'))
to_json(named_struct('i', i, 't', t, 'x', x, 'f', f, 'b', b))
to_json(named_struct('dec', dec, 'bin', bin, 'd', d, 'at', at, 'ntz', CAST(at AS TIMESTAMP_NTZ)))
to_json(struct(ai, st, m, mi))
to_json(ai)
to_json(m)
to_json(mi)
to_json(st)
to_json(array(st, NULL))
to_json(array(at))
to_json(map('k', array(st)))
to_json(from_json(j, 'a STRING, b DOUBLE'))
"""),
    *(f"schema_of_json({_quoted(one)})" for one in _SCHEMAS),
]

JSON_QUERIES = (
    "SELECT id, json_tuple(j, 'a', 'b', 'a', 'z') AS (x, y, z, w) FROM t",
    "SELECT id, json_tuple(j, 'a') FROM t",
    "SELECT id, json_tuple(j, CASE WHEN i > 0 THEN 'a' WHEN i < 0 THEN 'b' END, 'a', concat('', 'c')) FROM t",
    "SELECT id, k, CAST(n AS STRING) AS m FROM t LATERAL VIEW json_tuple(j, CAST(NULL AS STRING), lower(upper('a'))) v AS k, n",
    "SELECT id, k, length(l) AS n FROM t LATERAL VIEW json_tuple(j, 'a', 'b') v AS k, l WHERE k IS NOT NULL",
    "SELECT id, c0 FROM t LATERAL VIEW OUTER json_tuple(j, 'a', 'b') v",
)
LAMBDA_QUERIES = (
    "SELECT filter(ai, x -> x > 1) AS f, count(*) AS n FROM t GROUP BY filter(ai, x -> x > 1)",
    "SELECT n, transform(array_sort(collect_list(c)), x -> x + n) AS l FROM t GROUP BY n",
    "SELECT a.id, b.id AS other FROM t a JOIN t b ON exists(a.ki, x -> x = b.c) AND a.n = b.n",
    "SELECT id, e FROM t LATERAL VIEW explode(transform(aa, x -> aggregate(x, n, (s, y) -> s + coalesce(y, 0) % 5))) v AS e",
    "SELECT id FROM t WHERE forall(ki, x -> x IN (1, 2, 3)) AND exists(at, x -> x = t.t)",
    "WITH q AS (SELECT id, transform(ai, x -> x % 3) AS r, c FROM t) SELECT id, transform(r, x -> x + c) AS s FROM q",
)

WRITTEN = split_items("""
from_json(j, 'a TIMESTAMP, b ARRAY<TIMESTAMP>')
from_json(j, 'a TIMESTAMP_NTZ, b ARRAY<TIMESTAMP_NTZ>')
from_json(j, 'a DATE, b ARRAY<DATE>')
from_json(j, 'a STRING, b ARRAY<STRING>')
from_json(j, 'a DECIMAL(20, 2), b ARRAY<DECIMAL(38, 0)>')
from_json(j, 'a DOUBLE, b ARRAY<BIGINT>')
from_json(j, 'a BOOLEAN, b ARRAY<TINYINT>')
from_json(j, 'a STRUCT<b: TIMESTAMP, a: ARRAY<STRING>>')
from_json(j, 'a TIMESTAMP, b ARRAY<TIMESTAMP>', map('timestampFormat', 'yyyy-MM-dd HH:mm:ss X'))
to_json(from_json(j, 'a TIMESTAMP, b ARRAY<STRING>'))
get_json_object(j, '$')
get_json_object(j, '$.a')
get_json_object(j, '$.b[*]')
get_json_object(j, '$.a[*]')
get_json_object(j, '$.a[0][*].b')
get_json_object(j, '$.a[0][*]')
json_object_keys(j)
json_array_length(j)
TRY_CAST(s AS TIMESTAMP)
TRY_CAST(s AS TIMESTAMP_NTZ)
TRY_CAST(s AS DATE)
try_to_timestamp(s)
try_to_timestamp(s, 'yyyy-MM-dd HH:mm:ss[ ]X')
""")
WRITTEN_QUERIES = ("SELECT id, json_tuple(j, 'a', 'b') AS (x, y) FROM t",)

THEMES: dict[str, Theme] = {
    "arrays": Theme(COLLECTIONS, ARRAYS, ARRAY_FAILURES),
    "times": Theme(TIME_ROWS, TIMES, TIME_FAILURES, compiled=True),
    "json": Theme(JSON_ROWS, JSON, queries=JSON_QUERIES),
    "written": Theme(written_times.rows(), WRITTEN, queries=WRITTEN_QUERIES),
    "lambdas": Theme(COLLECTIONS, LAMBDAS, LAMBDA_FAILURES, LAMBDA_QUERIES),
}
