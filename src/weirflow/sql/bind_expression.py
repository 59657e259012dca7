"""Binding of scalar expressions: names become columns, operators typed calls, sugar is gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from weirflow.errors import QueryError, SqlTypeError
from weirflow.sql import literals
from weirflow.sql.bind_subquery import bind_exists, bind_in_subquery, bind_scalar_subquery
from weirflow.sql.casts import can_cast
from weirflow.sql.coercion import cast
from weirflow.sql.expr import Call, Expr, Literal
from weirflow.sql.functions.collections import item, named_struct, struct_field
from weirflow.sql.functions.conditionals import case
from weirflow.sql.functions.dates import extract
from weirflow.sql.functions.lookup import SCALARS, unknown
from weirflow.sql.functions.operators import OPERATORS
from weirflow.sql.naming import field_names
from weirflow.sql.refusal import NotIncremental, Reason
from weirflow.sql.strict import check_parts
from weirflow.sql.types import BINARY, BOOLEAN, DATE, INT, NULL, STRING, TIMESTAMP, TIMESTAMP_NTZ, arrow_type, type_name

if TYPE_CHECKING:
    from weirflow.errors import SqlPosition
    from weirflow.sql.context import Context
    from weirflow.sql.scope import Scope
    from weirflow.sql.slots import Slots

Lookup = Callable[[tuple[str, ...], "SqlPosition | None"], Expr | None]
"""What a dotted name stands for in one place, or None."""
CallBinder = Callable[["ExpressionBinder", exp.Expr], Expr]
"""Binds calls by name, aggregates and window functions; ``bind_call`` of the module of that name."""


@dataclass(frozen=True)
class ExpressionBinder:
    """Binds expressions of one clause of one query."""

    context: Context
    scope: Scope
    bind_call: CallBinder
    lookups: tuple[Lookup, ...] = ()
    """Where to look for a name, in order; the scope itself when empty."""
    slots: Slots | None = None
    """Where aggregates and window functions go; None where they are not allowed."""
    clause: str = "this clause"
    windows: dict[str, exp.Window] = field(default_factory=dict)
    """The query's named windows."""
    time_window: tuple[exp.Expr, Expr] | None = None
    """The query's ``window()`` or ``session_window()`` call, and the column it became."""

    def bind(self, node: exp.Expr) -> Expr:
        """The typed expression for a syntax tree."""
        check_parts(node, _PARTS.get(type(node), frozenset()), self.context)
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            return handler(self, node)
        operator = _OPERATORS.get(type(node))
        if operator is not None:
            operands = (
                (self.bind(node.this),)
                if isinstance(node, exp.Unary)
                else (self.bind(node.this), self.bind(node.expression))
            )
            return OPERATORS[operator](operands, self.position(node))
        if isinstance(node, _CALLS):
            return self.bind_call(self, node)
        raise self.refused(node)

    def position(self, node: exp.Expr) -> SqlPosition | None:
        """Where ``node`` is in the text."""
        return self.context.position(node)

    def without_slots(self, clause: str) -> ExpressionBinder:
        """The binder for a place that may hold no aggregates, seeing only the scope."""
        return replace(self, slots=None, clause=clause, lookups=())

    def name(self, path: tuple[str, ...], position: SqlPosition | None) -> Expr:
        """What a dotted name stands for; ``ColumnNotFound`` if nothing."""
        for lookup in self.lookups or (self.scope.find,):
            found = lookup(path, position)
            if found is not None:
                return found
        raise self.scope.not_found(path, position)

    def refused(self, node: exp.Expr) -> QueryError:
        """The error for syntax that has no meaning in an incremental view."""
        return NotIncremental(
            f"{node.key.upper()} is not supported in an incremental view.",
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
            position=self.position(node),
        )

    def column(self, node: exp.Column) -> Expr:
        if isinstance(node.this, exp.Star):
            raise SqlTypeError("* can only stand in a SELECT list or in count(*).", position=self.position(node))
        return self.name(tuple(part.name for part in node.parts), self.position(node))

    def identifier(self, node: exp.Identifier) -> Expr:
        return self.name((node.name,), self.position(node))

    def dot(self, node: exp.Dot) -> Expr:
        if not isinstance(node.expression, exp.Identifier):
            raise unknown(node.sql("spark"), self.position(node))
        return struct_field(self.bind(node.this), node.expression.name, self.position(node.expression))

    def bracket(self, node: exp.Bracket) -> Expr:
        if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
            raise self.refused(node)
        return item(self.bind(node.this), self.bind(node.expressions[0]), self.position(node))

    def literal(self, node: exp.Literal) -> Expr:
        if node.is_string:
            return Literal(node.name, STRING)
        return literals.number(node.name, position=self.position(node))

    def negated(self, node: exp.Neg) -> Expr:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return literals.number("-" + node.this.name, position=self.position(node))
        if isinstance(node.this, exp.Cast) and node.this.meta_get("suffix"):
            inner = node.this
            return literals.number("-" + inner.meta["digits"], inner.meta["suffix"], self.position(node))
        operand = self.bind(node.this)
        if isinstance(operand, Literal) and isinstance(operand.value, timedelta):
            return Literal(-operand.value, operand.type)
        return OPERATORS["negate"]((operand,), self.position(node))

    def cast(self, node: exp.Cast | exp.TryCast) -> Expr:
        position = self.position(node)
        if node.meta_get("suffix"):
            return literals.number(node.meta["digits"], node.meta["suffix"], position)
        kind = arrow_type(node.to)
        operand = self.bind(node.this)
        if isinstance(operand, Literal) and operand.type == STRING:
            constant = self._constant(operand.value, kind)
            if constant is not None:
                return constant
        if not can_cast(operand.type, kind):
            raise SqlTypeError(f"{type_name(operand.type)} cannot be cast to {type_name(kind)}.", position=position)
        if isinstance(node, exp.TryCast) and operand.type != kind:
            return Call("try_cast", (operand,), kind, position)
        return cast(operand, kind, position)

    def _constant(self, text: str, kind: pa.DataType) -> Literal | None:
        if kind == DATE:
            return literals.date_literal(text)
        if kind in (TIMESTAMP, TIMESTAMP_NTZ):
            return literals.timestamp_literal(text, kind, self.context.zone)
        return None

    def interval(self, node: exp.Interval) -> Expr:
        position = self.position(node)
        units = interval_units(node)
        if units is None or not isinstance(node.this, exp.Literal | exp.Neg):
            raise SqlTypeError("An interval is a number and its unit.", hint="INTERVAL '1' DAY", position=position)
        sign = "-" if isinstance(node.this, exp.Neg) else ""
        return literals.interval(sign + node.this.name, *units, position)

    def sum_or_difference(self, node: exp.Add | exp.Sub) -> Expr:
        """``+`` and ``-``; a date and an interval of whole days stay a date."""
        operator = "add" if isinstance(node, exp.Add) else "subtract"
        left, right = self.bind(node.this), self.bind(node.expression)
        for when, other, tree in ((left, right, node.expression), (right, left, node.this)):
            swapped = when is right and operator == "subtract"
            if when.type == DATE and not swapped and _is_whole_days(tree) and isinstance(other, Literal):
                days = other.value // timedelta(days=1)
                function = "date_add" if operator == "add" else "date_sub"
                return Call(function, (when, Literal(days, INT)), DATE, self.position(node))
        return OPERATORS[operator]((left, right), self.position(node))

    def between(self, node: exp.Between) -> Expr:
        value, position = self.bind(node.this), self.position(node)
        above = OPERATORS["greater_equal"]((value, self.bind(node.args["low"])), position)
        below = OPERATORS["less_equal"]((value, self.bind(node.args["high"])), position)
        return OPERATORS["and"]((above, below), position)

    def contained(self, node: exp.In) -> Expr:
        query = node.args.get("query")
        if query is not None:
            values = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
            return bind_in_subquery(self, [self.bind(value) for value in values], query, self.position(node))
        if node.args.get("unnest") or node.args.get("field"):
            raise self.refused(node)
        value = self.bind(node.this)
        return OPERATORS["in"]((value, *(self.bind(option) for option in node.expressions)), self.position(node))

    def is_(self, node: exp.Is) -> Expr:
        value, position = self.bind(node.this), self.position(node)
        if isinstance(node.expression, exp.Null):
            return OPERATORS["is_null"]((value,), position)
        if isinstance(node.expression, exp.Not) and isinstance(node.expression.this, exp.Null):
            return OPERATORS["is_not_null"]((value,), position)
        if isinstance(node.expression, exp.Boolean):
            return OPERATORS["equal_null_safe"]((value, self.bind(node.expression)), position)
        raise self.refused(node)

    def negation(self, node: exp.Not) -> Expr:
        if isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
            return OPERATORS["is_not_null"]((self.bind(node.this.this),), self.position(node))
        return OPERATORS["not"]((self.bind(node.this),), self.position(node))

    def differs(self, node: exp.NullSafeNEQ) -> Expr:
        pair = (self.bind(node.this), self.bind(node.expression))
        position = self.position(node)
        return OPERATORS["not"]((OPERATORS["equal_null_safe"](pair, position),), position)

    def like(self, node: exp.Like | exp.ILike, escape: exp.Expr | None = None) -> Expr:
        name, position = ("like" if isinstance(node, exp.Like) else "ilike"), self.position(node)
        text = self.bind(node.this)
        extra = () if escape is None else (self.bind(escape),)
        if not isinstance(node.expression, exp.Any | exp.All):
            return OPERATORS[name]((text, self.bind(node.expression), *extra), position)
        negated = bool(node.args.get("negate"))
        options = node.expression.this
        patterns = options.expressions if isinstance(options, exp.Tuple) else [options.unnest()]
        tests = [OPERATORS[name]((text, self.bind(pattern), *extra), position) for pattern in patterns]
        tests = [OPERATORS["not"]((test,), position) if negated else test for test in tests]
        joint = "or" if isinstance(node.expression, exp.Any) else "and"
        result = tests[0]
        for test in tests[1:]:
            result = OPERATORS[joint]((result, test), position)
        return result

    def escaped(self, node: exp.Escape) -> Expr:
        if not isinstance(node.this, exp.Like | exp.ILike):
            raise self.refused(node)
        return self.like(node.this, node.expression)

    def case(self, node: exp.Case) -> Expr:
        subject = None if node.this is None else self.bind(node.this)
        branches = []
        for branch in node.args["ifs"]:
            condition = self.bind(branch.this)
            if subject is not None:
                condition = OPERATORS["equal"]((subject, condition), self.position(branch))
            branches.append((condition, self.bind(branch.args["true"])))
        default = node.args.get("default")
        otherwise = Literal(None, NULL) if default is None else self.bind(default)
        return case(tuple(branches), otherwise, self.position(node))

    def tuple(self, node: exp.Tuple) -> Expr:
        values = tuple(self.bind(part) for part in node.expressions)
        return named_struct(field_names(node.expressions), values, self.position(node))

    def adjacent(self, node: exp.Concat) -> Expr:
        return Literal("".join(part.name for part in node.expressions), STRING)

    def joined(self, node: exp.DPipe) -> Expr:
        return SCALARS["concat"]((self.bind(node.this), self.bind(node.expression)), self.position(node))

    def trim(self, node: exp.Trim) -> Expr:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "trim")
        characters = () if node.expression is None else (self.bind(node.expression),)
        return SCALARS[name]((*characters, self.bind(node.this)), self.position(node))

    def substring(self, node: exp.Substring) -> Expr:
        given = (node.this, node.args.get("start"), node.args.get("length"))
        return SCALARS["substring"](tuple(self.bind(part) for part in given if part is not None), self.position(node))

    def located(self, node: exp.StrPosition) -> Expr:
        given = (node.args["substr"], node.this, node.args.get("position"))
        return SCALARS["locate"](tuple(self.bind(part) for part in given if part is not None), self.position(node))

    def clock(self, node: exp.Expr) -> Expr:
        raise unknown(node.sql_names()[0].lower() if isinstance(node, exp.Func) else node.key, self.position(node))


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


_PARTS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Column: frozenset({"table", "db", "catalog"}),
    exp.Literal: frozenset({"is_string"}),
    exp.Identifier: frozenset({"quoted"}),
    exp.Between: frozenset({"low", "high"}),
    exp.In: frozenset({"query", "unnest", "field"}),
    exp.Like: frozenset({"negate"}),
    exp.ILike: frozenset({"negate"}),
    exp.Case: frozenset({"ifs", "default"}),
    exp.Cast: frozenset({"to", "_type"}),
    exp.TryCast: frozenset({"to", "_type", "safe", "requires_string"}),
    exp.Interval: frozenset({"unit"}),
    exp.Trim: frozenset({"position"}),
    exp.Substring: frozenset({"start", "length"}),
    exp.StrPosition: frozenset({"substr", "position"}),
    exp.DPipe: frozenset({"safe"}),
    exp.Div: frozenset({"typed", "safe"}),
    exp.Subquery: frozenset({"with_", "limit", "offset", "order", "alias"}),
    exp.Window: frozenset({"partition_by", "order", "spec", "alias", "over"}),
    exp.Bracket: frozenset({"offset", "safe"}),
}
_CALLS = (exp.Anonymous, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls, exp.Window)
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
_HANDLERS: dict[type[exp.Expr], Callable[..., Expr]] = {
    exp.Column: ExpressionBinder.column,
    exp.Identifier: ExpressionBinder.identifier,
    exp.Dot: ExpressionBinder.dot,
    exp.Bracket: ExpressionBinder.bracket,
    exp.Literal: ExpressionBinder.literal,
    exp.RawString: lambda _, node: Literal(node.name, STRING),
    exp.HexString: lambda _, node: Literal(bytes.fromhex(node.name.zfill(len(node.name) + len(node.name) % 2)), BINARY),
    exp.Boolean: lambda _, node: Literal(bool(node.this), BOOLEAN),
    exp.Null: lambda _, __: Literal(None, NULL),
    exp.Paren: lambda self, node: self.bind(node.this),
    exp.Neg: ExpressionBinder.negated,
    exp.Cast: ExpressionBinder.cast,
    exp.TryCast: ExpressionBinder.cast,
    exp.Interval: ExpressionBinder.interval,
    exp.Add: ExpressionBinder.sum_or_difference,
    exp.Sub: ExpressionBinder.sum_or_difference,
    exp.Between: ExpressionBinder.between,
    exp.In: ExpressionBinder.contained,
    exp.Is: ExpressionBinder.is_,
    exp.Not: ExpressionBinder.negation,
    exp.NullSafeNEQ: ExpressionBinder.differs,
    exp.Like: ExpressionBinder.like,
    exp.ILike: ExpressionBinder.like,
    exp.Escape: ExpressionBinder.escaped,
    exp.Case: ExpressionBinder.case,
    exp.Tuple: ExpressionBinder.tuple,
    exp.Concat: ExpressionBinder.adjacent,
    exp.DPipe: ExpressionBinder.joined,
    exp.Trim: ExpressionBinder.trim,
    exp.Substring: ExpressionBinder.substring,
    exp.StrPosition: ExpressionBinder.located,
    exp.Extract: lambda self, node: extract(node.this.name, self.bind(node.expression), self.position(node)),
    exp.BitwiseAnd: lambda self, node: SCALARS["bitwise_and"](
        (self.bind(node.this), self.bind(node.expression)), self.position(node)
    ),
    exp.BitwiseOr: lambda self, node: SCALARS["bitwise_or"](
        (self.bind(node.this), self.bind(node.expression)), self.position(node)
    ),
    exp.BitwiseXor: lambda self, node: SCALARS["bitwise_xor"](
        (self.bind(node.this), self.bind(node.expression)), self.position(node)
    ),
    exp.Subquery: bind_scalar_subquery,
    exp.Exists: bind_exists,
    exp.CurrentDate: ExpressionBinder.clock,
    exp.CurrentTimestamp: ExpressionBinder.clock,
    exp.CurrentUser: ExpressionBinder.clock,
    exp.SessionUser: ExpressionBinder.clock,
}
