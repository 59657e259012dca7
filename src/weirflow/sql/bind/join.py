"""Joins: kinds, ON, USING and NATURAL, and which part of a condition is equal keys."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from weirflow.errors import ColumnNotFound, NotIncremental, Reason, SqlPosition, SqlSyntaxError
from weirflow.sql.bind.scope import Name, Scope, beside
from weirflow.sql.functions.rules import FunctionSignature, alike
from weirflow.sql.passes.conditions import conjunction, split_condition
from weirflow.sql.passes.lateral import lateral_join
from weirflow.sql.plan import Join, JoinKind, Plan
from weirflow.sql.traverse import shift
from weirflow.sql.types import BOOLEAN
from weirflow.sql.typing.coercion import comparable

if TYPE_CHECKING:
    from sqlglot import exp

    from weirflow.sql.bind.expressions.binder import ExpressionBinder
    from weirflow.sql.expr import Expr

_KINDS = {
    ("", ""): JoinKind.INNER,
    ("", "INNER"): JoinKind.INNER,
    ("", "CROSS"): JoinKind.INNER,
    ("LEFT", ""): JoinKind.LEFT,
    ("LEFT", "OUTER"): JoinKind.LEFT,
    ("RIGHT", ""): JoinKind.RIGHT,
    ("RIGHT", "OUTER"): JoinKind.RIGHT,
    ("FULL", ""): JoinKind.FULL,
    ("FULL", "OUTER"): JoinKind.FULL,
    ("LEFT", "SEMI"): JoinKind.SEMI,
    ("", "SEMI"): JoinKind.SEMI,
    ("LEFT", "ANTI"): JoinKind.ANTI,
    ("", "ANTI"): JoinKind.ANTI,
}
_LEFT_ONLY = (JoinKind.SEMI, JoinKind.ANTI)


def bind_join(
    binder: ExpressionBinder, join: exp.Join, left: Plan, right: Plan, right_scope: Scope
) -> tuple[Plan, Scope]:
    """The join of what is on its left with ``right``, and the names that are seen after it."""
    kind = _kind(binder, join)
    both = beside(binder.scope, right_scope, len(left.fields))
    shared = _shared_names(binder, join, right_scope)
    if shared:
        return _join_using(binder, join, kind, left, right, right_scope, shared)
    condition = join.args.get("on")
    if condition is None:
        result: Plan = Join(left, right, kind, (), ())
    else:
        predicate = _boolean(replace(binder, scope=both).bind(condition), binder.position(condition))
        result = equi_join(left, right, kind, predicate)
    return result, (binder.scope if kind in _LEFT_ONLY else both)


def bind_lateral_join(
    binder: ExpressionBinder, join: exp.Join, left: Plan, right: Plan, right_scope: Scope
) -> tuple[Plan, Scope]:
    """The join of each row on the left with ``right``, which reads it as the row of the query around."""
    kind = _kind(binder, join)
    both = beside(binder.scope, right_scope, len(left.fields))
    if kind not in (JoinKind.INNER, JoinKind.LEFT) or join.args.get("using") or join.args.get("method"):
        raise SqlSyntaxError(
            "LATERAL follows a comma, JOIN, CROSS JOIN or LEFT JOIN, and has ON or nothing.",
            position=binder.position(join),
        )
    condition = join.args.get("on")
    predicate = None
    if condition is not None:
        predicate = _boolean(replace(binder, scope=both).bind(condition), binder.position(condition))
    return lateral_join(left, right, kind, predicate), both


def equi_join(left: Plan, right: Plan, kind: JoinKind, predicate: Expr) -> Join:
    """The join on a predicate over both sides' columns, its equalities between the sides taken as keys."""
    keys, rest = split_condition(predicate, len(left.fields))
    left_keys = tuple(key for key, _ in keys)
    right_keys = tuple(shift(key, -len(left.fields)) for _, key in keys)
    return Join(left, right, kind, left_keys, right_keys, conjunction(rest))


def _kind(binder: ExpressionBinder, join: exp.Join) -> JoinKind:
    kind = _KINDS.get((join.side.upper(), join.kind.upper()))
    if kind is None:
        raise NotIncremental(
            f"{join.side} {join.kind} JOIN has no incremental form.".strip(),
            reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE,
            position=binder.position(join),
        )
    return kind


def _shared_names(binder: ExpressionBinder, join: exp.Join, right: Scope) -> list[str]:
    """The columns of USING, or those a NATURAL join finds on both sides."""
    using = join.args.get("using")
    if using:
        return [part.name for part in using]
    if str(join.args.get("method") or "").upper() != "NATURAL":
        return []
    if join.args.get("on") or join.kind.upper() == "CROSS":
        raise SqlSyntaxError("A NATURAL join has no ON and is no CROSS JOIN.", position=binder.position(join))
    fold = binder.scope.fold
    there = {fold(name.name) for name in right.names if name.in_star}
    return [name.name for name in binder.scope.names if name.in_star and fold(name.name) in there]


def _join_using(  # noqa: PLR0917 - both sides of a join and their names
    binder: ExpressionBinder,
    join: exp.Join,
    kind: JoinKind,
    left: Plan,
    right: Plan,
    right_scope: Scope,
    shared: list[str],
) -> tuple[Plan, Scope]:
    width, position = len(left.fields), binder.position(join)
    pairs = [
        (_one_side(binder.scope, name, "left", position), shift(_one_side(right_scope, name, "right", position), width))
        for name in shared
    ]
    typed = [comparable(one, other, "USING", position) for one, other in pairs]
    plan = Join(left, right, kind, tuple(one for one, _ in typed), tuple(shift(other, -width) for _, other in typed))
    left_keys, left_rest = _split(binder.scope, shared)
    if kind in _LEFT_ONLY:
        return plan, replace(binder.scope, names=left_keys + left_rest)
    right_keys, right_rest = _split(beside(Scope(fold=binder.scope.fold), right_scope, width), shared)
    shown, hidden = left_keys, right_keys
    if kind is JoinKind.RIGHT:
        shown, hidden = right_keys, left_keys
    elif kind is JoinKind.FULL:
        merged = (alike("coalesce")(pair, position) for pair in pairs)
        shown = tuple(Name(key.name, expr) for key, expr in zip(left_keys, merged, strict=True))
        hidden = left_keys + right_keys
    qualified = tuple(replace(name, in_star=False, bare=False) for name in hidden)
    return plan, replace(binder.scope, names=shown + qualified + left_rest + right_rest)


def _split(scope: Scope, shared: list[str]) -> tuple[tuple[Name, ...], tuple[Name, ...]]:
    """The names of the shared columns, in their order, and the others."""
    keys = [
        next(name for name in scope.names if name.bare and scope.fold(name.name) == scope.fold(one)) for one in shared
    ]
    return tuple(keys), tuple(name for name in scope.names if not any(name is key for key in keys))


def _one_side(scope: Scope, name: str, side: str, position: SqlPosition | None) -> Expr:
    found = scope.find_here((name,), position)
    if found is None:
        missing = scope.not_found((name,), position)
        raise ColumnNotFound(
            f"USING ({name}): the {side} side has no such column.", hint=missing.hint, position=position
        )
    return found


def _boolean(expr: Expr, position: SqlPosition | None) -> Expr:
    return FunctionSignature("ON", (BOOLEAN,), BOOLEAN).arguments((expr,), position)[0]
