"""A plan as text, one line for each node, for people and for golden files."""

from __future__ import annotations

from collections.abc import Iterable

from weirflow.sql.expr import (
    AggregateCall,
    Call,
    Column,
    Exists,
    Expr,
    Frame,
    InSubquery,
    Literal,
    OuterColumn,
    ScalarSubquery,
    SortKey,
    WindowCall,
)
from weirflow.sql.foreign import filled, foreign_parts, is_foreign
from weirflow.sql.lambdas import is_lambda, is_variable, lambda_parts, number_of
from weirflow.sql.plan import (
    Aggregate,
    Distinct,
    Filter,
    FirstRanked,
    Generate,
    Join,
    Nearest,
    Plan,
    Project,
    Recursive,
    Scan,
    SessionWindow,
    SetOperation,
    TopK,
    Union,
    Values,
    Window,
)
from weirflow.sql.traverse import expressions, inputs, parts
from weirflow.sql.types import STRING, type_name
from weirflow.stack import grows

_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "remainder": "%",
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal_null_safe": "<=>",
    "and": "AND",
    "or": "OR",
}


def print_plan(plan: Plan) -> str:
    """The plan, inputs indented below what reads them; ``name#index`` is a column of the node's input.

    >>> from weirflow.sql.plan import Field
    >>> from weirflow.sql.types import INT
    >>> print(print_plan(Scan("t", (Field("a", INT),))))
    Scan t [a int]
    """
    lines: list[str] = []
    _add_lines(lines, plan, 0)
    return "\n".join(lines)


@grows
def _add_lines(lines: list[str], plan: Plan, depth: int) -> None:
    lines.append("  " * depth + _node(plan))
    for expr in expressions(plan):
        for part in parts(expr):
            if isinstance(part, ScalarSubquery | Exists | InSubquery):
                lines.append("  " * (depth + 2) + "subquery:")
                _add_lines(lines, part.plan, depth + 3)
    for child in inputs(plan):
        _add_lines(lines, child, depth + 1)


def _node(plan: Plan) -> str:  # noqa: C901, PLR0911, PLR0912 - one line for each kind of node
    match plan:
        case Scan():
            return f"Scan {plan.name} {_fields(plan)}"
        case Values():
            rows = ", ".join(f"({_list(row)})" for row in plan.rows)
            return f"Values {rows} {_fields(plan)}"
        case Project():
            named = zip(plan.expressions, plan.fields, strict=True)
            return "Project " + ", ".join(
                f"{print_expr(expr)} AS {field.name} {type_name(field.type)}" for expr, field in named
            )
        case Filter():
            return f"Filter {print_expr(plan.predicate)}"
        case Join():
            pairs = zip(plan.left_keys, plan.right_keys, strict=True)
            keys = ", ".join(f"{print_expr(left)} = {print_expr(right)}" for left, right in pairs)
            on = f" on [{keys}]" if keys else ""
            residual = f" if {print_expr(plan.residual)}" if plan.residual is not None else ""
            return f"Join {plan.kind}{' null-aware' if plan.null_aware else ''}{on}{residual}"
        case Aggregate():
            sets = "" if plan.grouping_sets is None else f" sets {list(map(list, plan.grouping_sets))}"
            calls = ", ".join(_aggregate(call) for call in plan.calls)
            return f"Aggregate by [{_list(plan.keys)}]{sets} compute [{calls}]"
        case FirstRanked():
            return f"FirstRanked {plan.most} of " + ", ".join(
                f"{'*' if number == plan.rank else ''}{_window(call)}" for number, call in enumerate(plan.calls)
            )
        case Window():
            return "Window " + ", ".join(_window(call) for call in plan.calls)
        case Distinct():
            return "Distinct"
        case Union():
            return f"Union {_fields(plan)}"
        case SetOperation():
            return f"{plan.kind.capitalize()}{' all' if plan.all else ''}"
        case TopK():
            limit = "all" if plan.limit is None else plan.limit
            return f"TopK {limit} offset {plan.offset} by [{_order(plan.order)}]"
        case Generate():
            made = plan.fields[len(plan.input.fields) :]
            names = ", ".join(f"{field.name} {type_name(field.type)}" for field in made)
            return f"Generate {'outer ' if plan.outer else ''}{print_expr(plan.generator)} AS [{names}]"
        case SessionWindow():
            return f"SessionWindow {print_expr(plan.time)} gap {plan.gap_us}us by [{_list(plan.keys)}]"
        case Nearest():
            by = f", then [{_order(plan.order)}]" if plan.order else ""
            index = f" by {plan.index.kind}" if plan.index is not None else ""
            vectors = f"{print_expr(plan.query)} and {print_expr(plan.document)}"
            return f"Nearest {plan.limit} of {plan.metric}({vectors}){by}{index} {_fields(plan)}"
        case Recursive():
            return f"Recursive {plan.name} {'distinct' if plan.distinct else 'all'}"


@grows
def print_expr(expr: Expr) -> str:  # noqa: PLR0911 - one line for each kind of expression
    """An expression on one line."""
    match expr:
        case Column():
            return f"{expr.name}#{expr.index}"
        case OuterColumn():
            return f"outer{expr.depth}.{expr.name}#{expr.index}"
        case Literal():
            return _literal(expr)
        case Call():
            return _call(expr)
        case ScalarSubquery():
            return "(subquery)"
        case Exists():
            return "exists(subquery)"
        case InSubquery():
            return f"({_list(expr.values)}) IN (subquery)"


def _literal(expr: Literal) -> str:
    if expr.value is None:
        return f"null::{type_name(expr.type)}"
    return repr(expr.value) if expr.type == STRING else f"{expr.value}::{type_name(expr.type)}"


def _call(expr: Call) -> str:
    if expr.function in _INFIX:
        left, right = expr.arguments
        return f"({print_expr(left)} {_INFIX[expr.function]} {print_expr(right)})"
    if is_foreign(expr):
        found = foreign_parts(expr)
        return f"{expr.function}{{{filled(found.text, lambda number: print_expr(found.arguments[number]))}}}"
    if is_variable(expr):
        return f"x{number_of(expr)}"
    if is_lambda(expr):
        variables, body = lambda_parts(expr)
        return f"({_list(variables)}) -> {print_expr(body)}"
    if expr.function in ("cast", "legacy_cast", "try_cast"):
        return f"{expr.function}({print_expr(expr.arguments[0])} as {type_name(expr.type)})"
    return f"{expr.function}({_list(expr.arguments)})"


def _aggregate(call: AggregateCall) -> str:
    distinct = "distinct " if call.distinct else ""
    condition = f" filter {print_expr(call.filter)}" if call.filter is not None else ""
    order = f" order [{_order(call.order_by)}]" if call.order_by else ""
    return f"{call.function}({distinct}{_list(call.arguments)}){condition}{order} {type_name(call.type)}"


def _window(call: WindowCall) -> str:
    nulls = " ignore nulls" if call.ignore_nulls else ""
    frame = "" if call.frame is None else f" {_frame(call.frame)}"
    over = f"by [{_list(call.partition_by)}] order [{_order(call.order_by)}]{frame}"
    return f"{call.function}({_list(call.arguments)}){nulls} over {over} {type_name(call.type)}"


def _frame(frame: Frame) -> str:
    start = "unbounded" if frame.start is None else frame.start
    end = "unbounded" if frame.end is None else frame.end
    return f"{frame.unit} {start}..{end}"


def _order(keys: Iterable[SortKey]) -> str:
    return ", ".join(
        f"{print_expr(key.expr)} {'desc' if key.descending else 'asc'} nulls {'first' if key.nulls_first else 'last'}"
        for key in keys
    )


def _list(exprs: Iterable[Expr]) -> str:
    return ", ".join(print_expr(expr) for expr in exprs)


def _fields(plan: Plan) -> str:
    return "[" + ", ".join(f"{field.name} {type_name(field.type)}" for field in plan.fields) + "]"
