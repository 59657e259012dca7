"""What must equal Spark: SQL over the columns of ``expression_data`` and the expression it stands for."""
# ruff: noqa: E501 - tables of values read better in long lines

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from support.expression_data import SCHEMA, STRUCT
from support.exprs import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    MONTHS,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Columns,
    array_of,
    call,
    cast,
    decimal,
    lit,
)

if TYPE_CHECKING:
    from weirflow.sql.expr import Expr

c = Columns(SCHEMA)
T, F = lit(value=True, kind=BOOLEAN), lit(value=False, kind=BOOLEAN)


class Case(NamedTuple):
    sql: str
    expr: Expr


def text(value: str) -> Expr:
    return lit(value, STRING)


def number(value: int) -> Expr:
    return lit(value, INT)


def sql_text(value: str) -> str:
    """A literal of Spark's: backslashes and quotes are escaped."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


PAIRS = {
    TINYINT: ("i8", "i8b"),
    SMALLINT: ("i16", "i16b"),
    INT: ("i32", "i32b"),
    BIGINT: ("i64", "i64b"),
    FLOAT: ("f32", "f32b"),
    DOUBLE: ("f64", "f64b"),
}
ORDERED = {
    **PAIRS,
    BOOLEAN: ("b", "b2"),
    STRING: ("s", "s2"),
    BINARY: ("bin", "bin2"),
    DATE: ("d", "d2"),
    TIMESTAMP: ("ts", "ts2"),
    TIMESTAMP_NTZ: ("ntz", "ntz2"),
    array_of(INT): ("arr", "arr2"),
    STRUCT: ("st", "st2"),
}
COMPARISONS = {"=": "equal", "<>": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "<=>": "equal_null_safe"}  # fmt: skip


def column(name: str) -> Expr:
    found: Expr = getattr(c, name)
    return found


def binary(sql: str, function: str, kind: pa.DataType, left: str, right: str) -> Case:
    return Case(f"{left} {sql} {right}", call(function, kind, column(left), column(right)))


def arithmetic() -> list[Case]:
    cases = []
    for kind, (left, right) in PAIRS.items():
        for sql, function in {"+": "add", "-": "subtract", "*": "multiply", "%": "remainder"}.items():
            cases.append(binary(sql, function, kind, left, right))
        cases += [
            Case(f"pmod({left}, {right})", call("pmod", kind, column(left), column(right))),
            Case(f"-{left}", call("negate", kind, column(left))),
            Case(f"abs({left})", call("abs", kind, column(left))),
        ]
        if kind != DOUBLE:
            cases.append(Case(f"{left} + {left}", call("add", kind, column(left), column(left))))
    cases += [
        binary("/", "divide", DOUBLE, "f64", "f64b"),
        Case("f64 / 3D", call("divide", DOUBLE, c.f64, lit(3.0, DOUBLE))),
        Case("3D / f64", call("divide", DOUBLE, lit(3.0, DOUBLE), c.f64)),
        binary("div", "integral_divide", BIGINT, "i64", "i64b"),
        Case("i64 div -1L", call("integral_divide", BIGINT, c.i64, lit(-1, BIGINT))),
        Case("i32 + 1", call("add", INT, c.i32, number(1))),
        Case("1 - i32", call("subtract", INT, number(1), c.i32)),
        Case("i32 % 0", call("remainder", INT, c.i32, number(0))),
        Case("i32 / 0", call("divide", DOUBLE, cast(c.i32, DOUBLE), cast(number(0), DOUBLE))),
        Case("dur + dur", call("add", INTERVAL, c.dur, c.dur)),
        Case("dur - dur", call("subtract", INTERVAL, c.dur, c.dur)),
        Case("-dur", call("negate", INTERVAL, c.dur)),
        Case("abs(dur)", call("abs", INTERVAL, c.dur)),
    ]
    return cases


DECIMAL_COLUMNS = {
    name: SCHEMA.field(name).type for name in ("d7_2", "d5_3", "d15_2", "d18_6", "d38_10", "d38_0", "d38_20")
}


def result_of(function: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Spark's rules for the result of decimal arithmetic."""
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    if function in ("add", "subtract"):
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale + 1
    elif function == "multiply":
        scale, precision = s1 + s2, p1 + p2 + 1
    elif function == "divide":
        scale = max(6, s1 + p2 + 1)
        precision = p1 - s1 + s2 + scale
    else:
        scale = max(s1, s2)
        precision = min(p1 - s1, p2 - s2) + scale
    if precision <= 38:
        return decimal(precision, scale)
    whole = precision - scale
    return decimal(38, max(38 - whole, min(scale, 6)))


def decimals() -> list[Case]:
    cases = []
    operators = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "remainder"}
    for (left, left_type), (right, right_type) in itertools.product(DECIMAL_COLUMNS.items(), repeat=2):
        for sql, function in operators.items():
            cases.append(binary(sql, function, result_of(function, left_type, right_type), left, right))
        cases += [
            Case(
                f"pmod({left}, {right})",
                call("pmod", result_of("remainder", left_type, right_type), column(left), column(right)),
            ),
            binary("div", "integral_divide", BIGINT, left, right),
        ]
    for name, kind in DECIMAL_COLUMNS.items():
        cases += [
            Case(f"-{name}", call("negate", kind, column(name))),
            Case(f"abs({name})", call("abs", kind, column(name))),
            Case(f"{name} = {name}", call("equal", BOOLEAN, column(name), column(name))),
            Case(
                f"{name} < cast(1 as {sql_type(kind)})" if kind.precision > kind.scale else f"{name} < 0",
                call("less", BOOLEAN, column(name), lit(Decimal(1), kind)),
            ),
            Case(
                f"greatest({name}, -{name})", call("greatest", kind, column(name), call("negate", kind, column(name)))
            ),
        ]
    return cases


def comparisons() -> list[Case]:
    cases = []
    for left, right in ORDERED.values():
        cases += [binary(sql, function, BOOLEAN, left, right) for sql, function in COMPARISONS.items()]
        cases.append(Case(f"{left} = {left}", call("equal", BOOLEAN, column(left), column(left))))
        cases += [
            Case(f"{left} is null", call("is_null", BOOLEAN, column(left))),
            Case(f"{left} is not null", call("is_not_null", BOOLEAN, column(left))),
        ]
    for sql, function in COMPARISONS.items():
        cases += [
            Case(f"f64 {sql} 0D", call(function, BOOLEAN, c.f64, lit(0.0, DOUBLE))),
            Case(f"0D {sql} f64", call(function, BOOLEAN, lit(0.0, DOUBLE), c.f64)),
            Case(f"f64 {sql} double('NaN')", call(function, BOOLEAN, c.f64, lit(float("nan"), DOUBLE))),
            Case(f"f32 {sql} float('inf')", call(function, BOOLEAN, c.f32, lit(float("inf"), FLOAT))),
            Case(f"i32 {sql} 10", call(function, BOOLEAN, c.i32, number(10))),
            Case(f"s {sql} 'abc'", call(function, BOOLEAN, c.s, text("abc"))),
            Case(f"i32 {sql} null", call(function, BOOLEAN, c.i32, lit(None, INT))),
        ]
    cases += [
        Case("i32 in (1, 10, 127)", call("in", BOOLEAN, c.i32, number(1), number(10), number(127))),
        Case("i32 in (1, null)", call("in", BOOLEAN, c.i32, number(1), lit(None, INT))),
        Case("s in ('a', '', 'é')", call("in", BOOLEAN, c.s, text("a"), text(""), text("é"))),
        Case("f64 in (0D, double('NaN'))", call("in", BOOLEAN, c.f64, lit(0.0, DOUBLE), lit(float("nan"), DOUBLE))),
        Case("f64 in (-0D)", call("in", BOOLEAN, c.f64, lit(-0.0, DOUBLE))),
        Case("i32 in (i32b, 1)", call("in", BOOLEAN, c.i32, c.i32b, number(1))),
        Case(
            "i32 in (1, 100 div small)",
            call(
                "in",
                BOOLEAN,
                cast(c.i32, BIGINT),
                lit(1, BIGINT),
                call("integral_divide", BIGINT, lit(100, BIGINT), cast(c.small, BIGINT)),
            ),
        ),
        Case(
            "d in (date'2020-01-01', date'1970-01-01')",
            call("in", BOOLEAN, c.d, lit(date(2020, 1, 1), DATE), lit(date(1970, 1, 1), DATE)),
        ),
        Case("arr in (arr2, array(1))", call("in", BOOLEAN, c.arr, c.arr2, lit([1], array_of(INT)))),
        Case("isnan(f64)", call("is_nan", BOOLEAN, c.f64)),
        Case("isnan(f32)", call("is_nan", BOOLEAN, c.f32)),
    ]
    return cases


def logic() -> list[Case]:
    division = call("divide", DOUBLE, lit(1.0, DOUBLE), cast(c.small, DOUBLE))
    positive = call("greater", BOOLEAN, division, lit(0.2, DOUBLE))
    parsed = cast(c.snum, INT)
    is_zero, is_not_zero = call("equal", BOOLEAN, c.small, number(0)), call("not_equal", BOOLEAN, c.small, number(0))
    one = lit(1.0, DOUBLE)
    return [
        Case("b and b2", call("and", BOOLEAN, c.b, c.b2)),
        Case("b or b2", call("or", BOOLEAN, c.b, c.b2)),
        Case("not b", call("not", BOOLEAN, c.b)),
        Case("b and null", call("and", BOOLEAN, c.b, lit(None, BOOLEAN))),
        Case("b or null", call("or", BOOLEAN, c.b, lit(None, BOOLEAN))),
        Case("small <> 0 and 1D / small > 0.2D", call("and", BOOLEAN, is_not_zero, positive)),
        Case("small = 0 or 1D / small > 0.2D", call("or", BOOLEAN, is_zero, positive)),
        Case("b and 1D / small > 0.2D", call("and", BOOLEAN, c.b, positive)),
        Case("b or 1D / small > 0.2D", call("or", BOOLEAN, c.b, positive)),
        Case("1D / small > 0.2D and b", call("and", BOOLEAN, positive, c.b)),
        Case("b and (b2 or 1D / small > 0.2D)", call("and", BOOLEAN, c.b, call("or", BOOLEAN, c.b2, positive))),
        Case(
            "case when small <> 0 then 1D / small else -1D end",
            call("case", DOUBLE, is_not_zero, division, lit(-1.0, DOUBLE)),
        ),
        Case(
            "case when small = 0 then null when b then 1D / small end",
            call("case", DOUBLE, is_zero, lit(None, DOUBLE), c.b, division, lit(None, DOUBLE)),
        ),
        Case(
            "case when b then 1D / small when b2 then 1D else 1D / (small - 1) end",
            call(
                "case",
                DOUBLE,
                c.b,
                division,
                c.b2,
                one,
                call("divide", DOUBLE, one, cast(call("subtract", INT, c.small, number(1)), DOUBLE)),
            ),
        ),
        Case("case when 1D / small > 0.2D then 'x' else 'y' end", call("case", STRING, positive, text("x"), text("y"))),
        Case(
            "case when b then s when b2 then s2 else 'no' end", call("case", STRING, c.b, c.s, c.b2, c.s2, text("no"))
        ),
        Case("case when b then arr else arr2 end", call("case", array_of(INT), c.b, c.arr, c.arr2)),
        Case("case when b then st end", call("case", STRUCT, c.b, c.st, lit(None, STRUCT))),
        Case(
            "case when b then m else map('z', 1) end",
            call("case", SCHEMA.field("m").type, c.b, c.m, lit([("z", 1)], SCHEMA.field("m").type)),
        ),
        Case(
            "case when b then d38_10 else 0 end",
            call("case", decimal(38, 10), c.b, c.d38_10, lit(Decimal(0), decimal(38, 10))),
        ),
        Case("coalesce(i32, i32b, 5)", call("coalesce", INT, c.i32, c.i32b, number(5))),
        Case("coalesce(s, s2)", call("coalesce", STRING, c.s, c.s2)),
        Case("coalesce(small, cast(snum as int))", call("coalesce", INT, c.small, parsed)),
        Case("coalesce(arr, arr2)", call("coalesce", array_of(INT), c.arr, c.arr2)),
        Case("coalesce(null, b)", call("coalesce", BOOLEAN, lit(None, BOOLEAN), c.b)),
        Case("small + cast(snum as int)", call("add", INT, c.small, parsed)),
        Case("cast(snum as int) + small", call("add", INT, parsed, c.small)),
        Case(
            "case when small is null then 0 else small + cast(snum as int) end",
            call("case", INT, call("is_null", BOOLEAN, c.small), number(0), call("add", INT, c.small, parsed)),
        ),
        Case("f64 / (1D / small)", call("divide", DOUBLE, c.f64, division)),
        Case(
            "case when b then 1 div 0 else 2 end",
            call("case", BIGINT, c.b, call("integral_divide", BIGINT, lit(1, BIGINT), lit(0, BIGINT)), lit(2, BIGINT)),
        ),
        Case("substring(s, small, cast(snum as int))", call("substring", STRING, c.s, c.small, parsed)),
        Case("concat(s, cast(1D / small as string))", call("concat", STRING, c.s, cast(division, STRING))),
        Case("greatest(f64, 1D / small)", call("greatest", DOUBLE, c.f64, division)),
        Case("array(f64, 1D / small)", call("array", array_of(DOUBLE), c.f64, division)),
    ]


def sql_type(kind: pa.DataType) -> str:
    names = {BOOLEAN: "boolean", TINYINT: "tinyint", SMALLINT: "smallint", INT: "int", BIGINT: "bigint", FLOAT: "float", DOUBLE: "double", STRING: "string", BINARY: "binary", DATE: "date", TIMESTAMP: "timestamp", TIMESTAMP_NTZ: "timestamp_ntz"}  # fmt: skip
    if kind in names:
        return names[kind]
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        return "struct<" + ",".join(f"{field.name}:{sql_type(field.type)}" for field in kind) + ">"
    if pa.types.is_map(kind):
        return f"map<{sql_type(kind.key_type)},{sql_type(kind.item_type)}>"
    return f"array<{sql_type(kind.value_type)}>"


NUMERIC = [
    TINYINT,
    SMALLINT,
    INT,
    BIGINT,
    FLOAT,
    DOUBLE,
    decimal(7, 2),
    decimal(18, 6),
    decimal(20, 0),
    decimal(38, 10),
    decimal(38, 38),
]


def casts() -> list[Case]:
    pairs: list[tuple[str, pa.DataType]] = []
    numbers = ["i8", "i16", "i32", "i64", "f32", "f64", "money", *DECIMAL_COLUMNS]
    pairs += itertools.product(["b", *numbers], [BOOLEAN, STRING, *NUMERIC])
    pairs += itertools.product(["snum"], [BOOLEAN, *NUMERIC, decimal(3, 0)])
    pairs += itertools.product(["sdate", "d", "ts", "ntz"], [DATE, TIMESTAMP, TIMESTAMP_NTZ, STRING])
    pairs += itertools.product(["i8", "i32", "i64", "f32", "f64", "d7_2", "d18_6"], [TIMESTAMP])
    pairs += itertools.product(
        ["ts"], [TINYINT, INT, BIGINT, FLOAT, DOUBLE, decimal(20, 6), decimal(38, 10), decimal(7, 2)]
    )
    pairs += [("s", BINARY), ("arr", array_of(BIGINT)), ("arr", array_of(STRING)), ("arr", array_of(TINYINT)), ("arrs", array_of(INT)), ("m", pa.map_(STRING, STRING)), ("st", pa.struct([("x", BIGINT), ("y", STRING)])), ("arrd", array_of(INT))]  # fmt: skip
    cases = []
    for name, kind in pairs:
        if SCHEMA.field(name).type == kind:
            continue
        for sql, function in (("cast", "cast"), ("try_cast", "try_cast")):
            cases.append(Case(f"{sql}({name} as {sql_type(kind)})", call(function, kind, column(name))))
    return cases


PATTERNS = [
    "",
    "%",
    "_",
    "a%",
    "%c",
    "%b%",
    "a_c",
    "%a_%",
    "__",
    "a\\%b",
    "a\\_b",
    "%\n%",
    "😀",
    "_😀_",
    "%\\\\%",
    "a%b%c",
    "%.%",
    "[a]%",
    "(",
    "É",
    "%σ%",
]
EXPRESSIONS = ["a", "^a", "c$", "^$", "b+", "[a-c]+", "[^a-z]", "\\d+", "(\\d+)-(\\d+)", "\\s", "\\S+", "\\w+", "\\W", "a.b", "(a|b)c", "(?i)ABC", "(?i)[a-c]x?", "a{2}", "a{1,2}b?", "é", "[éß]", "😀", "[😀é]", "\\.", "x|y|z", "(foo)(\\d+)(bar)?", "l+?", "(?:ab)+c", "[-a]", "[a-]", "end$", "o w", "\\\\"]  # fmt: skip


def strings() -> list[Case]:
    cases = [
        Case("upper(s)", call("upper", STRING, c.s)),
        Case("lower(s)", call("lower", STRING, c.s)),
        Case("initcap(s)", call("initcap", STRING, c.s)),
        Case("length(s)", call("length", INT, c.s)),
        Case("length(bin)", call("length", INT, c.bin)),
        Case("octet_length(s)", call("octet_length", INT, c.s)),
        Case("bit_length(s)", call("bit_length", INT, c.s)),
        Case("substring(s, i32, i32b)", call("substring", STRING, c.s, c.i32, c.i32b)),
        Case("substring(s, small, 3)", call("substring", STRING, c.s, c.small, number(3))),
        Case("substring(bin, small, 2)", call("substring", BINARY, c.bin, c.small, number(2))),
        Case("left(s, small)", call("left", STRING, c.s, c.small)),
        Case("right(s, small)", call("right", STRING, c.s, c.small)),
        Case("left(bin, small)", call("left", BINARY, c.bin, c.small)),
        Case("concat(s, s2)", call("concat", STRING, c.s, c.s2)),
        Case("concat(s, '-', s2)", call("concat", STRING, c.s, text("-"), c.s2)),
        Case("concat(bin, bin2)", call("concat", BINARY, c.bin, c.bin2)),
        Case("concat(arr, arr2)", call("concat", array_of(INT), c.arr, c.arr2)),
        Case("concat_ws(',', s, s2)", call("concat_ws", STRING, text(","), c.s, c.s2)),
        Case("concat_ws(s, s2, 'x', s)", call("concat_ws", STRING, c.s, c.s2, text("x"), c.s)),
        Case("concat_ws('-', arrs, s)", call("concat_ws", STRING, text("-"), c.arrs, c.s)),
        Case("concat_ws(s)", call("concat_ws", STRING, c.s)),
        Case("replace(s, 'a', 'xy')", call("replace", STRING, c.s, text("a"), text("xy"))),
        Case("replace(s, '', 'xy')", call("replace", STRING, c.s, text(""), text("xy"))),
        Case("replace(s, s2, '*')", call("replace", STRING, c.s, c.s2, text("*"))),
        Case("lpad(s, 5, 'é-')", call("lpad", STRING, c.s, number(5), text("é-"))),
        Case("rpad(s, small, s2)", call("rpad", STRING, c.s, c.small, c.s2)),
        Case("lpad(s, small, '')", call("lpad", STRING, c.s, c.small, text(""))),
        Case("instr(s, s2)", call("instr", INT, c.s, c.s2)),
        Case("instr(s, 'b')", call("instr", INT, c.s, text("b"))),
        Case("locate('a', s, small)", call("locate", INT, text("a"), c.s, c.small)),
        Case("locate(s2, s, 2)", call("locate", INT, c.s2, c.s, number(2))),
        Case("startswith(s, s2)", call("startswith", BOOLEAN, c.s, c.s2)),
        Case("endswith(s, 'c')", call("endswith", BOOLEAN, c.s, text("c"))),
        Case("contains(s, '')", call("contains", BOOLEAN, c.s, text(""))),
        Case("contains(s, s2)", call("contains", BOOLEAN, c.s, c.s2)),
        Case("startswith(bin, bin2)", call("startswith", BOOLEAN, c.bin, c.bin2)),
        Case("reverse(s)", call("reverse", STRING, c.s)),
        Case("reverse(arr)", call("reverse", array_of(INT), c.arr)),
        Case("repeat(s, small)", call("repeat", STRING, c.s, c.small)),
        Case("space(small)", call("space", STRING, c.small)),
        Case("translate(s, 'abcé', 'xy')", call("translate", STRING, c.s, text("abcé"), text("xy"))),
        Case("translate(s, s2, 'xyz')", call("translate", STRING, c.s, c.s2, text("xyz"))),
        Case("ascii(s)", call("ascii", INT, c.s)),
        Case("chr(i64)", call("chr", STRING, c.i64)),
        Case("split_part(s, ',', small)", call("split_part", STRING, c.s, text(","), c.small)),
        Case("split_part(s, s2, 1)", call("split_part", STRING, c.s, c.s2, number(1))),
        Case("substring_index(s, ',', small)", call("substring_index", STRING, c.s, text(","), c.small)),
        Case("substring_index(s, 'aa', 1)", call("substring_index", STRING, c.s, text("aa"), number(1))),
        Case("substring_index(s, 'aa', -1)", call("substring_index", STRING, c.s, text("aa"), number(-1))),
        Case("s like s2", call("like", BOOLEAN, c.s, c.s2, text("\\"))),
        Case("s like 'a/%b' escape '/'", call("like", BOOLEAN, c.s, text("a/%b"), text("/"))),
        Case("split(s, '')", call("split", array_of(STRING), c.s, text(""), number(-1))),
        Case("split(s, '', 2)", call("split", array_of(STRING), c.s, text(""), number(2))),
        Case("split(s, ',', 2)", call("split", array_of(STRING), c.s, text(","), number(2))),
    ]
    for function, keyword in (("trim", "BOTH"), ("ltrim", "LEADING"), ("rtrim", "TRAILING")):
        cases += [
            Case(f"{function}(s)", call(function, STRING, c.s)),
            Case(f"trim({keyword} 'xyé ' FROM s)", call(function, STRING, c.s, text("xyé "))),
            Case(f"trim({keyword} '' FROM s)", call(function, STRING, c.s, text(""))),
            Case(f"trim({keyword} s2 FROM s)", call(function, STRING, c.s, c.s2)),
        ]
    for start, size in itertools.product((0, 1, 2, 5, -1, -2, -9, 2**31 - 1, -(2**31)), (0, 1, 3, -1, 2**31 - 1)):
        start_sql = f"({start + 1} - 1)" if start == -(2**31) else str(start)
        cases.append(
            Case(f"substring(s, {start_sql}, {size})", call("substring", STRING, c.s, number(start), number(size)))
        )
    for size in (0, 2, -1, 9):
        cases += [
            Case(f"left(s, {size})", call("left", STRING, c.s, number(size))),
            Case(f"right(s, {size})", call("right", STRING, c.s, number(size))),
            Case(f"substring(bin, {size}, 1)", call("substring", BINARY, c.bin, number(size), number(1))),
        ]
    for pattern in PATTERNS:
        for sql in ("like", "ilike"):
            cases.append(Case(f"s {sql} {sql_text(pattern)}", call(sql, BOOLEAN, c.s, text(pattern), text("\\"))))
    return cases


def regex() -> list[Case]:
    cases = []
    for expression in EXPRESSIONS:
        quoted = sql_text(expression)
        cases += [
            Case(f"s rlike {quoted}", call("rlike", BOOLEAN, c.s, text(expression))),
            Case(f"regexp_extract(s, {quoted}, 0)", call("regexp_extract", STRING, c.s, text(expression), number(0))),
        ]
        if expression != "^$":
            cases += [
                Case(
                    f"regexp_replace(s, {quoted}, '<$0>')",
                    call("regexp_replace", STRING, c.s, text(expression), text("<$0>"), number(1)),
                ),
                Case(f"split(s, {quoted})", call("split", array_of(STRING), c.s, text(expression), number(-1))),
            ]
    two = "(\\d+)-(\\d+)"
    cases += [
        Case(f"regexp_extract(s, {sql_text(two)}, 2)", call("regexp_extract", STRING, c.s, text(two), number(2))),
        Case(
            f"regexp_replace(s, {sql_text(two)}, '$2:$1')",
            call("regexp_replace", STRING, c.s, text(two), text("$2:$1"), number(1)),
        ),
        Case(
            "regexp_replace(s, '(b)|c', '[$1]')",
            call("regexp_replace", STRING, c.s, text("(b)|c"), text("[$1]"), number(1)),
        ),
        Case(
            "regexp_replace(s, 'a', '\\\\$x')", call("regexp_replace", STRING, c.s, text("a"), text("\\$x"), number(1))
        ),
        Case("regexp_extract(s, '(x)?a', 1)", call("regexp_extract", STRING, c.s, text("(x)?a"), number(1))),
    ]
    return cases


def dates() -> list[Case]:
    cases = [
        *(
            Case(f"{name}(d)", call(name, INT, c.d))
            for name in (
                "year",
                "quarter",
                "month",
                "day",
                "dayofweek",
                "weekday",
                "dayofyear",
                "weekofyear",
                "unix_date",
            )
        ),
        *(
            Case(f"{name}({column_name})", call(name, INT, column(column_name)))
            for name in ("hour", "minute", "second")
            for column_name in ("ts", "ntz")
        ),
        Case("date_add(d, i32)", call("date_add", DATE, c.d, c.i32)),
        Case("date_sub(d, i32)", call("date_sub", DATE, c.d, c.i32)),
        Case("date_diff(d, d2)", call("date_diff", INT, c.d, c.d2)),
        Case("add_months(d, small)", call("add_months", DATE, c.d, c.small)),
        Case("add_months(d, i32)", call("add_months", DATE, c.d, c.i32)),
        Case("last_day(d)", call("last_day", DATE, c.d)),
        Case(
            "make_date(small + 2000, small, small + 25)",
            call(
                "make_date",
                DATE,
                call("add", INT, c.small, number(2000)),
                c.small,
                call("add", INT, c.small, number(25)),
            ),
        ),
        Case("make_date(i32, 2, 29)", call("make_date", DATE, c.i32, number(2), number(29))),
        Case("date_from_unix_date(i32)", call("date_from_unix_date", DATE, c.i32)),
        *(Case(f"{name}(ts)", call(name, BIGINT, c.ts)) for name in ("unix_seconds", "unix_millis", "unix_micros")),
        *(Case(f"{name}(i64)", call(name, TIMESTAMP, c.i64)) for name in ("timestamp_millis", "timestamp_micros")),
        Case("d - d2", call("subtract_dates", INTERVAL, c.d, c.d2)),
        Case("ts - ts2", call("subtract_timestamps", INTERVAL, c.ts, c.ts2)),
        Case("ntz - ntz2", call("subtract_timestamps", INTERVAL, c.ntz, c.ntz2)),
        Case("ts + dur", call("timestamp_add_interval", TIMESTAMP, c.ts, c.dur)),
        Case("ntz + dur", call("timestamp_add_interval", TIMESTAMP_NTZ, c.ntz, c.dur)),
        Case("ts - dur", call("timestamp_add_interval", TIMESTAMP, c.ts, call("negate", INTERVAL, c.dur))),
        Case("to_date(sdate)", call("to_date", DATE, c.sdate)),
        Case("to_timestamp(sdate)", call("to_timestamp", TIMESTAMP, c.sdate)),
        Case(
            "ts >= timestamp'2020-01-01 00:00:00'",
            call("greater_equal", BOOLEAN, c.ts, lit(datetime(2020, 1, 1, tzinfo=UTC), TIMESTAMP)),
        ),
        Case(
            "ts + interval '1 02:03:04.5' day to second",
            call(
                "timestamp_add_interval",
                TIMESTAMP,
                c.ts,
                lit(timedelta(days=1, hours=2, minutes=3, seconds=4.5), INTERVAL),
            ),
        ),
    ]
    for months in (1, -1, 12, 13, -25):
        interval = lit(pa.MonthDayNano([months, 0, 0]), MONTHS)
        cases += [
            Case(f"d + interval '{months}' month", call("date_add_interval", DATE, c.d, interval)),
            Case(f"ts + interval '{months}' month", call("timestamp_add_interval", TIMESTAMP, c.ts, interval)),
            Case(f"ntz + interval '{months}' month", call("timestamp_add_interval", TIMESTAMP_NTZ, c.ntz, interval)),
        ]
    for unit in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"):
        name, small = text(unit), cast(c.small, BIGINT)
        cases += [
            Case(f"timestampadd({unit}, small, ts)", call("timestampadd", TIMESTAMP, name, small, c.ts)),
            Case(f"timestampadd({unit}, small, ntz)", call("timestampadd", TIMESTAMP_NTZ, name, small, c.ntz)),
            Case(f"timestampadd({unit}, i64, ts)", call("timestampadd", TIMESTAMP, name, c.i64, c.ts)),
            Case(f"dateadd({unit}, small, d)", call("timestampadd", TIMESTAMP, name, small, cast(c.d, TIMESTAMP))),
            Case(f"timestampdiff({unit}, ts, ts2)", call("timestampdiff", BIGINT, name, c.ts, c.ts2)),
            Case(f"datediff({unit}, ntz2, ntz)", call("timestampdiff", BIGINT, name, c.ntz2, c.ntz)),
            Case(f"datediff({unit}, d, ts)", call("timestampdiff", BIGINT, name, cast(c.d, TIMESTAMP), c.ts)),
        ]
    cases.append(
        Case("timestampadd(DAYOFYEAR, i64, ts)", call("timestampadd", TIMESTAMP, text("DAYOFYEAR"), c.i64, c.ts))
    )
    for unit in ("week", "MON", "Month", "mm", "quarter", "YEAR", "yyyy", "yy", "day", "nonsense", ""):
        cases.append(Case(f"trunc(d, '{unit}')", call("trunc", DATE, c.d, text(unit))))
    for unit in (
        "microsecond",
        "MILLISECOND",
        "second",
        "minute",
        "hour",
        "day",
        "DD",
        "week",
        "month",
        "mon",
        "mm",
        "quarter",
        "year",
        "yyyy",
        "yy",
        "decade",
        "",
    ):
        cases.append(Case(f"date_trunc('{unit}', ts)", call("date_trunc", TIMESTAMP, text(unit), c.ts)))
    return cases


def math() -> list[Case]:
    cases = [
        Case("sqrt(f64)", call("sqrt", DOUBLE, c.f64)),
        Case("sign(f64)", call("sign", DOUBLE, c.f64)),
        Case("sign(dur)", call("sign", DOUBLE, c.dur)),
        Case("rint(f64)", call("rint", DOUBLE, c.f64)),
        *(Case(f"{name}(f64)", call(name, BIGINT, c.f64)) for name in ("ceil", "floor")),
        *(Case(f"{name}(i64)", call(name, BIGINT, c.i64)) for name in ("ceil", "floor")),
        Case("i32 & i32b", call("bitwise_and", INT, c.i32, c.i32b)),
        Case("i64 | i64b", call("bitwise_or", BIGINT, c.i64, c.i64b)),
        Case("i8 ^ i8b", call("bitwise_xor", TINYINT, c.i8, c.i8b)),
        Case("~i16", call("bitwise_not", SMALLINT, c.i16)),
        Case("shiftleft(i32, i32b)", call("shiftleft", INT, c.i32, c.i32b)),
        Case("shiftleft(i64, i32b)", call("shiftleft", BIGINT, c.i64, c.i32b)),
        Case("shiftright(i32, i32b)", call("shiftright", INT, c.i32, c.i32b)),
        Case("greatest(i32, i32b, 5)", call("greatest", INT, c.i32, c.i32b, number(5))),
        Case("least(s, s2)", call("least", STRING, c.s, c.s2)),
        Case("greatest(arr, arr2)", call("greatest", array_of(INT), c.arr, c.arr2)),
        *(
            Case(f"{name}(f64, f64b, 0D)", call(name, DOUBLE, c.f64, c.f64b, lit(0.0, DOUBLE)))
            for name in ("greatest", "least")
        ),
        *(Case(f"{name}(-0D, f64)", call(name, DOUBLE, lit(-0.0, DOUBLE), c.f64)) for name in ("greatest", "least")),
        *(Case(f"{name}(d, d2)", call(name, DATE, c.d, c.d2)) for name in ("greatest", "least")),
    ]
    for name, kind in DECIMAL_COLUMNS.items():
        whole = decimal(min(kind.precision - kind.scale + 1, 38), 0) if kind.scale else kind
        cases += [Case(f"{function}({name})", call(function, whole, column(name))) for function in ("ceil", "floor")]
    for function, places in itertools.product(("round", "bround"), (0, 1, 2, 5, 15, -1, -2, -5, -12, 30)):
        for name in ("f64", "f32", "money", "i8", "i16", "i32", "i64"):
            kind = SCHEMA.field(name).type
            cases.append(Case(f"{function}({name}, {places})", call(function, kind, column(name), number(places))))
        for name, kind in DECIMAL_COLUMNS.items():
            cases.append(
                Case(
                    f"{function}({name}, {places})",
                    call(function, rounded_type(kind, places), column(name), number(places)),
                )
            )
    return cases


def rounded_type(kind: pa.DataType, places: int) -> pa.DataType:
    """Spark's type of a rounded decimal."""
    whole = kind.precision - kind.scale + 1
    if places < 0:
        return decimal(min(max(whole, -places + 1), 38), 0)
    scale = min(kind.scale, places)
    return decimal(min(whole + scale, 38), scale)


def nested() -> list[Case]:
    strings_type, ints = array_of(STRING), array_of(INT)
    return [
        Case("st.a", call("get_struct_field", INT, c.st, number(0))),
        Case("st.b", call("get_struct_field", STRING, c.st, number(1))),
        Case("arrst.a", call("get_array_struct_field", ints, c.arrst, number(0))),
        Case("arr[small]", call("get_array_item", INT, c.arr, c.small)),
        Case("arr[0]", call("get_array_item", INT, c.arr, number(0))),
        Case("arr[i8]", call("get_array_item", INT, c.arr, c.i8)),
        Case("arr[i64]", call("get_array_item", INT, c.arr, c.i64)),
        Case("element_at(arr, small)", call("element_at", INT, c.arr, c.small)),
        Case("element_at(arrs, -1)", call("element_at", STRING, c.arrs, number(-1))),
        Case("m['a']", call("get_map_value", INT, c.m, text("a"))),
        Case("m[s]", call("get_map_value", INT, c.m, c.s)),
        Case("element_at(m, 'b')", call("element_at", INT, c.m, text("b"))),
        Case("size(arr)", call("size", INT, c.arr)),
        Case("size(m)", call("size", INT, c.m)),
        Case("array_size(arrs)", call("array_size", INT, c.arrs)),
        Case("array_contains(arr, i32)", call("array_contains", BOOLEAN, c.arr, c.i32)),
        Case("array_contains(arr, 1)", call("array_contains", BOOLEAN, c.arr, number(1))),
        Case("array_contains(arrd, f64)", call("array_contains", BOOLEAN, c.arrd, c.f64)),
        Case("array_contains(arrs, '')", call("array_contains", BOOLEAN, c.arrs, text(""))),
        Case("named_struct('a', i32, 'b', s)", call("named_struct", STRUCT, text("a"), c.i32, text("b"), c.s)),
        Case("named_struct('x', 1, 'y', arr)", call("named_struct", pa.struct([("x", INT), ("y", ints)]), text("x"), number(1), text("y"), c.arr)),
        Case("array(i32, i32b, 3)", call("array", ints, c.i32, c.i32b, number(3))),
        Case("array(st, st2)", call("array", array_of(STRUCT), c.st, c.st2)),
        Case("array(arr, arr2)", call("array", array_of(ints), c.arr, c.arr2)),
        Case("map('k', i32, 'l', i32b)", call("map", pa.map_(STRING, INT), text("k"), c.i32, text("l"), c.i32b)),
        Case("map(s, i32)", call("map", pa.map_(STRING, INT), c.s, c.i32)),
        Case("map(s, 1, s2, 2)", call("map", pa.map_(STRING, INT), c.s, number(1), c.s2, number(2))),
        Case("map_keys(m)", call("map_keys", strings_type, c.m)),
        Case("map_values(m)", call("map_values", ints, c.m)),
        Case("array_min(arr)", call("array_min", INT, c.arr)),
        Case("array_max(arr)", call("array_max", INT, c.arr)),
        Case("array_max(arrs)", call("array_max", STRING, c.arrs)),
        Case("sort_array(arr)", call("sort_array", ints, c.arr, T)),
        Case("sort_array(arrs, false)", call("sort_array", strings_type, c.arrs, F)),
        Case("flatten(arrarr)", call("flatten", ints, c.arrarr)),
        Case("array_join(arrs, '-')", call("array_join", STRING, c.arrs, text("-"))),
        Case("array_join(arrs, s, '?')", call("array_join", STRING, c.arrs, c.s, text("?"))),
    ]  # fmt: skip


FAMILIES: dict[str, Any] = {
    "arithmetic": arithmetic,
    "decimals": decimals,
    "comparisons": comparisons,
    "logic": logic,
    "casts": casts,
    "strings": strings,
    "regex": regex,
    "dates": dates,
    "math": math,
    "nested": nested,
}
