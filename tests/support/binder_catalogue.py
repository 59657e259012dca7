"""Texts that are easily misread: operators, names, clauses and literals, over three small tables.

Whoever reads one either reads it as Spark does or refuses it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pyarrow as pa

from weirflow.sql.typing.type_syntax import parse_ddl

SOURCES = {
    "t": parse_ddl("a INT, b INT, c STRING, d DOUBLE, p BOOLEAN, q BOOLEAN, s STRUCT<x: INT, y: STRING>, m ARRAY<INT>"),
    "u": parse_ddl("a INT, b INT, e STRING"),
    "k": parse_ddl(
        "`date` DATE, `timestamp` TIMESTAMP, `year` INT, `all` INT, `window` INT, `values` INT, `first` STRING, "
        "`interval` INT, `end` INT, `order` INT, `current_date` INT, `timestamp_ntz` INT, `map` INT, `left` INT"
    ),
}
_STRUCTS = [{"x": 1, "y": "one"}, {"x": 2, "y": None}, None]
_MOMENT = dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC)
ROWS = {
    "t": [
        (1, 2, "1", 0.5, True, False, _STRUCTS[0], [1, 2]),
        (2, 1, "22", 1.5, False, True, _STRUCTS[1], [3]),
        (2, 3, "3", -2.0, True, True, _STRUCTS[0], None),
        (2, 3, "3", -2.0, True, True, _STRUCTS[0], None),
        (5, 7, "57", 4.0, False, False, _STRUCTS[2], []),
        (None, 4, None, None, None, True, _STRUCTS[1], [4, None]),
        (6, None, "x", 8.0, True, None, _STRUCTS[0], [5]),
    ],
    "u": [(1, 2, "p"), (2, 9, "q"), (2, 3, "r"), (8, 7, "s"), (None, 4, "n"), (6, None, "z")],
    "k": [
        (dt.date(2024, 2, 29), _MOMENT, 2024, 1, 10, 3, "f", 4, 5, 6, 7, 8, 9, 10),
        (dt.date(2023, 1, 1), _MOMENT, 2023, 2, 20, 3, "g", 4, 5, 7, 7, 8, 9, 10),
        (None, None, None, 2, 30, None, None, None, None, None, None, None, None, None),
    ],
}


def tables() -> dict[str, pa.Table]:
    """The rows of each source."""
    return {
        name: pa.table(
            [pa.array([row[at] for row in ROWS[name]], kind) for at, kind in enumerate(schema.types)], schema=schema
        )
        for name, schema in SOURCES.items()
    }


def _items(text: str) -> list[str]:
    """The texts between double semicolons, however they are wrapped."""
    return [item.strip() for item in " ".join(text.split("\n")).split(" ;; ")]


_NUMERIC = _items("""
+ ;; - ;; * ;; % ;; div ;; & ;; | ;; ^ ;; << ;; >> ;; >>> ;; || ;; = ;; < ;; <=>
""")
_BINARY_MIXES = [f"a {one} 2 {other} 3" for one in _NUMERIC for other in _NUMERIC]
_LOGIC = ("AND", "OR", "=", "<>", "<=>", "<")
_LOGIC_MIXES = [f"p {one} q {other} true" for one in _LOGIC for other in _LOGIC]
_PREFIX_MIXES = [f"NOT p {one} q" for one in _LOGIC] + [f"!p {one} NOT q" for one in ("AND", "OR", "=")]
_UNARY_MIXES = [
    f"{sign}a {operator} b" for sign in ("-", "+", "~", "- -", "-~") for operator in ("+", "*", "^", "<", "||")
]
_AFTER = _items("""
IS NULL ;; IS NOT NULL ;; IS TRUE ;; IS NOT FALSE ;; IS UNKNOWN ;; IS DISTINCT FROM true ;; IS NOT DISTINCT FROM
q ;; IN (true) ;; NOT IN (true, NULL) ;; BETWEEN false AND true
""")
_BEFORE = _items("""
p ;; p = q ;; NOT p ;; p AND q ;; p OR q ;; a < b ;; p <=> q ;; p = q = p
""")
_PREDICATE_MIXES = [f"{left} {right}" for left in _BEFORE for right in _AFTER]
_AFTER_MIXES = [
    f"{left} {right}"
    for left in ("p IS NULL", "a IN (1, 2)", "a BETWEEN 1 AND 2", "c LIKE '%'", "p IS DISTINCT FROM q")
    for right in _items("""
= q ;; AND q ;; OR q ;; IS NULL ;; = true AND p ;; <=> q ;; < q ;; IN (true)
""")
]
_ODD_OPERATORS = [
    *_items("""
a || 2 + 3 ;; 2 + 3 || a ;; a - 1 || b * 2 ;; c || a || b ;; a || b = c ;; c || 'x' LIKE '1%' ;; a & b | a ^ b
;; a | b & a ^ b ;; a ^ b | a & b ;; - a ^ b ;; -a * -b ;; a - -b ;; a div b * a ;; a * b div 2 ;; a / b * a ;;
a * b / a ;; a % b * 2 ;; a << 1 + 1 ;; a + 1 << 1 ;; a << 1 << 2 ;; a >> 1 >>> 1 ;; a & 1 << 1 ;; a < b << 1 ;;
~a & b ;; ~(a & b) ;; ~a + 1 ;; !p ;; !p AND q ;; !(p AND q) ;; NOT NOT p ;; NOT a = b ;; NOT a < b AND p ;; NOT
p IS NULL ;; NOT a IN (1, 2) ;; NOT a BETWEEN 1 AND 2 ;; NOT c LIKE '2%' ;; a IS NULL = q ;; a IS NULL AND q ;;
a = b IS NULL ;; a = b = q ;; a = b <> q ;; a < b = q ;; q = a < b ;; a < b IS TRUE ;; p = NOT q ;; p AND NOT q
OR p ;; p OR q AND p ;; p AND q OR p AND NOT q ;; a BETWEEN 1 AND 2 AND p ;; a BETWEEN 1 + 1 AND 2 * 2 OR q ;; a
NOT BETWEEN 1 AND 2 OR p ;; a BETWEEN 1 AND 2 = q ;; a + 1 BETWEEN b - 1 AND b + 1 ;; a + 1 IN (b, b + 1) ;; a =
1 OR b = 2 AND p ;; c LIKE '2' || '%' ;; c LIKE '2%' AND p ;; c NOT LIKE '2%' OR p ;; c LIKE '2%' = p ;; c RLIKE
'^[0-9]' || '$' ;; c REGEXP '2' ;; NOT c RLIKE '2' ;; c ILIKE 'X' OR q ;; c LIKE ANY ('1', '2%') ;; c NOT LIKE
ALL ('1', '2%') ;; c LIKE SOME ('1', '3') ;; c NOT LIKE ANY ('1', '2%') AND p ;; c LIKE '1/%' ESCAPE '/' OR p ;;
a::string || b ;; a + b::bigint ;; -a::string ;; -1::string ;; a + 1::double * 2 ;; m[0] + 1 ;; -m[0] ;; s.x +
s.x * 2 ;; -s.x ;; a <=> b AND p ;; a <=> NULL ;; NULL <=> a = b ;; a == b ;; a != b ;; a ! = b ;; a <> b ;; a
!< b ;; a !> b ;; a >= b = p ;; a + b - a ;; a - b - a ;; a - (b - a) ;; d / 2 / 2 ;; d / (2 / 2) ;; a % 3 % 2
;; a IS NOT DISTINCT FROM b AND p ;; a IS DISTINCT FROM b OR p ;; a IS DISTINCT FROM b + 1 ;; a IS DISTINCT FROM
b = p ;; p IS NOT TRUE AND q ;; p IS UNKNOWN OR q ;; p IS NOT UNKNOWN ;; a IS UNKNOWN ;; CASE WHEN p THEN 1 END
+ 1 ;; CASE a WHEN 1 THEN 2 ELSE 3 END * 2 ;; a MOD b ;; mod(a, b) ;; a ** b ;; a ?? b ;; a := b ;; a XOR b ;; p
&& q ;; p ISNULL ;; p NOTNULL ;; a NOT NULL ;; a COLLATE UTF8_BINARY ;; c COLLATE UTF8_LCASE = 'X' ;; a AT TIME
ZONE 'UTC' ;; a -> b ;; a ->> b ;; a @> b ;; a IN (1, 2) = p ;; a = ANY (1, 2) ;; a IN 1 ;; a IN [1] ;; a
BETWEEN SYMMETRIC 2 AND 1 ;; c SIMILAR TO '1' ;; c GLOB '1' ;; a # b ;; |/ a ;; @ a ;; a ~ b ;; c ~ '1' ;; s:x
;; m[0:1] ;; m[1, 2] ;; a.b ;; (a, b) = (1, 2) ;; (a, b) IN ((1, 2), (2, 1)) ;; (a, b) < (2, 2) ;; struct(a, b)
= struct(1, 2) ;; EXISTS (SELECT 1) = p ;; if(p, a, b) + 1 ;; nullif(a, 1) IS NULL ;; a * (b + 1) * 2 ;; A + 1
;; T.A + 1 ;; S.X + 1 ;; t.s.x + 1 ;; s.x.y ;; S.X ;; -s['x'] ;; +a ;; +1 ;; - 1 ;; -1L::string ;; a + +b ;;
upper(s.y) ;; NOT p IS TRUE ;; 1e10 ;; 1e-5 ;; 1.5e300 ;; 12345678.5D ;; INTERVAL 1 HOUR ;; INTERVAL -1 HOUR ;;
INTERVAL '1 2:3:4.50' DAY TO SECOND ;; DATE'2024-02-29' - 1 ;; c ILIKE ANY ('x', '1') ;; a << b + 1 & 3 ;;
DATE'epoch' AS x ;; DATE' Epoch ' AS x ;; TIMESTAMP'epoch' AS x ;; TIMESTAMP'now' AS x ;; DATE'x' AS x ;;
TIMESTAMP'12:30' AS x ;; TIMESTAMP'T12:30' AS x ;; INTERVAL 1 DAY 2 HOURS AS x ;; CAST('epoch' AS TIMESTAMP) ;;
TIMESTAMP'2024-02-29 12:30:15 Europe/Paris' AS x ;; CAST('12:30' AS TIMESTAMP) ;; CAST('today' AS STRING)
"""),
    "a -- b\n",
]
_LITERALS = [
    *_items(r"""
1 ;; -1 ;; 2147483647 ;; 2147483648 ;; -2147483648 ;; -2147483649 ;; 9223372036854775807 ;; 9223372036854775808
;; -9223372036854775808 ;; -9223372036854775809 ;; 1. ;; .5 ;; 1.50 ;; -.5 ;; 0.0 ;; 00.10 ;; 1e3 ;; 1E3 ;; 1e-3
;; 1.5e2 ;; -1e3 ;; 1e400 ;; 1L ;; -1L ;; 1l ;; 9223372036854775808L ;; -9223372036854775808L ;; 2S ;; -32768S
;; 32768S ;; 3Y ;; -128Y ;; 128Y ;; 1.5f ;; 1F ;; -1.5F ;; 1e3f ;; 3.5e39f ;; 1D ;; 1.5d ;; -1e3D ;; 1BD ;;
1.50BD ;; -1.5BD ;; 1e3BD ;; 1e-3BD ;; 0BD ;; 0.00BD ;; 1.0e1BD ;; 1B ;; 0x1F ;; X'1F' ;; x'1f' ;; X'1F2' ;; X''
;; X'GG' ;; B'101' ;; b'x' ;; 'a' 'b' ;; 'a''b' ;; 'a' r'b' ;; r'\n' ;; '\t' ;; '\n' ;; '\u0041' ;; '\U00000041'
;; '\101' ;; '\x41' ;; '\0' ;; '\a' ;; '\'' ;; '\\' ;; '\%' ;; '\_' ;; '\b' ;; '\r' ;; '\Z' ;; '\uD83D\uDE00' ;;
'é' ;; '' ;; N'x' ;; U&'x' ;; E'x' ;; $$x$$ ;; _utf8'x' ;; TRUE ;; false ;; NULL ;; DATE'2024-02-29' ;; DATE
'2024-2-9' ;; DATE'2024-02' ;; DATE'2024' ;; DATE'epoch' ;; DATE'today' ;; DATE'now' ;; DATE'yesterday' ;;
DATE'2024-02-30' ;; DATE'x' ;; DATE'2024-02-29 12:00' ;; DATE'2024-02-29T12' ;; DATE' 2024-02-29 ' ;; DATE'' ;;
TIMESTAMP'2024-02-29' ;; TIMESTAMP'2024-02-29 12:30' ;; TIMESTAMP'2024-02-29 12:30:15.5' ;;
TIMESTAMP'2024-02-29T12:30:15Z' ;; TIMESTAMP'2024-02-29 12:30:15+01:00' ;; TIMESTAMP'2024-02-29 12:30:15
Europe/Paris' ;; TIMESTAMP'2024-02-29 12:30:15UTC' ;; TIMESTAMP'epoch' ;; TIMESTAMP'now' ;; TIMESTAMP'today' ;;
TIMESTAMP'tomorrow' ;; TIMESTAMP'2024' ;; TIMESTAMP'x' ;; TIMESTAMP'2024-2-9 1:2:3' ;; TIMESTAMP'2024-02-29
25:00:00' ;; TIMESTAMP'2024-02-29 12:30:15.1234567' ;; TIMESTAMP'12:30' ;; TIMESTAMP_NTZ'2024-02-29 12:30:15' ;;
TIMESTAMP_LTZ'2024-02-29 12:30:15' ;; TIMESTAMP_NTZ'2024-02-29 12:30:15Z' ;; TIMESTAMP_NTZ'epoch' ;; TIME'12:30'
;; INTERVAL '1' DAY ;; INTERVAL 1 DAY ;; INTERVAL '1 day' ;; INTERVAL -1 DAY ;; INTERVAL '-1' DAY ;; INTERVAL '1
2' DAY TO HOUR ;; INTERVAL 1 DAY 2 HOURS ;; INTERVAL 1 WEEK ;; INTERVAL a DAY ;; INTERVAL 1.5 SECONDS ;;
INTERVAL '1' FORTNIGHT ;; INT'1' ;; INT '5' ;; STRING'x' ;; DOUBLE'1' ;; DECIMAL'1.5' ;; BINARY'x' ;;
BOOLEAN'true' ;; CAST('epoch' AS DATE) ;; CAST('now' AS TIMESTAMP) ;; CAST('today' AS DATE) ;; CAST('2024' AS
DATE) ;; CAST(' 2024-02-29 ' AS DATE) ;; CAST('2024-02-29' AS TIMESTAMP) ;; CAST('2024-02-29 12:30' AS
TIMESTAMP) ;; CAST('1' AS INT) ;; CAST(' 1 ' AS INT) ;; CAST('1.5' AS DOUBLE) ;; CAST(1.5 AS INT) ;; CAST('1' AS
DECIMAL) ;; CAST(1 AS DECIMAL(3,1)) ;; CAST(1 AS VARCHAR(3)) ;; CAST(12345 AS VARCHAR(3)) ;; CAST('x' AS
CHAR(3)) ;; CAST(a AS LONG) ;; CAST(a AS SHORT) ;; CAST(a AS BYTE) ;; CAST(a AS REAL) ;; CAST(a AS NUMERIC(5,1))
;; CAST(a AS DEC(5)) ;; CAST(a AS INTEGER) ;; CAST(a AS TEXT) ;; CAST(a AS INT8) ;; CAST(a AS FLOAT(3)) ;;
CAST(a AS VOID) ;; CAST(NULL AS VOID) ;; CAST(a AS UNSIGNED) ;; CAST(a AS STRING COLLATE UTF8_BINARY) ;;
CAST('1' AS INT FORMAT 'x') ;; TRY_CAST('x' AS INT) ;; SAFE_CAST('x' AS INT) ;; a::int::string ;; int(a) ;;
date('2024-02-29') ;; timestamp('2024-02-29') ;; decimal('1.5') ;; string(a) ;; double(a) / 2 ;; boolean(a) ;;
float('1')
"""),
    "'a' \"b\"",
    'R"\\t"',
    '"a"',
    '"it\'s"',
    'DATE "2024-02-29"',
]
_CALLS = _items("""
count(*) ;; count(1) ;; count(a, b) ;; count(DISTINCT a) ;; count(DISTINCT a, b) ;; count(ALL a) ;; sum(ALL a)
;; sum(DISTINCT a) ;; count(t.*) ;; count(NULL) ;; count('x') ;; count(t.a) ;; count() ;; count(* EXCEPT (a)) ;;
sum(a) FILTER (WHERE p) ;; sum(DISTINCT a) FILTER (WHERE p) ;; max(a ORDER BY b) ;; collect_list(a ORDER BY b)
;; array_agg(a ORDER BY a) ;; sum(a LIMIT 1) ;; first(a) IGNORE NULLS ;; max(a) IGNORE NULLS ;; max(a IGNORE
NULLS) ;; sum(a) RESPECT NULLS ;; any_value(1) ;; any_value(DISTINCT 1) ;; percentile_cont(0.5) WITHIN GROUP
(ORDER BY a) ;; percentile_cont(0.5) WITHIN GROUP (ORDER BY a DESC) ;; median(a) ;; percentile(a, 0.5) ;; sum(a)
WITHIN GROUP (ORDER BY a) ;; max(a HAVING MAX b) ;; min(a) + max(a) * 2 ;;  max(struct(a, b))
;; min(b) KEEP (DENSE_RANK FIRST ORDER BY a) ;; sum(a => 1) ;; mode(a) ;; mode(a, true) ;; mode(a, a > 0) ;;
mode() WITHIN GROUP (ORDER BY a) ;; mode(DISTINCT a) ;; mode(a) WITHIN GROUP (ORDER BY a) ;; mode() ;;
percentile_disc(0.5) WITHIN GROUP (ORDER BY a) ;; percentile_disc(0.5) ;; percentile(a, 0.5, 2) ;;
bit_xor(a) ;; bit_and(c) ;; corr(a, a) ;; regr_count(a, b) ;; regr_avgx(a, c) ;; approx_count_distinct(a) ;;
approx_count_distinct(a, 0.1) ;; approx_count_distinct(a, b) ;; count_min_sketch(a, 0.5, 0.5, 1) ;;
bitmap_construct_agg(c) ;; count_if(p) ;; count_if(DISTINCT p) ;; bool_and(p) ;; every(p) ;; some(p) ;; any(p)
;; max_by(a, b) ;; avg(a) ;; mean(a) ;; sum(a) AS x ;; sum(a) x ;; sum(a) 'x' ;; grouping(a)
""")
_LISTS = _items("""
listagg(c) ;; listagg(c, ',') WITHIN GROUP (ORDER BY c) ;; string_agg(c, ',') ;; listagg(c) WITHIN GROUP (ORDER BY a
DESC, c) ;; listagg(a, 1) WITHIN GROUP (ORDER BY a) ;; listagg(a, ',') WITHIN GROUP (ORDER BY a, b) ;; listagg(c, a)
WITHIN GROUP (ORDER BY c) ;; listagg(p, NULL) WITHIN GROUP (ORDER BY p) ;; listagg(DISTINCT c) WITHIN GROUP (ORDER BY a)
;; listagg() WITHIN GROUP (ORDER BY c)
""")
_SCALARS = [
    *_items("""
substring(c FROM 1 FOR 1) ;; substring(c, 1) ;; substring(c FROM 2) ;; substr(c FROM 1 FOR 1) ;; substring(c FOR
1) ;; trim(c) ;; trim(BOTH FROM c) ;; trim(BOTH '1' FROM c) ;; trim(LEADING '1' FROM c) ;; trim(TRAILING FROM c)
;; trim('1' FROM c) ;; trim('1', c) ;; ltrim('1', c) ;; trim(c COLLATE x) ;; position('2' IN c) ;; position('2',
c) ;; position('2', c, 1) ;; overlay(c PLACING 'y' FROM 1) ;; overlay(c PLACING 'y' FROM 1 FOR 1) ;; overlay(c,
'y', 1) ;; extract(YEAR FROM DATE'2024-02-29') ;; extract(DOW FROM DATE'2024-02-29') ;; extract('year' FROM
DATE'2024-02-29') ;; extract(WEEK FROM DATE'2024-02-29') ;; extract(EPOCH FROM DATE'2024-02-29') ;; extract(DAY
FROM INTERVAL 1 DAY) ;; date_part('year', DATE'2024-02-29') ;; date_part('DOW', DATE'2024-02-29') ;;
year(DATE'2024-02-29') ;; upper(c => c) ;; upper(DISTINCT c) ;; upper(ALL c) ;; upper(c ORDER BY a) ;; upper(c)
IGNORE NULLS ;; coalesce(a, b) ;; ceil(d) ;; ceil(d, 1) ;; floor(d) ;; floor(d TO DAY) ;; concat(a, b) ;;
concat() ;; concat_ws(',', c, a) ;; nvl(a, b) ;; nvl2(a, b, 1) ;; ifnull(a, b) ;; decode(a, 1, 'x', 'y') ;;
if(p, 1, 2) ;; iff(p, 1, 2) ;; least(a, b) ;; greatest(a, b) ;; char(65) ;; chr(65) ;; left(c, 1) ;; right(c, 1)
;; replace(c, '1') ;; log(2, a) ;; ln(a) ;; power(a, 2) ;; pow(a, 2) ;; mod(a, 2) ;; a.x ;; s.y ;; s['x'] ;;
t.s.x ;; t.a ;; m[0] ;; element_at(m, 1) ;; array(1, 2)[0] ;; array(a, b) ;; map('a', 1)['a'] ;; map(1, 2) ;;
named_struct('x', a) ;; struct(a AS z).z ;; struct(a, b).b ;; (a, b) ;; (a) ;; (a AS z, b) ;; struct(a, b + 1)
;; transform(m, x -> x + 1) ;; CURRENT_DATE ;; current_date() ;; CURRENT_TIMESTAMP ;; now() ;; current_user ;;
user ;; session_user ;; date_add(DATE'2024-02-29', 1) ;; DATE'2024-02-29' + 1 ;; DATE'2024-02-29' -
DATE'2024-02-28' ;; DATE'2024-02-29' + INTERVAL 1 DAY ;; DATE'2024-02-29' + INTERVAL 1 MONTH ;; DATE'2024-02-29'
- INTERVAL '1' DAY ;; 1 + DATE'2024-02-29' ;; INTERVAL 1 DAY + DATE'2024-02-29' ;; DATE'2024-02-29' + INTERVAL
25 HOURS ;; TIMESTAMP'2024-02-29 00:00:00' + INTERVAL 1 DAY ;; TIMESTAMP'2024-02-29 00:00:00' - INTERVAL '1 2'
DAY TO HOUR ;; 2 * INTERVAL 1 DAY ;; try_add(a, b) ;; try_divide(a, 0) ;; cast(a as string) ;; rlike(c, '1') ;;
like(c, '1%') ;; ilike(c, 'X') ;; isnull(a) ;; isnotnull(a) ;; hash(a) ;; * ;; t.* ;; a AS `x y` ;; a AS x ;; a
x ;; a 'x' ;; a AS (x, y) ;; a AS (x) ;; `a` ;; `t`.`a` ;; A ;; T.A ;; `A` ;; @x ;; $1 ;; :x ;; ? ;; {fn
upper(c)} ;; a(+) ;; t.a.b ;; spark_catalog.default.t.a ;; default.t.a
"""),
    'a "x"',
]

EXPRESSIONS = {
    "operators": [
        *_BINARY_MIXES,
        *_LOGIC_MIXES,
        *_PREFIX_MIXES,
        *_UNARY_MIXES,
        *_PREDICATE_MIXES,
        *_AFTER_MIXES,
        *_ODD_OPERATORS,
    ],
    "literals": _LITERALS,
    "aggregates": _CALLS,
    "lists": _LISTS,
    "calls": [*_SCALARS, "sum(a) OVER ()"],
}
"""Items of a ``SELECT ... FROM t``, by theme."""

_SETS = _items("""
a, b GROUPING SETS ((a, b), (a), ()) ;; a, b GROUPING SETS ((a), (b)) ;; a, b GROUPING SETS ((a, b)) ;; a
GROUPING SETS ((a), (b)) ;; GROUPING SETS ((a, b), a, ()) ;; GROUPING SETS (a, b) ;; GROUPING SETS ((a), (a)) ;;
GROUPING SETS (a, ROLLUP(a, b)) ;; GROUPING SETS (GROUPING SETS (a), (b)) ;; a, GROUPING SETS ((b), ()) ;; a, b
WITH ROLLUP ;; a, b WITH CUBE ;; ROLLUP(a, b) ;; CUBE(a, b) ;; ROLLUP((a, b)) ;; CUBE((a), b) ;; a, ROLLUP(b) ;;
ROLLUP(a), CUBE(b) ;; ROLLUP(a) , b ;; b, a GROUPING SETS ((a, b), (a), ()) ;; GROUPING SETS ((b, a), ()) ;; (a,
b) ;; (a), b ;; a, (b) ;; () ;; a, () ;; ALL ;; a, b, a ;; a, a GROUPING SETS ((a), ()) ;; a, b GROUPING SETS
(ROLLUP(a, b)) ;; GROUPING SETS ((a, b), (b, a)) ;; a, b WITH ROLLUP WITH CUBE ;; DISTINCT a, b ;; ALL a, b ;;
a, b WITH TOTALS ;; GROUPING SETS ((a), (b)), GROUPING SETS ((a), ()) ;; ROLLUP a, b ;; a, b LIMIT 100
""")
_GROUPS = [f"SELECT {keys}, count(*) AS n FROM t GROUP BY {by}" for by in _SETS for keys in ("a, b", "sum(b)")]
_GROUPINGS = _items("""
SELECT a, b, grouping(a), grouping(b), grouping_id(), count(*) FROM t GROUP BY CUBE(a, b) ;; SELECT a, b,
grouping_id(a, b) FROM t GROUP BY ROLLUP(a, b) ;; SELECT grouping_id(b, a) FROM t GROUP BY ROLLUP(a, b) ;;
SELECT grouping_id(a) FROM t GROUP BY ROLLUP(a, b) ;; SELECT a, grouping(a) FROM t GROUP BY a ;; SELECT a + b,
count(*) FROM t GROUP BY GROUPING SETS ((a + b), ()) ;; SELECT b + a, count(*) FROM t GROUP BY GROUPING SETS ((a
+ b), ()) ;; SELECT a + b, count(*) FROM t GROUP BY b + a ;; SELECT a + b, b + a, count(*) FROM t GROUP BY a +
b, b + a ;; SELECT a + b, count(*) FROM t GROUP BY a + b, b + a ;; SELECT a + b, count(*) FROM t GROUP BY a + b
GROUPING SETS ((b + a), ()) ;; SELECT a + b, count(*) FROM t GROUP BY CUBE(a + b, b + a) ;; SELECT a + b,
grouping(b + a) FROM t GROUP BY ROLLUP(a + b) ;; SELECT a * b, count(*) FROM t GROUP BY b * a ;; SELECT a + b +
1, count(*) FROM t GROUP BY 1 + b + a ;; SELECT a + b + 1, count(*) FROM t GROUP BY b + a ;; SELECT a - b,
count(*) FROM t GROUP BY b - a ;; SELECT a = b, count(*) FROM t GROUP BY b = a ;; SELECT a < b, count(*) FROM t
GROUP BY b > a ;; SELECT p AND q, count(*) FROM t GROUP BY q AND p ;; SELECT p OR q, count(*) FROM t GROUP BY q
OR p ;; SELECT a & b, count(*) FROM t GROUP BY b & a ;; SELECT a | b, count(*) FROM t GROUP BY b | a ;; SELECT a
^ b, count(*) FROM t GROUP BY b ^ a ;; SELECT greatest(a, b), count(*) FROM t GROUP BY greatest(b, a) ;; SELECT
least(a, b), count(*) FROM t GROUP BY least(b, a) ;; SELECT a <=> b, count(*) FROM t GROUP BY b <=> a ;; SELECT
a IN (1, 2), count(*) FROM t GROUP BY a IN (2, 1) ;; SELECT NOT (a < b), count(*) FROM t GROUP BY a >= b ;;
SELECT NOT (a = b), count(*) FROM t GROUP BY a <> b ;; SELECT a + 1 + b, count(*) FROM t GROUP BY a + b + 1 ;;
SELECT (a + b) * 2, count(*) FROM t GROUP BY 2 * (b + a) ;; SELECT a, (a), count(*) FROM t GROUP BY (a) ;;
SELECT A, count(*) FROM t GROUP BY a ;; SELECT t.a, count(*) FROM t GROUP BY a ;; SELECT a + 0, count(*) FROM t
GROUP BY a ;; SELECT a + 1, count(*) FROM t GROUP BY a + 1 ;; SELECT a, b + 1, count(*) FROM t GROUP BY
ROLLUP(a, b + 1) ;; SELECT a + 1, count(*) FROM t GROUP BY ROLLUP(a) ;; SELECT a + 1, count(*) FROM t GROUP BY
ROLLUP(a + 1) ;; SELECT a, sum(a) FROM t GROUP BY ROLLUP(a) ;; SELECT a, sum(a + 1) FROM t GROUP BY ROLLUP(a) ;;
SELECT coalesce(a, 0), count(*) FROM t GROUP BY CUBE(a) ;; SELECT a, count(*) FROM t GROUP BY CUBE(a) HAVING a
IS NULL ;; SELECT a, count(*) FROM t GROUP BY CUBE(a) HAVING grouping(a) = 1 ;; SELECT a, count(*) FROM t GROUP
BY CUBE(a) HAVING grouping__id = 1 ;; SELECT a AS x, count(*) FROM t GROUP BY CUBE(x) ;; SELECT a AS x, b AS y,
count(*) FROM t GROUP BY x, y GROUPING SETS ((x), (y)) ;; SELECT a, b, count(*) FROM t GROUP BY 1, 2 GROUPING
SETS ((1), (2)) ;; SELECT a, b, count(*) FROM t GROUP BY ROLLUP(1, 2) ;; SELECT a, b, count(*) FROM t GROUP BY
GROUPING SETS ((1, 2), (1)) ;; SELECT a, b, count(*) AS n FROM t GROUP BY ROLLUP(a, b) ORDER BY grouping_id(),
a, b LIMIT 3 ;; SELECT DISTINCT grouping_id() FROM t GROUP BY CUBE(a, b) ;; SELECT t.a, u.b, count(*) FROM t
JOIN u ON t.a = u.a GROUP BY t.a, u.b GROUPING SETS ((t.a), (u.b))
""")
_LIMITS = [
    f"SELECT a, b FROM t ORDER BY a, b, c LIMIT {text}"
    for text in _items("""
2 ;; 1 + 1 ;; (2) ;; 0 ;; -1 ;; ALL ;; NULL ;; 2.0 ;; 2L ;; '2' ;; CAST('2' AS INT) ;; 50 PERCENT ;; 50% ;; 2
OFFSET 1 ;; 1, 2 ;; 2 ROWS ;; 2 ROWS WITH TIES ;; 2 WITH TIES ;; 2 BY a ;; a ;; (SELECT 2) ;; 2 OFFSET 1 + 1 ;;
ALL OFFSET 2 ;; 2 OFFSET 1 ROWS ;; 2 % 3 ;; 5 div 2 ;; if(true, 1, 2) ;; 100000000000 ;; 2147483648 ;;
length('ab') ;; 2 LIMIT 1 ;; 2 OFFSET (1) ;; 2 OFFSET -1 ;; 2 OFFSET NULL ;; 2 OFFSET ALL ;; 1e0 ;; 2Y
""")
]
_LIMITS += [
    f"SELECT a, b FROM t ORDER BY a, b, c {text}"
    for text in _items("""
FETCH FIRST 2 ROWS ONLY ;; FETCH FIRST ROW ONLY ;; FETCH NEXT 2 ROWS WITH TIES ;; FETCH FIRST 50 PERCENT ROWS
ONLY ;; FETCH FIRST 2 ROWS ;; OFFSET 2 ;; OFFSET 2 ROWS ;; OFFSET 2 ROWS FETCH NEXT 1 ROWS ONLY ;; OFFSET 1
LIMIT 2 ;; OFFSET 0 ;; OFFSET 1 OFFSET 1 ;; NULLS FIRST LIMIT 2
""")
]
_ORDERS = [
    f"SELECT a, b, 1 AS one, a + b AS x, c AS b2 FROM t ORDER BY {text} LIMIT 3"
    for text in _items("""
one, a, b ;; 1, b ;; one DESC, b, a ;; 2 DESC, 1 ;; 1 + 1, a, b ;; (1), b ;; -1, a, b ;; '1', a, b ;; x, a, b ;;
x + 1, a, b ;; b + a, a, b ;; -x, a, b ;; a NULLS LAST, b ;; a DESC NULLS FIRST, b ;; a ASC NULLS LAST, b ;; ALL
;; ALL DESC ;; ALL DESC NULLS LAST ;; ALL ASC NULLS LAST ;; ALL, a ;; a, ALL ;; 6 ;; 0 ;; 1L, b ;; 1.0, a, b ;;
t.a, t.b ;; t.x ;; b2, a, b ;; `all` ;; a USING > ;; NULL, a, b ;; DATE'2024-01-01', a, b ;; 1S, b ;; true, a, b
;; a, b WITH FILL ;; a SIBLINGS ;; (SELECT 1), a, b ;; one + 1, a, b ;; 3, a, b ;; a COLLATE x
""")
]
_ORDERS += _items("""
SELECT a, 1 AS one FROM t ORDER BY one, a LIMIT 2 ;; SELECT a, 2 AS one FROM t WHERE a IS NOT NULL ORDER BY one,
a LIMIT 2 ;; SELECT 3 AS z, a, b FROM t ORDER BY z, a DESC, b DESC LIMIT 2 ;; SELECT -a AS a, b FROM t ORDER BY
a, b LIMIT 3 ;; SELECT -a AS a, b FROM t ORDER BY t.a, b LIMIT 3 ;; SELECT -a AS a, b FROM t ORDER BY a + 0, b
LIMIT 3 ;; SELECT a AS b, b AS a FROM t ORDER BY a, b LIMIT 3 ;; SELECT a AS b, b AS a FROM t ORDER BY a + b, a,
b LIMIT 3 ;; SELECT a AS x, b AS x FROM t ORDER BY x LIMIT 3 ;; SELECT a AS x, b AS X FROM t ORDER BY x LIMIT 3
;; SELECT DISTINCT a FROM t ORDER BY a LIMIT 3 ;; SELECT DISTINCT a + 1 FROM t ORDER BY a + 1 LIMIT 3 ;; SELECT
DISTINCT a + 1 AS x FROM t ORDER BY a LIMIT 3 ;; SELECT DISTINCT a + b FROM t ORDER BY b + a LIMIT 3 ;; SELECT
DISTINCT a FROM t ORDER BY -a LIMIT 3 ;; SELECT DISTINCT -a AS a FROM t ORDER BY t.a LIMIT 3 ;; SELECT a,
count(*) FROM t GROUP BY a ORDER BY count(*) DESC, a LIMIT 2 ;; SELECT a, count(*) AS n FROM t GROUP BY a ORDER
BY n DESC, a LIMIT 2 ;; SELECT a, count(*) AS b FROM t GROUP BY a ORDER BY b DESC, a LIMIT 2 ;; SELECT a,
count(*) AS b FROM t GROUP BY a ORDER BY max(b) DESC, a LIMIT 2 ;; SELECT a, -count(*) AS n FROM t GROUP BY a
ORDER BY abs(n), a LIMIT 2 ;; SELECT a FROM t GROUP BY a ORDER BY max(b) DESC NULLS LAST, a LIMIT 2 ;; SELECT a
FROM t GROUP BY a ORDER BY b LIMIT 2 ;; SELECT a, b FROM t ORDER BY row_number() OVER (ORDER BY b, a, c) DESC
LIMIT 2 ;; SELECT a FROM t UNION SELECT b FROM t ORDER BY a LIMIT 3 ;; SELECT a FROM t UNION SELECT b FROM t
ORDER BY b LIMIT 3 ;; SELECT a, 1 AS one FROM t UNION SELECT b, 1 FROM t ORDER BY one, a DESC LIMIT 3 ;; SELECT
a FROM t UNION SELECT b FROM t ORDER BY 1 DESC LIMIT 3 ;; SELECT a FROM t UNION SELECT b FROM t ORDER BY a + 0
DESC LIMIT 3 ;; SELECT a FROM t UNION SELECT b FROM t ORDER BY ALL LIMIT 3 ;; SELECT a FROM t UNION SELECT b
FROM t ORDER BY t.a LIMIT 3 ;; SELECT a FROM t UNION SELECT b FROM t ORDER BY 1 + 1, a LIMIT 3 ;; (SELECT a FROM
t ORDER BY a DESC LIMIT 1) UNION ALL (SELECT b FROM t ORDER BY b DESC LIMIT 1) ;; (SELECT a FROM t) ORDER BY a
DESC LIMIT 1 ;; (SELECT a, b FROM t ORDER BY b DESC, a LIMIT 3) ORDER BY a DESC LIMIT 1 ;; SELECT `all` FROM k
ORDER BY all LIMIT 1 ;; SELECT `all`, `year` FROM k ORDER BY `all` DESC, `year` LIMIT 1 ;; SELECT `year`, `all`
FROM k ORDER BY all DESC LIMIT 2 ;; SELECT `year`, `all` FROM k ORDER BY k.all DESC, year LIMIT 2
""")
_ALIASES = _items("""
SELECT 1 AS one, count(*) FROM t GROUP BY one ;; SELECT 2 AS one, a FROM t GROUP BY one, a ;; SELECT a, 1 AS
one, count(*) FROM t GROUP BY a, one ;; SELECT 'x' AS a, count(*) FROM t GROUP BY a ;; SELECT a AS b, count(*)
FROM t GROUP BY b ;; SELECT b AS a, count(*) FROM t GROUP BY a, b ;; SELECT a % 2 AS x, count(*) FROM t GROUP BY
x ;; SELECT a % 2 AS x, count(*) FROM t GROUP BY x + 1 ;; SELECT a % 2 AS x, x + 1 AS y, count(*) FROM t GROUP
BY x, y ;; SELECT a % 2 AS x, x + 1 AS y, count(*) FROM t GROUP BY x ;; SELECT a AS x, b AS x, count(*) FROM t
GROUP BY x ;; SELECT a, count(*) FROM t GROUP BY 1 + 0, a ;; SELECT a, count(*) FROM t GROUP BY -1, a ;; SELECT
a, count(*) FROM t GROUP BY '1', a ;; SELECT a, count(*) FROM t GROUP BY 1L ;; SELECT a, count(*) FROM t GROUP
BY (1) ;; SELECT a, count(*) FROM t GROUP BY 1.0, a ;; SELECT a, count(*) FROM t GROUP BY 2 ;; SELECT a,
count(*) FROM t GROUP BY 0 ;; SELECT count(*) AS n FROM t GROUP BY n ;; SELECT a, 3 AS n FROM t GROUP BY 1, 2 ;;
SELECT 3, count(*) FROM t GROUP BY 1 ;; SELECT a, b, count(*) FROM t GROUP BY ALL ;; SELECT a + 1, sum(b) + 1
FROM t GROUP BY ALL ;; SELECT a + sum(b) FROM t GROUP BY ALL ;; SELECT a + sum(b), a FROM t GROUP BY ALL ;;
SELECT sum(b) FROM t GROUP BY ALL ;; SELECT 1 AS one, a FROM t GROUP BY ALL ;; SELECT * FROM u GROUP BY ALL ;;
SELECT *, count(*) FROM u GROUP BY ALL ;; SELECT a, count(*) FROM t GROUP BY ALL HAVING count(*) > 1 ;; SELECT
`all`, count(*) FROM k GROUP BY all ;; SELECT `all`, count(*) FROM k GROUP BY `all` ;; SELECT count(*) FROM k
GROUP BY `all` ;; SELECT `year`, count(*) FROM k GROUP BY all ;; SELECT a, max(b) AS b FROM t GROUP BY a HAVING
b > 2 ;; SELECT a, max(b) AS m FROM t GROUP BY a HAVING m > 2 ;; SELECT a AS b, max(b) AS a FROM t GROUP BY a
HAVING a > 1 ;; SELECT a AS b, max(b) AS a FROM t GROUP BY t.a HAVING b > 1 ;; SELECT -a AS a, count(*) AS n
FROM t GROUP BY a HAVING a < 0 ;; SELECT -a AS a, count(*) AS n FROM t GROUP BY t.a HAVING a > 0 ;; SELECT -a AS
a, count(*) AS n FROM t GROUP BY t.a HAVING t.a > 1 ;; SELECT a + 1 AS a, count(*) AS n FROM t GROUP BY a + 1
HAVING a > 2 ;; SELECT a, count(*) AS b FROM t GROUP BY a HAVING max(b) > 2 ;; SELECT a, count(*) AS b FROM t
GROUP BY a HAVING b + 1 > 2 ;; SELECT a, sum(b) AS x FROM t GROUP BY a HAVING x > 2 AND sum(b) < 9 ;; SELECT a,
sum(b) AS x, x + 1 AS y FROM t GROUP BY a HAVING y > 3 ;; SELECT a, sum(b) AS d FROM t GROUP BY a HAVING d > 2
;; SELECT max(a) AS a FROM t HAVING a > 1 ;; SELECT max(a) AS x FROM t HAVING min(b) = 1 ;; SELECT a FROM t
HAVING a > 1 ;; SELECT 1 FROM t HAVING true ;; SELECT 1 FROM t HAVING count(*) > 100 ;; SELECT a FROM t GROUP BY
a HAVING b > 1 ;; SELECT a, b FROM t GROUP BY a, b HAVING a > b ;; SELECT a AS x FROM t GROUP BY a HAVING x = 2
;; SELECT a AS x FROM t GROUP BY a HAVING t.x = 2 ;; SELECT a FROM t WHERE p HAVING count(*) > 0 ;; SELECT a AS
x, x + 1 AS y FROM t ;; SELECT a AS x, x + 1 AS x FROM t ;; SELECT a AS x, x + 1 AS x, x + 1 FROM t ;; SELECT a
+ 1 AS b, b + 1 AS y FROM t ;; SELECT a AS x, x AS y, y AS z FROM t ;; SELECT x + 1, a AS x FROM t ;; SELECT s
AS x, x.x FROM t ;; SELECT s AS u, u.x FROM t ;; SELECT a AS x, sum(x) FROM t GROUP BY a ;; SELECT a AS x,
sum(b) + x FROM t GROUP BY a ;; SELECT sum(a) AS x, x + 1 FROM t ;; SELECT sum(a) AS x, x + sum(x) FROM t ;;
SELECT a AS x, row_number() OVER (ORDER BY x, b, c) AS n FROM t ;; SELECT row_number() OVER (ORDER BY a, b, c)
AS n, n + 1 FROM t ;; SELECT a AS x, (SELECT max(u.b) FROM u WHERE u.a = x) FROM t ;; SELECT a AS x FROM t WHERE
x = 1 ;; SELECT a AS `t.b`, `t.b` + 1 FROM t ;; SELECT 1 AS a, a + 1 FROM t ;; SELECT 1 AS a, a AS b, b AS c2 ;;
SELECT explode(m) AS x, x + 1 FROM t ;; SELECT DISTINCT a AS x, x + 1 AS y FROM t
""")
_WINDOWS = [
    f"SELECT a, b, sum(b) OVER {text}"
    for text in _items("""
w FROM t WINDOW w AS (PARTITION BY a) ;; (w) FROM t WINDOW w AS (PARTITION BY a) ;; w2 FROM t WINDOW w AS
(PARTITION BY a), w2 AS w ;; w2 FROM t WINDOW w AS (PARTITION BY a), w2 AS (w) ;; w FROM t WINDOW w AS w2, w2 AS
(PARTITION BY a) ;; w FROM t WINDOW w AS w ;; (w ORDER BY b) FROM t WINDOW w AS (PARTITION BY a) ;; w2 FROM t
WINDOW w AS (PARTITION BY a), w2 AS (w ORDER BY b) ;; W FROM t WINDOW w AS (PARTITION BY a) ;; w FROM t WINDOW w
AS (PARTITION BY a), w AS (PARTITION BY b) ;; w FROM t WINDOW w AS (ORDER BY a, b ROWS 1 PRECEDING) ;; x FROM t
WINDOW w AS (PARTITION BY a) ;; w FROM t WINDOW w AS () ;; w3 FROM t WINDOW w AS (PARTITION BY a), w2 AS w, w3
AS w2 ;; (PARTITION BY a) FROM t ;; (PARTITION BY a ORDER BY b) FROM t ;; (DISTRIBUTE BY a) FROM t ;;
(DISTRIBUTE BY a SORT BY b) FROM t ;; (CLUSTER BY a) FROM t ;; (PARTITION BY a SORT BY b) FROM t ;; (ORDER BY b)
FROM t ;; (ORDER BY b ROWS CURRENT ROW) FROM t ;; (ORDER BY b DESC NULLS LAST) FROM t ;; (ORDER BY a, b, c ROWS
BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t ;; (ORDER BY a, b, c ROWS BETWEEN 1 + 0 PRECEDING AND CURRENT ROW)
FROM t ;; (ORDER BY a RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t ;; (ORDER BY a GROUPS BETWEEN 1
PRECEDING AND CURRENT ROW) FROM t ;; (ORDER BY a RANGE BETWEEN -1 FOLLOWING AND CURRENT ROW) FROM t ;; (ORDER BY
a, b, c ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM t ;; (ORDER BY a ROWS BETWEEN CURRENT ROW
AND 1 PRECEDING) FROM t ;; (ORDER BY a, b ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) FROM t
;; (ORDER BY a ROWS UNBOUNDED FOLLOWING) FROM t ;; (ORDER BY a ROWS 1 FOLLOWING) FROM t ;; (ORDER BY 1) FROM t
;; (PARTITION BY 1) FROM t ;; (PARTITION BY ALL) FROM t ;; (ORDER BY ALL) FROM t ;; (PARTITION BY a PARTITION BY
b) FROM t ;; (PARTITION BY (a, p)) FROM t ;; (PARTITION BY a, p) FROM t ;; (PARTITION BY a) AS x FROM t ;;
(PARTITION BY a) + 1 FROM t ;; () FROM t ;; (ORDER BY a ROWS 1.5 PRECEDING) FROM t ;; (ORDER BY a ROWS BETWEEN
1L PRECEDING AND CURRENT ROW) FROM t ;; (ORDER BY s.x) FROM t ;; (ORDER BY count(*)) FROM t GROUP BY a, b
""")
]
_WINDOWS += [
    f"SELECT a, {text} FROM t"
    for text in _items("""
row_number() OVER (ORDER BY a, b, c) ;; rank() OVER (ORDER BY a) ;; dense_rank() OVER (PARTITION BY p ORDER BY
a) ;; ntile(2) OVER (ORDER BY a, b, c) ;; lag(a) OVER (ORDER BY a, b, c) ;; lag(a, 2) OVER (ORDER BY a, b, c) ;;
lag(a, 1, 0) OVER (ORDER BY a, b, c) ;; lead(a, 1) IGNORE NULLS OVER (ORDER BY b, c) ;; lag(a IGNORE NULLS) OVER
(ORDER BY b, c) ;; first(a) OVER (ORDER BY a, b, c) ;; first_value(a) IGNORE NULLS OVER (ORDER BY a, b, c) ;;
first_value(a, true) OVER (ORDER BY a, b, c) ;; last_value(a) OVER (ORDER BY a) ;; nth_value(a, 2) OVER (ORDER
BY a, b, c) ;; nth_value(a, 2) FROM LAST OVER (ORDER BY a) ;; count(*) OVER (PARTITION BY a) ;; count(1) OVER ()
;; count(a, b) OVER () ;; count(DISTINCT a) OVER () ;; sum(a) FILTER (WHERE p) OVER () ;; sum(a) FILTER (WHERE
p) OVER (PARTITION BY p) ;; rank() OVER (ORDER BY a ROWS 1 PRECEDING) ;; row_number() OVER (ORDER BY a, b, c
ROWS UNBOUNDED PRECEDING) ;; row_number() OVER () ;; lag(a) OVER (ORDER BY a, b, c ROWS 1 PRECEDING) ;;
sum(sum(a)) OVER () ;; max(a) OVER (ORDER BY max(b)) ;; percent_rank() OVER (ORDER BY a) ;; cume_dist() OVER
(ORDER BY a) ;; row_number(a) OVER (ORDER BY a) ;; rank(a) OVER (ORDER BY a) ;; max(a) IGNORE NULLS OVER () ;;
upper(c) OVER () ;; sum(b) OVER (PARTITION BY a) / sum(b) OVER () ;; percentile_cont(0.5) WITHIN GROUP (ORDER BY
a) OVER () ;; row_number() OVER (PARTITION BY a ORDER BY b, c) = 1 ;; sum(a) OVER (ORDER BY a, b RANGE UNBOUNDED
PRECEDING) ;; avg(a) OVER (ORDER BY a ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) ;; count(t.*) OVER () ;;
count(NULL) OVER () ;; collect_list(a) OVER (ORDER BY a) ;; max(a) OVER (PARTITION BY a ORDER BY b) x ;; min(a)
RESPECT NULLS OVER ()
""")
]
_CLAUSES = [
    *_items("""
SELECT a FROM t QUALIFY row_number() OVER (ORDER BY a, b) = 1 ;; SELECT a, row_number() OVER (ORDER BY a, b, c)
AS n FROM t QUALIFY n = 1 ;; SELECT a FROM t TABLESAMPLE (100 PERCENT) ;; SELECT a FROM t TABLESAMPLE (3 ROWS)
;; SELECT a FROM t TABLESAMPLE (BUCKET 1 OUT OF 1) ;; SELECT a FROM t TABLESAMPLE (10M) ;; SELECT a FROM t
TABLESAMPLE (100 PERCENT) REPEATABLE (1) ;; SELECT a FROM (SELECT a FROM t) TABLESAMPLE (100 PERCENT) ;; SELECT
a FROM t TABLESAMPLE (100 PERCENT) AS x ;; SELECT x.a FROM t x TABLESAMPLE (100 PERCENT) ;; SELECT a FROM t
USING SAMPLE 10 ;; SELECT a FROM t SAMPLE (10) ;; SELECT * FROM t PIVOT (sum(b) FOR a IN (1, 2)) ;; SELECT *
FROM (SELECT a, b FROM t) UNPIVOT (v FOR n IN (a, b)) ;; SELECT a FROM t SORT BY a ;; SELECT a FROM t DISTRIBUTE
BY a ;; SELECT a FROM t CLUSTER BY a ;; SELECT a FROM t DISTRIBUTE BY a SORT BY a ;; SELECT a FROM t FOR UPDATE
;; SELECT a FROM t VERSION AS OF 1 ;; SELECT a FROM t TIMESTAMP AS OF '2024-01-01' ;; SELECT a FROM t FOR
SYSTEM_TIME AS OF '2024-01-01' ;; SELECT a FROM t@v1 ;; SELECT a FROM ONLY t ;; SELECT a FROM t * ;; SELECT a
FROM t FINAL ;; SELECT a FROM t WITH (NOLOCK) ;; SELECT a FROM t PREWHERE a = 1 ;; SELECT a FROM t WHERE a = 1
WHERE b = 2 ;; SELECT a FROM t WHERE CURRENT OF x ;; SELECT a INTO x FROM t ;; SELECT TOP 2 a FROM t ;; SELECT
TOP (2) a FROM t ORDER BY a ;; SELECT ALL a FROM t ;; SELECT DISTINCT a FROM t ;; SELECT DISTINCT (a), b FROM t
;; SELECT DISTINCT ON (a) a, b FROM t ;; SELECT UNIQUE a FROM t ;; SELECT DISTINCT ROW a FROM t ;; SELECT ALL
DISTINCT a FROM t ;; SELECT /*+ BROADCAST(u) */ t.a FROM t JOIN u ON t.a = u.a ;; SELECT /*+ REPARTITION(2) */ a
FROM t ;; SELECT /*+ NOPE(x) */ a FROM t ;; SELECT STRAIGHT_JOIN a FROM t ;; SELECT SQL_CALC_FOUND_ROWS a FROM t
;; SELECT HIGH_PRIORITY a FROM t ;; SELECT AS STRUCT a FROM t ;; SELECT AS VALUE s FROM t ;; SELECT a, FROM t ;;
SELECT a FROM t, ;; SELECT FROM t ;; FROM t SELECT a ;; FROM t SELECT a WHERE a = 1 ;; FROM t ;; FROM t |>
SELECT a ;; SELECT a FROM t |> WHERE a = 1 ;; FROM t |> WHERE a = 2 |> AGGREGATE count(*) AS n GROUP BY a ;;
FROM t |> ORDER BY a, b, c |> LIMIT 2 ;; TABLE u ;; TABLE u ORDER BY a, b LIMIT 2 ;; VALUES (1, 2), (3, 4) ;;
VALUES (1), (2) ORDER BY col1 LIMIT 1 ;; VALUES 1, 2 ;; VALUES (1, 'a'), (2.5, 'b') ;; VALUES (1) AS v(x) ;;
SELECT * FROM VALUES (1, 2), (3, 4) AS v(x, y) ;; SELECT * FROM VALUES 1, 2 AS v(x) ;; SELECT * FROM (VALUES (1,
2)) AS v(x, y) ;; SELECT x FROM (VALUES (1, 2)) v(x, y) ;; SELECT col1 FROM (VALUES (1, 2)) ;; SELECT v.* FROM
(VALUES (1, 2)) v ;; SELECT * FROM (VALUES (1 AS x, 2)) ;; SELECT * FROM VALUES (a), (b) ;; SELECT * FROM t AS
x(a1, b1, c1, d1, e1, f1, g1, h1) ;; SELECT x.a1 FROM t AS x(a1, b1, c1, d1, e1, f1, g1, h1) ;; SELECT a FROM t
AS x(a1, b1) ;; SELECT t.a FROM t AS x ;; SELECT x.a FROM t x ;; SELECT x.a FROM t AS `x` ;; SELECT a FROM (t)
;; SELECT x.a FROM (t) x ;; SELECT x.a FROM (t AS y) x ;; SELECT x.a FROM (t JOIN u USING (a)) x ;; SELECT t.b,
u.b FROM (t JOIN u USING (a)) ;; SELECT a FROM (SELECT a FROM t) ;; SELECT a FROM (SELECT a FROM t) x ;; SELECT
a FROM ((SELECT a FROM t)) x ;; SELECT a FROM (SELECT a FROM t) AS x(a) ;; SELECT b FROM (SELECT a FROM t) AS
x(b) ;; (SELECT a FROM t) ;; ((SELECT a FROM t)) ;; SELECT a FROM t GROUP BY a WINDOW w AS (ORDER BY a) ;;
SELECT (SELECT a FROM t WHERE b = 7) ;; SELECT (SELECT max(a) FROM t) + 1 ;; SELECT a IN (SELECT a FROM u) FROM
t ;; SELECT a FROM t WHERE a IN (SELECT a FROM u ORDER BY a LIMIT 1) ;; SELECT a FROM t WHERE (a, b) IN (SELECT
a, b FROM u) ;; SELECT a FROM t WHERE a = ANY (SELECT a FROM u) ;; SELECT a FROM t WHERE a > ALL (SELECT a FROM
u) ;; SELECT a FROM t WHERE a = SOME (SELECT a FROM u) ;; SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE
u.a = t.a) ;; SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a) AND p ;; SELECT a FROM t WHERE
EXISTS (TABLE u) ;; SELECT a FROM t WHERE EXISTS (VALUES (1)) ;; SELECT a FROM t WHERE a IN (VALUES (1)) ;;
SELECT a FROM t WHERE a IN (TABLE u) ;; SELECT 1 ;; SELECT 1 WHERE false ;; SELECT count(*) ;; SELECT 1 FROM t
WHERE count(*) > 1 ;; SELECT * ;; WITH x AS (SELECT a FROM t) SELECT * FROM x ;; WITH x(z) AS (SELECT a FROM t)
SELECT z FROM x ;; WITH x AS (SELECT 1 AS a), y AS (SELECT a + 1 AS b FROM x) SELECT * FROM y ;; WITH x AS
(SELECT 1 AS a) SELECT * FROM (WITH x AS (SELECT 2 AS a) SELECT * FROM x) ;; WITH x AS (SELECT 1 AS a), x AS
(SELECT 2 AS a) SELECT * FROM x ;; WITH t AS (SELECT 1 AS a) SELECT * FROM t ;; WITH t AS (SELECT a FROM t)
SELECT * FROM t ;; WITH x AS MATERIALIZED (SELECT a FROM t) SELECT * FROM x ;; WITH x AS NOT MATERIALIZED
(SELECT a FROM t) SELECT * FROM x ;; WITH x (SELECT a FROM t) SELECT * FROM x ;; WITH x AS (SELECT a FROM t)
(SELECT * FROM x) ;; WITH x AS (SELECT 1 AS a) (WITH y AS (SELECT 2 AS a) SELECT * FROM x JOIN y ON true) ;;
WITH x AS (SELECT 1 AS a) WITH y AS (SELECT a FROM x) SELECT * FROM y ;; WITH x AS (VALUES (1)) SELECT * FROM x
;; WITH x AS (TABLE u) SELECT a FROM x ;; WITH x AS (SELECT a FROM t) SELECT a FROM x UNION ALL SELECT a FROM x
;; WITH x AS (SELECT a FROM t) FROM x SELECT a ;; WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM
x WHERE n < 3) SELECT * FROM x ;; WITH RECURSIVE x MAX RECURSION LEVEL 5 AS (SELECT 1 AS n UNION ALL SELECT n +
1 FROM x WHERE n < 3) SELECT * FROM x ;; WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x WHERE
n < 3) SEARCH DEPTH FIRST BY n SET o SELECT * FROM x ;; SELECT a FROM t UNION SELECT a FROM u ;; SELECT a FROM t
UNION DISTINCT SELECT a FROM u ;; SELECT a FROM t UNION ALL SELECT a FROM u ;; SELECT a FROM t EXCEPT SELECT a
FROM u ;; SELECT a FROM t EXCEPT ALL SELECT a FROM u ;; SELECT a FROM t MINUS SELECT a FROM u ;; SELECT a FROM t
MINUS ALL SELECT a FROM u ;; SELECT a FROM t INTERSECT SELECT a FROM u ;; SELECT a FROM t INTERSECT ALL SELECT a
FROM u ;; SELECT a FROM t UNION BY NAME SELECT a FROM u ;; SELECT a, b FROM t UNION ALL BY NAME SELECT b, a FROM
u ;; SELECT a, b FROM t UNION ALL CORRESPONDING SELECT b, a FROM u ;; SELECT a FROM t UNION SELECT a FROM u
INTERSECT SELECT b FROM u ;; SELECT b FROM u INTERSECT SELECT a FROM u UNION SELECT a FROM t ;; SELECT a FROM t
UNION ALL SELECT a FROM u EXCEPT SELECT b FROM u ;; SELECT a FROM t EXCEPT SELECT a FROM u UNION ALL SELECT b
FROM u ;; SELECT a FROM t EXCEPT SELECT a FROM u EXCEPT SELECT b FROM u ;; SELECT a FROM t EXCEPT (SELECT a FROM
u EXCEPT SELECT b FROM u) ;; SELECT a FROM t EXCEPT SELECT b FROM t INTERSECT SELECT b FROM u ;; SELECT a FROM t
UNION ALL SELECT a FROM u UNION SELECT b FROM u ;; SELECT a FROM t UNION SELECT a FROM u UNION ALL SELECT b FROM
u ;; SELECT a AS x FROM t UNION ALL SELECT a FROM u ORDER BY x LIMIT 2 ;; SELECT a FROM t UNION ALL (SELECT a
FROM u ORDER BY a LIMIT 1) ;; SELECT a FROM t UNION ALL VALUES (1) ;; SELECT a FROM t UNION ALL TABLE u ;;
SELECT a FROM t UNION ALL SELECT d FROM t ;; SELECT a FROM t UNION ALL SELECT c FROM t ;; SELECT a FROM t LIMIT
1 UNION ALL SELECT a FROM u ;; SELECT NULL AS x UNION ALL SELECT 1 ;; SELECT a FROM t LATERAL VIEW explode(m) AS
x ;; SELECT a, x FROM t LATERAL VIEW explode(m) v AS x ;; SELECT a, v.x FROM t LATERAL VIEW explode(m) v AS x ;;
SELECT a, v.col FROM t LATERAL VIEW explode(m) v ;; SELECT a, x FROM t LATERAL VIEW OUTER explode(m) v AS x ;;
SELECT a, i, x FROM t LATERAL VIEW posexplode(m) v AS i, x ;; SELECT a, x, y FROM t LATERAL VIEW explode(m) v AS
x LATERAL VIEW explode(array(x, 1)) w AS y ;; SELECT * FROM u LATERAL VIEW explode(array(a, b)) v AS x ;; SELECT
v.* FROM u LATERAL VIEW explode(array(a, b)) v AS x ;; SELECT t.a, x FROM t LATERAL VIEW explode(m) v AS x JOIN
u ON t.a = u.a ;; SELECT t.a, u.e, x FROM t JOIN u ON t.a = u.a LATERAL VIEW explode(m) v AS x ;; SELECT a, x
FROM t LATERAL VIEW explode(m) v AS x WHERE x > 2 ;; SELECT t.a, x FROM t, LATERAL explode(m) AS v(x) ;; SELECT
t.a, x FROM t, explode(m) AS v(x) ;; SELECT t.a, x FROM t CROSS JOIN UNNEST(m) AS v(x) ;; SELECT t.a, x.b FROM
t, LATERAL (SELECT u.b FROM u WHERE u.a = t.a) x ;; SELECT * FROM range(3) ;; SELECT * FROM explode(array(1, 2))
;; SELECT a, explode(m) FROM t ;; SELECT a, explode(m) AS x FROM t ;; SELECT a, explode(m) x FROM t ;; SELECT a,
posexplode(m) AS (i, x) FROM t ;; SELECT a, posexplode(m) FROM t ;; SELECT a, explode_outer(m) AS x FROM t ;;
SELECT inline(array(struct(1 AS x, 2 AS y))) ;; SELECT explode(map(1, 2)) ;; SELECT a FROM t WHERE explode(m) =
1 ;; SELECT a FROM t, u ;; SELECT t.a FROM t START WITH a = 1 CONNECT BY PRIOR a = b ;; SELECT a FROM t
MATCH_RECOGNIZE (PATTERN (x) DEFINE x AS true) ;; SELECT a FROM t -- comment ;; SELECT a /* c */ FROM t ;;
SELECT a FROM identifier('t') ;; SELECT identifier('a') FROM t ;; SELECT a FROM default.t ;; SELECT a FROM `t`
;; SELECT a FROM T ;; SELECT a b c FROM t ;; SELECT a FROM t x y ;; SELECT a FROM t WHERE ;; EXPLAIN SELECT a
FROM t ;; DESCRIBE t ;; SHOW TABLES
"""),
    "SELECT a FROM t; ",
]
_JOINS = [
    f"SELECT {items} FROM t {join} u {condition}"
    for join, condition in (
        ("JOIN", "USING (a)"),
        ("LEFT JOIN", "USING (a)"),
        ("RIGHT JOIN", "USING (a)"),
        ("FULL JOIN", "USING (a)"),
        ("JOIN", "USING (a, b)"),
        ("LEFT SEMI JOIN", "USING (a)"),
        ("LEFT ANTI JOIN", "USING (a)"),
        ("NATURAL JOIN", ""),
        ("NATURAL LEFT JOIN", ""),
        ("NATURAL RIGHT JOIN", ""),
        ("NATURAL FULL JOIN", ""),
        ("JOIN", "USING (b, a)"),
        ("FULL JOIN", "USING (b, a)"),
        ("CROSS JOIN", "USING (a)"),
    )
    for items in _items("""
* ;; t.* ;; u.* ;; a, t.a, u.a ;; t.a AS x, b ;; * EXCEPT (a) ;; t.* EXCEPT (a) ;; u.* EXCEPT (b) ;; e, u.e,
t.b, u.b
""")
    if not ("SEMI" in join or "ANTI" in join) or items in ("*", "t.*", "* EXCEPT (a)", "u.*")
]
_JOINS += [
    f"SELECT t.a, u.e FROM t {text}"
    for text in _items("""
JOIN u ON t.a = u.a ;; INNER JOIN u ON t.a = u.a ;; LEFT OUTER JOIN u ON t.a = u.a ;; OUTER JOIN u ON t.a = u.a
;; CROSS JOIN u ;; CROSS JOIN u ON t.a = u.a ;; JOIN u ;; , u ;; , u WHERE t.a = u.a ;; LEFT JOIN u ;; FULL
OUTER JOIN u ON t.a = u.a AND t.b > 2 ;; ASOF JOIN u ON t.a >= u.a ;; ASOF JOIN u MATCH_CONDITION (t.a >= u.a)
ON t.b = u.b ;; ASOF LEFT JOIN u ON t.a = u.a ;; POSITIONAL JOIN u ;; NATURAL JOIN u ON t.a = u.a ;;
STRAIGHT_JOIN u ON t.a = u.a ;; LEFT SEMI JOIN u ON t.a = u.a ;; SEMI JOIN u ON t.a = u.a ;; ANTI JOIN u ON t.a
= u.a ;; RIGHT SEMI JOIN u ON t.a = u.a ;; ANY JOIN u ON t.a = u.a ;; GLOBAL JOIN u ON t.a = u.a ;; HASH JOIN u
ON t.a = u.a ;; LEFT ARRAY JOIN m ;; ARRAY JOIN m ;; CROSS APPLY u ;; OUTER APPLY u ;; JOIN LATERAL (SELECT e
FROM u WHERE u.a = t.a) u ;; JOIN u ON TRUE ;; JOIN u ON t.a ;; JOIN u ON (t.a = u.a) ;; JOIN u USING a ;; JOIN
u USING (t.a) ;; JOIN u ON t.a = u.a AND t.b = u.b OR t.a = 5 ;; NATURAL INNER JOIN u ;; NATURAL CROSS JOIN u ;;
INNER HASH JOIN u ON t.a = u.a ;; LEFT ANTI JOIN u ON t.a = u.a ;; JOIN u PIVOT (max(b) FOR a IN (1)) ;; JOIN (u
JOIN k ON u.a = k.year) ON t.a = u.a ;; JOIN u JOIN u AS u2 ON u.a = u2.a ON t.a = u.a ;; NATURAL LEFT SEMI JOIN
u
""")
]
_JOINS += _items("""
SELECT * FROM u u1 JOIN u u2 USING (a) JOIN u u3 USING (a) ;; SELECT * FROM u u1 JOIN u u2 USING (a) JOIN u u3
USING (b) ;; SELECT * FROM u u1 LEFT JOIN u u2 USING (a) LEFT JOIN u u3 USING (a, b) ;; SELECT * FROM u u1 FULL
JOIN u u2 USING (a) FULL JOIN u u3 USING (a) ;; SELECT * FROM u u1 FULL JOIN u u2 USING (a) JOIN u u3 USING (a)
;; SELECT * FROM u u1 RIGHT JOIN u u2 USING (a) RIGHT JOIN u u3 USING (a) ;; SELECT a FROM u u1 RIGHT JOIN u u2
USING (a) LEFT JOIN u u3 USING (a) ;; SELECT u1.*, u3.* FROM u u1 JOIN u u2 USING (a) JOIN u u3 USING (a) ;;
SELECT u2.* FROM u u1 FULL JOIN u u2 USING (a) FULL JOIN u u3 USING (a) ;; SELECT u1.a, u2.a, u3.a, a FROM u u1
FULL JOIN u u2 USING (a) FULL JOIN u u3 USING (a) ;; SELECT * FROM u u1 NATURAL JOIN u u2 NATURAL JOIN u u3 ;;
SELECT * FROM t NATURAL JOIN u u1 JOIN u u2 USING (e) ;; SELECT * FROM (SELECT a AS x FROM t) NATURAL JOIN
(SELECT b AS y FROM u) ;; SELECT * FROM t JOIN u ON t.a = u.a JOIN k ON u.a = k.year ;; SELECT * EXCEPT (a, b)
FROM t JOIN u USING (a) ;; SELECT * EXCEPT (t.b) FROM t JOIN u USING (a) ;; SELECT * EXCEPT (nope) FROM t ;;
SELECT * EXCEPT (a, a) FROM t ;; SELECT * EXCEPT (a), a FROM t ;; SELECT * EXCEPT a FROM t ;; SELECT * EXCEPT
(s.x) FROM t ;; SELECT * EXCEPT () FROM t ;; SELECT * EXCLUDE (a) FROM t ;; SELECT * REPLACE (1 AS a) FROM t ;;
SELECT * RENAME (a AS z) FROM t ;; SELECT * ILIKE 'a' FROM t ;; SELECT s.* FROM t ;; SELECT t.s.* FROM t ;;
SELECT s.* EXCEPT (x) FROM t ;; SELECT a, * FROM u ;; SELECT *, * FROM u ;; SELECT * FROM t, u ;; SELECT t.*,
u.* FROM t, u ;; SELECT x.* FROM t AS x JOIN u USING (a) ;; SELECT T.* FROM t ;; SELECT * AS x FROM u ;; SELECT
struct(*) FROM u ;; SELECT coalesce(*) FROM (SELECT a, b FROM u) ;; SELECT array(*) FROM (SELECT a, b FROM u) ;;
SELECT struct(u.*) FROM u ;; SELECT named_struct('a', *) FROM (SELECT 1) ;; SELECT a FROM t JOIN u USING (a)
WHERE a = 2 ;; SELECT a FROM t FULL JOIN u USING (a) WHERE a IS NOT NULL ;; SELECT a, count(*) FROM t FULL JOIN
u USING (a) GROUP BY a ;; SELECT t.a, count(*) FROM t FULL JOIN u USING (a) GROUP BY t.a ;; SELECT a, count(*)
FROM t LEFT JOIN u USING (a) GROUP BY t.a ;; SELECT t.a, count(*) FROM t LEFT JOIN u USING (a) GROUP BY a ;;
SELECT u.a, count(*) FROM t LEFT JOIN u USING (a) GROUP BY u.a ;; SELECT A FROM t JOIN u USING (A) ;; SELECT *
FROM (SELECT a AS A, b FROM t) x JOIN u USING (a)
""")
_RESERVED = _items("""
date ;; timestamp ;; year ;; all ;; window ;; values ;; first ;; interval ;; end ;; order ;; current_date ;;
timestamp_ntz ;; map ;; left
""")
_KEYWORDS = [
    text.format(name=name)
    for name in _RESERVED
    for text in _items("""
SELECT {name} FROM k ;; SELECT k.{name} FROM k ;; SELECT `{name}` FROM k ;; SELECT year AS {name} FROM k ;;
SELECT year {name} FROM k ;; SELECT count({name}) AS n FROM k WHERE {name} IS NOT NULL ;; SELECT {name},
count(*) AS n FROM k GROUP BY {name} ;; SELECT {name} AS x FROM k ORDER BY {name}, k.all LIMIT 1 ;; SELECT
x.{name} FROM k AS x ;; SELECT {name}.year FROM k AS {name}
""")
]
_KEYWORDS += [
    f"SELECT {word} FROM (SELECT a AS `{word}` FROM t) x"
    for word in _items("""
offset ;; limit ;; filter ;; row ;; rows ;; range ;; type ;; any ;; some ;; exists ;; in ;; is ;; like ;; rlike
;; div ;; mod ;; case ;; when ;; cast ;; extract ;; trim ;; overlay ;; position ;; substring ;; struct ;; array
;; table ;; lateral ;; recursive ;; within ;; escape ;; using ;; natural ;; cross ;; semi ;; anti ;; minus ;;
except ;; union ;; set ;; default ;; current ;; asc ;; desc ;; nulls ;; last ;; over ;; partition ;; unbounded
;; preceding ;; following ;; tablesample ;; percent ;; pivot ;; unpivot ;; sort ;; cluster ;; distribute ;; user
;; current_user ;; current_timestamp ;; current_time ;; localtime ;; session_user ;; time ;; day ;; month ;;
hour ;; minute ;; second ;; week ;; quarter ;; string ;; int ;; bigint ;; double ;; decimal ;; boolean ;; binary
;; float ;; char ;; null ;; true ;; false ;; select ;; from ;; where ;; group ;; having ;; by ;; on ;; join ;;
inner ;; full ;; right ;; outer ;; and ;; or ;; not ;; as ;; with ;; distinct ;; between ;; then ;; else ;; to
;; for ;; fetch ;; qualify ;; respect ;; ignore ;; zone ;; if ;; unique ;; primary ;; references ;; collate ;;
check ;; constraint ;; both ;; leading ;; trailing ;; grouping ;; sets ;; cube ;; rollup ;; insert ;; comment ;;
database ;; schema ;; version ;; system_time ;; materialized ;; temp ;; global ;; local ;; top ;; format ;;
object ;; json ;; variant ;; vector ;; uuid ;; prior ;; connect ;; start ;; asof ;; glob ;; overlaps ;; similar
;; final ;; only ;; view ;; index
""")
]

_SCOPES = [
    *_items(r"""
SELECT a FROM t AS a ;; SELECT a.a FROM t AS a ;; SELECT s.a FROM t AS s ;; SELECT s.x FROM t AS s ;; SELECT
s.s.x FROM t AS s ;; SELECT t.s.x, s.y FROM t ;; SELECT T.S.X FROM t ;; SELECT x.a FROM t x, u y WHERE x.a = y.a
;; SELECT a FROM t x JOIN u y ON x.a = y.a ;; SELECT x.a, y.a FROM t x JOIN t y ON x.a = y.b ;; SELECT t.a FROM
t JOIN t ON true ;; SELECT x.* FROM t x JOIN u x ON true ;; SELECT a FROM t WHERE a IN (SELECT b FROM u WHERE b
> a) ;; SELECT a FROM t WHERE a IN (SELECT a FROM u WHERE u.b = t.b) ;; SELECT a FROM t WHERE EXISTS (SELECT 1
FROM u WHERE a = t.a) ;; SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE c = e) ;; SELECT a FROM t WHERE
EXISTS (SELECT c FROM u) ;; SELECT (SELECT max(b) FROM u WHERE u.a = t.a) AS x FROM t ;; SELECT (SELECT count(*)
FROM u WHERE u.a = t.a) AS x FROM t ;; SELECT (SELECT t.a) AS x FROM t ;; SELECT (SELECT a) AS x FROM t ;;
SELECT a, (SELECT sum(b) FROM u WHERE a > 1) AS x FROM t ;; SELECT a FROM (SELECT a, b AS a2 FROM t) WHERE a2 =
3 ;; SELECT a FROM (SELECT a FROM t) t JOIN (SELECT a AS z FROM u) u ON t.a = u.z ;; SELECT t.a FROM (SELECT a
FROM u) t ;; SELECT * FROM (SELECT a, a FROM t) ;; SELECT a FROM (SELECT a, a FROM t) ;; SELECT a FROM (SELECT
a, b AS a FROM t) ;; SELECT * FROM (SELECT 1 AS x) NATURAL JOIN (SELECT 1 AS x, 2 AS y) ;; SELECT * FROM (SELECT
1 AS x) a NATURAL JOIN (SELECT 2 AS y) b ;; SELECT * FROM t, u, k WHERE t.a = u.a AND k.year = t.a ;; SELECT
t.a, u.e FROM t, u JOIN k ON u.a = k.year ;; SELECT t.a, u.e FROM t, u JOIN k ON t.a = k.year ;; SELECT t.a, u.e
FROM t JOIN u ON t.a = u.a, k WHERE k.all = 1 ;; SELECT t.a FROM t LEFT JOIN u ON t.a = u.a AND t.p WHERE u.a IS
NULL ;; SELECT t.a, u.a FROM t FULL JOIN u ON t.a = u.a WHERE t.a IS NULL OR u.a IS NULL ;; SELECT t.a FROM t
RIGHT JOIN u ON t.a = u.a AND u.b = 3 ;; SELECT count(*), count(a), count(DISTINCT a), sum(a), min(c), max(c)
FROM t WHERE false ;; SELECT a, count(*) FROM t WHERE false GROUP BY a ;; SELECT count(*) FROM t GROUP BY
ROLLUP(a) HAVING count(*) > 1 ;; SELECT sum(a) FROM t GROUP BY ROLLUP(p, q) HAVING p ;; SELECT count(*) FROM t
WHERE false GROUP BY ROLLUP(a) ;; SELECT count(*) FROM t WHERE false GROUP BY GROUPING SETS (()) ;; SELECT
count(*) FROM t WHERE false GROUP BY GROUPING SETS ((), (a)) ;; SELECT a + 1 FROM t GROUP BY a ;; SELECT a + b
FROM t GROUP BY a ;; SELECT a + b FROM t GROUP BY a, b ;; SELECT a, a + 1 AS b FROM t GROUP BY a, b ;; SELECT
upper(c) AS c, count(*) FROM t GROUP BY c ;; SELECT upper(c) AS c, count(*) FROM t GROUP BY upper(c) ;; SELECT c
AS x FROM t GROUP BY upper(c) ;; SELECT s.x, count(*) FROM t GROUP BY s.x ;; SELECT s.x FROM t GROUP BY s ;;
SELECT s FROM t GROUP BY s.x ;; SELECT s.x, count(*) FROM t GROUP BY s['x'] ;; SELECT a, count(*) FROM t GROUP
BY CAST(a AS INT) ;; SELECT CAST(a AS BIGINT), count(*) FROM t GROUP BY a ;; SELECT CASE WHEN a > 1 THEN 'x'
ELSE 'y' END AS k, count(*) FROM t GROUP BY k ;; SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END AS a, count(*)
FROM t GROUP BY a ;; SELECT a FROM t GROUP BY a, 'x', 1.5, NULL, true ;; SELECT DISTINCT a, b FROM t ORDER BY b
NULLS LAST, a LIMIT 2 ;; SELECT DISTINCT a AS x, b FROM t ORDER BY a, b LIMIT 2 ;; SELECT DISTINCT a AS x, b
FROM t ORDER BY t.a, b LIMIT 2 ;; SELECT a, rank() OVER (ORDER BY count(*) DESC, a) AS r, count(*) FROM t GROUP
BY a ;; SELECT sum(count(*)) OVER () AS x FROM t GROUP BY a ;; SELECT a, sum(a) OVER (PARTITION BY a % 2) AS x
FROM t WHERE p ;; SELECT a, sum(sum(b)) OVER (PARTITION BY a % 2) AS x FROM t GROUP BY a ;; SELECT a, x FROM
(SELECT a, row_number() OVER (PARTITION BY a ORDER BY b, c) AS x FROM t) WHERE x = 1 ;; SELECT a, max(b) OVER
(PARTITION BY a) - b AS x FROM t ;; SELECT a AS p, sum(b) OVER (PARTITION BY p) AS x FROM t ;; SELECT b AS a,
sum(b) OVER (PARTITION BY a) AS x FROM t ;; SELECT v.x, t.a FROM t LATERAL VIEW explode(m) t2 AS a LATERAL VIEW
explode(m) v AS x ;; SELECT a FROM t LATERAL VIEW explode(m) v AS a ;; SELECT v.a, t.a FROM t LATERAL VIEW
explode(m) v AS a ;; SELECT * FROM (SELECT a, m FROM t) LATERAL VIEW explode(m) v AS x ;; SELECT pos, col FROM t
LATERAL VIEW posexplode(m) v ;; SELECT key, value FROM t LATERAL VIEW explode(map('k', a)) v ;; SELECT x.y FROM
(SELECT struct(a AS y) AS x FROM t) ;; SELECT x.y FROM (SELECT a AS y FROM t) x ;; SELECT x.y FROM (SELECT
struct(1 AS y) AS x, a AS y FROM t) x ;; WITH a AS (SELECT a FROM t), b AS (SELECT a FROM a) SELECT a.a FROM a
JOIN b ON a.a = b.a ;; WITH t AS (SELECT 1 AS z) SELECT z FROM t ;; WITH x AS (SELECT a FROM t) SELECT (SELECT
max(a) FROM x) AS m FROM u ;; WITH x AS (SELECT a FROM t) SELECT * FROM (SELECT * FROM x) y WHERE EXISTS (SELECT
1 FROM x WHERE x.a = y.a) ;; WITH x AS (WITH y AS (SELECT a FROM t) SELECT a + 1 AS b FROM y) SELECT b FROM x ;;
WITH X AS (SELECT a FROM t) SELECT x.A FROM x ;; SELECT a FROM t UNION ALL SELECT a FROM (SELECT b AS a FROM t)
WHERE a > 2 ;; SELECT a AS x FROM t UNION SELECT b AS y FROM t ;; SELECT a, 'x' AS k FROM t UNION ALL SELECT b,
NULL FROM t ;; (SELECT a FROM t EXCEPT SELECT a FROM u) UNION ALL SELECT 100 ;; SELECT a FROM t INTERSECT
(SELECT a FROM u UNION SELECT b FROM u) ;; SELECT a, b FROM t EXCEPT SELECT a, b FROM u ORDER BY a, b LIMIT 2 ;;
(SELECT a FROM t ORDER BY a NULLS LAST LIMIT 2) INTERSECT SELECT a FROM u ;; SELECT * FROM (SELECT a FROM t
UNION ALL SELECT b FROM t) x(z) WHERE z > 2 ;; SELECT a FROM (SELECT a FROM t ORDER BY b, a LIMIT 3) ORDER BY a
DESC NULLS LAST LIMIT 1 ;; SELECT a FROM (SELECT a FROM t ORDER BY b) WHERE a > 1 ;; SELECT CASE a WHEN 1 THEN
'one' WHEN NULL THEN 'null' END AS x FROM t ;; SELECT CASE WHEN p THEN q END AS x, CASE WHEN NULL THEN 1 ELSE 2
END AS y FROM t ;; SELECT a IN (1, NULL) AS x, a NOT IN (1, NULL) AS y, a NOT IN (SELECT a FROM u) AS z FROM t
;; SELECT a FROM t WHERE a NOT IN (SELECT a FROM u WHERE a IS NOT NULL) ;; SELECT a FROM t WHERE (a, b) NOT IN
(SELECT a, b FROM u WHERE a IS NOT NULL AND b IS NOT NULL) ;; SELECT a FROM t WHERE (SELECT max(a) FROM u) = 8
AND NOT (p OR q) ;; SELECT a FROM t WHERE p AND q OR NOT p AND NOT q ;; SELECT a FROM t HAVING max(a) > 1 ;;
SELECT max(a) FROM t HAVING max(b) > 100 ;; SELECT a FROM t GROUP BY a HAVING count(*) > 1 AND a IS NOT NULL OR
a = 5 ;; SELECT a, b FROM t GROUP BY a, b HAVING sum(a) > sum(b) ;; SELECT c || '-' || a AS x FROM t WHERE c ||
a LIKE '%2%' ;; SELECT `a`, `b` `B B` FROM `t` `T T` WHERE `T T`.`a` = 1 ;; SELECT a,b,c FROM t WHERE a=1 OR
a=-1 ;; SELECT a /* x /* nested */ y */ FROM t ;; SELECT 'it''s' AS x, "it''s" AS y, 'say ""' AS z ;; SELECT
'a\'b' AS x
"""),
    "SELECT a--1\n FROM t",
    'SELECT a FROM t WHERE c = "1"',
    "SELECT a FROM t WHERE c = '1' '' ",
]

_MIXED = [
    "SELECT count(DISTINCT *) FROM u",
    "SELECT count(DISTINCT u.*) FROM u",
    "SELECT count(*), count(* ) FILTER (WHERE a = 1) FROM t",
    "SELECT sum(b) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t",
    "SELECT sum(b) OVER (ORDER BY a, b, c ROWS BETWEEN -1 PRECEDING AND CURRENT ROW) FROM t",
    "SELECT sum(b) OVER (ORDER BY a, b, c ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM t",
    "SELECT sum(b) OVER (ORDER BY a RANGE CURRENT ROW) FROM t",
    "SELECT sum(year) OVER (ORDER BY date RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) FROM k",
    "SELECT sum(year) OVER (ORDER BY date RANGE BETWEEN 400 PRECEDING AND CURRENT ROW) FROM k",
    "SELECT sum(b) OVER (ORDER BY a DESC RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
    "SELECT count(*) OVER (ORDER BY a) FROM t",
    "SELECT first_value(a) OVER (PARTITION BY p ORDER BY a, b ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM t",
    "SELECT lag(a, -1) OVER (ORDER BY a, b, c) FROM t",
    "SELECT lag(a, 0) OVER (ORDER BY a, b, c) FROM t",
    "SELECT lag(a, 1, b) OVER (ORDER BY a, b, c) FROM t",
    "SELECT lead(c, 2, 'none') OVER (PARTITION BY p ORDER BY a, b, c) FROM t",
    "SELECT ntile(3) OVER (ORDER BY a, b, c), percent_rank() OVER (ORDER BY a) FROM t",
    "SELECT a, count(*) FROM t GROUP BY a HAVING count(*) BETWEEN 1 AND 2 AND a IN (1, 2)",
    "SELECT a FROM t WHERE c LIKE '2_' OR c LIKE '_' AND NOT p",
    "SELECT a FROM t WHERE c IN ('1', '3') IS TRUE",
    "SELECT a FROM t WHERE NOT a = 1 AND NOT a = 2 OR a IS NULL",
    "SELECT a FROM t WHERE a = 1 = p",
    "SELECT a FROM t WHERE (a = 1) = p",
    "SELECT a FROM t WHERE - a < - 1",
    "SELECT a FROM t WHERE a + b * 2 - 1 > 3 AND b % 2 = 1 OR p",
    "SELECT a FROM t WHERE p IS NOT NULL AND q IS NOT TRUE",
    "SELECT a FROM t WHERE CASE WHEN p THEN a ELSE b END > 2",
    "SELECT a FROM t WHERE CASE a WHEN 1 THEN true WHEN 2 THEN false END",
    "SELECT CASE WHEN a = 1 THEN 'x' WHEN b = 3 THEN c END FROM t",
    "SELECT CASE a + 1 WHEN 2 THEN 'x' ELSE c || 'y' END FROM t",
    "SELECT if(a > 1 AND p, a, b) FROM t",
    "SELECT a BETWEEN b - 1 AND b + 1 AND p FROM t",
    "SELECT NOT a BETWEEN 1 AND 2 AND p FROM t",
    "SELECT (a) + (b) FROM t",
    "SELECT ((a + b)) * ((2)) FROM t",
    "SELECT a -b FROM t",
    "SELECT a - - b FROM t",
    "SELECT -(-a) FROM t",
    "SELECT - 1 + a FROM t",
    "SELECT 1 - 1 - 1, 8 / 2 / 2, 7 % 4 % 2, 2 * 3 + 4 * 5",
    "SELECT 1 + 1 || 1 + 1, 1 || 1 = 11",
    "SELECT true OR true AND false, NOT true OR true, NOT (true OR true)",
    "SELECT 1 = 1 = true, 1 < 2 = true, NOT 1 = 2",
    "SELECT ~1 & 3, ~(1 & 3), -1 ^ 2, 1 | 2 ^ 3 & 4",
    "SELECT 1 << 2 + 1, 1 + 1 << 2, 8 >> 1 + 1",
    "SELECT a AS `select`, b AS `from` FROM t",
    "SELECT t.`a`, `t`.b FROM `t`",
    "SELECT * FROM u ORDER BY a, b LIMIT 2",
    "SELECT * FROM u ORDER BY e DESC LIMIT 1 OFFSET 1",
    "SELECT * FROM (SELECT * FROM u ORDER BY a, b LIMIT 3) ORDER BY b NULLS LAST LIMIT 1",
    "SELECT a, b FROM t ORDER BY a IS NULL, a, b LIMIT 2",
    "SELECT a, b FROM t ORDER BY NOT p, a, b LIMIT 2",
    "SELECT a, b FROM t ORDER BY a % 2 = 0, a, b LIMIT 2",
    "SELECT a, b FROM t ORDER BY CASE WHEN a = 2 THEN 0 ELSE 1 END, a, b LIMIT 2",
    "SELECT a, b AS c FROM t ORDER BY c, a LIMIT 2",
    "SELECT a, b AS c FROM t ORDER BY t.c, a LIMIT 2",
    "SELECT sum(a) AS a FROM t GROUP BY b ORDER BY a LIMIT 2",
    "SELECT sum(a) AS s2, b FROM t GROUP BY b ORDER BY sum(a) DESC NULLS LAST, b LIMIT 2",
    "SELECT b, count(*) FROM t GROUP BY b ORDER BY 2 DESC, 1 LIMIT 2",
    "SELECT x.a, y.e FROM t x LEFT JOIN (SELECT * FROM u WHERE b > 2) y ON x.a = y.a AND x.b = y.b",
    "SELECT x.a, y.e FROM t x JOIN u y ON x.a = y.a AND x.b <> y.b OR x.a IS NULL AND y.a IS NULL",
    "SELECT x.a, y.e FROM t x JOIN u y ON x.a <=> y.a AND x.b <=> y.b",
    "SELECT x.a, y.e FROM t x JOIN u y ON x.a + 1 = y.a",
    "SELECT x.a, y.a AS z FROM t x LEFT JOIN u y ON false",
    "SELECT x.a, y.a AS z FROM t x FULL JOIN u y ON x.a = y.a AND x.p",
    "SELECT x.a FROM t x LEFT SEMI JOIN u y ON x.a = y.a AND x.b < y.b",
    "SELECT x.a FROM t x LEFT ANTI JOIN u y ON x.a = y.a AND x.b < y.b",
    "SELECT x.a, z.e FROM t x JOIN u y ON x.a = y.a LEFT JOIN u z ON y.b = z.b",
    "SELECT x.a FROM t x CROSS JOIN u y WHERE x.a = y.b",
    "SELECT t.a, u.a FROM t NATURAL JOIN u",
    "SELECT a, e, t.c FROM t NATURAL LEFT JOIN u WHERE e IS NULL",
    "SELECT k.date, date, k.timestamp FROM k WHERE date > DATE'2023-06-01'",
    "SELECT date + 1, date - 1, date - date, date + INTERVAL 1 DAY FROM k",
    "SELECT timestamp + INTERVAL 1 HOUR, timestamp - INTERVAL '1' DAY, timestamp - timestamp FROM k",
    "SELECT year(date), year, month(date) FROM k",
    "SELECT year AS date, date AS year FROM k ORDER BY year LIMIT 1",
    "SELECT first, first(first) OVER (ORDER BY k.all, k.window) FROM k",
    "SELECT window, count(*) FROM k GROUP BY window",
    "SELECT interval FROM k WHERE interval = 4",
    "SELECT interval + 1, interval - 1 FROM k",
    "SELECT map, map + 1 FROM k",
    "SELECT left, left + 1 FROM k",
    "SELECT end, CASE WHEN end = 5 THEN end END FROM k",
    "SELECT k.order FROM k ORDER BY k.order LIMIT 1",
    "SELECT `order` FROM k ORDER BY order LIMIT 1",
    "SELECT timestamp_ntz + 1 FROM k",
    "SELECT max(`all`), min(all) FROM k",
    "SELECT count(all) FROM k",
    "SELECT count(ALL year) FROM k",
    "SELECT values + 1 FROM k",
    "SELECT all + 1 FROM k",
    "SELECT k.all + k.values FROM k WHERE k.values IS NOT NULL",
]

QUERIES = {
    "mixed": _MIXED,
    "scopes": _SCOPES,
    "grouping": [*_GROUPS, *_GROUPINGS],
    "limits": _LIMITS,
    "orders": _ORDERS,
    "aliases": _ALIASES,
    "windows": _WINDOWS,
    "clauses": _CLAUSES,
    "joins": _JOINS,
    "keywords": _KEYWORDS,
}
"""Whole queries, by theme."""


SPARK_REFUSES = frozenset(
    {
        "SELECT CAST(a AS TEXT) FROM t",
        "SELECT DISTINCT a + 1 FROM t ORDER BY a + 1 LIMIT 3",
        "SELECT DISTINCT a AS x, b FROM t ORDER BY a, b LIMIT 2",
        "SELECT DISTINCT a AS x, b FROM t ORDER BY t.a, b LIMIT 2",
        "SELECT a, count(*) AS b FROM t GROUP BY a ORDER BY max(b) DESC, a LIMIT 2",
        "SELECT a, b FROM t ORDER BY row_number() OVER (ORDER BY b, a, c) DESC LIMIT 2",
        "SELECT a % 2 AS x, x + 1 AS y, count(*) FROM t GROUP BY x, y",
        "SELECT a, max(b) AS m FROM t GROUP BY a HAVING m > 2",
        "SELECT a AS x, row_number() OVER (ORDER BY x, b, c) AS n FROM t",
        "SELECT a, count(*) FROM t GROUP BY CAST(a AS INT)",
        "SELECT CASE WHEN p THEN q END AS x, CASE WHEN NULL THEN 1 ELSE 2 END AS y FROM t",
        "SELECT left.year FROM k AS left",
    }
)
"""What Spark refuses and a view takes, because it has one meaning only."""


def texts() -> Iterator[tuple[str, str]]:
    """Every text as a query, with its theme."""
    for theme, items in EXPRESSIONS.items():
        for item in items:
            yield theme, f"SELECT {item} FROM t"
    for theme, queries in QUERIES.items():
        for query in queries:
            yield theme, query
