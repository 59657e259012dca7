"""A SELECT, clause by clause, in the order in which Spark gives the clauses their meaning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from weirflow.errors import (
    AmbiguousColumn,
    NotIncremental,
    QueryError,
    Reason,
    SqlPosition,
    SqlSyntaxError,
    SqlTypeError,
)
from weirflow.sql.bind.assemble import Block, assemble
from weirflow.sql.bind.expressions.binder import ExpressionBinder
from weirflow.sql.bind.expressions.generator import Generator, bind_generator, is_generator
from weirflow.sql.bind.expressions.naming import UNNAMED, output_name, spelled_out
from weirflow.sql.bind.expressions.placeholders import PlaceholderKind, SelectCalls, has_placeholder
from weirflow.sql.bind.expressions.time_window import find_time_window
from weirflow.sql.bind.expressions.window import has_own_clauses
from weirflow.sql.bind.from_clause import bind_from
from weirflow.sql.bind.grouping import Grouping, bind_group
from weirflow.sql.bind.limit import bind_limit
from weirflow.sql.bind.ordinal import ordinal
from weirflow.sql.bind.scope import FromItem, Name, Scope
from weirflow.sql.bind.star import expand_star, is_all, is_star
from weirflow.sql.expr import Column, Expr, SortKey
from weirflow.sql.functions.rules import FunctionSignature
from weirflow.sql.plan import Field, Filter, Plan
from weirflow.sql.types import BOOLEAN

if TYPE_CHECKING:
    from weirflow.sql.bind.context import BindContext


_UNNAMED_RELATION = "__auto_generated_subquery_name"


@dataclass
class _Items:
    """The SELECT list as far as it is bound; later items may refer to earlier ones by alias."""

    fold: Callable[[str], str]
    fields: list[Field] = field(default_factory=list)
    expressions: list[Expr] = field(default_factory=list)
    positions: list[SqlPosition | None] = field(default_factory=list)
    generator: Generator | None = None
    relations: list[str | None] = field(default_factory=list)
    """Those that columns are taken of as they are."""

    def add(self, name: str, expr: Expr, position: SqlPosition | None, relation: str | None = None) -> None:
        self.relations.append(relation)
        self.fields.append(Field(name, expr.type))
        self.expressions.append(expr)
        self.positions.append(position)

    def shown(self, scope: Scope) -> Callable[[tuple[str, ...]], str | None]:
        """How Spark writes a dotted name inside the name of an expression."""

        def text(path: tuple[str, ...]) -> str | None:
            if scope.find_here(path) is None:
                found = self.alias(path, None)
                if found is None:
                    return _shown_outside(path, scope)
                generated = has_placeholder(found, PlaceholderKind.GENERATED)
                return None if generated else f"lateralAliasReference({'.'.join(path)})"
            return ".".join(path[1:] if len(path) > 1 and scope.star(path[0]) is not None else path)

        return text

    def alias(self, path: tuple[str, ...], position: SqlPosition | None) -> Expr | None:
        """An output column by its name; ``AmbiguousColumn`` if several have it."""
        names = zip(self.fields, self.expressions, strict=True)
        found = [Name(part.name, expr) for part, expr in names if self.fold(part.name) == self.fold(path[0])]
        if len({name.expr for name in found}) > 1:
            raise AmbiguousColumn(f"{path[0]!r} could be any of {len(found)} output columns.", position=position)
        return Scope(tuple(found[:1]), fold=self.fold).find_here(path, position) if found else None


def _shown_outside(path: tuple[str, ...], scope: Scope) -> str | None:
    """A column of a query around, with the relation that it is of."""
    around = scope.around
    while around is not None:
        found = around.find_here(path)
        if found is not None:
            named = [name for name in around.names if name.expr == found]
            return f"outer({named[0].relation or _UNNAMED_RELATION}.{named[0].name})" if named else UNNAMED
        around = around.around
    return None


def bind_select(query: exp.Select, context: BindContext, around: Scope | None) -> Plan:
    """The plan of one SELECT, its ORDER BY and LIMIT included."""
    return select_over(query, bind_from(query, context, around), context).plan


def select_over(query: exp.Select, relation: FromItem, context: BindContext, *, plain: int | None = None) -> FromItem:
    """A SELECT of a relation, and its output columns under the names of what they are columns of.

    Args:
        query: the clauses; what it has in FROM is not looked at.
        relation: what it selects from.
        context: the surroundings.
        plain: how many items hold no aggregates while each behind them does; None if any may.
    """
    plan, scope = relation.plan, relation.scope
    where = query.args.get("where")
    if where is not None:
        binder = ExpressionBinder(context, scope, clause="WHERE")
        plan = Filter(plan, condition(binder, where.this, "WHERE"))
    named_windows = _named_windows(query, context)
    placeholders = SelectCalls()
    binder = ExpressionBinder(context, scope, placeholders=placeholders, clause="SELECT", windows=named_windows)
    time_window = find_time_window(binder, query, plan)
    if time_window is not None:
        plan, scope = time_window.plan, time_window.scope
        binder = replace(binder, scope=scope, time_window=(time_window.tree, time_window.column))
    items = _bind_items(binder, query)
    for at, (item, place) in enumerate(zip(items.expressions, items.positions, strict=True)):
        if plain is not None and placeholders.has_aggregate(item) != (at >= plain):
            raise SqlTypeError("|> AGGREGATE can only compute aggregates.", position=place)
    grouping = bind_group(replace(binder, clause="GROUP BY"), query.args.get("group"), items.fields, items.expressions)
    if time_window is not None and time_window.session is not None:
        plan = time_window.session(grouping.keys, items.expressions)
    having = _bind_having(binder, query, items, grouping)
    order = _bind_order(binder, query, items)
    limit = bind_limit(query, context)
    block = Block(
        plan=plan,
        items=tuple(items.expressions),
        positions=tuple(items.positions),
        fields=tuple(items.fields),
        grouping=grouping if grouping.is_grouped or placeholders.aggregates or having is not None else None,
        having=having,
        placeholders=placeholders,
        generator=items.generator,
        distinct=query.args.get("distinct") is not None,
        order=order if limit is not None else (),
        limit=limit,
    )
    is_ordered = context.is_ordered(relation.plan) and _is_row_by_row(block)
    if is_ordered and limit is not None and not order:
        raise NotIncremental(
            "LIMIT would depend on the order of an inner query, which is not supported here.",
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
            hint="write ORDER BY beside LIMIT",
            position=context.position(query),
        )
    made = assemble(block, context.position(query))
    if order or is_ordered:
        context.remember_order(made)
    names = (
        Name(field.name, Column(at, field.name, field.type), qualifier)
        for at, (field, qualifier) in enumerate(zip(items.fields, items.relations, strict=True))
    )
    return FromItem(made, replace(relation.scope, names=tuple(names)))


def _is_row_by_row(block: Block) -> bool:
    """Whether rows stay in the order in which they come."""
    return block.grouping is None and not (block.placeholders.windows or block.distinct)


def condition(binder: ExpressionBinder, node: exp.Expr, clause: str) -> Expr:
    """A predicate, checked to be boolean."""
    bound = binder.bind(node)
    return FunctionSignature(clause, (BOOLEAN,), BOOLEAN).arguments((bound,), binder.position(node))[0]


def _named_windows(query: exp.Select, context: BindContext) -> dict[str, exp.Window]:
    """The windows of the WINDOW clause; one that is another by name is that other."""
    listed: list[exp.Window] = query.args.get("windows") or []
    named = {window.name: window for window in listed}
    if len(named) < len(listed):
        raise QueryError("Two windows have the same name.", position=context.position(listed[-1]))

    def resolved(window: exp.Window) -> exp.Window:
        alias = window.args.get("alias")
        if alias is None:
            return window
        target = named.get(alias.name)
        if target is None or target.args.get("alias") is not None or has_own_clauses(window):
            raise QueryError(
                f"The window {window.name!r} refers to another window, which is not supported here.",
                hint="write its PARTITION BY and ORDER BY in parentheses",
                position=context.position(window),
            )
        return target

    return {name: resolved(window) for name, window in named.items()}


def _bind_items(binder: ExpressionBinder, query: exp.Select) -> _Items:
    items = _Items(binder.scope.fold)
    if not query.expressions:
        raise SqlSyntaxError("SELECT of nothing: a query has at least one column.")
    local = replace(binder, lookups=(binder.scope.find_here, items.alias, binder.scope.find))
    for node in query.expressions:
        inner, names = _unaliased(node)
        if isinstance(node, exp.Aliases) and not is_generator(inner):
            raise SqlTypeError(
                "Only a function that makes rows can have several names in parentheses.", position=binder.position(node)
            )
        if is_star(inner):
            if names:
                raise SqlTypeError("* cannot have an alias.", position=binder.position(node))
            for one in expand_star(binder, inner):
                items.add(one.name, one.expr, binder.position(inner), one.relation)
        elif is_generator(inner):
            _add_generator(local, items, inner, names)
        else:
            bound, position = local.bind(inner), binder.position(inner)
            name = (
                names[0]
                if names
                else output_name(spelled_out(inner, binder.windows, items.shown(binder.scope)), position)
            )
            items.add(name, bound, position, _relation_of(node, bound, binder.scope))
    return items


def _relation_of(node: exp.Expr, bound: Expr, scope: Scope) -> str | None:
    """The relation of a column that is selected by its own name."""
    if not isinstance(node, exp.Column):
        return None
    return next((name.relation for name in scope.names if name.expr == bound), None)


def _unaliased(node: exp.Expr) -> tuple[exp.Expr, list[str]]:
    if isinstance(node, exp.Alias):
        return node.this, [node.alias]
    if isinstance(node, exp.Aliases):
        return node.this, [part.name for part in node.expressions]
    return node, []


def _add_generator(binder: ExpressionBinder, items: _Items, node: exp.Expr, names: list[str]) -> None:
    if items.generator is not None:
        raise SqlTypeError("A SELECT list can have only one generator.", position=binder.position(node))
    items.generator = bind_generator(binder, node)
    made = items.generator.fields
    if names and len(names) != len(made):
        raise SqlTypeError(
            f"There are {len(names)} names for {len(made)} generated columns.", position=binder.position(node)
        )
    assert binder.placeholders is not None, "a SELECT list has placeholders"
    for name, part in zip(names or [part.name for part in made], made, strict=True):
        items.add(name, binder.placeholders.generate(name, part.type), binder.position(node))


def _bind_having(binder: ExpressionBinder, query: exp.Select, items: _Items, grouping: Grouping) -> Expr | None:
    """HAVING sees grouped columns first, then output names, then the other columns."""
    having = query.args.get("having")
    if having is None:
        return None

    def grouped(path: tuple[str, ...], position: SqlPosition | None) -> Expr | None:
        found = binder.scope.find_here(path, position)
        return found if found in grouping.keys else None

    lookups = (grouped, items.alias, binder.scope.find)
    bound = condition(replace(binder, lookups=lookups, clause="HAVING"), having.this, "HAVING")
    if has_placeholder(bound, PlaceholderKind.WINDOW):
        raise SqlTypeError("HAVING cannot use window functions.", position=binder.position(having))
    return bound


def _bind_order(binder: ExpressionBinder, query: exp.Select, items: _Items) -> tuple[SortKey, ...]:
    """ORDER BY sees output names first, then the columns of FROM; an integer is the place of an output column."""
    order = query.args.get("order")
    if order is None:
        return ()
    local = replace(binder, lookups=(items.alias, binder.scope.find), clause="ORDER BY")
    if is_all(order.expressions) and not local.sees("all"):
        node = order.expressions[0]
        descending, nulls_first = bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
        return tuple(SortKey(expr, descending, nulls_first) for expr in items.expressions)
    return tuple(_order_key(local, node, items) for node in order.expressions)


def _order_key(binder: ExpressionBinder, node: exp.Expr, items: _Items) -> SortKey:
    key = binder.sort_key(node)
    place = ordinal(node.this)
    if place is not None:
        if not 1 <= place <= len(items.expressions):
            raise SqlTypeError(
                f"ORDER BY {place}: there are {len(items.expressions)} output columns.", position=binder.position(node)
            )
        return replace(key, expr=items.expressions[place - 1])
    return key
