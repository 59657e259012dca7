"""``window(time, size[, slide[, start]])`` and ``session_window(time, gap)`` in a SELECT.

Sessions are merged where ``session_window`` itself is a key of GROUP BY; anywhere else, as in Spark, it is the session
of the row alone: from its time to the gap behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from weirflow.errors import NotIncremental, Reason, SqlPosition, SqlTypeError
from weirflow.sql.bind.scope import Name, Scope
from weirflow.sql.expr import Call, Column, Expr, Literal
from weirflow.sql.functions.collections import named_struct
from weirflow.sql.plan import Field, Filter, Generate, Plan, Project, SessionWindow
from weirflow.sql.traverse import columns
from weirflow.sql.types import BIGINT, BOOLEAN, DAY_TIME_INTERVAL, TIMESTAMP, type_name
from weirflow.sql.typing.coercion import ANY_TIMESTAMP, implicit
from weirflow.sql.typing.durations import duration_micros
from weirflow.sql.zoned import require_below_a_day

if TYPE_CHECKING:
    from weirflow.sql.bind.expressions.binder import ExpressionBinder

_NAMES = ("window", "session_window")
_LEAST, _MOST = 2, 4


@dataclass(frozen=True)
class QueryTimeWindow:
    """A query's time window: the input with one more column that holds it."""

    tree: exp.Expr
    column: Column
    plan: Plan
    scope: Scope
    session: Callable[[tuple[Expr, ...], Sequence[Expr]], Plan] | None = None
    """For sessions, the input once the group keys and SELECT list are known; ``plan`` lacks the column until then."""


def find_time_window(binder: ExpressionBinder, query: exp.Select, plan: Plan) -> QueryTimeWindow | None:
    """The one time window that the SELECT list or GROUP BY calls, or None. Rows without a time are dropped."""
    clauses = [*query.expressions, query.args.get("group"), query.args.get("having"), query.args.get("order")]
    calls = [call for clause in clauses if clause is not None for call in _calls(clause)]
    if not calls:
        return None
    tree = calls[0]
    position = binder.position(tree)
    if not _LEAST <= len(tree.expressions) <= (_MOST if tree.name.casefold() == "window" else _LEAST):
        raise SqlTypeError(f"{tree.name}() takes a time and a length of time.", position=position)
    time = implicit(binder.without_placeholders(f"{tree.name}()").bind(tree.expressions[0]), ANY_TIMESTAMP, position)
    if time is None:
        raise SqlTypeError(f"{tree.name}() takes a timestamp.", position=position)
    lengths = [_length(binder, part) for part in tree.expressions[1:]]
    timed = Filter(plan, Call("is_not_null", (time,), BOOLEAN))
    kind = pa.struct([pa.field("start", time.type), pa.field("end", time.type)])
    name = tree.name.casefold()
    column = Column(len(plan.fields), name, kind)
    scope = replace(binder.scope, names=(*binder.scope.names, Name(name, column, in_star=False)))
    fields = (*plan.fields, Field(name, kind))
    if name == "session_window":
        if time.type == TIMESTAMP:
            gap = timedelta(microseconds=lengths[0])
            require_below_a_day(gap, binder.context.settings.time_zone, "A session's gap", position)
        return QueryTimeWindow(tree, column, timed, scope, _session(query, timed, column, time, lengths[0], position))
    return QueryTimeWindow(tree, column, _bucketed(timed, time, kind, fields, lengths, position), scope)


def _calls(clause: exp.Expr) -> list[exp.Anonymous]:
    found = clause.find_all(exp.Anonymous)
    return [call for call in found if call.name.casefold() in _NAMES and not _in_subquery(call, clause)]


def _in_subquery(call: exp.Expr, clause: exp.Expr) -> bool:
    inner = call.find_ancestor(exp.Query)
    outer = clause.find_ancestor(exp.Query)
    return inner is not outer


def _session(  # noqa: PLR0917 - private, called once
    query: exp.Select, timed: Plan, column: Column, time: Expr, gap: int, position: SqlPosition | None
) -> Callable[[tuple[Expr, ...], Sequence[Expr]], Plan]:
    fields = (*timed.fields, Field(column.name, column.type))

    def build(keys: tuple[Expr, ...], items: Sequence[Expr]) -> Plan:
        if column in keys:
            others = tuple(key for key in keys if key != column)
            if any(column.index in columns(key) for key in others):
                raise _refused("Keys beside session_window() cannot be computed from it.", position)
            return SessionWindow(timed, others, time, gap, fields)
        if column in items and (query.parent is not None or query.args.get("distinct")):
            raise _refused(
                "session_window() of single rows cannot be selected as a whole, because an outer query may merge them.",
                position,
            )
        kept = tuple(Column(index, field.name, field.type) for index, field in enumerate(timed.fields))
        end = Call("timestamp_add_interval", (time, Literal(timedelta(microseconds=gap), DAY_TIME_INTERVAL)), time.type)
        alone = timed if gap > 0 else Filter(timed, Literal(value=False, type=BOOLEAN))
        return Project(alone, (*kept, named_struct(("start", "end"), (time, end), position)), fields)

    return build


def _refused(message: str, position: SqlPosition | None) -> NotIncremental:
    return NotIncremental(
        message,
        reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
        hint="group by session_window() itself, or select its start and end",
        position=position,
    )


def _bucketed(  # noqa: PLR0917 - private, called once
    timed: Plan,
    time: Expr,
    kind: pa.DataType,
    fields: tuple[Field, ...],
    lengths: list[int],
    position: SqlPosition | None,
) -> Plan:
    """Tumbling windows are one more column; sliding ones make a row for each window that holds the time."""
    size, slide, start = lengths[0], (lengths[1] if len(lengths) > 1 else lengths[0]), (*lengths, 0, 0, 0)[2]
    if size <= 0 or slide <= 0 or slide > size or abs(start) >= slide:
        raise SqlTypeError(
            "window() needs a positive size, a slide no longer than it, and a start shorter than the slide.",
            position=position,
        )
    arguments = (time, *(Literal(length, BIGINT) for length in (size, slide, start)))
    if slide == size:
        kept = tuple(Column(index, field.name, field.type) for index, field in enumerate(timed.fields))
        return Project(timed, (*kept, Call("tumble", arguments, kind, position)), fields)
    generated = pa.struct([pa.field("window", kind)])
    return Generate(timed, Call("hop", arguments, generated, position), outer=False, fields=fields)


def _length(binder: ExpressionBinder, node: exp.Expr) -> int:
    value = binder.bind(node)
    position = binder.position(node)
    if not isinstance(value, Literal) or value.type != pa.string():
        raise NotIncremental(
            f"The length of a time window must be a literal such as '5 minutes', not {type_name(value.type)}.",
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
            position=position,
        )
    return duration_micros(value.value, position)
