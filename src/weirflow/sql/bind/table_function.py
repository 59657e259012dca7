"""Functions that stand in FROM: ``range``, and generators, with LATERAL also over the columns before them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from weirflow.errors import NotIncremental, Reason, SqlTypeError
from weirflow.sql.bind.constant import whole_number
from weirflow.sql.bind.expressions.binder import ExpressionBinder
from weirflow.sql.bind.expressions.generator import bind_generator
from weirflow.sql.bind.scope import Scope
from weirflow.sql.expr import Literal
from weirflow.sql.plan import Field, Generate, Plan, Values
from weirflow.sql.types import BIGINT
from weirflow.sql.typing.coercion import explicit_cast

if TYPE_CHECKING:
    from weirflow.sql.bind.context import BindContext

MOST_CONSTANT_ROWS = 10_000
"""Rows that a plan holds as constants."""
_MOST_ARGUMENTS = 4


def bind_table_function(node: exp.Expr, context: BindContext, around: Scope | None) -> Plan:
    """The rows that a function makes; its arguments are constants, or columns of the query around."""
    binder = ExpressionBinder(context, Scope((), around, context.fold), clause="a table function")
    if isinstance(node, exp.Anonymous) and node.name.casefold() == "range":
        return _range(binder, node)
    generator = bind_generator(binder, node)
    return Generate(Values(((),), ()), generator.call, generator.outer, generator.fields)


def _range(binder: ExpressionBinder, node: exp.Anonymous) -> Plan:
    """``range([start,] end [, step [, slices]])``."""
    position = binder.position(node)
    given = [whole_number(explicit_cast(binder.bind(part), BIGINT, position)) for part in node.expressions]
    bounds = [one for one in given if one is not None]
    if not bounds or len(bounds) < len(given) or len(given) > _MOST_ARGUMENTS:
        raise SqlTypeError("range() takes one to four constant whole numbers.", position=position)
    start, end = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    step = bounds[2] if len(bounds) > 2 else 1  # noqa: PLR2004 - behind start and end
    if not step:
        raise SqlTypeError("The step of range() is not 0.", position=position)
    count = max(0, -((start - end) // step))
    if count > MOST_CONSTANT_ROWS:
        raise NotIncremental(
            f"range() of {count:,} rows has more constants than a view may hold.",
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
            hint="put the numbers into a source",
            position=position,
        )
    return Values(tuple((Literal(one, BIGINT),) for one in range(start, end, step)), (Field("id", BIGINT),))
