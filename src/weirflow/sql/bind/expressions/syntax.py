"""Expressions by their syntax: operators, literals, casts, CASE, IN, subqueries. Sugar is gone afterwards."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from weirflow.errors import SqlSyntaxError, SqlTypeError
from weirflow.sql.bind.expressions.naming import clock_name, field_names
from weirflow.sql.bind.expressions.subquery import bind_exists, bind_in_subquery, bind_scalar_subquery
from weirflow.sql.clock.reading import clock_call, is_clock_function
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.collections import item, named_struct, struct_field
from weirflow.sql.functions.conditionals import case
from weirflow.sql.functions.dates import extract
from weirflow.sql.functions.lookup import SCALARS, unknown
from weirflow.sql.functions.operators import OPERATORS
from weirflow.sql.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    is_datetime,
    is_integral,
    type_name,
)
from weirflow.sql.typing import literals
from weirflow.sql.typing.coercion import explicit_cast
from weirflow.sql.typing.moments import moment
from weirflow.sql.typing.type_syntax import arrow_type

if TYPE_CHECKING:
    from weirflow.errors import SqlPosition
    from weirflow.sql.bind.expressions.binder import ExpressionBinder


_YEAR = re.compile(r"\s*[+-]?\d{4}")


def bind_syntax(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    """The typed expression for anything but a call by name; ``NotIncremental`` for what views cannot hold."""
    handler = _HANDLERS.get(type(node))
    if handler is not None:
        return handler(binder, node)
    operator = _OPERATORS.get(type(node)) or _CALLED.get(type(node))
    if operator is None:
        raise binder.refused(node)
    trees = (node.this,) if isinstance(node, exp.Unary) else (node.this, node.expression)
    rule = OPERATORS[operator] if operator in OPERATORS else SCALARS[operator]
    return rule(tuple(binder.bind(tree) for tree in trees), binder.position(node))


def _column(binder: ExpressionBinder, node: exp.Column) -> Expr:
    if isinstance(node.this, exp.Star):
        raise SqlTypeError("* can only be used in a SELECT list or in count(*).", position=binder.position(node))
    return binder.name(tuple(part.name for part in node.parts), binder.position(node))


def _identifier(binder: ExpressionBinder, node: exp.Identifier) -> Expr:
    node.meta["is_variable"] = bool(binder.variables)
    return binder.name((node.name,), binder.position(node))


def _dot(binder: ExpressionBinder, node: exp.Dot) -> Expr:
    if not isinstance(node.expression, exp.Identifier):
        raise unknown(node.sql("spark"), binder.position(node))
    name, position = node.expression.name, binder.position(node.expression)
    return struct_field(binder.bind(node.this), name, position, binder.scope.fold)


def _bracket(binder: ExpressionBinder, node: exp.Bracket) -> Expr:
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
        raise binder.refused(node)
    of = binder.bind(node.this)
    node.meta["is_field"] = pa.types.is_struct(of.type)
    return item(of, binder.bind(node.expressions[0]), binder.position(node), binder.scope.fold)


def _literal(binder: ExpressionBinder, node: exp.Literal) -> Expr:
    if node.is_string:
        return Literal(node.name, STRING)
    return literals.number(node.name, position=binder.position(node))


def _negated(binder: ExpressionBinder, node: exp.Neg) -> Expr:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return literals.number("-" + node.this.name, position=binder.position(node))
    if isinstance(node.this, exp.Cast) and node.this.meta_get("suffix"):
        inner = node.this
        return literals.number("-" + inner.meta["digits"], inner.meta["suffix"], binder.position(node))
    operand = binder.bind(node.this)
    if isinstance(operand, Literal) and isinstance(operand.value, timedelta):
        return Literal(-operand.value, operand.type)
    return OPERATORS["negate"]((operand,), binder.position(node))


def _cast(binder: ExpressionBinder, node: exp.Cast | exp.TryCast) -> Expr:
    position = binder.position(node)
    if node.meta_get("suffix"):
        return literals.number(node.meta["digits"], node.meta["suffix"], position)
    kind = arrow_type(node.to)
    operand = binder.bind(node.this)
    if isinstance(operand, Literal) and isinstance(operand.value, str):
        constant = _constant(binder, operand.value, kind, position)
        if constant is None and node.meta_get("typed_literal") and not _YEAR.match(operand.value):
            raise SqlSyntaxError(f"{operand.value!r} is not a {type_name(kind)}.", position=position)
        if constant is not None:
            node.meta["shown"] = literals.datetime_text(constant.value, binder.context.zone)
            return constant
    converted = explicit_cast(operand, kind, position)
    if isinstance(node, exp.TryCast) and isinstance(converted, Call) and converted is not operand:
        return Call("try_cast", (operand,), kind, position)
    is_written = not node.meta_get("typed_literal") and isinstance(converted, Call) and converted is not operand
    if is_written and not binder.context.settings.ansi:
        return Call("legacy_cast", (operand,), kind, position)
    return converted


def _constant(binder: ExpressionBinder, text: str, kind: pa.DataType, position: SqlPosition | None) -> Literal | None:
    special = moment(Literal(text, STRING), kind, position)
    if special is not None:
        return special
    if kind == DATE:
        return literals.date_literal(text)
    if kind in (TIMESTAMP, TIMESTAMP_NTZ):
        return literals.timestamp_literal(text, kind, binder.context.zone)
    return None


def _interval(binder: ExpressionBinder, node: exp.Interval) -> Expr:
    position = binder.position(node)
    units = interval_units(node)
    if units is None or not isinstance(node.this, exp.Literal | exp.Neg):
        raise SqlTypeError("An interval needs a number and a unit.", hint="INTERVAL '1' DAY", position=position)
    sign = "-" if isinstance(node.this, exp.Neg) else ""
    return literals.interval(sign + node.this.name, *units, position)


def _sum_or_difference(binder: ExpressionBinder, node: exp.Add | exp.Sub) -> Expr:
    """``+`` and ``-``; a date and an interval of whole days stay a date."""
    operator = "add" if isinstance(node, exp.Add) else "subtract"
    left, right = binder.bind(node.this), binder.bind(node.expression)
    for when, other, tree in ((left, right, node.expression), (right, left, node.this)):
        swapped = when is right and operator == "subtract"
        if when.type == DATE and not swapped and _is_whole_days(tree) and isinstance(other, Literal):
            days = other.value // timedelta(days=1)
            function = "date_add" if operator == "add" else "date_sub"
            node.meta["date"] = tree is node.this
            return Call(function, (when, Literal(days, INT)), DATE, binder.position(node))
    result = OPERATORS[operator]((left, right), binder.position(node))
    if isinstance(result, Call) and result.function == "timestamp_add_interval":
        node.meta["moment"] = is_datetime(left.type)
    if result.type == DATE and is_integral((left if right.type == DATE else right).type):
        node.meta["date"] = right.type == DATE
    return result


def _between(binder: ExpressionBinder, node: exp.Between) -> Expr:
    value, position = binder.bind(node.this), binder.position(node)
    above = OPERATORS["greater_equal"]((value, binder.bind(node.args["low"])), position)
    below = OPERATORS["less_equal"]((value, binder.bind(node.args["high"])), position)
    return OPERATORS["and"]((above, below), position)


def _contained(binder: ExpressionBinder, node: exp.In) -> Expr:
    query = node.args.get("query")
    if query is not None:
        values = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        return bind_in_subquery(binder, [binder.bind(value) for value in values], query, binder.position(node))
    value = binder.bind(node.this)
    return OPERATORS["in"]((value, *(binder.bind(option) for option in node.expressions)), binder.position(node))


def _is(binder: ExpressionBinder, node: exp.Is) -> Expr:
    value, position = binder.bind(node.this), binder.position(node)
    if isinstance(node.expression, exp.Null):
        return OPERATORS["is_null"]((value,), position)
    if isinstance(node.expression, exp.Boolean):
        return OPERATORS["equal_null_safe"]((value, binder.bind(node.expression)), position)
    raise binder.refused(node)


def _negation(binder: ExpressionBinder, node: exp.Not) -> Expr:
    if isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
        tested = binder.bind(node.this)
        assert isinstance(tested, Call), "IS NULL is a call"
        return OPERATORS["is_not_null"](tested.arguments, binder.position(node))
    return OPERATORS["not"]((binder.bind(node.this),), binder.position(node))


def _differs(binder: ExpressionBinder, node: exp.NullSafeNEQ) -> Expr:
    pair = (binder.bind(node.this), binder.bind(node.expression))
    position = binder.position(node)
    return OPERATORS["not"]((OPERATORS["equal_null_safe"](pair, position),), position)


def _like(binder: ExpressionBinder, node: exp.Like | exp.ILike, escape: exp.Expr | None = None) -> Expr:
    name, position = ("like" if isinstance(node, exp.Like) else "ilike"), binder.position(node)
    text = binder.bind(node.this)
    extra = () if escape is None else (binder.bind(escape),)
    if not isinstance(node.expression, exp.Any | exp.All):
        return OPERATORS[name]((text, binder.bind(node.expression), *extra), position)
    negated = bool(node.args.get("negate"))
    options = node.expression.this
    patterns = options.expressions if isinstance(options, exp.Tuple) else [options.unnest()]
    tests = [OPERATORS[name]((text, binder.bind(pattern), *extra), position) for pattern in patterns]
    tests = [OPERATORS["not"]((test,), position) if negated else test for test in tests]
    joint = "or" if isinstance(node.expression, exp.Any) else "and"
    result = tests[0]
    for test in tests[1:]:
        result = OPERATORS[joint]((result, test), position)
    return result


def _escaped(binder: ExpressionBinder, node: exp.Escape) -> Expr:
    if not isinstance(node.this, exp.Like | exp.ILike):
        raise binder.refused(node)
    return _like(binder, node.this, node.expression)


def _case(binder: ExpressionBinder, node: exp.Case) -> Expr:
    subject = None if node.this is None else binder.bind(node.this)
    branches = []
    for branch in node.args["ifs"]:
        condition = binder.bind(branch.this)
        if subject is not None:
            condition = OPERATORS["equal"]((subject, condition), binder.position(branch))
        branches.append((condition, binder.bind(branch.args["true"])))
    default = node.args.get("default")
    otherwise = Literal(None, NULL) if default is None else binder.bind(default)
    return case(tuple(branches), otherwise, binder.position(node))


def _tuple(binder: ExpressionBinder, node: exp.Tuple) -> Expr:
    values = tuple(binder.bind(part) for part in node.expressions)
    return named_struct(field_names(node.expressions), values, binder.position(node))


def _trim(binder: ExpressionBinder, node: exp.Trim) -> Expr:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "trim")
    characters = () if node.expression is None else (binder.bind(node.expression),)
    return SCALARS[name]((*characters, binder.bind(node.this)), binder.position(node))


def _substring(binder: ExpressionBinder, node: exp.Substring) -> Expr:
    given = (node.this, node.args.get("start"), node.args.get("length"))
    return SCALARS["substring"](tuple(binder.bind(part) for part in given if part is not None), binder.position(node))


def _located(binder: ExpressionBinder, node: exp.StrPosition) -> Expr:
    given = (node.args["substr"], node.this, node.args.get("position"))
    return SCALARS["locate"](tuple(binder.bind(part) for part in given if part is not None), binder.position(node))


def _overlay(binder: ExpressionBinder, node: exp.Overlay) -> Expr:
    given = (node.this, node.expression, node.args.get("from_"), node.args.get("for_"))
    return SCALARS["overlay"](tuple(binder.bind(part) for part in given if part is not None), binder.position(node))


def _clock(binder: ExpressionBinder, node: exp.Expr) -> Expr:
    """CURRENT_DATE and the like, unless a column has that name."""
    name = clock_name(node)
    if binder.clause not in ("ORDER BY", "HAVING") and binder.sees(name):  # where Spark takes it for the function
        return binder.name((name,), binder.position(node))
    if is_clock_function(name):
        return clock_call(name, binder.position(node))
    raise unknown(name, binder.position(node))


def interval_units(node: exp.Interval) -> tuple[str, str | None] | None:
    """The first and last unit of an interval literal, without plural; None when it has none."""
    unit = node.args.get("unit")
    if isinstance(unit, exp.IntervalSpan):
        return _singular(unit.this.name), _singular(unit.expression.name)
    return None if unit is None else (_singular(unit.name), None)


def _singular(unit: str) -> str:
    return unit.upper().removesuffix("S")


def _is_whole_days(node: exp.Expr) -> bool:
    inner = node.unnest()
    inner = inner.this if isinstance(inner, exp.Neg) else inner
    units = interval_units(inner) if isinstance(inner, exp.Interval) else None
    return units is not None and literals.is_whole_days(*units)


_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Mul: "multiply",
    exp.Div: "divide",
    exp.Mod: "remainder",
    exp.IntDiv: "integral_divide",
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
    exp.NullSafeEQ: "equal_null_safe",
    exp.And: "and",
    exp.Or: "or",
    exp.RegexpLike: "rlike",
    exp.BitwiseNot: "bitwise_not",
}
_CALLED: dict[type[exp.Expr], str] = {
    exp.DPipe: "concat",
    exp.BitwiseAnd: "bitwise_and",
    exp.BitwiseOr: "bitwise_or",
    exp.BitwiseXor: "bitwise_xor",
}
_HANDLERS: dict[type[exp.Expr], Callable[..., Expr]] = {
    exp.Column: _column,
    exp.Identifier: _identifier,
    exp.Dot: _dot,
    exp.Bracket: _bracket,
    exp.Literal: _literal,
    exp.RawString: lambda _, node: Literal(node.name, STRING),
    exp.HexString: lambda _, node: Literal(bytes.fromhex(node.name.zfill(len(node.name) + len(node.name) % 2)), BINARY),
    exp.Boolean: lambda _, node: Literal(bool(node.this), BOOLEAN),
    exp.Null: lambda _, __: Literal(None, NULL),
    exp.Paren: lambda binder, node: binder.bind(node.this),
    exp.Neg: _negated,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Interval: _interval,
    exp.Add: _sum_or_difference,
    exp.Sub: _sum_or_difference,
    exp.Between: _between,
    exp.In: _contained,
    exp.Is: _is,
    exp.Not: _negation,
    exp.NullSafeNEQ: _differs,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escaped,
    exp.Case: _case,
    exp.Tuple: _tuple,
    exp.Concat: lambda _, node: Literal("".join(part.name for part in node.expressions), STRING),
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.StrPosition: _located,
    exp.Overlay: _overlay,
    exp.Extract: lambda binder, node: extract(node.this.name, binder.bind(node.expression), binder.position(node)),
    exp.Subquery: bind_scalar_subquery,
    exp.Exists: bind_exists,
    exp.CurrentDate: _clock,
    exp.CurrentTimestamp: _clock,
    exp.CurrentUser: _clock,
    exp.SessionUser: _clock,
}
