"""The scalar grammar: one line for each function or operator, with the kinds it takes and gives.

A new function is one more line. Holes that are no kinds are literals: see ``LITERALS``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.generator.kinds import COMPARED, KEYS, SCALAR, UNREAD, Kind
from support.generator.text import Differs, Sql, sql

if TYPE_CHECKING:
    import random

K = Kind

LITERALS: dict[str, tuple[str, ...]] = {
    "small": ("0", "1", "2", "3"),
    "positive": ("1", "2", "3", "7"),
    "pattern": ("'a%'", "'%b%'", "'_'", "''", "'%'"),
    "regex": ("'a'", "'[a-b]+'", "'^a'", "'b$'", "'(a)(b)?'"),
    "letters": ("'a'", "'b'", "''", "'ab'", "','"),
    "dates": ("'month'", "'year'", "'week'", "'quarter'"),
    "units": ("'hour'", "'day'", "'month'", "'minute'"),
}
CONSTANTS: dict[Kind, tuple[str, ...]] = {
    K.BOOL: ("TRUE", "FALSE"),
    K.INT: ("0", "1", "2", "-1", "7"),
    K.BIGINT: ("CAST(0 AS BIGINT)", "CAST(3 AS BIGINT)", "CAST(-5 AS BIGINT)"),
    K.DECIMAL: ("0.5", "1.10", "2.5", "-3.25"),
    K.FLOAT: ("CAST(0.5 AS FLOAT)", "CAST(2 AS FLOAT)"),
    K.DOUBLE: ("CAST(0.5 AS DOUBLE)", "CAST(2 AS DOUBLE)", "CAST('NaN' AS DOUBLE)"),
    K.REAL: ("CAST(0.1 AS DOUBLE)", "CAST(3.3 AS DOUBLE)"),
    K.STRING: ("'a'", "''", "'ab'", "'B'"),
    K.NUMERAL: ("'1'", "'12'", "'-3'"),
    K.BINARY: ("CAST('a' AS BINARY)", "CAST('' AS BINARY)"),
    K.DATE: ("DATE '2024-02-28'", "DATE '2024-02-29'", "DATE '1970-01-01'"),
    K.TIMESTAMP: ("TIMESTAMP '2024-02-28 12:30:15.25'",),
    K.NTZ: ("TIMESTAMP_NTZ '2024-02-28 12:30:15.25'",),
    K.INTS: ("array(1, 2)", "array(3)"),
    K.STRINGS: ("array('a', 'b')",),
    K.STRUCT: ("named_struct('x', 1, 'y', 'a')",),
    K.MAP: ("map('a', 1)",),
}
_DUCK_CONSTANTS = {
    "TIMESTAMP '": "TIMESTAMPTZ '",
    "TIMESTAMP_NTZ '": "TIMESTAMP '",
    "array(1, 2)": "[1, 2]",
    "array(3)": "[3]",
    "array('a', 'b')": "['a', 'b']",
    "named_struct('x', 1, 'y', 'a')": "{{'x': 1, 'y': 'a'}}",
    "map('a', 1)": "MAP {{'a': 1}}",
}
_TYPES: dict[Kind, str] = {
    K.BOOL: "BOOLEAN",
    K.INT: "INT",
    K.BIGINT: "BIGINT",
    K.DECIMAL: "DECIMAL(9, 2)",
    K.FLOAT: "FLOAT",
    K.DOUBLE: "DOUBLE",
    K.REAL: "DOUBLE",
    K.STRING: "STRING",
    K.NUMERAL: "STRING",
    K.BINARY: "BINARY",
    K.DATE: "DATE",
    K.TIMESTAMP: "TIMESTAMP",
    K.NTZ: "TIMESTAMP_NTZ",
    K.INTS: "ARRAY<INT>",
    K.STRINGS: "ARRAY<STRING>",
    K.STRUCT: "STRUCT<x: INT, y: STRING>",
    K.MAP: "MAP<STRING, INT>",
}
_DUCK_TYPES = {
    **_TYPES,
    K.INT: "BIGINT",
    K.TIMESTAMP: "TIMESTAMPTZ",
    K.NTZ: "TIMESTAMP",
    K.INTS: "INT[]",
    K.STRINGS: "VARCHAR[]",
    K.STRUCT: "STRUCT(x INT, y VARCHAR)",
    K.MAP: "MAP(VARCHAR, INT)",
}


@dataclass(frozen=True)
class Production:
    """An expression of a kind: Spark's template, the kinds (or literals) of its holes, DuckDB's template."""

    kind: Kind
    template: str
    holes: tuple[Kind | str, ...]
    duck: str | Differs | None = None
    raises: bool = False
    """Whether it fails for some rows of ordinary data."""


def _p(
    kind: Kind, template: str, *holes: Kind | str, duck: str | Differs | None = None, raises: bool = False
) -> Production:
    return Production(kind, template, holes, duck, raises)


def _numbers() -> list[Production]:
    productions = [
        _p(K.INT, "({} % {})", K.INT, "positive"),
        _p(K.INT, "pmod({}, {})", K.INT, "positive", duck="((({0} % {1}) + {1}) % {1})"),
        _p(K.BIGINT, "({} DIV {})", K.BIGINT, "positive", duck="({} // {})"),
        _p(K.BIGINT, "({} DIV {})", K.INT, K.INT, duck=Differs.RAISES, raises=True),
        _p(K.BIGINT, "({} DIV NULLIF({}, 0))", K.BIGINT, K.INT, duck="({} // NULLIF({}, 0))"),
        _p(K.REAL, "({} / {})", K.INT, "positive", duck="(CAST({} AS DOUBLE) / {})"),
        _p(K.REAL, "({} / {})", K.REAL, K.INT, duck=Differs.RAISES, raises=True),
        _p(K.REAL, "({} / NULLIF({}, 0))", K.DOUBLE, K.INT),
        _p(K.DECIMAL, "({} / NULLIF({}, 0))", K.DECIMAL, K.DECIMAL, duck=Differs.DECIMAL_TYPES),
        _p(K.DECIMAL, "({} * {})", K.DECIMAL, K.DECIMAL, duck=Differs.DECIMAL_TYPES),
        _p(K.DECIMAL, "({} + {})", K.DECIMAL, K.INT, duck=Differs.DECIMAL_TYPES),
        _p(K.DECIMAL, "({} % NULLIF({}, 0))", K.DECIMAL, K.DECIMAL, duck=Differs.DECIMAL_TYPES),
        _p(K.DECIMAL, "round({}, {})", K.DECIMAL, "small", duck=Differs.DECIMAL_TYPES),
        _p(K.DECIMAL, "bround({}, {})", K.DECIMAL, "small", duck=Differs.DECIMAL_TYPES),
        _p(K.DECIMAL, "ceil({})", K.DECIMAL, duck=Differs.DECIMAL_TYPES),
        _p(K.REAL, "round({}, {})", K.REAL, "small", duck=Differs.DOUBLE_TEXT),
        _p(K.REAL, "sqrt(abs({}))", K.REAL),
        _p(K.DOUBLE, "rint({})", K.DOUBLE, duck=Differs.DOUBLE_TEXT),
        _p(K.BIGINT, "floor({})", K.REAL, duck=Differs.RAISES, raises=True),
        _p(K.BIGINT, "ceil({})", K.INT, duck="{}"),
        _p(K.DOUBLE, "sign({})", K.REAL, duck=Differs.DOUBLE_TEXT),
        _p(K.BOOL, "isnan({})", K.REAL, duck="COALESCE(isnan({}), FALSE)"),
        _p(K.BOOL, "isnan({})", K.DOUBLE, duck="COALESCE(isnan({}), FALSE)"),
        _p(K.INT, "({} & {})", K.INT, K.INT),
        _p(K.INT, "({} | {})", K.INT, K.INT),
        _p(K.INT, "(~ {})", K.INT, duck=Differs.BITS),
        _p(K.BIGINT, "({} ^ {})", K.BIGINT, K.BIGINT, duck="xor({}, {})"),
        _p(K.BIGINT, "shiftleft({}, {})", K.BIGINT, "small", duck=Differs.BITS),
        _p(K.INT, "shiftright({}, {})", K.INT, "small", duck=Differs.BITS),
    ]
    for kind in (K.INT, K.BIGINT, K.DECIMAL, K.FLOAT, K.DOUBLE):
        differs = Differs.DECIMAL_TYPES if kind is K.DECIMAL else None
        productions += [_p(kind, f"({{}} {sign} {{}})", kind, kind, duck=differs) for sign in "+-"]
        productions += [_p(kind, "(- {})", kind), _p(kind, "abs({})", kind)]
        if kind not in (K.DECIMAL, K.FLOAT):
            productions.append(_p(kind, "({} * {})", kind, kind))
    return productions


def _logic() -> list[Production]:
    productions = [
        *(_p(K.BOOL, f"({{}} {word} {{}})", K.BOOL, K.BOOL) for word in ("AND", "OR", "AND", "OR")),
        *(_p(K.BOOL, "(NOT {})", K.BOOL) for _ in range(2)),
        _p(K.BOOL, "({} IN ({}, {}))", K.INT, K.INT, K.INT),
        _p(K.BOOL, "({} NOT IN ({}, NULL))", K.INT, K.INT),
        _p(K.BOOL, "({} IN ({}, {}))", K.STRING, K.STRING, K.STRING),
        _p(K.BOOL, "({} IS TRUE)", K.BOOL),
    ]
    for kind in KEYS:
        productions += [
            _p(K.BOOL, "({} IS NULL)", kind),
            _p(K.BOOL, "({} IS NOT NULL)", kind),
            _p(K.BOOL, "({} <=> {})", kind, kind, duck="({} IS NOT DISTINCT FROM {})"),
            _p(K.BOOL, "({} = {})", kind, kind),
            _p(K.BOOL, "({} <> {})", kind, kind),
        ]
    for kind in COMPARED:
        productions += [_p(K.BOOL, f"({{}} {sign} {{}})", kind, kind) for sign in ("<", "<=", ">", ">=")]
        productions += [
            _p(K.BOOL, "({} BETWEEN {} AND {})", kind, kind, kind),
            _p(kind, "greatest({}, {})", kind, kind),
            _p(kind, "least({}, {})", kind, kind),
        ]
    for kind in Kind:
        if kind not in UNREAD:
            productions += [
                _p(kind, "COALESCE({}, {})", kind, kind),
                _p(kind, "CASE WHEN {} THEN {} ELSE {} END", K.BOOL, kind, kind),
                _p(kind, "CASE WHEN {} THEN {} END", K.BOOL, kind),
                _p(kind, "if({}, {}, {})", K.BOOL, kind, kind, duck="CASE WHEN {} THEN {} ELSE {} END"),
                _p(kind, "nvl2({}, {}, {})", K.INT, kind, kind, duck="CASE WHEN {} IS NOT NULL THEN {} ELSE {} END"),
            ]
    productions += [_p(kind, "NULLIF({}, {})", kind, kind) for kind in SCALAR if kind is not K.DECIMAL]
    productions += [_p(K.DECIMAL, "NULLIF({}, {})", K.DECIMAL, K.DECIMAL, duck=Differs.DECIMAL_TYPES)]
    return productions


def _strings() -> list[Production]:
    return [
        _p(K.STRING, "({} || {})", K.STRING, K.STRING),
        _p(K.STRING, "concat({}, {})", K.STRING, K.NUMERAL, duck="({} || {})"),
        _p(K.STRING, "concat_ws('-', {}, {})", K.STRING, K.STRING),
        _p(K.STRING, "upper({})", K.STRING),
        _p(K.STRING, "lower({})", K.STRING),
        _p(K.STRING, "initcap({})", K.STRING, duck=Differs.TEXT_FUNCTION),
        _p(K.STRING, "trim({})", K.STRING),
        _p(K.STRING, "ltrim({})", K.STRING),
        _p(K.STRING, "reverse({})", K.STRING),
        _p(K.STRING, "substring({}, {}, {})", K.STRING, "positive", "small"),
        _p(K.STRING, "substring({}, -2)", K.STRING, duck=Differs.TEXT_FUNCTION),
        _p(K.STRING, "left({}, {})", K.STRING, "small"),
        _p(K.STRING, "right({}, {})", K.STRING, "small"),
        _p(K.STRING, "replace({}, {}, {})", K.STRING, "letters", "letters", duck=Differs.TEXT_FUNCTION),
        _p(K.STRING, "lpad({}, {}, 'x')", K.STRING, "small"),
        _p(K.STRING, "rpad({}, {}, 'yz')", K.STRING, "positive"),
        _p(K.STRING, "repeat({}, {})", K.STRING, "small"),
        _p(K.STRING, "translate({}, 'ab', 'x')", K.STRING),
        _p(K.STRING, "split_part({}, ',', {})", K.STRING, "positive", duck=Differs.TEXT_FUNCTION),
        _p(K.STRING, "substring_index({}, ',', {})", K.STRING, "positive", duck=Differs.TEXT_FUNCTION),
        _p(K.STRING, "regexp_replace({}, {}, 'z')", K.STRING, "regex", duck=Differs.TEXT_FUNCTION),
        _p(K.STRING, "regexp_extract({}, {}, 0)", K.STRING, "regex", duck=Differs.TEXT_FUNCTION),
        _p(K.STRING, "array_join({}, '-')", K.STRINGS, duck=Differs.NESTED_FUNCTION),
        _p(K.STRING, "{}.y", K.STRUCT),
        _p(K.STRINGS, "split({}, ',')", K.STRING, duck=Differs.TEXT_FUNCTION),
        _p(K.INT, "length({})", K.STRING),
        _p(K.INT, "octet_length({})", K.BINARY),
        _p(K.INT, "instr({}, {})", K.STRING, "letters", duck=Differs.TEXT_FUNCTION),
        _p(K.INT, "locate({}, {}, {})", "letters", K.STRING, "positive", duck=Differs.TEXT_FUNCTION),
        _p(K.INT, "ascii({})", K.STRING, duck=Differs.TEXT_FUNCTION),
        _p(K.BOOL, "({} LIKE {})", K.STRING, "pattern"),
        _p(K.BOOL, "({} ILIKE {})", K.STRING, "pattern"),
        _p(K.BOOL, "({} NOT LIKE {})", K.STRING, "pattern"),
        _p(K.BOOL, "({} RLIKE {})", K.STRING, "regex", duck="regexp_matches({}, {})"),
        _p(K.BOOL, "startswith({}, {})", K.STRING, "letters", duck="starts_with({}, {})"),
        _p(K.BOOL, "contains({}, {})", K.STRING, "letters"),
    ]


def _times() -> list[Production]:
    parts = ("year", "quarter", "month", "day", "dayofyear", "weekofyear")
    return [
        *(_p(K.INT, f"{part}({{}})", K.DATE) for part in parts),
        *(_p(K.INT, f"{part}({{}})", K.NTZ) for part in ("hour", "minute", "second")),
        *(_p(K.INT, f"{part}({{}})", K.TIMESTAMP, duck=Differs.TIME_FUNCTION) for part in ("hour", "second", "year")),
        _p(K.INT, "dayofweek({})", K.DATE, duck=Differs.TIME_FUNCTION),
        _p(K.INT, "weekday({})", K.DATE, duck=Differs.TIME_FUNCTION),
        _p(K.INT, "datediff({}, {})", K.DATE, K.DATE, duck="({} - {})"),
        _p(K.DATE, "date_add({}, {})", K.DATE, "small", duck=Differs.TIME_FUNCTION),
        _p(K.DATE, "date_sub({}, {})", K.DATE, "small", duck=Differs.TIME_FUNCTION),
        _p(K.DATE, "add_months({}, {})", K.DATE, "small", duck=Differs.TIME_FUNCTION),
        _p(K.DATE, "last_day({})", K.DATE),
        _p(K.DATE, "trunc({}, {})", K.DATE, "dates", duck=Differs.TIME_FUNCTION),
        _p(K.DATE, "CAST({} AS DATE)", K.NTZ),
        _p(K.TIMESTAMP, "date_trunc({1}, {0})", K.TIMESTAMP, "units", duck=Differs.TIME_FUNCTION),
        _p(K.TIMESTAMP, "({} + INTERVAL '{}' DAY)", K.TIMESTAMP, "small", duck=Differs.TIME_FUNCTION),
        _p(K.NTZ, "({} - INTERVAL '{}' MONTH)", K.NTZ, "small", duck=Differs.TIME_FUNCTION),
        _p(K.NTZ, "CAST({} AS TIMESTAMP_NTZ)", K.DATE, duck="CAST({} AS TIMESTAMP)"),
        _p(K.TIMESTAMP, "CAST({} AS TIMESTAMP)", K.NTZ, duck=Differs.TIME_FUNCTION),
        _p(K.BIGINT, "unix_seconds({})", K.TIMESTAMP, duck=Differs.TIME_FUNCTION),
        _p(K.INT, "EXTRACT(MONTH FROM {})", K.DATE),
    ]


def _casts() -> list[Production]:
    return [
        _p(K.BIGINT, "CAST({} AS BIGINT)", K.INT),
        _p(K.INT, "CAST({} AS INT)", K.BOOL),
        _p(K.INT, "CAST({} AS TINYINT)", K.INT, duck=Differs.RAISES, raises=True),
        _p(K.INT, "CAST({} AS INT)", K.NUMERAL, duck=Differs.RAISES, raises=True),
        _p(K.INT, "CAST({} AS INT)", K.REAL, duck=Differs.RAISES, raises=True),
        _p(K.INT, "TRY_CAST({} AS INT)", K.NUMERAL),
        _p(K.BIGINT, "TRY_CAST({} AS BIGINT)", K.DOUBLE, duck=Differs.RAISES),
        _p(K.DECIMAL, "CAST({} AS DECIMAL(12, 2))", K.INT),
        _p(K.DECIMAL, "TRY_CAST({} AS DECIMAL(6, 1))", K.STRING, duck=Differs.DECIMAL_TYPES),
        _p(K.DECIMAL, "CAST({} AS DECIMAL(9, 1))", K.DECIMAL, duck=Differs.RAISES, raises=True),
        _p(K.DOUBLE, "CAST({} AS DOUBLE)", K.INT),
        _p(K.DOUBLE, "CAST({} AS DOUBLE)", K.FLOAT),
        _p(K.REAL, "CAST({} AS DOUBLE)", K.DECIMAL, duck=Differs.DECIMAL_TYPES),
        _p(K.FLOAT, "CAST({} AS FLOAT)", K.DOUBLE),
        _p(K.REAL, "TRY_CAST({} AS DOUBLE)", K.STRING, duck=Differs.DOUBLE_TEXT),
        _p(K.STRING, "CAST({} AS STRING)", K.INT),
        _p(K.STRING, "CAST({} AS STRING)", K.BIGINT),
        _p(K.STRING, "CAST({} AS STRING)", K.DECIMAL),
        _p(K.STRING, "CAST({} AS STRING)", K.BOOL),
        _p(K.STRING, "CAST({} AS STRING)", K.DATE, duck=Differs.TIME_FUNCTION),
        _p(K.STRING, "CAST({} AS STRING)", K.TIMESTAMP, duck=Differs.TIME_FUNCTION),
        _p(K.STRING, "CAST({} AS STRING)", K.REAL, duck=Differs.DOUBLE_TEXT),
        _p(K.BINARY, "CAST({} AS BINARY)", K.STRING, duck="encode({})"),
        _p(K.BOOL, "TRY_CAST({} AS BOOLEAN)", K.STRING, duck=Differs.RAISES),
        _p(K.DATE, "TRY_CAST({} AS DATE)", K.STRING, duck=Differs.RAISES),
    ]


def _collections() -> list[Production]:
    differs = Differs.NESTED_FUNCTION
    return [
        _p(K.INTS, "array({}, {})", K.INT, K.INT, duck="[{}, {}]"),
        _p(K.STRINGS, "array({}, {})", K.STRING, K.STRING, duck="[{}, {}]"),
        _p(K.STRUCT, "named_struct('x', {}, 'y', {})", K.INT, K.STRING, duck="{{'x': {}, 'y': {}}}"),
        _p(K.MAP, "map('a', {}, 'b', {})", K.INT, K.INT, duck="MAP {{'a': {}, 'b': {}}}"),
        _p(K.INT, "{}.x", K.STRUCT),
        _p(K.INT, "size({})", K.INTS, duck=differs),
        _p(K.INT, "array_size({})", K.STRINGS, duck=differs),
        _p(K.INT, "{}['a']", K.MAP, duck=differs),
        _p(K.INT, "{}[0]", K.INTS, duck=differs, raises=True),
        _p(K.INT, "element_at({}, {})", K.INTS, "positive", duck=differs, raises=True),
        _p(K.INT, "array_max({})", K.INTS, duck=differs),
        _p(K.BOOL, "array_contains({}, {})", K.INTS, K.INT, duck=differs),
        _p(K.INTS, "sort_array({})", K.INTS, duck=differs),
        _p(K.STRINGS, "map_keys({})", K.MAP, duck=differs),
    ]


def typed_null(kind: Kind) -> Sql:
    """NULL of a kind."""
    return sql(f"CAST(NULL AS {_TYPES[kind]})", duck=f"CAST(NULL AS {_DUCK_TYPES[kind]})")


def cast(kind: Kind, value: Sql) -> Sql:
    """A value as the one type that stands for its kind."""
    return sql(f"CAST({{}} AS {_TYPES[kind]})", value, duck=f"CAST({{}} AS {_DUCK_TYPES[kind]})")


def constant(kind: Kind, dice: random.Random) -> Sql:
    """A literal of a kind."""
    text = dice.choice(CONSTANTS[kind])
    duck = text
    for ours, theirs in _DUCK_CONSTANTS.items():
        if text.startswith(ours):
            duck = text.replace(ours, theirs)
    return Sql(text, duck.replace("{{", "{").replace("}}", "}"))


SCALARS: dict[Kind, list[Production]] = {kind: [] for kind in Kind}
for _production in (*_numbers(), *_logic(), *_strings(), *_times(), *_casts(), *_collections()):
    SCALARS[_production.kind].append(_production)
