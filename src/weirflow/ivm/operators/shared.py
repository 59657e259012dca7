"""Expressions that several operators evaluate over the same rows: evaluated once for all of them in a tick.

Views read different columns of a source, so that each has a narrow delta of its own; what they evaluate is named by the
columns of the rows that they were all taken from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from weirflow.ivm.kernel.expressions.compile import compile_expressions
from weirflow.ivm.kernel.fingerprint import fingerprint
from weirflow.sql.expr import Column, Expr
from weirflow.sql.traverse import rewrite

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.zset.batch import Batch


class Named(NamedTuple):
    """Expressions over rows.

    Attributes:
        name: equal for those that are the same.
        evaluate: their values.
    """

    name: str
    evaluate: Callable[[Sequence[pa.Array], int], list[pa.Array]]

    def of(self, rows: Batch) -> list[pa.Array]:
        """Their values for rows."""
        return self.evaluate(rows.read, len(rows))


class SharedExpressions:
    """Expressions of an operator; no other engine evaluates a part of them."""

    def __init__(self, expressions: Sequence[Expr]) -> None:
        self._expressions = tuple(expressions)
        self._own = Named(_name(self._expressions), compile_expressions(expressions))
        self._moved: dict[tuple[int, ...], Named] = {}

    def over(self, delta: Batch) -> tuple[Batch, Named]:
        """The rows that a delta is of, which are as many, and the expressions over them."""
        if delta.origin is None:
            return delta, self._own
        rows, columns = delta.origin
        if columns not in self._moved:
            moved = [_moved(one, columns) for one in self._expressions]
            self._moved[columns] = Named(_name(moved), compile_expressions(moved))
        return rows, self._moved[columns]


def narrowed(rows: Batch, columns: tuple[int, ...]) -> Batch:
    """Some columns of rows, for whom what others find out about the rows is of use."""
    some = rows.select(columns)
    if some.origin is None:
        root, own = (rows, None) if rows.origin is None else rows.origin
        some.origin = root, columns if own is None else tuple([own[at] for at in columns])
    return some


def _moved(expression: Expr, columns: Sequence[int]) -> Expr:
    return rewrite(
        expression, lambda part: Column(columns[part.index], "", part.type) if isinstance(part, Column) else None
    )


def _name(expressions: Sequence[Expr]) -> str:
    """Of the same expressions whatever their columns are called."""
    plain = [
        rewrite(one, lambda part: Column(part.index, "", part.type) if isinstance(part, Column) else None)
        for one in expressions
    ]
    return fingerprint(tuple(plain), ())
