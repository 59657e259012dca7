"""Pipes: ``FROM t |> WHERE ... |> AGGREGATE ...``, each step over the rows and names that the one before has left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from sys import maxsize
from typing import TYPE_CHECKING

from sqlglot import exp

from weirflow.errors import ColumnNotFound, NotIncremental, Reason, SqlTypeError
from weirflow.sql.bind.expressions.binder import ExpressionBinder
from weirflow.sql.bind.from_clause import bind_from, join_relation
from weirflow.sql.bind.limit import bind_limit
from weirflow.sql.bind.ordinal import ordinal
from weirflow.sql.bind.pivot import bind_pivot
from weirflow.sql.bind.scope import FromItem, Name, Scope, scope_of
from weirflow.sql.bind.select import condition, select_over
from weirflow.sql.bind.set_operation import combine
from weirflow.sql.bind.star import is_all
from weirflow.sql.expr import Column, SortKey
from weirflow.sql.plan import Field, Filter, Plan, Project, TopK
from weirflow.sql.syntax import clauses
from weirflow.sql.types import is_orderable, type_name

if TYPE_CHECKING:
    from weirflow.sql.bind.context import BindContext

_PROJECTIONS = (clauses.SELECT, clauses.EXTEND, clauses.SET, clauses.DROP, clauses.AS)
"""Steps that make one row of each."""
_CLAUSES = ("expressions", "from_")
"""Those of a query that is nothing but the relation it reads."""


@dataclass(frozen=True)
class _State:
    """What a step is applied to.

    Attributes:
        order: how rows come, for a LIMIT that follows.
        is_lost: whether they come in an order by something that is not among the columns.
        before: the rows with that order, and the projections since then.
    """

    item: FromItem
    order: tuple[SortKey, ...] = ()
    is_lost: bool = False
    before: tuple[_State, tuple[clauses.PipeStep, ...]] | None = None


def bind_pipe(query: clauses.PipeQuery, context: BindContext, around: Scope | None) -> Plan:
    """The plan of a query with steps."""
    pipe = _Pipe(context, around)
    state = pipe.start(query.this)
    for step in (*query.args["steps"], *_last_steps(query)):
        state = pipe.apply(state, step)
    plan = _shown(state.item)
    if state.order or state.is_lost:
        context.remember_order(plan)
    return plan


def _last_steps(query: clauses.PipeQuery) -> list[clauses.PipeStep]:
    """ORDER BY and LIMIT that are written behind the last step."""
    order, limit, offset = (query.args.get(part) for part in ("order", "limit", "offset"))
    steps = [] if order is None else [clauses.PipeStep(kind=clauses.ORDER_BY, this=order)]
    if limit is not None:
        steps.append(clauses.PipeStep(kind=clauses.LIMIT, this=limit, expressions=[offset] if offset else None))
    elif offset is not None:
        steps.append(clauses.PipeStep(kind=clauses.OFFSET, this=offset))
    return steps


def _shown(item: FromItem) -> Plan:
    """The rows of a relation with the columns that ``*`` lists."""
    listed = [name for name in item.scope.names if name.in_star]
    fields = tuple(Field(name.name, name.expr.type) for name in listed)
    own = tuple(Column(at, one.name, one.type) for at, one in enumerate(item.plan.fields))
    if tuple(name.expr for name in listed) == own and fields == item.plan.fields:
        return item.plan
    return Project(item.plan, tuple(name.expr for name in listed), fields)


def _order_after(before: _State, made: FromItem) -> tuple[tuple[SortKey, ...], bool]:
    """The order of rows after a projection of them, and whether it is lost."""
    if before.is_lost or not before.order:
        return (), before.is_lost
    plan = made.plan
    exprs = plan.expressions if isinstance(plan, Project) and plan.input is before.item.plan else ()
    if not exprs:
        raise NotIncremental(
            "A projection that does more than compute values from each row cannot follow an ORDER BY here.",
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
            hint="write ORDER BY directly before LIMIT",
        )
    places = {expr: at for at, expr in reversed(list(enumerate(exprs)))}
    if any(key.expr not in places for key in before.order):
        return (), True
    return tuple(replace(key, expr=Column(places[key.expr], "", key.expr.type)) for key in before.order), False


class _Pipe:
    """Applies steps; where Spark has a step in other words, so is it here."""

    def __init__(self, context: BindContext, around: Scope | None) -> None:
        self._context = context
        self._around = around

    def start(self, query: exp.Expr) -> _State:
        """The rows of what stands before the first step."""
        if isinstance(query, exp.Select):
            is_relation = all(part in _CLAUSES or not value for part, value in query.args.items())
            if is_relation and len(query.expressions) == 1 and type(query.expressions[0]) is exp.Star:
                return _State(bind_from(query, self._context, self._around))
            if not any(query.args.get(part) for part in ("order", "limit", "offset", "with_")):
                return _State(select_over(query, bind_from(query, self._context, self._around), self._context))
        plan = self._context.bind_query(query, self._context, self._around)
        scope = scope_of(plan.fields, None, self._around, self._context.fold)
        return _State(FromItem(plan, scope), is_lost=self._context.is_ordered(plan))

    def apply(self, state: _State, step: clauses.PipeStep) -> _State:
        """The state after one step."""
        read = self._STEPS[step.args["kind"]]
        after = read(self, state, step)
        if not after.is_lost or step.args["kind"] not in _PROJECTIONS:
            return after
        ordered, steps = state.before or (state, ())
        return after if not ordered.order else replace(after, before=(ordered, (*steps, step)))

    def _binder(self, item: FromItem, clause: str) -> ExpressionBinder:
        return ExpressionBinder(self._context, item.scope, clause=clause)

    def _where(self, state: _State, step: clauses.PipeStep) -> _State:
        item = state.item
        predicate = condition(self._binder(item, "WHERE"), step.this, "WHERE")
        return replace(state, item=replace(item, plan=Filter(item.plan, predicate)))

    def _selected(self, state: _State, select: exp.Select) -> _State:
        """The state after a projection; an order by what is not shown any more is lost."""
        made = select_over(select, state.item, self._context, plain=maxsize)
        if select.args.get("distinct") is not None:
            return _State(made)
        return _State(made, *_order_after(state, made))

    def _select(self, state: _State, step: clauses.PipeStep) -> _State:
        return self._selected(state, step.this)

    def _extend(self, state: _State, step: clauses.PipeStep) -> _State:
        return self._selected(state, exp.Select(expressions=[exp.Star(), *step.expressions]))

    def _set(self, state: _State, step: clauses.PipeStep) -> _State:
        """Each assignment sees those before it."""
        fold = self._context.fold
        for tree in step.expressions:
            listed = [name for name in state.item.scope.names if name.in_star]
            found = [name for name in listed if fold(name.name) == fold(tree.alias)]
            if len(found) != 1:
                raise ColumnNotFound(
                    f"SET {tree.alias}: there are {len(found)} such columns.", position=self._context.position(tree)
                )
            value = self._selected(state, exp.Select(expressions=[exp.Star(), tree]))
            names_after = value.item.scope.names
            place = next(at for at, name in enumerate(listed) if name is found[0])
            order = [*range(place), len(listed), *range(place + 1, len(listed))]
            state = self._chosen(value, [names_after[at] for at in order])
        return state

    def _chosen(self, state: _State, names: list[Name]) -> _State:
        """The state with these of its columns."""
        plan = Project(
            state.item.plan,
            tuple(name.expr for name in names),
            tuple(Field(name.name, name.expr.type) for name in names),
        )
        scope = replace(
            state.item.scope,
            names=tuple(replace(name, expr=Column(at, name.name, name.expr.type)) for at, name in enumerate(names)),
        )
        made = FromItem(plan, scope)
        return _State(made, *_order_after(state, made))

    def _drop(self, state: _State, step: clauses.PipeStep) -> _State:
        star = exp.Star(except_=[exp.Column(this=part) for part in step.expressions])
        return self._selected(state, exp.Select(expressions=[star]))

    def _as(self, state: _State, step: clauses.PipeStep) -> _State:
        names = tuple(replace(name, relation=step.this.name) for name in state.item.scope.names if name.in_star)
        return replace(state, item=replace(state.item, scope=replace(state.item.scope, names=names)))

    def _aggregate(self, state: _State, step: clauses.PipeStep) -> _State:
        """The keys, then the aggregates; a number among the keys is the place of a column."""
        keys = [self._key(state, tree) for tree in step.args.get("keys") or ()]
        group = [tree.this if isinstance(tree, exp.Alias) else tree for tree in keys]
        select = exp.Select(expressions=[*keys, *step.expressions])
        if group:
            select.set("group", exp.Group(expressions=[tree.copy() for tree in group]))
        return _State(select_over(select, state.item, self._context, plain=len(keys)))

    def _key(self, state: _State, tree: exp.Expr) -> exp.Expr:
        plain = tree.this if isinstance(tree, exp.Alias) else tree
        if isinstance(plain, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple | exp.Aliases):
            raise NotIncremental(
                "Grouping sets in a pipe are not supported in an incremental view.",
                reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
                hint="write SELECT ... GROUP BY",
                position=self._context.position(tree),
            )
        place = ordinal(plain)
        if place is None:
            return tree
        listed = [name for name in state.item.scope.names if name.in_star]
        if not 1 <= place <= len(listed):
            raise SqlTypeError(
                f"GROUP BY {place}: there are {len(listed)} columns.", position=self._context.position(tree)
            )
        name = listed[place - 1]
        parts = [exp.to_identifier(part, quoted=True) for part in (name.relation, name.name) if part]
        column = exp.Column(this=parts[-1], table=parts[0] if len(parts) > 1 else None)
        return exp.Alias(this=column, alias=tree.args["alias"]) if isinstance(tree, exp.Alias) else column

    def _join(self, state: _State, step: clauses.PipeStep) -> _State:
        return _State(join_relation(state.item, step.this, self._context, self._around))

    def _combine(self, state: _State, step: clauses.PipeStep) -> _State:
        left = _shown(state.item)
        right = self._context.bind_query(step.this.expression, self._context, self._around)
        plan = combine(step.this, left, right, self._context)
        return _State(FromItem(plan, scope_of(plan.fields, None, self._around, self._context.fold)))

    def _order(self, state: _State, step: clauses.PipeStep) -> _State:
        binder = self._binder(state.item, "ORDER BY")
        listed = [name for name in state.item.scope.names if name.in_star]
        if is_all(step.this.expressions) and not binder.sees("all"):
            every = step.this.expressions[0]
            keys = [
                SortKey(one.expr, bool(every.args.get("desc")), bool(every.args.get("nulls_first"))) for one in listed
            ]
        else:
            keys = [binder.sort_key(tree) for tree in step.this.expressions]
            for at, tree in enumerate(step.this.expressions):
                place = ordinal(tree.this)
                if place is not None:
                    if not 1 <= place <= len(listed):
                        raise SqlTypeError(
                            f"ORDER BY {place}: there are {len(listed)} columns.", position=binder.position(tree)
                        )
                    keys[at] = replace(keys[at], expr=listed[place - 1].expr)
        for key in keys:
            if not is_orderable(key.expr.type):
                raise SqlTypeError(f"ORDER BY cannot order {type_name(key.expr.type)}.", position=binder.position(step))
        return _State(state.item, tuple(keys))

    def _limit(self, state: _State, step: clauses.PipeStep) -> _State:
        """The first rows, or those behind some, in the order that there is."""
        if state.before is not None:
            first, steps = state.before
            limited = self._limit(first, step)
            for one in steps:
                limited = self.apply(limited, one)
            return limited
        if state.is_lost:
            raise NotIncremental(
                "LIMIT would need an order by a column that is no longer there.",
                reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
                hint="write ORDER BY directly before LIMIT",
                position=self._context.position(step),
            )
        given = [step.this, *step.expressions]
        limit = bind_limit(exp.Select(**{one.key: one for one in given}), self._context)
        if limit is None:
            return state
        plan = TopK(state.item.plan, state.order, limit.count, limit.offset)
        return replace(state, item=replace(state.item, plan=plan))

    def _pivot(self, state: _State, step: clauses.PipeStep) -> _State:
        return _State(bind_pivot(state.item, step.this, self._context))

    _STEPS: dict[str, Callable[[_Pipe, _State, clauses.PipeStep], _State]] = {  # noqa: RUF012 - never changed
        clauses.WHERE: _where,
        clauses.SELECT: _select,
        clauses.EXTEND: _extend,
        clauses.SET: _set,
        clauses.DROP: _drop,
        clauses.AS: _as,
        clauses.AGGREGATE: _aggregate,
        clauses.JOIN: _join,
        clauses.COMBINE: _combine,
        clauses.ORDER_BY: _order,
        clauses.LIMIT: _limit,
        clauses.OFFSET: _limit,
        clauses.PIVOT: _pivot,
    }
