"""Subqueries in expressions become joins: the plan that results has none, and no references outwards.

EXISTS and IN that a filter requires are semi joins, their negations anti joins. Anywhere else a subquery is a further
column of the node's input, found by an outer join. The values that correlated columns can take are those of the node's
own input, however many subqueries have been joined to it: they would otherwise double with each. NOT is moved inwards
first, since Spark does so and then tells IN and NOT IN apart by what is left.
"""

from __future__ import annotations

from dataclasses import replace

from weirflow.errors import NotIncremental, Reason
from weirflow.sql.expr import Call, Column, Exists, Expr, InSubquery
from weirflow.sql.passes.conditions import conjunction, conjuncts, negations_inward
from weirflow.sql.passes.correlation import (
    columns_of,
    first_columns,
    is_correlated,
    merged_one_level,
    tied_over_both,
)
from weirflow.sql.passes.pull_up import join_on, pull_up
from weirflow.sql.passes.subquery_values import Subquery, attached, maybe_equal, subqueries, wanted_values
from weirflow.sql.plan import Aggregate, Filter, Generate, Join, JoinKind, Plan, Project, TopK, Window
from weirflow.sql.traverse import (
    columns,
    expressions,
    map_call,
    map_expressions,
    map_plan,
    rewrite,
    shift,
    with_inputs,
)
from weirflow.sql.types import BOOLEAN
from weirflow.stack import grows


@grows
def decorrelate(plan: Plan) -> Plan:
    """The plan with joins in place of its subqueries; ``NotIncremental`` where no join says the same."""
    return map_plan(plan, _node)


def _node(plan: Plan) -> Plan:  # noqa: PLR0911 - one per node
    if not any(subqueries(expr) for expr in expressions(plan)):
        return plan
    match plan:
        case Filter():
            return _filter(plan)
        case Project():
            source, change = attached(plan.input, plan.expressions, inner_plan)
            return replace(plan, input=source, expressions=tuple(change(expr) for expr in plan.expressions))
        case Aggregate():
            source, change = attached(plan.input, tuple(expressions(plan)), inner_plan)
            keys = tuple(change(key) for key in plan.keys)
            return replace(plan, input=source, keys=keys, calls=tuple(map_call(call, change) for call in plan.calls))
        case Join(kind=JoinKind.INNER):
            inside = [part for part in conjuncts(plan.residual) if not subqueries(part)]
            outside = conjunction(part for part in conjuncts(plan.residual) if subqueries(part))
            assert outside is not None, "keys hold no subqueries"
            return _filter(Filter(replace(plan, residual=conjunction(inside)), outside))
        case Join():
            return _join(plan)
        case Window() | TopK() | Generate():
            return _behind(plan)
        case _:
            found = next(part for expr in expressions(plan) for part in subqueries(expr))
            raise _refused(f"A subquery in {type(plan).__name__.upper()} has no incremental form.", found)


def _refused(message: str, found: Subquery) -> NotIncremental:
    return NotIncremental(
        message,
        reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
        hint="compute it in a subquery in FROM",
        position=found.position,
    )


def _behind(plan: Window | TopK | Generate) -> Plan:
    """A node that has its input's columns and maybe more: those of subqueries come between and are left out again."""
    source, change = attached(plan.input, tuple(expressions(plan)), inner_plan)
    before, width = len(plan.input.fields), len(source.fields)
    made = plan.fields[before:]
    below = with_inputs(plan, (source,))
    grown = below if isinstance(below, TopK) else replace(below, fields=source.fields + made)
    whole = map_expressions(grown, change)
    kept = columns_of(whole)
    return Project(whole, kept[:before] + kept[width:], plan.fields)


_ON_LEFT = (JoinKind.RIGHT, JoinKind.SEMI)
_ON_RIGHT = (JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
"""Joins in which a condition on that side alone only chooses rows of that side."""


def _join(plan: Join) -> Plan:
    """A join that keeps rows without a match, or has left rows only: subqueries go to the side that they read."""
    width = len(plan.left.fields)
    kept: list[Expr] = []
    left, right = plan.left, plan.right
    for part in conjuncts(plan.residual):
        read = columns(part)
        if subqueries(part) and plan.kind in _ON_LEFT and all(index < width for index in read):
            left = _filter(Filter(left, part))
        elif subqueries(part) and plan.kind in _ON_RIGHT and read and all(index >= width for index in read):
            right = _filter(Filter(right, shift(part, -width)))
        else:
            kept.append(part)
    chosen = replace(plan, left=left, right=right, residual=conjunction(kept))
    return _join_with_values(chosen) if any(subqueries(part) for part in kept) else chosen


def _join_with_values(plan: Join) -> Plan:
    """The value of each subquery in the condition is a column of the side that it reads."""
    assert plan.residual is not None, "keys hold no subqueries"
    width = len(plan.left.fields)
    residual = negations_inward(plan.residual)
    wanted = []
    for part, subquery in wanted_values(residual):
        if part is not subquery:  # what it is for NULLs depends on where Spark evaluates it
            raise _refused("NOT IN is no condition for the rows that an outer join keeps.", subquery)
        wanted.append(part)
    on_left = tuple(part for part in wanted if all(index < width for index in columns(part)))
    on_right = tuple(part for part in wanted if part not in on_left)
    for part in on_right:
        if any(index < width for index in columns(part)):
            raise _refused("A subquery in an outer join reads columns of both sides.", subqueries(part)[0])
    left, change_left = attached(plan.left, on_left, inner_plan)
    right, change_right = attached(plan.right, tuple(shift(part, -width) for part in on_right), inner_plan)
    grown = len(left.fields)

    def place(part: Expr) -> Expr | None:
        if part in on_left:
            return change_left(part)
        if part in on_right:
            return shift(change_right(shift(part, -width)), grown)
        if isinstance(part, Column) and part.index >= width:
            return replace(part, index=part.index - width + grown)
        return None

    joined = replace(plan, left=left, right=right, residual=rewrite(residual, place))
    if plan.kind in (JoinKind.SEMI, JoinKind.ANTI):
        return first_columns(joined, width)
    kept = columns_of(joined)
    return Project(joined, kept[:width] + kept[grown : grown + len(plan.right.fields)], plan.fields)


def _filter(plan: Filter) -> Plan:
    """Plain conjuncts first, then semi and anti joins, then the conjuncts that need a subquery's value."""
    listed = [part for one in conjuncts(plan.predicate) for part in _listed(one)]
    plain = conjunction(part for part in listed if not subqueries(part))
    result = asking = plan.input if plain is None else Filter(plan.input, plain)
    valued: list[Expr] = []
    for part in listed:
        if not subqueries(part):
            continue
        required, negated = _required(part)
        if isinstance(required, Exists):
            result = _exists_join(result, asking, required, JoinKind.ANTI if negated else JoinKind.SEMI)
        elif isinstance(required, InSubquery) and not any(subqueries(value) for value in required.values):
            result = (_not_in_join if negated else _in_join)(result, asking, required)
        else:
            valued.append(part)
    asking = result
    for part in valued:
        source, change = attached(result, (part,), inner_plan, asking)
        result = first_columns(Filter(source, change(part)), len(plan.fields))
    return result


def _listed(part: Expr) -> list[Expr]:
    return conjuncts(negations_inward(part)) if subqueries(part) else [part]


def _required(part: Expr) -> tuple[Expr, bool]:
    """The predicate under any number of NOTs, and whether it is negated."""
    negated = False
    while isinstance(part, Call) and part.function == "not":
        part, negated = part.arguments[0], not negated
    return part, negated


def inner_plan(subquery: Subquery) -> Plan:
    """The plan of a subquery, free of subqueries of its own, seen from the query around it."""
    return merged_one_level(decorrelate(subquery.plan))


def _exists_join(outer: Plan, asking: Plan, subquery: Exists, kind: JoinKind) -> Plan:
    pulled = pull_up(inner_plan(subquery), asking)
    return join_on(outer, pulled.plan, kind, tied_over_both(pulled.predicates, len(outer.fields)))


def _in_join(outer: Plan, asking: Plan, subquery: InSubquery) -> Plan:
    pulled = pull_up(inner_plan(subquery), asking)
    width = len(outer.fields)
    equalities = [Call("equal", pair, BOOLEAN) for pair in _pairs(subquery, pulled.plan, width)]
    condition = conjunction([*equalities, *conjuncts(tied_over_both(pulled.predicates, width))])
    return join_on(outer, pulled.plan, JoinKind.SEMI, condition)


def _not_in_join(outer: Plan, asking: Plan, subquery: InSubquery) -> Plan:
    """NOT IN keeps a row if no row of the subquery equals it or might, being NULL."""
    inner = inner_plan(subquery)
    width = len(outer.fields)
    if len(subquery.values) == 1 and not is_correlated(inner):
        key = Column(0, inner.fields[0].name, inner.fields[0].type)
        return Join(outer, inner, JoinKind.ANTI, subquery.values, (key,), null_aware=True)
    pulled = pull_up(inner, asking)
    alike = [maybe_equal(pair) for pair in _pairs(subquery, pulled.plan, width)]
    condition = conjunction([*alike, *conjuncts(tied_over_both(pulled.predicates, width))])
    return join_on(outer, pulled.plan, JoinKind.ANTI, condition)


def _pairs(subquery: InSubquery, inner: Plan, width: int) -> list[tuple[Expr, Expr]]:
    columns = [
        Column(width + i, field.name, field.type) for i, field in enumerate(inner.fields[: len(subquery.values)])
    ]
    return list(zip(subquery.values, columns, strict=True))
