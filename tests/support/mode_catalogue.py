"""Expressions over the columns of ``expression_data`` that mean something else without ANSI, or under TRY."""

from __future__ import annotations

import itertools

from support.expression_catalogue import DECIMAL_COLUMNS, NUMERIC, PAIRS, sql_type
from support.exprs import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    array_of,
    decimal,
)

INTEGERS = {name for kind in (TINYINT, SMALLINT, INT, BIGINT) for name in PAIRS[kind]}
NUMBERS = ["i8", "i16", "i32", "i64", "f32", "f64", "money", *DECIMAL_COLUMNS]
TIMES = [DATE, TIMESTAMP, TIMESTAMP_NTZ]


def integers() -> list[str]:
    """Operators on integers and floating point, and what a setting means for them."""
    found = []
    for left, right in PAIRS.values():
        found += [f"{left} {operator} {right}" for operator in ("+", "-", "*", "/", "%")]
        found += [f"pmod({left}, {right})", f"-{left}", f"abs({left})", f"{left} + {left}", f"{left} * {left}"]
        found += [f"{left} % small", f"{left} / 0", f"pmod({left}, 0)", f"negative({left})", f"mod({left}, small)"]
    for left, right in itertools.combinations(("i8", "i16", "i32", "i64"), 2):
        found += [f"{left} * {right}", f"{left} div {right}", f"{right} div {left}"]
    found += ["i64 div i64b", "i64 div -1L", "i64 div 0", "i32 div small", "i64b div small", "1 - i32", "i32 + 1"]
    for name, places in itertools.product(("i8", "i16", "i32", "i64"), (2, 0, -1, -2, -3, -10, -19, -20, -30)):
        found += [f"round({name}, {places})", f"bround({name}, {places})"]
    found += [f"round(f64, {places})" for places in (2, 0, -3)]
    found += ["snum + 1", "snum * i64", "-snum", "abs(snum)", "snum / i32", "s + s2", "snum % 3", "i32 + d7_2"]
    return found


def decimals() -> list[str]:
    found = []
    for left, right in itertools.product(DECIMAL_COLUMNS, repeat=2):
        found += [f"{left} {operator} {right}" for operator in ("+", "-", "*", "/")]
        if {left, right} != {"d38_0", "d38_20"}:
            found += [f"{left} % {right}", f"pmod({left}, {right})", f"{left} div {right}"]
    for name in DECIMAL_COLUMNS:
        if name == "d38_0":  # rounded, its largest number has a digit more, and no mode helps
            continue
        found += [f"round({name}, {places})" for places in (3, 1, 0, -2)] + [f"bround({name}, 1)"]
        found += [f"{name} + i64", f"{name} * i32", f"{name} / i8", f"{name} + f64", f"ceil({name})", f"floor({name})"]
    return [*found, "-d7_2", "abs(d7_2)", "-d18_6", "abs(d18_6)", "d38_0 + i64", "d38_0 * i32", "d38_0 / i8"]


def casts() -> list[str]:
    pairs = list(itertools.product(["b", *NUMBERS], [BOOLEAN, STRING, *NUMERIC]))
    pairs += itertools.product(["snum", "s"], [BOOLEAN, *NUMERIC, decimal(3, 0)])
    pairs += itertools.product(["sdate", "snum"], TIMES)
    pairs += itertools.product(["d", "ts", "ntz"], [STRING, *TIMES])
    pairs += itertools.product(["ts"], [BOOLEAN, *NUMERIC])
    pairs += itertools.product(["d"], [BOOLEAN, *NUMERIC])
    pairs += [(name, TIMESTAMP) for name in ("b", "i8", "i32", "i64", "f32", "f64", "d7_2", "d18_6", "d15_2")]
    pairs += [("s", BINARY), ("arrs", array_of(INT)), ("arr", array_of(TINYINT)), ("arr", array_of(STRING))]
    pairs += [("arrd", array_of(INT)), ("arrarr", array_of(array_of(TINYINT))), ("arr", array_of(BOOLEAN))]
    found = [f"CAST({name} AS {sql_type(kind)})" for name, kind in pairs]
    return [*found, "CAST(st AS struct<a:tinyint,b:int>)", "CAST(m AS map<string,tinyint>)"]


def others() -> list[str]:
    return [
        *(f"arr[{index}]" for index in ("small", "0", "100", "-1", "i8", "i64")),
        "arrs[small]",
        "arrst[small]",
        "arrarr[0][small]",
        *(f"element_at(arr, {index})" for index in ("nullif(small, 0)", "1", "-1", "100", "-100")),
        "element_at(arrs, nullif(small, 0))",
        "element_at(m, 'a')",
        "element_at(m, s)",
        "m['a']",
        "m[s]",
        "size(arr)",
        "size(m)",
        "cardinality(arrs)",
        "array_size(arr)",
        "make_date(small, small, small)",
        "make_date(2000 + small, i8, i8b)",
        "make_date(1000000000, 1, small)",
        "to_date(sdate)",
        "to_date(s)",
        "to_date(ts)",
        "to_timestamp(sdate)",
        "to_timestamp(d)",
        "date(sdate)",
        "timestamp(sdate)",
        "int(snum)",
        "boolean(snum)",
        "snum = i32",
        "snum > f64",
        "sdate = d",
        "sdate < ts",
        "b = snum",
        "b = i32",
        "i32 IN (snum, 1)",
        "coalesce(i32, snum)",
        "CASE WHEN b THEN i32 ELSE snum END",
        "concat(s, i32)",
        "greatest(i32, f64, i64)",
        "hour(sdate)",
        "year(sdate)",
        "date_add(d, small)",
        "d + 3",
        "ts + INTERVAL '1' HOUR",
        "d + INTERVAL '2' DAY",
        "datediff(d, sdate)",
        "substring(s, snum, 2)",
        "sqrt(snum)",
        "nullif(i32, 0)",
        "i32 / nullif(small, 0)",
        "CASE WHEN small <> 0 THEN i32 / small ELSE -1 END",
        "1 / (i32 / 0)",
        "element_at(arr, small) / small",  # what is divided by zero is not looked at
        "i64 % (small % 2)",
        "arr[small] / arr[0]",
        "array_contains(arr, i64)",
        "i8 + i8b > 100",
    ]  # fmt: skip


LEGACY = {"integers": integers, "decimals": decimals, "casts": casts, "others": others}


def attempts() -> list[str]:
    """Functions that never raise, whatever the settings."""
    found = []
    for left, right in PAIRS.values():
        found += [f"try_{name}({left}, {right})" for name in ("add", "subtract", "multiply", "divide", "mod")]
        found += [f"try_add({left}, {left})", f"try_divide({left}, small)", f"try_mod({left}, 0)"]
    found += ["try_multiply(i64, 2)", "try_multiply(-1L, i64)", "try_multiply(i64, -1L)", "try_subtract(0, i32)"]
    for left, right in itertools.product(DECIMAL_COLUMNS, repeat=2):
        found += [f"try_{name}({left}, {right})" for name in ("add", "subtract", "multiply", "divide")]
        if {left, right} != {"d38_0", "d38_20"}:
            found.append(f"try_mod({left}, {right})")
    only_without_ansi = ("CAST(d AS", "CAST(ts AS boolean", "CAST(b AS timestamp")
    found += [one.replace("CAST(", "TRY_CAST(") for one in casts() if not one.startswith(only_without_ansi)]
    return [
        *found,
        "try_element_at(arr, nullif(small, 0))",
        "try_element_at(arr, 100)",
        "try_element_at(m, 'nowhere')",
        "try_element_at(m, s)",
        "try_to_date(sdate)",
        "try_to_timestamp(sdate)",
        "try_add(d, small)",
        "try_add(ts, INTERVAL '1' HOUR)",
        "try_subtract(ts, ts2)",
        "try_subtract(d, d2)",
        "try_add(INTERVAL '1' DAY, INTERVAL '1' HOUR)",
        "try_add(d, INTERVAL '1' MONTH)",
        "try_divide(i32, 0)",
        "try_add(try_cast(snum as int), 1)",
        "1 + try_divide(1, small)",
    ]
