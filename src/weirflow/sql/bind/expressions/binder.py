"""The binder of expressions: what a clause sees, and where its aggregates and window functions go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from weirflow.sql.bind.expressions.call import CALLS, bind_call
from weirflow.sql.bind.expressions.syntax import bind_syntax
from weirflow.sql.bind.strict import refusal
from weirflow.sql.expr import Call, Expr, SortKey
from weirflow.sql.functions.collections import struct_field
from weirflow.sql.limits import check_node, check_type
from weirflow.stack import grows

if TYPE_CHECKING:
    from weirflow.errors import QueryError, SqlPosition
    from weirflow.sql.bind.context import BindContext
    from weirflow.sql.bind.expressions.placeholders import SelectCalls
    from weirflow.sql.bind.scope import Scope

Lookup = Callable[[tuple[str, ...], "SqlPosition | None"], Expr | None]
"""What a dotted name stands for in one place, or None."""


@dataclass(frozen=True)
class ExpressionBinder:
    """Binds expressions of one clause of one query."""

    context: BindContext
    scope: Scope
    lookups: tuple[Lookup, ...] = ()
    """Where to look for a name, in order; the scope itself when empty."""
    placeholders: SelectCalls | None = None
    """Where aggregates and window functions go; None where they are not allowed."""
    clause: str = "this clause"
    windows: dict[str, exp.Window] = field(default_factory=dict)
    """The query's named windows."""
    time_window: tuple[exp.Expr, Expr] | None = None
    """The query's ``window()`` or ``session_window()`` call, and the column it became."""
    variables: tuple[tuple[str, Call], ...] = ()
    """Those of the lambdas around, by their names, the innermost ones last."""

    @grows
    def bind(self, node: exp.Expr) -> Expr:
        """The typed expression for a syntax tree."""
        bound = bind_call(self, node) if isinstance(node, CALLS) else bind_syntax(self, node)
        if not bound.is_leaf:
            check_node(bound)
        check_type(bound.type)
        return bound

    def position(self, node: exp.Expr) -> SqlPosition | None:
        """Where ``node`` is in the text."""
        return self.context.position(node)

    def sort_key(self, node: exp.Expr) -> SortKey:
        """One item of an ORDER BY."""
        if not isinstance(node, exp.Ordered):
            return SortKey(self.bind(node))
        return SortKey(self.bind(node.this), bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def without_placeholders(self, clause: str) -> ExpressionBinder:
        """The binder for a place that may hold no aggregates, seeing only the scope."""
        return replace(self, placeholders=None, clause=clause, lookups=(), variables=())

    def name(self, path: tuple[str, ...], position: SqlPosition | None) -> Expr:
        """What a dotted name stands for; ``ColumnNotFound`` if nothing."""
        for name, variable in reversed(self.variables):
            if self.scope.fold(name) == self.scope.fold(path[0]):
                value: Expr = variable
                for part in path[1:]:
                    value = struct_field(value, part, position, self.scope.fold)
                return value
        for lookup in self.lookups or (self.scope.find,):
            found = lookup(path, position)
            if found is not None:
                return found
        raise self.scope.not_found(path, position)

    def sees(self, name: str) -> bool:
        """Whether a name stands for anything."""
        return any(self.scope.fold(one) == self.scope.fold(name) for one, _ in self.variables) or any(
            lookup((name,), None) is not None for lookup in self.lookups or (self.scope.find,)
        )

    def refused(self, node: exp.Expr) -> QueryError:
        """The error for syntax that has no meaning in an incremental view."""
        return refusal(node, self.position(node))
