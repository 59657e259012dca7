"""The names Spark gives to columns without an alias: the expression, printed its way."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from weirflow.errors import SqlTypeError
from weirflow.sql.bind.ordinal import ordinal
from weirflow.sql.functions.dates import WITH_UNIT
from weirflow.sql.types import type_name
from weirflow.sql.typing.type_syntax import arrow_type
from weirflow.stack import grows

if TYPE_CHECKING:
    from weirflow.errors import SqlPosition

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
_VARIABLE = "namedlambdavariable()"
_IDENTITY = f"lambdafunction({_VARIABLE}, {_VARIABLE})"
_USUAL_ORDER = (
    f"lambdafunction((IF((({_VARIABLE} IS NULL) AND ({_VARIABLE} IS NULL)), 0, (IF(({_VARIABLE} IS NULL), 1, "
    f"(IF(({_VARIABLE} IS NULL), -1, (IF(({_VARIABLE} < {_VARIABLE}), -1, "
    f"(IF(({_VARIABLE} > {_VARIABLE}), 1, 0)))))))))), {_VARIABLE}, {_VARIABLE})"
)
_PARTS = ("0", "0", "0", "0.000000")
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
    "regexp_extract_all": {2: ("1",)},
    "regexp_instr": {2: ("0",)},
    "mask": {given: ("X", "x", "n", "NULL")[given - 1 :] for given in range(1, 5)},
    "locate": {2: ("1",)},
    "position": {2: ("1",)},
    "listagg": {1: ("NULL",)},
    "string_agg": {1: ("NULL",)},
    "lag": {1: ("1", "NULL"), 2: ("NULL",)},
    "lead": {1: ("1", "NULL"), 2: ("NULL",)},
    "sort_array": {1: ("true",)},
    **{name: {1: ("yyyy-MM-dd HH:mm:ss",)} for name in ("from_unixtime", "unix_timestamp", "to_unix_timestamp")},
    "make_dt_interval": {at: _PARTS[at:] for at in range(4)},
    "months_between": {2: ("true",)},
    "aggregate": {3: (_IDENTITY,)},
    "reduce": {3: (_IDENTITY,)},
    "array_sort": {1: (_USUAL_ORDER,)},
    "str_to_map": {1: (",", ":"), 2: (":",)},
    "percentile": {2: ("1",)},
}
_UPPER_NAMES = """
ceil floor sqrt cbrt signum power exp expm1 log log10 log2 log1p sin cos tan cot sec csc asin acos atan atan2
sinh cosh tanh asinh acosh atanh degrees radians rint hypot pi e rank dense_rank percent_rank rlike
"""
_UPPER = frozenset(_UPPER_NAMES.split())
_TEMPLATES = {
    ("like", 2): "{0} LIKE {1}",
    ("ltrim", 2): "TRIM(LEADING {0} FROM {1})",
    ("rtrim", 2): "TRIM(TRAILING {0} FROM {1})",
    ("datepart", 2): "datepart({0} FROM {1})",
    ("log", 1): "LOG(E(), {0})",
    ("ceil", 2): "ceil({0}, {1})",
    ("floor", 2): "floor({0}, {1})",
    ("positive", 1): "(+ {0})",
    ("mode", 2): "mode() WITHIN GROUP (ORDER BY {0} DESC)",
    ("if", 3): "(IF({0}, {1}, {2}))",
    ("isnull", 1): "({0} IS NULL)",
    ("isnotnull", 1): "({0} IS NOT NULL)",
}
"""Of calls that Spark does not print as such, by their number of arguments."""
_TRIMS = {"LEADING": "ltrim", "TRAILING": "rtrim"}
_RENAMED = {"array_agg": "collect_list", "dateadd": "date_add", "to_varchar": "to_char"}
_CONVERSION_NAMES = "boolean tinyint smallint int bigint float double decimal string binary date timestamp"
_CONVERSIONS = frozenset(_CONVERSION_NAMES.split())


UNNAMED = "\0"
"""How a column is shown whose text in Spark's names is not known."""


class _Unnamed(Exception):
    """Spark's name of an expression is not known here."""


def output_name(node: exp.Expr, position: SqlPosition | None = None) -> str:
    """The column name Spark gives ``node``, once it is bound, in a SELECT list; an error if that is not known.

    >>> from weirflow.sql.syntax.parse import parse_query
    >>> [output_name(item) for item in parse_query("SELECT a + 1, count(*), t.b FROM t").selects]
    ['(a + 1)', 'count(1)', 'b']
    """
    try:
        return _output_name(node)
    except _Unnamed:
        raise SqlTypeError(
            "The name that Spark gives to this column is not known here.", hint="name it with AS", position=position
        ) from None


@grows
def _output_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Column | exp.Identifier):
        return node.name
    if isinstance(node, exp.Dot):
        return node.expression.name if _is_path(node) else f"{text(node.this)}.{node.expression.name}"
    if isinstance(node, exp.Paren):
        return _output_name(node.this)
    if isinstance(node, exp.Bracket) and node.meta_get("is_field"):
        return f"{text(node.this)}.{text(node.expressions[0])}"
    converted = _converted(node)
    if converted is not None and _is_path(converted):
        return _output_name(converted)
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


def field_names(trees: list[exp.Expr], otherwise: str = "col{1}") -> tuple[str, ...]:
    """The fields of ``struct(trees)``: named by alias or column, otherwise ``col1`` and so on.

    ``otherwise`` is for the places from 0 and from 1.
    """
    return tuple(
        tree.alias
        if isinstance(tree, exp.Alias)
        else _output_name(tree)
        if _is_path(tree)
        else otherwise.format(index, index + 1)
        for index, tree in enumerate(trees)
    )


def spelled_out(
    node: exp.Expr, windows: dict[str, exp.Window], shown: Callable[[tuple[str, ...]], str | None]
) -> exp.Expr:
    """``node`` with the named windows it refers to written in place, and columns as Spark shows them in names."""
    if isinstance(node, exp.Column):
        return node
    copied = node.copy()
    for column in copied.find_all(exp.Column):
        column.meta["shown"] = shown(tuple(part.name for part in column.parts))
    for over in copied.find_all(exp.Window):
        alias = over.args.get("alias")
        named = None if alias is None else windows.get(alias.name)
        if named is not None:
            for part in ("partition_by", "order", "spec"):
                over.set(part, named.args.get(part))
    return copied


def _is_path(node: exp.Expr) -> bool:
    while isinstance(node, exp.Dot):
        node = node.this
    return isinstance(node, exp.Column | exp.Identifier)  # of a lambda's variable


@grows
def text(node: exp.Expr) -> str:
    """``node`` as Spark prints it inside a name: strings without quotes, columns without their relation."""
    printer = _PRINTERS.get(type(node))
    if printer is not None:
        return printer(node)
    if type(node) in _BINARY:
        return f"({text(node.this)} {_BINARY[type(node)]} {text(node.expression)})"
    raise _Unnamed


def has_unit(call: exp.Anonymous) -> bool:
    """Whether the first argument is a unit, as in ``dateadd(DAY, 1, d)``."""
    return call.name.casefold() in WITH_UNIT and len(call.expressions) == 3  # noqa: PLR2004 - a unit and two values


def _call(node: exp.Anonymous) -> str:  # noqa: PLR0911 - one for each form
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
    if node.meta_get("sign"):
        return f"({printed[0]} {node.meta['sign']} {printed[1]})"
    template = _TEMPLATES.get((name, len(printed))) or ("{0}" if name in _CONVERSIONS and len(printed) == 1 else None)
    if template is not None:
        return template.format(*printed)
    if name in ("window", "session_window"):
        return name
    if name in ("from_json", "to_json"):  # Spark does not say what it is read as, nor with which options
        return f"{name}({printed[0]})"
    if name in ("first", "last", "any_value", "first_value", "last_value", "approx_count_distinct"):
        return f"{name}({distinct}{printed[0]})"
    usual = _RENAMED.get(name, name.upper() if name in _UPPER else name)
    shown = WITH_UNIT[name] if has_unit(node) else usual
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
        if node.meta["suffix"] == "BD":
            return _decimal_text(digits)
        return digits if node.meta["suffix"] not in ("F", "D") else _double_text(digits)
    kind = arrow_type(node.to)
    if node.meta_get("typed_literal"):
        if node.meta_get("shown") is None:
            raise _Unnamed
        return f"{type_name(kind).upper()} '{node.meta['shown']}'"
    function = "TRY_CAST" if isinstance(node, exp.TryCast) else "CAST"
    if pa.types.is_nested(kind):  # Spark does not say what it was cast to
        if function == "TRY_CAST":
            raise _Unnamed
        return text(node.this)
    return f"{function}({text(node.this)} AS {type_name(kind).upper()})"


def _decimal_text(digits: str) -> str:
    """A decimal as written, without an exponent and needless zeros in front."""
    return f"{Decimal(digits):f}"


def _double_text(digits: str) -> str:
    """A double as Java prints it, where it prints no exponent."""
    value = float(digits)
    if value and not 1e-3 <= abs(value) < 1e7:  # noqa: PLR2004 - Java's bounds
        mantissa, _, exponent = f"{Decimal(repr(value)).normalize():e}".partition("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"
    return repr(value)


def _in(node: exp.In) -> str:
    if node.args.get("query") is not None:
        value = _tuple(node.this, quote="'") if isinstance(node.this, exp.Tuple) else text(node.this)
        return f"({value} IN (listquery({_outer(node.args['query'])})))"
    return f"({text(node.this)} IN ({', '.join(text(part) for part in node.expressions)}))"


def _outer(query: exp.Expr) -> str:
    """The columns of the query around that a subquery reads."""
    return ", ".join(query.meta_get("outer") or ())


def _is(node: exp.Is) -> str:
    if isinstance(node.expression, exp.Null):
        return f"({text(node.this)} IS NULL)"
    return f"({text(node.this)} <=> {text(node.expression)})"


def _not(node: exp.Not) -> str:
    if node.meta_get("is_not") and isinstance(node.this.expression, exp.Null):
        return f"({text(node.this.this)} IS NOT NULL)"
    return f"(NOT {text(node.this)})"


def _trim(node: exp.Trim) -> str:
    side = str(node.args.get("position") or "")
    if node.expression is None:
        return f"{_TRIMS.get(side, 'trim')}({text(node.this)})"
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


def _within_group(node: exp.WithinGroup) -> str:
    name, keys = node.this.name.casefold(), node.expression.expressions
    if name in ("listagg", "string_agg"):
        call, shown = text(node.this).replace("string_agg(", "listagg(", 1), [_ordered(key) for key in keys]
    else:
        # Spark shows the order of a mode the wrong way round.
        call, shown = text(node.this), [_within(key, inverted=name == "mode") for key in keys]
    return f"{call} WITHIN GROUP (ORDER BY {', '.join(shown)})"


def _within(node: exp.Expr, *, inverted: bool) -> str:
    inner = node.this if isinstance(node, exp.Ordered) else node
    return f"{text(inner)} DESC" if bool(node.args.get("desc")) != inverted else text(inner)


def _frame(node: exp.Window) -> str:
    spec = node.args.get("spec")
    if spec is None:
        call = node.this if isinstance(node.this, exp.Anonymous) else node.this.this
        name = call.name.casefold()
        if name in ("lag", "lead"):
            given = call.expressions
            places = ordinal(given[1]) if len(given) > 1 else 1
            if places is None:
                raise _Unnamed
            row = f"{-places if name == 'lag' else places} FOLLOWING"
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
    if node.is_string:
        return node.name
    return _double_text(node.name) if "e" in node.name.casefold() else _decimal_text(node.name)


def _sum(node: exp.Expr, sign: str) -> str:
    """Spark prints the sum of a time and an interval without parentheses, that of a date and days as a call."""
    if node.meta_get("is_interval"):
        raise _Unnamed
    swapped = node.meta_get("date")
    if swapped is not None:
        moment, days = (node.expression, node.this) if swapped else (node.this, node.expression)
        if not isinstance(days.unnest(), exp.Interval):
            return f"date_{'add' if sign == '+' else 'sub'}({text(moment)}, {text(days)})"
        counted = f"extractansiintervaldays({text(days)})"
        return f"date_add({text(moment)}, {counted if sign == '+' else f'(- {counted})'})"
    printed = f"{text(node.this)} {sign} {text(node.expression)}"
    return printed if isinstance(node.expression, exp.Interval) or node.meta_get("moment") else f"({printed})"


def _interval(node: exp.Interval) -> str:
    unit = node.args.get("unit")
    amount = ("-" if isinstance(node.this, exp.Neg) else "") + str(node.this.name).strip()
    if isinstance(unit, exp.IntervalSpan):
        first, last = unit.this.name.upper(), unit.expression.name.upper()
        if last != "MONTH":
            amount = _padded(amount, pad_first=first != "DAY")
        return f"INTERVAL '{amount}' {first} TO {last}"
    name = "" if unit is None else unit.name.upper().removesuffix("S")
    if name == "WEEK" and amount.isdigit():
        amount, name = str(7 * int(amount)), "DAY"
    if name not in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"):
        raise _Unnamed
    return f"INTERVAL '{_padded(amount, pad_first=name in ('HOUR', 'MINUTE', 'SECOND'))}' {name}"


def _padded(amount: str, *, pad_first: bool) -> str:
    """Hours, minutes and seconds have two digits."""
    found = re.fullmatch(r"([+-]?)(\d+)(.*)", amount)
    if found is None:
        raise _Unnamed
    rest = re.sub(r"([ :]+)(\d+)", lambda part: f"{part[1][:1]}{part[2].zfill(2)}", found[3])
    rest = rest.rstrip("0").rstrip(".") if "." in rest else rest
    sign = "-" if found[1] == "-" else ""
    return f"{sign}{found[2].zfill(2) if pad_first else int(found[2])}{rest}"


def _column(node: exp.Column) -> str:
    shown = node.meta_get("shown")
    if shown == UNNAMED:
        raise _Unnamed
    return str(shown or node.name)


def _pattern(node: exp.Like | exp.ILike) -> str:
    value, insensitive = text(node.this), isinstance(node, exp.ILike)
    if isinstance(node.expression, exp.Any | exp.All):
        function = f"{'not' if node.args.get('negate') else ''}like{node.expression.key}"
        return f"{function}({f'lower({value})' if insensitive else value})"
    pattern = text(node.expression)
    return f"ilike({value}, {pattern})" if insensitive else f"{value} LIKE {pattern}"


def _bracket(node: exp.Bracket) -> str:
    inner = text(node.expressions[0])
    return f"{text(node.this)}.{inner}" if node.meta_get("is_field") else f"{text(node.this)}[{inner}]"


def _ignoring_nulls(node: exp.IgnoreNulls) -> str:
    return text(node.this).replace("first_value(", "first(", 1).replace("last_value(", "last(", 1)


def _tuple(node: exp.Tuple, quote: str = "") -> str:
    named = zip(field_names(node.expressions), node.expressions, strict=True)
    return f"named_struct({', '.join(f'{quote}{name}{quote}, {text(part)}' for name, part in named)})"


def _lambda(node: exp.Lambda) -> str:
    return f"lambdafunction({', '.join([text(node.this), *(_VARIABLE for _ in node.expressions)])})"


def clock_name(node: exp.Expr) -> str:
    """The name of CURRENT_DATE and the like, as a function or a column."""
    assert isinstance(node, exp.Func), "they are functions without parentheses"
    return str(node.sql_names()[0]).lower()


_PRINTERS: dict[type[exp.Expr], Callable[..., str]] = {
    exp.Column: _column,
    exp.Identifier: lambda node: _VARIABLE if node.meta_get("is_variable") else node.name,
    exp.Lambda: _lambda,
    exp.Dot: lambda node: f"{text(node.this)}.{node.expression.name}",
    exp.Bracket: _bracket,
    exp.CurrentDate: clock_name,
    exp.CurrentTimestamp: clock_name,
    exp.CurrentUser: clock_name,
    exp.SessionUser: clock_name,
    exp.HexString: lambda node: f"X'{'0' * (len(node.name) % 2)}{node.name.upper()}'",
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
    exp.Like: _pattern,
    exp.ILike: _pattern,
    exp.RegexpLike: lambda node: f"RLIKE({text(node.this)}, {text(node.expression)})",
    exp.Between: lambda node: f"between({text(node.this)}, {text(node.args['low'])}, {text(node.args['high'])})",
    exp.DPipe: lambda node: f"concat({text(node.this)}, {text(node.expression)})",
    exp.Substring: lambda node: (
        f"substring({text(node.this)}, {text(node.args['start'])}, "
        f"{text(node.args['length']) if node.args.get('length') else '2147483647'})"
    ),
    exp.StrPosition: lambda node: f"locate({text(node.args['substr'])}, {text(node.this)}, 1)",
    exp.Overlay: lambda node: (
        f"overlay({text(node.this)}, {text(node.expression)}, {text(node.args['from_'])}, "
        f"{text(node.args['for_']) if node.args.get('for_') else '-1'})"
    ),
    exp.Trim: _trim,
    exp.Extract: lambda node: f"extract({node.this.name} FROM {text(node.expression)})",
    exp.Filter: lambda node: f"{text(node.this)} FILTER (WHERE {text(node.expression.this)})",
    exp.Window: _over,
    exp.IgnoreNulls: _ignoring_nulls,
    exp.RespectNulls: lambda node: text(node.this),
    exp.WithinGroup: _within_group,
    exp.Subquery: lambda node: f"scalarsubquery({_outer(node)})",
    exp.Exists: lambda node: f"exists({_outer(node.this)})",
    exp.BitwiseNot: lambda node: f"~{text(node.this)}",
}
