"""The names Spark gives to columns without an alias: the expression, printed its way."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from weirflow.sql.functions.dates import WITH_UNIT
from weirflow.sql.types import arrow_type, type_name
from weirflow.stack import grows

_BINARY: dict[type[exp.Expr], str] = {
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "AND",
    exp.Or: "OR",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
}
_DEFAULTS: dict[str, dict[int, tuple[str, ...]]] = {
    "substring": {2: ("2147483647",)},
    "substr": {2: ("2147483647",)},
    "round": {1: ("0",)},
    "bround": {1: ("0",)},
    "lpad": {2: (" ",)},
    "rpad": {2: (" ",)},
    "replace": {2: ("",)},
    "split": {2: ("-1",)},
    "regexp_replace": {3: ("1",)},
    "regexp_extract": {2: ("1",)},
    "locate": {2: ("1",)},
    "position": {2: ("1",)},
    "lag": {1: ("1", "NULL"), 2: ("NULL",)},
    "lead": {1: ("1", "NULL"), 2: ("NULL",)},
    "sort_array": {1: ("true",)},
    "percentile": {2: ("1",)},
}
_UPPER_NAMES = """
ceil floor sqrt cbrt signum power exp expm1 log log10 log2 log1p sin cos tan cot sec csc asin acos atan atan2
sinh cosh tanh asinh acosh atanh degrees radians rint hypot rank dense_rank percent_rank
"""
_UPPER = frozenset(_UPPER_NAMES.split())
_RENAMED = {"array_agg": "collect_list", "dateadd": "date_add"}
_CONVERSION_NAMES = "boolean tinyint smallint int bigint float double decimal string binary date timestamp"
_CONVERSIONS = frozenset(_CONVERSION_NAMES.split())


@grows
def output_name(node: exp.Expr) -> str:
    """The column name Spark gives ``node`` in a SELECT list.

    >>> from weirflow.sql.parse import parse_query
    >>> [output_name(item) for item in parse_query("SELECT a + 1, count(*), t.b FROM t").selects]
    ['(a + 1)', 'count(1)', 'b']
    """
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Dot):
        return node.expression.name if _is_path(node) else f"{text(node.this)}.{node.expression.name}"
    if isinstance(node, exp.Paren):
        return output_name(node.this)
    converted = _converted(node)
    if converted is not None and _is_path(converted):
        return output_name(converted)
    return text(node)


def _converted(node: exp.Expr) -> exp.Expr | None:
    """What a cast converts, which also names the column when it is a column."""
    if isinstance(node, exp.Cast) and not node.meta_get("suffix"):
        inner: exp.Expr = node.this
        return inner
    if isinstance(node, exp.Anonymous) and node.name.casefold() in _CONVERSIONS and len(node.expressions) == 1:
        converted: exp.Expr = node.expressions[0]
        return converted
    return None


def field_names(trees: list[exp.Expr]) -> tuple[str, ...]:
    """The fields of ``struct(trees)``: named by alias or column, otherwise ``col1`` and so on."""
    return tuple(
        tree.alias if isinstance(tree, exp.Alias) else output_name(tree) if _is_path(tree) else f"col{index + 1}"
        for index, tree in enumerate(trees)
    )


def spelled_out(node: exp.Expr, windows: dict[str, exp.Window]) -> exp.Expr:
    """``node`` with the named windows it refers to written in place, as Spark names columns after them."""
    if not windows or node.find(exp.Window) is None:
        return node
    copied = node.copy()
    for over in copied.find_all(exp.Window):
        alias = over.args.get("alias")
        named = None if alias is None else windows.get(alias.name.casefold())
        if named is not None:
            for part in ("partition_by", "order", "spec"):
                over.set(part, named.args.get(part))
    return copied


def _is_path(node: exp.Expr) -> bool:
    while isinstance(node, exp.Dot):
        node = node.this
    return isinstance(node, exp.Column)


@grows
def text(node: exp.Expr) -> str:
    """``node`` as Spark prints it inside a name: strings without quotes, columns without their relation."""
    printer = _PRINTERS.get(type(node))
    if printer is not None:
        return printer(node)
    if type(node) in _BINARY:
        return f"({text(node.this)} {_BINARY[type(node)]} {text(node.expression)})"
    return node.sql("spark")


def has_unit(call: exp.Anonymous) -> bool:
    """Whether the first argument is a unit, as in ``dateadd(DAY, 1, d)``."""
    return call.name.casefold() in WITH_UNIT and len(call.expressions) == 3  # noqa: PLR2004 - a unit and two values


def _call(node: exp.Anonymous) -> str:  # noqa: C901, PLR0911 - one return for each odd one
    name = node.name.casefold()
    arguments = node.expressions
    distinct = ""
    if arguments and isinstance(arguments[0], exp.Distinct):
        distinct, arguments = "DISTINCT ", arguments[0].expressions
    if name == "count" and arguments and isinstance(arguments[0], exp.Star):
        return f"count({distinct}1)"
    printed = [
        f"{text(part.this)} AS {part.alias}" if isinstance(part, exp.Alias) else text(part) for part in arguments
    ]
    printed += _DEFAULTS.get(name, {}).get(len(printed), ())
    if name in ("ltrim", "rtrim") and len(printed) == 2:  # noqa: PLR2004 - characters and text
        return f"TRIM({'LEADING' if name == 'ltrim' else 'TRAILING'} {printed[0]} FROM {printed[1]})"
    if name in ("window", "session_window"):
        return name
    if name in ("first", "last", "any_value", "first_value", "last_value"):
        return f"{name}({printed[0]})"
    if name == "log" and len(printed) == 1:
        return f"LOG(E(), {printed[0]})"
    if name == "positive":
        return f"(+ {printed[0]})"
    if name == "if":
        return f"(IF({', '.join(printed)}))"
    if name in ("isnull", "isnotnull"):
        return f"({printed[0]} IS {'' if name == 'isnull' else 'NOT '}NULL)"
    if has_unit(node):
        return f"{WITH_UNIT[name]}({', '.join(printed)})"
    shown = _RENAMED.get(name, name.upper() if name in _UPPER else name)
    return f"{shown}({distinct}{', '.join(printed)})"


def _case(node: exp.Case) -> str:
    subject = None if node.this is None else text(node.this)
    branches = []
    for branch in node.args["ifs"]:
        condition = text(branch.this) if subject is None else f"({subject} = {text(branch.this)})"
        branches.append(f"WHEN {condition} THEN {text(branch.args['true'])}")
    default = node.args.get("default")
    otherwise = "" if default is None else f" ELSE {text(default)}"
    return f"CASE {' '.join(branches)}{otherwise} END"


def _cast(node: exp.Cast) -> str:
    if node.meta_get("suffix"):
        digits = str(node.meta["digits"])
        return digits if node.meta["suffix"] not in ("F", "D") or "." in digits else f"{digits}.0"
    kind = arrow_type(node.to)
    if node.meta_get("typed_literal"):
        return f"{type_name(kind).upper()} '{_datetime_text(node)}'"
    function = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
    return f"{function}({text(node.this)} AS {type_name(kind).upper()})"


def _datetime_text(node: exp.Cast) -> str:
    written = str(node.this.name)
    needs_time = type_name(arrow_type(node.to)).startswith("timestamp") and len(written) == len("2020-01-01")
    return f"{written} 00:00:00" if needs_time else written


def _in(node: exp.In) -> str:
    if node.args.get("query") is not None:
        return f"({text(node.this)} IN (listquery()))"
    return f"({text(node.this)} IN ({', '.join(text(part) for part in node.expressions)}))"


def _is(node: exp.Is) -> str:
    if isinstance(node.expression, exp.Null):
        return f"({text(node.this)} IS NULL)"
    return f"({text(node.this)} <=> {text(node.expression)})"


def _not(node: exp.Not) -> str:
    if isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
        return f"({text(node.this.this)} IS NOT NULL)"
    return f"(NOT {text(node.this)})"


def _trim(node: exp.Trim) -> str:
    side = str(node.args.get("position") or "")
    if node.expression is None:
        return f"trim({text(node.this)})" if not side else f"TRIM({side} FROM {text(node.this)})"
    return f"TRIM({side or 'BOTH'} {text(node.expression)} FROM {text(node.this)})"


def _over(node: exp.Window) -> str:
    """Spark prints the whole window; its words are stable enough to follow for the common shapes."""
    partition = ", ".join(text(part) for part in node.args.get("partition_by") or ())
    order = node.args.get("order")
    keys = ", ".join(_ordered(part) for part in (order.expressions if order else ()))
    clauses = [f"PARTITION BY {partition}"] if partition else []
    clauses += [f"ORDER BY {keys}"] if keys else []
    return f"{text(node.this)} OVER ({' '.join(clauses)}{' ' if clauses else ''}{_frame(node)})"


def _ordered(node: exp.Expr) -> str:
    if not isinstance(node, exp.Ordered):
        return f"{text(node)} ASC NULLS FIRST"
    direction = "DESC" if node.args.get("desc") else "ASC"
    return f"{text(node.this)} {direction} NULLS {'FIRST' if node.args.get('nulls_first') else 'LAST'}"


def _within(node: exp.Expr) -> str:
    inner = node.this if isinstance(node, exp.Ordered) else node
    return f"{text(inner)} DESC" if node.args.get("desc") else text(inner)


def _frame(node: exp.Window) -> str:
    spec = node.args.get("spec")
    if spec is None:
        name = node.this.name.casefold()
        if name in ("lag", "lead"):
            given = node.this.expressions
            places = text(given[1]) if len(given) > 1 else "1"
            row = f"{'-' if name == 'lag' else ''}{places} FOLLOWING"
            return f"ROWS BETWEEN {row} AND {row}"
        ranking = name in ("row_number", "rank", "dense_rank", "ntile", "percent_rank")
        if node.args.get("order") is None:
            return "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
        return f"{'ROWS' if ranking else 'RANGE'} BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    start = _bound(spec.args.get("start"), spec.args.get("start_side"))
    end = _bound(spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"))
    return f"{str(spec.args['kind']).upper()} BETWEEN {start} AND {end}"


def _bound(bound: exp.Expr | str | None, side: str | None) -> str:
    if isinstance(bound, str):
        return bound.upper() if bound.upper() == "CURRENT ROW" else f"{bound.upper()} {str(side).upper()}"
    return f"{'' if bound is None else text(bound)} {str(side).upper()}"


def _is_number(node: exp.Expr) -> bool:
    return (isinstance(node, exp.Literal) and not node.is_string) or node.meta_get("suffix") is not None


def _literal(node: exp.Literal) -> str:
    return str(float(node.name)) if not node.is_string and "e" in node.name.casefold() else node.name


def _sum(node: exp.Expr, sign: str) -> str:
    """Spark prints the sum of a time and an interval without parentheses."""
    printed = f"{text(node.this)} {sign} {text(node.expression)}"
    return printed if isinstance(node.expression, exp.Interval) else f"({printed})"


def _interval(node: exp.Interval) -> str:
    unit = node.args.get("unit")
    if isinstance(unit, exp.IntervalSpan):
        return f"INTERVAL '{node.this.name}' {unit.this.name.upper()} TO {unit.expression.name.upper()}"
    amount, name = node.this.name, "" if unit is None else unit.name.upper().removesuffix("S")
    if name == "WEEK" and amount.isdigit():
        amount, name = str(7 * int(amount)), "DAY"
    if name in ("HOUR", "MINUTE", "SECOND"):
        amount = amount.zfill(2)
    return f"INTERVAL '{amount}' {name}" if name else str(node.sql("spark"))


def _tuple(node: exp.Tuple) -> str:
    named = zip(field_names(node.expressions), node.expressions, strict=True)
    return f"named_struct({', '.join(f'{name}, {text(part)}' for name, part in named)})"


_PRINTERS: dict[type[exp.Expr], Callable[..., str]] = {
    exp.Column: lambda node: node.name,
    exp.Identifier: lambda node: node.name,
    exp.Dot: lambda node: f"{text(node.this)}.{node.expression.name}",
    exp.Bracket: lambda node: f"{text(node.this)}[{text(node.expressions[0])}]",
    exp.Literal: _literal,
    exp.Interval: _interval,
    exp.Add: lambda node: _sum(node, "+"),
    exp.Sub: lambda node: _sum(node, "-"),
    exp.Tuple: _tuple,
    exp.Escape: lambda node: f"{text(node.this)} ESCAPE '{node.expression.name}'",
    exp.RawString: lambda node: node.name,
    exp.Concat: lambda node: "".join(part.name for part in node.expressions),
    exp.Boolean: lambda node: "true" if node.this else "false",
    exp.Null: lambda _: "NULL",
    exp.Paren: lambda node: text(node.this),
    exp.Neg: lambda node: f"-{text(node.this)}" if _is_number(node.this) else f"(- {text(node.this)})",
    exp.Anonymous: _call,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.In: _in,
    exp.Is: _is,
    exp.Not: _not,
    exp.NEQ: lambda node: f"(NOT ({text(node.this)} = {text(node.expression)}))",
    exp.NullSafeNEQ: lambda node: f"(NOT ({text(node.this)} <=> {text(node.expression)}))",
    exp.Like: lambda node: f"{text(node.this)} LIKE {text(node.expression)}",
    exp.ILike: lambda node: f"ilike({text(node.this)}, {text(node.expression)})",
    exp.RegexpLike: lambda node: f"RLIKE({text(node.this)}, {text(node.expression)})",
    exp.Between: lambda node: f"between({text(node.this)}, {text(node.args['low'])}, {text(node.args['high'])})",
    exp.DPipe: lambda node: f"concat({text(node.this)}, {text(node.expression)})",
    exp.Substring: lambda node: (
        f"substring({text(node.this)}, {text(node.args['start'])}, "
        f"{text(node.args['length']) if node.args.get('length') else '2147483647'})"
    ),
    exp.StrPosition: lambda node: f"locate({text(node.args['substr'])}, {text(node.this)}, 1)",
    exp.Trim: _trim,
    exp.Extract: lambda node: f"extract({node.this.name.lower()} FROM {text(node.expression)})",
    exp.Filter: lambda node: f"{text(node.this)} FILTER (WHERE {text(node.expression.this)})",
    exp.Window: _over,
    exp.IgnoreNulls: lambda node: text(node.this),
    exp.RespectNulls: lambda node: text(node.this),
    exp.WithinGroup: lambda node: (
        f"{text(node.this)} WITHIN GROUP (ORDER BY {', '.join(_within(key) for key in node.expression.expressions)})"
    ),
    exp.Subquery: lambda _: "scalarsubquery()",
    exp.Exists: lambda _: "exists()",
    exp.BitwiseNot: lambda node: f"~{text(node.this)}",
}
