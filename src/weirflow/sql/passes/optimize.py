"""From SQL text, or a plan that was stored, to the plan that is compiled: the passes, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.sql.bind.query import bind_query
from weirflow.sql.limits import check_plan, out_of_room
from weirflow.sql.passes.decorrelate import decorrelate
from weirflow.sql.passes.limit_ranks import limit_ranks
from weirflow.sql.passes.place_clock import place_clock
from weirflow.sql.passes.prune_columns import prune_columns
from weirflow.sql.passes.push_filters import push_filters
from weirflow.sql.settings import USUAL, SqlSettings

if TYPE_CHECKING:
    from weirflow.sql.bind.context import Catalog
    from weirflow.sql.plan import Plan

PASSES = (decorrelate, push_filters, prune_columns, place_clock, limit_ranks)
"""Each takes a plan and returns one with the same output; ``decorrelate`` and ``place_clock`` must run."""


def logical_plan(sql: str, catalog: Catalog, *, settings: SqlSettings = USUAL) -> Plan:
    """The optimized plan of the one query in ``sql``, free of subqueries; errors as ``bind_query``'s."""
    return optimized(bind_query(sql, catalog, settings=settings))


def optimized(plan: Plan) -> Plan:
    """A plan as the binder gives it, after all passes; ``SqlTooComplex`` if it becomes too large."""
    try:
        for run in PASSES:
            plan = run(plan)
            check_plan(plan)
    except (RecursionError, MemoryError):
        raise out_of_room() from None
    return plan
