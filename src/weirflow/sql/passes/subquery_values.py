"""Subqueries whose value is wanted: each becomes a further column of the input of the node that reads it.

EXISTS, IN and NOT IN are found by outer joins with the different rows of the subquery, scalar subqueries by one with
its groups. IN and NOT IN are never NULL, as in Spark: IN is whether a row is equal, NOT IN whether no row is or, being
NULL, might be.
"""

from __future__ import annotations

from collections.abc import Callable

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
    columns_of,
    domain,
    has_one_row,
    hold,
    is_correlated,
    outer_references,
    over_both,
    tied_over_both,
    with_key_columns,
)
from weirflow.sql.passes.failure import null_folded
from weirflow.sql.passes.pull_up import columns_over_nothing, join_on, pull_up, with_marker
from weirflow.sql.plan import Aggregate, Distinct, Field, Join, JoinKind, Plan, Project
from weirflow.sql.traverse import columns, parts, rewrite, shift
from weirflow.sql.types import BIGINT, BOOLEAN

Subquery = ScalarSubquery | Exists | InSubquery
InnerPlan = Callable[[Subquery], Plan]
"""The plan of a subquery, free of subqueries of its own, seen from the query around it."""
_FALSE = Literal(value=False, type=BOOLEAN)


def subqueries(expr: Expr) -> list[Subquery]:
    """Those in an expression, not those inside of them."""
    return [part for part in parts(expr) if isinstance(part, ScalarSubquery | Exists | InSubquery)]


def attached(
    plan: Plan, exprs: tuple[Expr, ...], inner_plan: InnerPlan, asking: Plan | None = None
) -> tuple[Plan, Callable[[Expr], Expr]]:
    """The input with columns for the subqueries in ``exprs``, and how to rewrite expressions to read them.

    ``asking`` has the values that correlated columns can take; None for those of ``plan``.
    """
    asking = asking or plan
    values: dict[Expr, Expr] = {}

    def known(expr: Expr) -> Expr:
        return rewrite(expr, values.get)

    for expr in exprs:
        for part, wanted in wanted_values(negations_inward(expr)):
            if part in values:
                continue
            inner, negated = inner_plan(wanted), wanted is not part
            if isinstance(wanted, InSubquery):
                tested = tuple(known(value) for value in wanted.values)
                plan, values[part] = (_attach_not_in if negated else _attach_in)(plan, asking, inner, tested)
            elif isinstance(wanted, Exists):
                plan, values[part] = _attach_exists(plan, asking, inner)
            else:
                attach = _attach_scalar if is_correlated(inner) else _attach_single
                plan, values[part] = attach(plan, asking, inner)
    return plan, lambda expr: known(negations_inward(expr))


def wanted_values(expr: Expr) -> list[tuple[Expr, Subquery]]:
    """The parts whose value a subquery gives, those inside of others first: a subquery itself, or NOT IN as a whole."""
    found: list[tuple[Expr, Subquery]] = []
    ahead = [expr]
    while ahead:
        part = ahead.pop()
        negated = part.arguments[0] if isinstance(part, Call) and part.function == "not" else None
        wanted = negated if isinstance(negated, InSubquery) else part
        if isinstance(wanted, ScalarSubquery | Exists | InSubquery):
            found.append((part, wanted))
        if isinstance(wanted, InSubquery):
            ahead += reversed(wanted.values)
        elif isinstance(wanted, Call):
            ahead += reversed(wanted.arguments)
    return found[::-1]


def _attach_single(outer: Plan, _: Plan, inner: Plan) -> tuple[Plan, Expr]:
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
    if has_one_row(inner):
        default = columns_over_nothing(inner)[0]
        pulled = pull_up(inner, asking, empty_groups=False)
        marked, marker = with_marker(pulled.plan, width)
        joined = join_on(outer, marked, JoinKind.LEFT, tied_over_both(pulled.predicates, width))
        absent = null_folded(over_both(default, width))
        if isinstance(absent, Literal) and absent.value is None:
            return joined, value
        return joined, Call("case", (Call("is_null", (marker,), BOOLEAN), absent, value), field.type)
    source, tied = with_key_columns(pull_up(inner, asking), asking, 1)
    asked_for = _only_asked_for(source, tuple(tied), asking)
    keys = tuple(Column(1 + index, part.name, part.type) for index, part in enumerate(source.fields[1:]))
    call = AggregateCall("single_value", (Column(0, field.name, field.type),), field.type)
    grouped = Aggregate(asked_for, keys, (call,), (*source.fields[1:], field))
    places = tuple(shift(one, -1) for one in tied)
    joined = join_on(outer, grouped, JoinKind.LEFT, tied_over_both(places, width))
    return joined, Column(width + len(keys), field.name, field.type)


def _only_asked_for(source: Plan, links: tuple[Expr, ...], asking: Plan) -> Plan:
    """The rows that some outer row is linked to: several rows are only an error where they are asked for."""
    references = list(dict.fromkeys(part for one in links for part in outer_references(one)))
    width = len(source.fields)
    held: dict[OuterColumn, Expr] = {
        part: Column(width + index, part.name, part.type) for index, part in enumerate(references)
    }
    return join_on(source, domain(asking, references), JoinKind.SEMI, conjunction(hold(one, held) for one in links))


def _attach_exists(outer: Plan, asking: Plan, inner: Plan) -> tuple[Plan, Expr]:
    width = len(outer.fields)
    if not is_correlated(inner):
        counted = Aggregate(inner, (), (AggregateCall("count", (), BIGINT),), (Field("_rows", BIGINT),))
        rows = Column(width, "_rows", BIGINT)
        joined = Join(outer, counted, JoinKind.INNER, (), ())
        return joined, Call("greater", (rows, Literal(0, BIGINT)), BOOLEAN)
    source, tied = with_key_columns(pull_up(inner, asking), asking, 0)
    marked, marker = with_marker(Distinct(source), width)
    joined = join_on(outer, marked, JoinKind.LEFT, tied_over_both(tied, width))
    return joined, Call("is_not_null", (marker,), BOOLEAN)


def _attach_in(outer: Plan, asking: Plan, inner: Plan, values: tuple[Expr, ...]) -> tuple[Plan, Expr]:
    """IN as a value: whether an outer join finds an equal row."""
    width, count = len(outer.fields), len(values)
    source, tied = with_key_columns(pull_up(inner, asking), asking, count)
    marked, marker = with_marker(Distinct(source), width)
    equal = [
        Call("equal", (value, Column(width + index, source.fields[index].name, source.fields[index].type)), BOOLEAN)
        for index, value in enumerate(values)
    ]
    joined = join_on(outer, marked, JoinKind.LEFT, conjunction([*equal, *conjuncts(tied_over_both(tied, width))]))
    return joined, Call("is_not_null", (marker,), BOOLEAN)


def _attach_not_in(outer: Plan, asking: Plan, inner: Plan, values: tuple[Expr, ...]) -> tuple[Plan, Expr]:
    """NOT IN as a value: no equal row, and none that might be."""
    if len(values) > 1:
        return _attach_none_alike(outer, asking, inner, values)
    found, matched = _attach_in(outer, asking, inner, values)
    source, tied = with_key_columns(pull_up(inner, asking), asking, 1)
    counted, links = _counted(source, tuple(tied))
    total, keys = len(found.fields), len(source.fields) - 1
    joined = join_on(found, counted, JoinKind.LEFT, tied_over_both(links, total))
    rows, known = Column(total + keys, "_rows", BIGINT), Column(total + keys + 1, "_known", BIGINT)
    some = Call("coalesce", (Call("greater", (rows, Literal(0, BIGINT)), BOOLEAN), _FALSE), BOOLEAN)
    unsure = any_of(Call("is_null", (values[0],), BOOLEAN), Call("less", (known, rows), BOOLEAN))
    maybe = any_of(matched, Call("and", (some, unsure), BOOLEAN))
    return joined, Call("not", (maybe,), BOOLEAN)


def _attach_none_alike(outer: Plan, asking: Plan, inner: Plan, values: tuple[Expr, ...]) -> tuple[Plan, Expr]:
    """NOT IN of several columns: the different values that some row might equal are found first, then joined."""
    pulled = pull_up(inner, asking)
    links = [part for one in pulled.predicates for part in outer_references(one)]
    references: list[Expr] = [Column(part.index, part.name, part.type) for part in dict.fromkeys(links)]
    wanted = (*values, *references)
    base = asking if all(index < len(asking.fields) for one in wanted for index in columns(one)) else outer
    fields = tuple(Field(f"_value{index}", one.type) for index, one in enumerate(wanted))
    asked = Distinct(Project(base, wanted, fields))
    own = [Column(index, field.name, field.type) for index, field in enumerate(fields)]
    held: dict[OuterColumn, Expr] = dict(zip(dict.fromkeys(links), own[len(values) :], strict=True))
    width = len(fields)
    pairs = list(zip(own, (shift(one, width) for one in columns_of(pulled.plan)[: len(values)]), strict=False))
    alike = [maybe_equal(pair) for pair in pairs[: len(values)]]
    tied = [hold(shift(one, width), held) for one in pulled.predicates]
    matched, marker = with_marker(
        join_on(asked, pulled.plan, JoinKind.SEMI, conjunction([*alike, *tied])), len(outer.fields)
    )
    same = [
        Call("equal_null_safe", (one, shift(column, len(outer.fields))), BOOLEAN)
        for one, column in zip(wanted, own, strict=True)
    ]
    return join_on(outer, matched, JoinKind.LEFT, conjunction(same)), Call("is_null", (marker,), BOOLEAN)


def maybe_equal(pair: tuple[Expr, Expr]) -> Expr:
    """Whether two values are equal or, one being NULL, might be."""
    return any_of(Call("equal", pair, BOOLEAN), *(Call("is_null", (side,), BOOLEAN) for side in pair))


def any_of(first: Expr, *others: Expr) -> Expr:
    """Whether one of the conditions is met."""
    for other in others:
        first = Call("or", (first, other), BOOLEAN)
    return first


def _counted(source: Plan, tied: tuple[Expr, ...]) -> tuple[Plan, tuple[Expr, ...]]:
    keys = tuple(Column(1 + index, part.name, part.type) for index, part in enumerate(source.fields[1:]))
    calls = (
        AggregateCall("count", (), BIGINT),
        AggregateCall("count", (Column(0, source.fields[0].name, source.fields[0].type),), BIGINT),
    )
    fields = (*source.fields[1:], Field("_rows", BIGINT), Field("_known", BIGINT))
    return Aggregate(source, keys, calls, fields), tuple(shift(one, -1) for one in tied)
