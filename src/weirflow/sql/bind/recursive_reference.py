"""Where a recursive CTE may be read: the places that Spark allows."""

from __future__ import annotations

from collections.abc import Iterator

from weirflow.errors import QueryError, SqlPosition
from weirflow.sql.expr import Exists, InSubquery, ScalarSubquery
from weirflow.sql.plan import Aggregate, Join, JoinKind, Plan, Recursive, Scan, TopK, Window
from weirflow.sql.traverse import expressions, inputs, nodes, parts
from weirflow.stack import grows


@grows
def reads(plan: Plan, name: str) -> bool:
    """Whether the plan scans ``name``, in its subqueries too; a recursion of the same name inside it is another one."""
    if isinstance(plan, Scan):
        return plan.name == name
    if isinstance(plan, Recursive) and plan.name == name:
        return reads(plan.base, name)
    return any(reads(one, name) for one in (*inputs(plan), *_subqueries(plan)))


@grows
def check_places(step: Plan, name: str, position: SqlPosition | None) -> None:
    """Raise a ``QueryError`` where the step reads the recursion in a place that Spark refuses."""
    for node in nodes(step):
        for subquery in _subqueries(node):
            check_places(subquery, name, position)
        place = _refused_place(node, name)
        if place is not None:
            raise QueryError(
                f"The recursive CTE {name!r} is read {place}, where its step cannot read it.",
                hint="compute that outside of the recursive CTE",
                position=position,
                condition="INVALID_RECURSIVE_REFERENCE.PLACE",
            )


def _refused_place(node: Plan, name: str) -> str | None:  # noqa: PLR0911 - one return for each place
    match node:
        case Aggregate() if reads(node.input, name):
            return "inside an aggregate"
        case Window() if reads(node.input, name):
            return "under a window function"
        case TopK(order=order) if order and reads(node.input, name):
            return "under ORDER BY"
        case Join(kind=JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI) if reads(node.right, name):
            return f"on the right side of a left {'outer' if node.kind is JoinKind.LEFT else node.kind} join"
        case Join(kind=JoinKind.RIGHT) if reads(node.left, name):
            return "on the left side of a right outer join"
        case Join(kind=JoinKind.FULL) if reads(node, name):
            return "in a full outer join"
        case _:
            return None


def _subqueries(node: Plan) -> Iterator[Plan]:
    for expr in expressions(node):
        for part in parts(expr):
            if isinstance(part, ScalarSubquery | Exists | InSubquery):
                yield part.plan
