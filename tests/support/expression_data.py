"""Rows full of edge cases: every value of a type that has ever made two engines disagree."""
# ruff: noqa: E501 - tables of values read better in long lines

from __future__ import annotations

import random
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
from support.exprs import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    array_of,
    decimal,
)

STRUCT = pa.struct([pa.field("a", INT), pa.field("b", STRING)])
SCHEMA = pa.schema(
    [
        ("id", BIGINT),
        ("b", BOOLEAN),
        ("b2", BOOLEAN),
        ("i8", TINYINT),
        ("i8b", TINYINT),
        ("i16", SMALLINT),
        ("i16b", SMALLINT),
        ("i32", INT),
        ("i32b", INT),
        ("i64", BIGINT),
        ("i64b", BIGINT),
        ("small", INT),
        ("f32", FLOAT),
        ("f32b", FLOAT),
        ("f64", DOUBLE),
        ("f64b", DOUBLE),
        ("money", DOUBLE),
        ("d7_2", decimal(7, 2)),
        ("d5_3", decimal(5, 3)),
        ("d15_2", decimal(15, 2)),
        ("d18_6", decimal(18, 6)),
        ("d38_10", decimal(38, 10)),
        ("d38_0", decimal(38, 0)),
        ("d38_20", decimal(38, 20)),
        ("s", STRING),
        ("s2", STRING),
        ("snum", STRING),
        ("sdate", STRING),
        ("bin", BINARY),
        ("bin2", BINARY),
        ("d", DATE),
        ("d2", DATE),
        ("ts", TIMESTAMP),
        ("ts2", TIMESTAMP),
        ("ntz", TIMESTAMP_NTZ),
        ("ntz2", TIMESTAMP_NTZ),
        ("dur", INTERVAL),
        ("arr", array_of(INT)),
        ("arr2", array_of(INT)),
        ("arrs", array_of(STRING)),
        ("arrd", array_of(DOUBLE)),
        ("arrarr", array_of(array_of(INT))),
        ("m", pa.map_(STRING, INT)),
        ("st", STRUCT),
        ("st2", STRUCT),
        ("arrst", array_of(STRUCT)),
    ]
)
TEXTS = [
    "", " ", "a", "abc", "ABC", "aBc dEf", "  padded  ", "\t tab\n", "a,b,,c,", ",", "é", "É", "ß", "ǆ", "İ", "ı", "Σ", "ΑΣ", "ΑΣ ΣΑ",
    "😀", "a😀é", "e\u0301", "ﬁn", "日本語", "a%b", "a_b", "a\\b", "%", "_", "100-200", "foo123bar", "a.b.c", "xyabcyx", "\u00a0x\u00a0",
    "line\nbreak", "end\n", "end\r\n", "a\u2028b", "NULL", "z\u0000z", "aaa", "aXbXc", "hello world", "Hello-World foo_bar", "\x7f", "K",
]  # fmt: skip
NUMBERS = [
    "0", "1", "-1", "+5", " 12 ", "\t7\n", "007", "127", "128", "-128", "32768", "2147483647", "2147483648", "-2147483648",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1.5", "-0.5", ".5", "5.", ".", "", " ", "+", "-", "1e3", "1E-3",
    "1e400", "-1e400", "1e-400", "1.5d", "2F", "1e", "e5", "0x10", "0x1p3", "0x1.8p1", "NaN", "nan", "-NaN", "Infinity", "-Infinity", "inf",
    "+INF", "infinity ", "1_000", "1,000", "٣", "１", "abc", "1 2", "--1", "0.1", "123.456", "99999.99", "999.9995", "-999.9995", "0.0005",
    "12345678901234567890123456789012345678", "123456789012345678901234567890123456789", "1e38", "1e37", "0.00000000000000000000000000000000000001",
    "3.4028235e38", "1e39", "1.17549435E-38", "1.00000017881393421514957253748434595763683319091796875001", "16777217", "0.3", "4.9e-324", "2e-324",
    "t", "True", "YES", "n", "f", "no", "false ", "on", "\x7f1\x7f", "\u00a01", "1\u0000",
]  # fmt: skip
TIMES = [
    "2020-01-01", "2020-1-1", "2020", "2020-02", "2020-02-30", "2020-13-01", "2020-00-01", "2020-01-00", " 2020-01-01 ", "2020-01-01T", "2020-01-01 x",
    "2020-01-01T10:00", "1582-10-10", "1500-02-29", "1900-02-29", "2000-02-29", "0000-01-01", "0001-01-01", "-0001-12-31", "+2020-01-01", "-2020-01-01",
    "9999-12-31", "10000-01-01", "123456-01-01", "1234567-01-01", "12345678-01-01", "294247-01-10 04:00:54.775807", "294247-01-10 04:00:54.775808",
    "999", "20-01-01", "2020/01/01", "", " ", "abc", "2020-01-01 12", "2020-01-01 12:30", "2020-01-01 12:30:45", "2020-01-01 1:2:3", "2020-01-01 24:00:00",
    "2020-01-01 23:59:60", "2020-01-01 12:60:00", "2020-01-01 12:30:45.1", "2020-01-01 12:30:45.123456789", "2020-01-01 12:30:45.", "2020-01-01T12:30:45Z",
    "2020-01-01 12:30:45+01:00", "2020-01-01 12:30:45-1:30", "2020-01-01 12:30:45+1:3", "2020-01-01 12:30:45 UTC", "2020-01-01 12:30:45UTC+2", "2020-01-01 12:30:45 GMT-03:30",
    "2020-01-01 12:30:45+18:00", "2020-01-01 12:30:45+18:01", "2020-01-01 12:30:45+0530", "2020-01-01 12:30:45.5+05", "2020-01-01 12:30:45+5", "2020-01-01 12:30Z",
    "1969-12-31 23:59:59.999999", "1582-10-15 00:00:00", "-0001-01-01 00:00:00", "2020-01-01 12:30:45z", "2020-01-01  12:30:45", "2020-01-01T12:30:45.123Z ",
    "2020-01-01 12:30:45+01:00:30", "2020-01-01 12:30:45+010030", "2020-01-01-02", "2020-1-1-", "2020--1", "2020-01-1 ", "2020-01-01\n",
]  # fmt: skip
_LONGS = [0, 1, -1, 2, 10, -10, 127, 128, 255, -128, -129, 32767, 32768, -32768, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 10**18, 999999999999999999]  # fmt: skip
DOUBLES = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.5, 0.1, 0.3, 1.005, 2.675, 1e-5, 1e10, 1e7, 9999999.999, 123456.789, 1e16, 9007199254740993.0,
    127.5, 128.5, -128.9, 32767.9, 2147483647.5, 2147483648.0, -2147483648.9, 9.223372036854775e18, 2.0**63, -(2.0**63), 1.8e19, 1e22, 1e23, 4.32e23, 2.9218721551351594e25,
    1e38, 3.5e38, 1e300, 1.7976931348623157e308, 4.9e-324, 2.2250738585072014e-308, float("nan"), float("inf"), float("-inf"), 0.045, 0.125, 25.0, 35.0, 1e-3, 9.99e-4,
]  # fmt: skip
_DECIMALS = ["0", "1", "-1", "0.5", "-0.5", "1.5", "2.5", "-2.5", "0.005", "-0.005", "0.01", "99.99", "-99.99", "12.345", "3", "7", "10", "99999.99", "-99999.99", "99.999", "0.001", "0.000001", "-0.000001", "127", "128", "2147483647", "2147483648", "123456789.123456", "999999999999.999999", "9999999999999.99", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1234567890123456789012345678.0123456789", "9999999999999999999999999999.9999999999", "99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "0.99999999999999999999", "2.00000000000000000001", "123456789012345678.00000000000000000001", "1e-20", "33.33333333333333333333"]  # fmt: skip
_DAYS = [0, 1, -1, 58, 59, 60, 364, 365, 366, 10957, 11016, 18262, 18321, 18627, -141427, -141428, -141438, -25567, -719162, -719163, -719528, -719529, 2932896, 2932897, 100000000, -100000000]  # fmt: skip
_MICROS = [0, 1, -1, 999999, 1000000, -1000000, 86399999999, 86400000000, -86400000001, 1577836800000000, 1582934400123456, 1609372799999999, -12219292800000000, -12219292800000001, -62135596800000000, -62135596800000001, 253402300799999999, 253402300800000000, 951782400000000, 1e15]  # fmt: skip
_INTERVALS = [0, 1, -1, 1000000, 86400000000, -86400000000, 3600000000 * 5, 123456789]


def pool(kind: pa.DataType) -> list[Any]:
    """Values of a type, as what ``from_values`` takes: numbers for times, Python values for the rest."""
    if kind == BOOLEAN:
        return [True, False]
    if pa.types.is_integer(kind):
        bound = 1 << (kind.bit_width - 1)
        return [value for value in [*_LONGS, bound - 1, -bound] if -bound <= value < bound]
    if kind == FLOAT:
        with np.errstate(over="ignore"):
            return [float(np.float32(value)) for value in DOUBLES] + [16777216.0, 1e-45, 3.4028234663852886e38]
    if kind == DOUBLE:
        return DOUBLES
    if pa.types.is_decimal(kind):
        with localcontext(Context(prec=120)):
            unit = Decimal(1).scaleb(-kind.scale)
            bound = Decimal(10) ** (kind.precision - kind.scale)
            values = [Decimal(text) for text in _DECIMALS] + [unit, -unit, bound - unit, unit - bound, bound / 2]
            return [value for value in values if abs(value) < bound and value == value.quantize(unit)]
    if kind == STRING:
        return TEXTS
    if kind == BINARY:
        return [b"", b"a", b"ab", b"\x00\xff", b"abc", b"\xf0\x9f\x98\x80"]
    if kind == DATE:
        return _DAYS
    if pa.types.is_timestamp(kind):
        return [int(value) for value in _MICROS]
    if kind == INTERVAL:
        return _INTERVALS
    if pa.types.is_map(kind):
        return [{}, {"a": 1}, {"a": 1, "b": None}, {"": 0, "é": -5, "b": 7}]
    if pa.types.is_struct(kind):
        return [
            {"a": 1, "b": "x"},
            {"a": None, "b": "x"},
            {"a": 1, "b": None},
            {"a": None, "b": None},
            {"a": 2, "b": ""},
        ]
    if pa.types.is_list(kind):
        inner = [None, *pool(kind.value_type)]
        draw = random.Random(7)
        return [[], *[[draw.choice(inner) for _ in range(size)] for size in (1, 1, 2, 2, 3, 4)]]
    raise AssertionError(kind)


def from_values(values: list[Any], kind: pa.DataType) -> pa.Array:
    """An array of values as ``pool`` has them."""
    if kind == DATE:
        return pa.array(values, pa.int32()).view(kind)
    if pa.types.is_timestamp(kind) or kind == INTERVAL:
        return pa.array(values, pa.int64()).view(kind)
    if pa.types.is_map(kind):
        return pa.array([None if value is None else list(value.items()) for value in values], kind)
    if kind == FLOAT:
        with np.errstate(over="ignore"):
            return pa.array([None if value is None else np.float32(value) for value in values], kind)
    return pa.array(values, kind)


def named_pool(name: str, kind: pa.DataType) -> list[Any]:
    """The values of a column: those of its type, but for columns made for one purpose."""
    special: dict[str, list[Any]] = {
        "snum": NUMBERS,
        "sdate": TIMES,
        "small": [*range(-8, 9), 100, -100],
        "money": [
            0.005,
            0.015,
            0.025,
            1.005,
            2.675,
            10.0,
            99.995,
            -0.005,
            1234.565,
            0.1,
            0.29,
            1.15,
            33.333333,
            1e6,
            123456.785,
        ],
    }
    return special.get(name) or pool(kind)


def edge_table(rows: int, seed: int) -> pa.Table:
    """A table in which every column has all of its edge cases (as far as there are rows) and some NULLs, shuffled."""
    draw = random.Random(seed)
    columns = []
    for field in SCHEMA:
        if field.name == "id":
            columns.append(pa.array(range(rows), BIGINT))
            continue
        values = named_pool(field.name, field.type)
        filled = (values * (rows // len(values) + 1))[:rows]
        draw.shuffle(filled)
        filled = [None if draw.random() < 0.08 else value for value in filled]
        columns.append(from_values(filled, field.type))
    return pa.table(columns, schema=SCHEMA)
