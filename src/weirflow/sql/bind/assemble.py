"""A bound SELECT put together: placeholders become columns of the nodes that compute them, under one projection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weirflow.errors import NotGrouped, SqlPosition, SqlTypeError
from weirflow.sql.bind.expressions.call import GROUPING, GROUPING_ID
from weirflow.sql.bind.expressions.placeholders import Placeholder, PlaceholderKind, SelectCalls
from weirflow.sql.expr import AggregateCall, Call, Column, Expr, Literal, OuterColumn, SortKey, WindowCall
from weirflow.sql.plan import Aggregate, Distinct, Field, Filter, Generate, Plan, Project, TopK, Window
from weirflow.sql.traverse import map_arguments, map_call, rewrite_deep
from weirflow.sql.types import BIGINT, is_orderable, type_name

if TYPE_CHECKING:
    from weirflow.sql.bind.expressions.generator import Generator
    from weirflow.sql.bind.grouping import Grouping
    from weirflow.sql.bind.limit import Limit

_GROUPING_ID_NAME = "spark_grouping_id"


@dataclass(frozen=True)
class Block:
    """All clauses of one SELECT, bound over the columns of ``plan``, with placeholders for what is computed later."""

    plan: Plan
    items: tuple[Expr, ...]
    positions: tuple[SqlPosition | None, ...]
    """Where each item is in the text."""
    fields: tuple[Field, ...]
    grouping: Grouping | None
    having: Expr | None
    placeholders: SelectCalls
    generator: Generator | None
    distinct: bool
    order: tuple[SortKey, ...]
    limit: Limit | None


def assemble(block: Block, position: SqlPosition | None) -> Plan:
    """The plan of the SELECT."""
    plan = block.plan
    items, order, windows, generator = block.items, block.order, tuple(block.placeholders.windows), block.generator
    if block.grouping is not None:
        grouped = GroupedInput(block.grouping, tuple(block.placeholders.aggregates), position)
        plan = grouped.over(plan)
        if block.having is not None:
            plan = Filter(plan, grouped.change(block.having))
        items = tuple(
            replace(grouped, position=place or position).change(item)
            for item, place in zip(items, block.positions, strict=True)
        )
        order = tuple(replace(key, expr=grouped.change(key.expr)) for key in order)
        windows = tuple(map_call(call, grouped.change) for call in windows)
        generator = (
            None if generator is None else replace(generator, call=map_arguments(generator.call, grouped.change))
        )
    if windows:
        plan, place = _windowed(plan, windows)
        items = tuple(place(item) for item in items)
        order = tuple(replace(key, expr=place(key.expr)) for key in order)
        generator = None if generator is None else replace(generator, call=map_arguments(generator.call, place))
    if generator is not None:
        width = len(plan.fields)
        plan = Generate(plan, generator.call, generator.outer, plan.fields + generator.fields)
        items = tuple(_placed(item, PlaceholderKind.GENERATED, width) for item in items)
        order = tuple(replace(key, expr=_placed(key.expr, PlaceholderKind.GENERATED, width)) for key in order)
    return _ordered(plan, items, order, block, position)


def _ordered(
    plan: Plan, items: tuple[Expr, ...], order: tuple[SortKey, ...], block: Block, position: SqlPosition | None
) -> Plan:
    """Projection, DISTINCT, and ORDER BY with LIMIT; what only the order needs is computed and dropped again."""
    hidden = tuple(dict.fromkeys(key.expr for key in order if key.expr not in items))
    if hidden and block.distinct:
        raise SqlTypeError("ORDER BY of a SELECT DISTINCT can use its output columns only.", position=position)
    columns = items + hidden
    extra = tuple(Field(f"_order{index}", expr.type) for index, expr in enumerate(hidden))
    plan = Project(plan, columns, block.fields + extra)
    if block.distinct:
        plan = Distinct(plan)
    if block.limit is None:
        return plan
    for key in order:
        if not is_orderable(key.expr.type):
            raise SqlTypeError(f"ORDER BY cannot order {type_name(key.expr.type)}.", position=position)
    keys = tuple(
        replace(key, expr=_column(columns.index(key.expr), plan.fields[columns.index(key.expr)])) for key in order
    )
    plan = TopK(plan, keys, block.limit.count, block.limit.offset)
    if not hidden:
        return plan
    return Project(plan, tuple(_column(index, field) for index, field in enumerate(block.fields)), block.fields)


def _column(index: int, field: Field) -> Column:
    return Column(index, field.name, field.type)


def _windowed(plan: Plan, calls: tuple[WindowCall, ...]) -> tuple[Plan, Callable[[Expr], Expr]]:
    width = len(plan.fields)
    fields = tuple(Field(f"_window{index}", call.type) for index, call in enumerate(calls))

    def place(expr: Expr) -> Expr:
        return _placed(expr, PlaceholderKind.WINDOW, width)

    if any(place(part) != part for call in calls for part in (*call.arguments, *call.partition_by)):
        raise SqlTypeError(
            "A window function cannot use another one; put it into a subquery.", position=calls[0].position
        )
    return Window(plan, calls, plan.fields + fields), place


def _placed(expr: Expr, kind: PlaceholderKind, width: int) -> Expr:
    """The expression with columns from ``width`` on instead of placeholders of a kind."""

    def change(part: Expr) -> Expr | None:
        if not isinstance(part, Placeholder) or part.kind is not kind:
            return None
        return Column(width + part.number, part.name, part.type)

    return rewrite_deep(expr, change)


@dataclass(frozen=True)
class GroupedInput:
    """Expressions over a query's input, told over its groups."""

    grouping: Grouping
    calls: tuple[AggregateCall, ...]
    position: SqlPosition | None

    def over(self, plan: Plan) -> Aggregate:
        """The groups of a plan's rows."""
        keys = self.grouping.keys
        names = tuple(key.name if isinstance(key, Column) else f"_key{index}" for index, key in enumerate(keys))
        fields = [Field(name, key.type) for name, key in zip(names, keys, strict=True)]
        fields += [Field(f"_{call.function}{index}", call.type) for index, call in enumerate(self.calls)]
        if self.grouping.sets is not None:
            fields.append(Field(_GROUPING_ID_NAME, BIGINT))
        return Aggregate(plan, keys, self.calls, tuple(fields), self.grouping.sets)

    def change(self, expr: Expr) -> Expr:
        """An expression over the input, with placeholders for aggregates, over the groups."""
        return rewrite_deep(expr, self._change)

    def _change(self, part: Expr) -> Expr | None:
        keys = self.grouping.keys
        index = self.grouping.place(part)
        if index is not None:
            name = part.name if isinstance(part, Column | OuterColumn) else f"_key{index}"
            return Column(index, name, part.type)
        if isinstance(part, Call) and part.function in (GROUPING, GROUPING_ID):
            return self._grouping(part)
        if not isinstance(part, Column):
            return None
        if isinstance(part, Placeholder):  # others than those of aggregates are filled after grouping
            is_aggregate = part.kind is PlaceholderKind.AGGREGATE
            return Column(len(keys) + part.number, part.name, part.type) if is_aggregate else part
        raise NotGrouped(
            f"The column {part.name!r} is neither grouped nor aggregated.",
            hint=f"add it to GROUP BY, or use any_value({part.name}) if any row's value will do",
            position=self.position,
        )

    def _grouping(self, call: Call) -> Expr:
        """``grouping(key)`` is one bit of the grouping id, the last key's being the lowest."""
        sets, keys = self.grouping.sets, self.grouping.keys
        if sets is None:
            raise SqlTypeError(f"{call.function}() needs GROUPING SETS, ROLLUP or CUBE.", position=call.position)
        identity = Column(len(keys) + len(self.calls), _GROUPING_ID_NAME, BIGINT)
        if call.function == GROUPING_ID:
            if call.arguments and tuple(self.grouping.place(part) for part in call.arguments) != tuple(
                range(len(keys))
            ):
                raise SqlTypeError("grouping_id() takes exactly the GROUP BY keys, or nothing.", position=call.position)
            return identity
        place = self.grouping.place(call.arguments[0])
        if place is None:
            raise SqlTypeError("grouping() takes a GROUP BY key.", position=call.position)
        weight = 1 << (len(keys) - 1 - place)
        shifted = Call("integral_divide", (identity, Literal(weight, BIGINT)), BIGINT, call.position)
        bit = Call("remainder", (shifted, Literal(2, BIGINT)), BIGINT, call.position)
        return Call("cast", (bit,), call.type, call.position)
