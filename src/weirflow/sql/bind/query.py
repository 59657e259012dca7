"""Spark SQL text and a catalogue to a typed logical plan.

The plan may hold subqueries in expressions; ``weirflow.sql.passes.decorrelate`` makes them joins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from weirflow.errors import NotIncremental, QueryError, Reason, SqlTypeError
from weirflow.sql.bind.context import BindContext, Catalog
from weirflow.sql.bind.from_clause import bind_values
from weirflow.sql.bind.pipe import bind_pipe
from weirflow.sql.bind.recursive import bind_recursive, is_recursive
from weirflow.sql.bind.select import bind_select
from weirflow.sql.bind.set_operation import bind_set
from weirflow.sql.bind.strict import check_syntax, refusal
from weirflow.sql.limits import check_plan, out_of_room
from weirflow.sql.passes.rename import rename
from weirflow.sql.settings import USUAL, SqlSettings
from weirflow.sql.syntax.clauses import PipeQuery
from weirflow.sql.syntax.parse import parse_query
from weirflow.sql.syntax.positions import TextPositions
from weirflow.sql.without_ansi import plan_without_ansi
from weirflow.sql.zoned import plan_there
from weirflow.stack import grows

if TYPE_CHECKING:
    from weirflow.sql.bind.scope import Scope
    from weirflow.sql.plan import Plan


def bind_query(sql: str, catalog: Catalog, *, settings: SqlSettings = USUAL) -> Plan:
    """The typed plan of the one query in ``sql``.

    Args:
        sql: a Spark SQL query.
        catalog: the columns of each source and view that the query may name.
        settings: what the text leaves open.

    Raises:
        QueryError: the text is not a query, names what is not there, or mixes types.
        SqlTooComplex: it is longer, or nested more deeply, than ``weirflow.sql.limits`` allows.
        NotIncremental: Spark would run it, but no incremental view can hold it.
    """
    tree = parse_query(sql)
    _require_readable(settings)
    try:
        positions = TextPositions(sql, tree)
        check_syntax(tree, positions)
        plan = _bind(tree, BindContext(positions, catalog, settings, _bind), None)
        plan = plan_there(plan if settings.ansi else plan_without_ansi(plan), settings.time_zone)
    except SqlTypeError as error:
        if settings.ansi:
            raise
        raise NotIncremental(  # Spark may cast what does not fit by itself
            error.message, reason=Reason.SETTING_NOT_SUPPORTED, hint=error.hint, position=error.position
        ) from error
    except (RecursionError, MemoryError):
        raise out_of_room() from None
    check_plan(plan)
    return plan


def _require_readable(settings: SqlSettings) -> None:
    """``NotIncremental`` for settings with which only Spark reads SQL."""
    if settings.timestamp_ntz:
        raise NotIncremental(
            "SQL in which TIMESTAMP is a type without a time zone is read by Spark only.",
            reason=Reason.SETTING_NOT_SUPPORTED,
            hint="write TIMESTAMP_NTZ, and set spark.sql.timestampType to TIMESTAMP_LTZ",
        )


@grows
def _bind(node: exp.Expr, context: BindContext, around: Scope | None) -> Plan:
    with_clause = node.args.get("with_")
    if with_clause is not None:
        context = _with_ctes(with_clause, context, around)
    if isinstance(node, exp.Select):
        return bind_select(node, context, around)
    if isinstance(node, exp.SetOperation):
        return bind_set(node, context, around)
    if isinstance(node, exp.Subquery):
        if node.args.get("order") or node.args.get("limit") or node.args.get("offset"):
            outer = exp.select("*").from_(exp.Subquery(this=node.this))
            for part in ("order", "limit", "offset"):
                outer.set(part, node.args.get(part))
            return bind_select(outer, context, around)
        return _bind(node.this, context, around)
    if isinstance(node, PipeQuery):
        return bind_pipe(node, context, around)
    if isinstance(node, exp.Values):
        return bind_values(node, context, around)
    raise refusal(node, context.position(node))


def _with_ctes(with_clause: exp.With, context: BindContext, around: Scope | None) -> BindContext:
    """Each CTE sees those before it; a recursive one also itself."""
    names = [context.fold(cte.alias) for cte in with_clause.expressions]
    if len(set(names)) < len(names):
        raise QueryError("Two CTEs of one WITH have the same name.", position=context.position(with_clause))
    for cte in with_clause.expressions:
        if with_clause.args.get("recursive") and is_recursive(cte):
            plan = bind_recursive(cte, context, around)
        else:
            bound = _bind(cte.this, context, around)
            plan = rename(bound, cte.alias_column_names, context.position(cte))
            if context.is_ordered(bound):
                context.remember_order(plan)
        context = context.with_cte(cte.alias, plan)
    return context
