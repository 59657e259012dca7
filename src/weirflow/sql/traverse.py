"""Walking and rewriting plans and the expressions in them, without knowing every node at every call site."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from weirflow.sql.expr import (
    AggregateCall,
    Call,
    Column,
    Exists,
    Expr,
    InSubquery,
    OuterColumn,
    ScalarSubquery,
    SortKey,
    WindowCall,
)
from weirflow.sql.plan import (
    Aggregate,
    Distinct,
    Filter,
    Generate,
    Join,
    Nearest,
    Plan,
    Project,
    Recursive,
    SessionWindow,
    SetOperation,
    TopK,
    Union,
    Values,
    Window,
)
from weirflow.stack import grows

Rewrite = Callable[[Expr], Expr | None]
"""What to put in an expression's place, or None to look into its parts."""
AnyCall = TypeVar("AnyCall", AggregateCall, WindowCall)


@grows
def rewrite(expr: Expr, change: Rewrite) -> Expr:
    """``expr`` with each outermost part that ``change`` answers for replaced; plans of subqueries stay as they are."""
    changed = change(expr)
    if changed is not None:
        return changed
    if isinstance(expr, Call):
        return replace(expr, arguments=tuple(rewrite(part, change) for part in expr.arguments))
    if isinstance(expr, InSubquery):
        return replace(expr, values=tuple(rewrite(part, change) for part in expr.values))
    return expr


def parts(expr: Expr) -> Iterator[Expr]:
    """``expr`` and all expressions inside it, except those inside plans of subqueries."""
    ahead = [expr]
    while ahead:
        part = ahead.pop()
        yield part
        if isinstance(part, Call):
            ahead += reversed(part.arguments)
        elif isinstance(part, InSubquery):
            ahead += reversed(part.values)


def columns(expr: Expr) -> set[int]:
    """The indexes of the input columns that ``expr`` reads, also through its subqueries."""
    found: set[int] = set()
    for part in parts(expr):
        if isinstance(part, Column):
            found.add(part.index)
        elif isinstance(part, ScalarSubquery | Exists | InSubquery):
            found |= {column.index for column in outer_columns(part.plan)}
    return found


def shift(expr: Expr, by: int) -> Expr:
    """``expr`` over an input in which its columns come ``by`` places later."""
    return remap(expr, lambda index: index + by)


def remap(expr: Expr, place: Callable[[int], int]) -> Expr:
    """``expr`` over an input in which the column at ``index`` is at ``place(index)``, in its subqueries too."""
    return rewrite_deep(expr, lambda part: replace(part, index=place(part.index)) if isinstance(part, Column) else None)


def rewrite_deep(expr: Expr, change: Rewrite) -> Expr:
    """As ``rewrite``, and outer columns in subqueries are changed as the columns they stand for."""

    def with_plans(part: Expr) -> Expr | None:
        changed = change(part)
        if changed is not None:
            return changed
        if isinstance(part, ScalarSubquery | Exists | InSubquery):
            plan = rewrite_outer(part.plan, change)
            if isinstance(part, InSubquery):
                return replace(part, plan=plan, values=tuple(rewrite(value, with_plans) for value in part.values))
            return replace(part, plan=plan)
        return None

    return rewrite(expr, with_plans)


@grows
def rewrite_outer(plan: Plan, change: Rewrite, depth: int = 1) -> Plan:
    """``plan`` with its references to the query ``depth`` levels around changed as that query's columns are."""

    def outward(part: Expr) -> Expr | None:
        if isinstance(part, OuterColumn) and part.depth == depth:
            changed = change(Column(part.index, part.name, part.type))
            return part if changed is None else rewrite(changed, lambda inner: _as_outer(inner, depth))
        if isinstance(part, ScalarSubquery | Exists | InSubquery):
            inner = rewrite_outer(part.plan, change, depth + 1)
            if isinstance(part, InSubquery):
                return replace(part, plan=inner, values=tuple(rewrite(value, outward) for value in part.values))
            return replace(part, plan=inner)
        return None

    return map_plan(plan, lambda node: map_expressions(node, lambda expr: rewrite(expr, outward)))


def _as_outer(part: Expr, depth: int) -> Expr | None:
    return OuterColumn(part.index, part.name, part.type, depth) if isinstance(part, Column) else None


def outer_columns(plan: Plan, depth: int = 1) -> Iterator[OuterColumn]:
    """The plan's references to the query ``depth`` levels around it."""
    ahead = [(plan, depth)]
    while ahead:
        top, level = ahead.pop()
        for node in nodes(top):
            for expr in expressions(node):
                for part in parts(expr):
                    if isinstance(part, OuterColumn) and part.depth == level:
                        yield part
                    elif isinstance(part, ScalarSubquery | Exists | InSubquery):
                        ahead.append((part.plan, level + 1))


def nodes(plan: Plan) -> Iterator[Plan]:
    """The plan's nodes, parents first; not those of subqueries."""
    ahead = [plan]
    while ahead:
        node = ahead.pop()
        yield node
        ahead += reversed(inputs(node))


def inputs(plan: Plan) -> tuple[Plan, ...]:
    """A node's inputs, left to right."""
    match plan:
        case Join() | SetOperation() | Nearest():
            return (plan.left, plan.right)
        case Union():
            return plan.inputs
        case Recursive():
            return (plan.base, plan.step)
        case Project() | Filter() | Aggregate() | Window() | Distinct() | TopK() | Generate() | SessionWindow():
            return (plan.input,)
        case _:
            return ()


def with_inputs(plan: Plan, new: tuple[Plan, ...]) -> Plan:
    """The node over other inputs; itself when they are the same objects."""
    if all(one is other for one, other in zip(inputs(plan), new, strict=True)):
        return plan
    match plan:
        case Join() | SetOperation() | Nearest():
            return replace(plan, left=new[0], right=new[1])
        case Union():
            return replace(plan, inputs=new)
        case Recursive():
            return replace(plan, base=new[0], step=new[1])
        case Project() | Filter() | Aggregate() | Window() | Distinct() | TopK() | Generate() | SessionWindow():
            return replace(plan, input=new[0])
        case _:
            return plan


@grows
def map_plan(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """``change`` applied to every node, inputs first; not to plans of subqueries."""
    return change(with_inputs(plan, tuple(map_plan(child, change) for child in inputs(plan))))


def expressions(plan: Plan) -> Iterator[Expr]:
    """All expressions of one node."""
    found: list[Expr] = []

    def collect(expr: Expr) -> Expr:
        found.append(expr)
        return expr

    map_expressions(plan, collect)
    return iter(found)


def map_expressions(plan: Plan, change: Callable[[Expr], Expr]) -> Plan:  # noqa: C901, PLR0911 - one per node
    """The node with ``change`` applied to each of its expressions, inputs untouched."""

    def each(exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(change(expr) for expr in exprs)

    match plan:
        case Values():
            return replace(plan, rows=tuple(each(row) for row in plan.rows))
        case Project():
            return replace(plan, expressions=each(plan.expressions))
        case Filter():
            return replace(plan, predicate=change(plan.predicate))
        case Join():
            residual = None if plan.residual is None else change(plan.residual)
            return replace(plan, left_keys=each(plan.left_keys), right_keys=each(plan.right_keys), residual=residual)
        case Aggregate():
            return replace(plan, keys=each(plan.keys), calls=tuple(map_call(call, change) for call in plan.calls))
        case Window():
            return replace(plan, calls=tuple(map_call(call, change) for call in plan.calls))
        case TopK():
            return replace(plan, order=map_order(plan.order, change))
        case Generate():
            return replace(plan, generator=map_arguments(plan.generator, change))
        case SessionWindow():
            return replace(plan, keys=each(plan.keys), time=change(plan.time))
        case Nearest():
            order = map_order(plan.order, change)
            return replace(plan, query=change(plan.query), document=change(plan.document), order=order)
        case _:
            return plan


def map_arguments(call: Call, change: Callable[[Expr], Expr]) -> Call:
    """The call with each argument changed."""
    return replace(call, arguments=tuple(change(part) for part in call.arguments))


def map_order(order: tuple[SortKey, ...], change: Callable[[Expr], Expr]) -> tuple[SortKey, ...]:
    """The order with each key's expression changed."""
    return tuple(replace(key, expr=change(key.expr)) for key in order)


def map_call(call: AnyCall, change: Callable[[Expr], Expr]) -> AnyCall:
    """An aggregate or window call with all its expressions changed."""
    extra: dict[str, Any] = {}
    if isinstance(call, AggregateCall):
        extra["filter"] = None if call.filter is None else change(call.filter)
    else:
        extra["partition_by"] = tuple(change(part) for part in call.partition_by)
    arguments = tuple(change(part) for part in call.arguments)
    return replace(call, arguments=arguments, order_by=map_order(call.order_by, change), **extra)
