"""Subqueries in expressions become joins: the plan that results has none, and no references outwards.

EXISTS and IN that a filter requires are semi joins, their negations anti joins. Anywhere else a subquery is a further
column of the node's input, found by an outer join. The values that correlated columns can take are those of the node's
own input, however many subqueries have been joined to it: they would otherwise double with each.

As values, IN and NOT IN are never NULL, as in Spark: IN is whether a row is equal, NOT IN whether no row is or, being
NULL, might be. NOT is moved inwards first, since Spark does so and then tells the two apart by what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

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
)
from weirflow.sql.passes.conditions import conjunction, conjuncts, negations_inward
from weirflow.sql.passes.correlation import (
    domain,
    has_one_row,
    hold,
    is_correlated,
    merged_one_level,
    outer_references,
    with_key_columns,
)
from weirflow.sql.passes.failure import null_folded
from weirflow.sql.passes.pull_up import join_on, pull_up, value_of_nothing
from weirflow.sql.plan import Aggregate, Distinct, Field, Filter, Join, JoinKind, Plan, Project
from weirflow.sql.refusal import NotIncremental, Reason
from weirflow.sql.traverse import expressions, map_call, map_plan, parts, rewrite
from weirflow.sql.types import BIGINT, BOOLEAN
from weirflow.stack import grows

Subquery = ScalarSubquery | Exists | InSubquery
_TRUE = Literal(value=True, type=BOOLEAN)
_FALSE = Literal(value=False, type=BOOLEAN)


@grows
def decorrelate(plan: Plan) -> Plan:
    """The plan with joins in place of its subqueries; ``NotIncremental`` where no join says the same."""
    return map_plan(plan, _node)


def _node(plan: Plan) -> Plan:
    if not any(_subqueries(expr) for expr in expressions(plan)):
        return plan
    match plan:
        case Filter():
            return _filter(plan)
        case Project():
            source, change = _attached(plan.input, plan.expressions)
            return replace(plan, input=source, expressions=tuple(change(expr) for expr in plan.expressions))
        case Aggregate():
            source, change = _attached(plan.input, tuple(expressions(plan)))
            keys = tuple(change(key) for key in plan.keys)
            return replace(plan, input=source, keys=keys, calls=tuple(map_call(call, change) for call in plan.calls))
        case Join(kind=JoinKind.INNER):
            inside = [part for part in conjuncts(plan.residual) if not _subqueries(part)]
            outside = conjunction(part for part in conjuncts(plan.residual) if _subqueries(part))
            assert outside is not None, "keys hold no subqueries"
            return _filter(Filter(replace(plan, residual=conjunction(inside)), outside))
        case _:
            found = next(part for expr in expressions(plan) for part in _subqueries(expr))
            raise NotIncremental(
                f"A subquery in {type(plan).__name__.upper()} has no incremental form.",
                reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
                hint="compute it in a subquery in FROM",
                position=found.position,
            )


def _subqueries(expr: Expr) -> list[Subquery]:
    return [part for part in parts(expr) if isinstance(part, ScalarSubquery | Exists | InSubquery)]


def _filter(plan: Filter) -> Plan:
    """Plain conjuncts first, then semi and anti joins, then the conjuncts that need a subquery's value."""
    listed = [part for one in conjuncts(plan.predicate) for part in _listed(one)]
    plain = conjunction(part for part in listed if not _subqueries(part))
    result = asking = plan.input if plain is None else Filter(plan.input, plain)
    valued: list[Expr] = []
    for part in listed:
        if not _subqueries(part):
            continue
        required, negated = _required(part)
        if isinstance(required, Exists):
            result = _exists_join(result, asking, required, JoinKind.ANTI if negated else JoinKind.SEMI)
        elif isinstance(required, InSubquery) and not any(_subqueries(value) for value in required.values):
            result = (_not_in_join if negated else _in_join)(result, asking, required)
        else:
            valued.append(part)
    asking = result
    for part in valued:
        source, change = _attached(result, (part,), asking)
        result = _first_columns(Filter(source, change(part)), len(plan.fields))
    return result


def _listed(part: Expr) -> list[Expr]:
    return conjuncts(negations_inward(part)) if _subqueries(part) else [part]


def _required(part: Expr) -> tuple[Expr, bool]:
    """The predicate under any number of NOTs, and whether it is negated."""
    negated = False
    while isinstance(part, Call) and part.function == "not":
        part, negated = part.arguments[0], not negated
    return part, negated


def _first_columns(plan: Plan, width: int) -> Plan:
    if len(plan.fields) == width:
        return plan
    kept = tuple(Column(index, field.name, field.type) for index, field in enumerate(plan.fields[:width]))
    return Project(plan, kept, plan.fields[:width])


def _inner_plan(subquery: Subquery) -> Plan:
    return merged_one_level(decorrelate(subquery.plan))


def _tied(predicates: tuple[Expr, ...], width: int) -> Expr | None:
    """Predicates between the two levels, as a condition over the outer columns followed by the inner ones."""
    return conjunction(_over_both(part, width) for part in predicates)


def _over_both(expr: Expr, width: int) -> Expr:
    def place(part: Expr) -> Expr | None:
        if isinstance(part, Column):
            return replace(part, index=part.index + width)
        if isinstance(part, OuterColumn) and part.depth == 0:
            return Column(part.index, part.name, part.type)
        return None

    return rewrite(expr, place)


def _exists_join(outer: Plan, asking: Plan, subquery: Exists, kind: JoinKind) -> Plan:
    pulled = pull_up(_inner_plan(subquery), asking)
    return join_on(outer, pulled.plan, kind, _tied(pulled.predicates, len(outer.fields)))


def _in_join(outer: Plan, asking: Plan, subquery: InSubquery) -> Plan:
    pulled = pull_up(_inner_plan(subquery), asking)
    width = len(outer.fields)
    equalities = [Call("equal", pair, BOOLEAN) for pair in _pairs(subquery, pulled.plan, width)]
    condition = conjunction([*equalities, *conjuncts(_tied(pulled.predicates, width))])
    return join_on(outer, pulled.plan, JoinKind.SEMI, condition)


def _not_in_join(outer: Plan, asking: Plan, subquery: InSubquery) -> Plan:
    """NOT IN keeps a row if no row of the subquery equals it or might, being NULL."""
    inner = _inner_plan(subquery)
    width = len(outer.fields)
    if len(subquery.values) == 1 and not is_correlated(inner):
        key = Column(0, inner.fields[0].name, inner.fields[0].type)
        return Join(outer, inner, JoinKind.ANTI, subquery.values, (key,), null_aware=True)
    pulled = pull_up(inner, asking)
    maybe_equal = [
        _any(Call("equal", pair, BOOLEAN), *(Call("is_null", (side,), BOOLEAN) for side in pair))
        for pair in _pairs(subquery, pulled.plan, width)
    ]
    condition = conjunction([*maybe_equal, *conjuncts(_tied(pulled.predicates, width))])
    return join_on(outer, pulled.plan, JoinKind.ANTI, condition)


def _pairs(subquery: InSubquery, inner: Plan, width: int) -> list[tuple[Expr, Expr]]:
    columns = [
        Column(width + i, field.name, field.type) for i, field in enumerate(inner.fields[: len(subquery.values)])
    ]
    return list(zip(subquery.values, columns, strict=True))


def _any(first: Expr, *others: Expr) -> Expr:
    for other in others:
        first = Call("or", (first, other), BOOLEAN)
    return first


def _attached(plan: Plan, exprs: tuple[Expr, ...], asking: Plan | None = None) -> tuple[Plan, Callable[[Expr], Expr]]:
    """The input with columns for the subqueries in ``exprs``, and how to rewrite expressions to read them.

    ``asking`` has the values that correlated columns can take; None for those of ``plan``.
    """
    asking = asking or plan
    values: dict[Expr, Expr] = {}

    def known(expr: Expr) -> Expr:
        return rewrite(expr, values.get)

    for expr in exprs:
        for part in reversed(list(parts(negations_inward(expr)))):  # those inside the values of an IN come first
            wanted = _value_wanted(part)
            if wanted is not None and part not in values:
                plan, values[part] = _attach(plan, asking, wanted, known, negated=wanted is not part)
    return plan, lambda expr: known(negations_inward(expr))


def _value_wanted(part: Expr) -> Subquery | None:
    """The subquery that ``part`` is, or that it negates when it is NOT IN."""
    if isinstance(part, Call) and part.function == "not" and isinstance(part.arguments[0], InSubquery):
        return part.arguments[0]
    return part if isinstance(part, ScalarSubquery | Exists | InSubquery) else None


def _attach(
    outer: Plan, asking: Plan, subquery: Subquery, known: Callable[[Expr], Expr], *, negated: bool
) -> tuple[Plan, Expr]:
    inner = _inner_plan(subquery)
    if isinstance(subquery, ScalarSubquery):
        return _attach_scalar(outer, asking, inner) if is_correlated(inner) else _attach_single(outer, inner)
    if isinstance(subquery, Exists):
        return _attach_exists(outer, asking, inner)
    tested = tuple(known(value) for value in subquery.values)
    return (_attach_not_in if negated else _attach_in)(outer, asking, inner, tested)


def _attach_single(outer: Plan, inner: Plan) -> tuple[Plan, Expr]:
    """A subquery that has the same value for every row: a cross join with its one row."""
    field = inner.fields[0]
    if not has_one_row(inner):
        call = AggregateCall("single_value", (Column(0, field.name, field.type),), field.type)
        inner = Aggregate(inner, (), (call,), (field,))
    column = Column(len(outer.fields), field.name, field.type)
    return Join(outer, inner, JoinKind.INNER, (), ()), column


def _attach_scalar(outer: Plan, asking: Plan, inner: Plan) -> tuple[Plan, Expr]:
    width, field = len(outer.fields), inner.fields[0]
    value = Column(width, field.name, field.type)
    default = _value_over_nothing(inner)
    if default is not None:
        pulled = pull_up(inner, asking, empty_groups=False)
        marked, marker = _with_marker(pulled.plan, width)
        joined = join_on(outer, marked, JoinKind.LEFT, _tied(pulled.predicates, width))
        absent = null_folded(_over_both(default, width))
        if isinstance(absent, Literal) and absent.value is None:
            return joined, value
        return joined, Call("case", (Call("is_null", (marker,), BOOLEAN), absent, value), field.type)
    source, tied = with_key_columns(pull_up(inner, asking), asking, 1)
    asked_for = _only_asked_for(source, tuple(tied), asking)
    keys = tuple(Column(1 + index, part.name, part.type) for index, part in enumerate(source.fields[1:]))
    call = AggregateCall("single_value", (Column(0, field.name, field.type),), field.type)
    grouped = Aggregate(asked_for, keys, (call,), (*source.fields[1:], field))
    places = rewrite_links(tuple(tied), lambda index: index - 1)
    joined = join_on(outer, grouped, JoinKind.LEFT, _tied(places, width))
    return joined, Column(width + len(keys), field.name, field.type)


def rewrite_links(links: tuple[Expr, ...], place: Callable[[int], int]) -> tuple[Expr, ...]:
    """Links whose inner columns have moved."""
    return tuple(
        rewrite(one, lambda part: replace(part, index=place(part.index)) if isinstance(part, Column) else None)
        for one in links
    )


def _only_asked_for(source: Plan, links: tuple[Expr, ...], asking: Plan) -> Plan:
    """The rows that some outer row is linked to: several rows are only an error where they are asked for."""
    references = list(dict.fromkeys(part for one in links for part in outer_references(one)))
    width = len(source.fields)
    held: dict[OuterColumn, Expr] = {
        part: Column(width + index, part.name, part.type) for index, part in enumerate(references)
    }
    return join_on(source, domain(asking, references), JoinKind.SEMI, conjunction(hold(one, held) for one in links))


def _value_over_nothing(plan: Plan) -> Expr | None:
    """What an aggregate without keys, under projections, gives over no rows; None for other plans.

    The result reads nothing but literals and outer columns.
    """
    return _column_over_nothing(plan, 0) if has_one_row(plan) else None


@grows
def _column_over_nothing(plan: Plan, index: int) -> Expr:
    if isinstance(plan, Project):
        source = plan.input
        return rewrite(
            plan.expressions[index],
            lambda part: _column_over_nothing(source, part.index) if isinstance(part, Column) else None,
        )
    assert isinstance(plan, Aggregate), "only projections are above the aggregate"
    return value_of_nothing(plan.calls[index].function, plan.fields[index].type)


def _with_marker(plan: Plan, width: int) -> tuple[Plan, Column]:
    kept = tuple(Column(index, field.name, field.type) for index, field in enumerate(plan.fields))
    marked = Project(plan, (*kept, _TRUE), (*plan.fields, Field("_matched", BOOLEAN)))
    return marked, Column(width + len(plan.fields), "_matched", BOOLEAN)


def _attach_exists(outer: Plan, asking: Plan, inner: Plan) -> tuple[Plan, Expr]:
    width = len(outer.fields)
    if not is_correlated(inner):
        counted = Aggregate(inner, (), (AggregateCall("count", (), BIGINT),), (Field("_rows", BIGINT),))
        rows = Column(width, "_rows", BIGINT)
        joined = Join(outer, counted, JoinKind.INNER, (), ())
        return joined, Call("greater", (rows, Literal(0, BIGINT)), BOOLEAN)
    source, tied = with_key_columns(pull_up(inner, asking), asking, 0)
    marked, marker = _with_marker(Distinct(source), width)
    joined = join_on(outer, marked, JoinKind.LEFT, _tied(tuple(tied), width))
    return joined, Call("is_not_null", (marker,), BOOLEAN)


def _attach_in(outer: Plan, asking: Plan, inner: Plan, values: tuple[Expr, ...]) -> tuple[Plan, Expr]:
    """IN as a value: whether an outer join finds an equal row."""
    width, count = len(outer.fields), len(values)
    source, tied = with_key_columns(pull_up(inner, asking), asking, count)
    marked, marker = _with_marker(Distinct(source), width)
    equal = [
        Call("equal", (value, Column(width + index, source.fields[index].name, source.fields[index].type)), BOOLEAN)
        for index, value in enumerate(values)
    ]
    joined = join_on(outer, marked, JoinKind.LEFT, conjunction([*equal, *conjuncts(_tied(tuple(tied), width))]))
    return joined, Call("is_not_null", (marker,), BOOLEAN)


def _attach_not_in(outer: Plan, asking: Plan, inner: Plan, values: tuple[Expr, ...]) -> tuple[Plan, Expr]:
    """NOT IN as a value: no equal row, and none that might be, by the counts of all rows and of those not NULL."""
    if len(values) > 1:
        raise NotIncremental(
            "NOT IN of several columns can only be a condition of WHERE or HAVING by itself.",
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
            hint="rewrite it with NOT EXISTS",
        )
    found, matched = _attach_in(outer, asking, inner, values)
    source, tied = with_key_columns(pull_up(inner, asking), asking, 1)
    counted, links = _counted(source, tuple(tied))
    total, keys = len(found.fields), len(source.fields) - 1
    joined = join_on(found, counted, JoinKind.LEFT, _tied(links, total))
    rows, known = Column(total + keys, "_rows", BIGINT), Column(total + keys + 1, "_known", BIGINT)
    some = Call("coalesce", (Call("greater", (rows, Literal(0, BIGINT)), BOOLEAN), _FALSE), BOOLEAN)
    unsure = _any(Call("is_null", (values[0],), BOOLEAN), Call("less", (known, rows), BOOLEAN))
    maybe = _any(matched, Call("and", (some, unsure), BOOLEAN))
    return joined, Call("not", (maybe,), BOOLEAN)


def _counted(source: Plan, tied: tuple[Expr, ...]) -> tuple[Plan, tuple[Expr, ...]]:
    keys = tuple(Column(1 + index, part.name, part.type) for index, part in enumerate(source.fields[1:]))
    calls = (
        AggregateCall("count", (), BIGINT),
        AggregateCall("count", (Column(0, source.fields[0].name, source.fields[0].type),), BIGINT),
    )
    fields = (*source.fields[1:], Field("_rows", BIGINT), Field("_known", BIGINT))
    return Aggregate(source, keys, calls, fields), rewrite_links(tied, lambda index: index - 1)
