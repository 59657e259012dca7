"""A plan run the slow and obvious way, row by row, subqueries included: what every pass must preserve."""

from __future__ import annotations

import operator
from collections import Counter
from decimal import Decimal
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.sql.expr import (
    AggregateCall,
    Call,
    Column,
    Exists,
    Expr,
    InSubquery,
    Literal,
    OuterColumn,
    ScalarSubquery,
    SortKey,
)
from weirflow.sql.plan import (
    Aggregate,
    Distinct,
    Filter,
    Generate,
    Join,
    JoinKind,
    Plan,
    Project,
    Recursive,
    Scan,
    SetKind,
    SetOperation,
    TopK,
    Union,
    Values,
    Window,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Row = tuple[Any, ...]
Tables = dict[str, list[Row]]


class SeveralRows(Exception):
    """A subquery used as a value had more than one row."""


def run(plan: Plan, tables: Tables, around: tuple[Row, ...] = ()) -> list[Row]:
    """The plan's rows; ``around`` holds the rows of the queries around it, the nearest last."""

    def rows(child: Plan) -> list[Row]:
        return run(child, tables, around)

    def value(expr: Expr, row: Row) -> Any:
        return evaluate(expr, row, tables, around)

    match plan:
        case Scan():
            return tables[plan.name]
        case Values():
            return [tuple(value(expr, ()) for expr in row) for row in plan.rows]
        case Project():
            return [tuple(value(expr, row) for expr in plan.expressions) for row in rows(plan.input)]
        case Filter():
            return [row for row in rows(plan.input) if value(plan.predicate, row) is True]
        case Join():
            return _join(plan, rows(plan.left), rows(plan.right), value)
        case Aggregate():
            return _aggregate(plan, rows(plan.input), value)
        case Window():
            return _window(plan, rows(plan.input), value)
        case Distinct():
            return list(dict.fromkeys(rows(plan.input)))
        case Union():
            return [row for one in plan.inputs for row in rows(one)]
        case SetOperation():
            return _set_operation(plan, rows(plan.left), rows(plan.right))
        case TopK():
            ordered = _sorted(rows(plan.input), plan.order, value)
            return ordered[plan.offset :][: plan.limit]
        case Generate():
            return _generate(plan, rows(plan.input), value)
        case Recursive():
            return _recursive(plan, rows(plan.base), lambda last: run(plan.step, {**tables, plan.name: last}, around))
        case _:
            raise NotImplementedError(type(plan).__name__)


def _join(plan: Join, left: list[Row], right: list[Row], value: Callable[[Expr, Row], Any]) -> list[Row]:
    def matches(one: Row, other: Row) -> bool | None:
        keys = [(value(a, one), value(b, other)) for a, b in zip(plan.left_keys, plan.right_keys, strict=True)]
        if any(a is None or b is None for a, b in keys):
            return None if plan.null_aware else False
        if any(a != b for a, b in keys):
            return False
        return plan.residual is None or value(plan.residual, one + other) is True

    if plan.kind is JoinKind.SEMI:
        return [one for one in left if any(matches(one, other) for other in right)]
    if plan.kind is JoinKind.ANTI:
        return [one for one in left if all(matches(one, other) is False for other in right)]
    pairs = [(one, other) for one in left for other in right if matches(one, other)]
    result = [one + other for one, other in pairs]
    if plan.kind in (JoinKind.LEFT, JoinKind.FULL):
        pad = (None,) * len(plan.right.fields)
        result += [one + pad for one in left if not any(matches(one, other) for other in right)]
    if plan.kind in (JoinKind.RIGHT, JoinKind.FULL):
        pad = (None,) * len(plan.left.fields)
        result += [pad + other for other in right if not any(matches(one, other) for one in left)]
    return result


def _aggregate(plan: Aggregate, rows: list[Row], value: Callable[[Expr, Row], Any]) -> list[Row]:
    result = []
    every = tuple(range(len(plan.keys)))
    for chosen in (every,) if plan.grouping_sets is None else plan.grouping_sets:
        groups: dict[Row, list[Row]] = {}
        for row in rows:
            key = tuple(value(key, row) if i in chosen else None for i, key in enumerate(plan.keys))
            groups.setdefault(key, []).append(row)
        if not chosen and not groups:
            groups[(None,) * len(plan.keys)] = []
        identity = sum(1 << (len(every) - 1 - i) for i in every if i not in chosen)
        extra = () if plan.grouping_sets is None else (identity,)
        for key, members in groups.items():
            result.append(key + tuple(_call(call, members, value) for call in plan.calls) + extra)
    return result


def _call(call: AggregateCall, rows: list[Row], value: Callable[[Expr, Row], Any]) -> Any:
    kept = [row for row in rows if call.filter is None or value(call.filter, row) is True]
    if call.function == "count" and not call.arguments:
        return len(kept)
    if call.function == "single_value":
        if len(kept) > 1:
            raise SeveralRows
        return value(call.arguments[0], kept[0]) if kept else None
    found = [tuple(value(part, row) for part in call.arguments) for row in kept]
    present = [item for item in found if None not in item]
    if call.distinct:
        present = list(dict.fromkeys(present))
    if call.function == "count":
        return len(present)
    firsts = [item[0] for item in present]
    if not firsts:
        return None
    functions: dict[str, Callable[[list[Any]], Any]] = {
        "sum": sum,
        "min": min,
        "max": max,
        "avg": lambda items: sum(items) / len(items),
    }
    return functions[call.function](firsts)


def _window(plan: Window, rows: list[Row], value: Callable[[Expr, Row], Any]) -> list[Row]:
    columns = []
    for call in plan.calls:
        made: dict[int, Any] = {}
        keys = [tuple(value(part, row) for part in call.partition_by) for row in rows]
        for key in dict.fromkeys(keys):
            places = [index for index in range(len(rows)) if keys[index] == key]
            ordered = _sorted(places, call.order_by, lambda expr, index: value(expr, rows[index]))
            for number, index in enumerate(ordered):
                if call.function == "row_number":
                    made[index] = number + 1
                else:
                    whole = AggregateCall(call.function, call.arguments, call.type)
                    made[index] = _call(whole, [rows[place] for place in ordered], value)
        columns.append(made)
    return [row + tuple(made[index] for made in columns) for index, row in enumerate(rows)]


def _set_operation(plan: SetOperation, left: list[Row], right: list[Row]) -> list[Row]:
    one, other = Counter(left), Counter(right)
    if plan.all:
        return list(((one & other) if plan.kind is SetKind.INTERSECT else (one - other)).elements())
    kept = plan.kind is SetKind.INTERSECT
    return [row for row in one if (row in other) == kept]


def _generate(plan: Generate, rows: list[Row], value: Callable[[Expr, Row], Any]) -> list[Row]:
    result = []
    for row in rows:
        items = value(plan.generator.arguments[0], row) or []
        made = [(item,) for item in items] if plan.generator.function == "explode" else list(enumerate(items))
        if not made and plan.outer:
            made = [(None,) * (len(plan.fields) - len(row))]
        result += [row + one for one in made]
    return result


def _recursive(plan: Recursive, base: list[Row], step: Callable[[list[Row]], list[Row]]) -> list[Row]:
    last = list(dict.fromkeys(base)) if plan.distinct else base
    found = list(last)
    while last:
        last = step(last)
        if plan.distinct:
            last = [row for row in dict.fromkeys(last) if row not in found]
        found += last
    return found


def _sorted(items: Iterable[Any], order: tuple[SortKey, ...], value: Callable[[Expr, Any], Any]) -> list[Any]:
    def compare(one: Any, other: Any) -> int:
        for key in order:
            a, b = value(key.expr, one), value(key.expr, other)
            if a == b:
                continue
            if a is None or b is None:
                return -1 if (a is None) == key.nulls_first else 1
            return (-1 if a < b else 1) * (-1 if key.descending else 1)
        return 0

    return sorted(items, key=cmp_to_key(compare))


def evaluate(expr: Expr, row: Row, tables: Tables, around: tuple[Row, ...]) -> Any:
    """An expression's value for one row."""
    match expr:
        case Column():
            return row[expr.index]
        case OuterColumn():
            return around[-expr.depth][expr.index]
        case Literal():
            return expr.value
        case ScalarSubquery():
            found = run(expr.plan, tables, (*around, row))
            if len(found) > 1:
                raise SeveralRows
            return found[0][0] if found else None
        case Exists():
            return bool(run(expr.plan, tables, (*around, row)))
        case InSubquery():
            values = tuple(evaluate(value, row, tables, around) for value in expr.values)
            return _in(values, run(expr.plan, tables, (*around, row))) is True  # never NULL, as in Spark
        case Call(function="not", arguments=(InSubquery() as inner,)):
            values = tuple(evaluate(value, row, tables, around) for value in inner.values)
            return _in(values, run(inner.plan, tables, (*around, row))) is False
        case Call(function="not", arguments=(Call(function="and" | "or" as joint) as inner,)):
            negated = tuple(Call("not", (part,), inner.type) for part in inner.arguments)
            other = Call("or" if joint == "and" else "and", negated, inner.type)
            return evaluate(other, row, tables, around)
        case Call(function="not", arguments=(Call(function="not") as inner,)):
            return evaluate(inner.arguments[0], row, tables, around)
        case Call():
            return _evaluate_call(expr, lambda part: evaluate(part, row, tables, around))


def _in(values: Row, options: list[Row]) -> bool | None:
    def same(option: Row) -> bool | None:
        tests = [None if a is None or b is None else a == b for a, b in zip(values, option, strict=True)]
        return False if False in tests else None if None in tests else True

    found = [same(option) for option in options]
    return True if True in found else None if None in found else False


def _evaluate_call(call: Call, value: Callable[[Expr], Any]) -> Any:
    arguments = call.arguments
    match call.function:
        case "and" | "or":
            stop = call.function == "or"
            left = value(arguments[0])
            if left is stop:
                return stop
            right = value(arguments[1])
            return stop if right is stop else None if None in (left, right) else not stop
        case "case":
            for condition, result in zip(arguments[:-1:2], arguments[1::2], strict=False):
                if value(condition) is True:
                    return value(result)
            return value(arguments[-1])
        case "coalesce":
            return next((found for part in arguments if (found := value(part)) is not None), None)
        case "is_null":
            return value(arguments[0]) is None
        case "is_not_null":
            return value(arguments[0]) is not None
        case "equal_null_safe":
            return value(arguments[0]) == value(arguments[1])
        case "in":
            return _in((value(arguments[0]),), [(value(part),) for part in arguments[1:]])
    values = [value(part) for part in arguments]
    if None in values:
        return None
    return _cast(values[0], call.type) if call.function == "cast" else _STRICT[call.function](*values)


def _cast(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_floating(kind):
        return float(value)
    return int(value) if pa.types.is_integer(kind) else str(value)


_STRICT: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "remainder": lambda a, b: a - b * int(a / b),
    "integral_divide": lambda a, b: int(a / b),
    "negate": operator.neg,
    "not": operator.not_,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "upper": str.upper,
    "concat": operator.add,
}
