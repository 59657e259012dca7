"""Groups: which rows of a delta belong together, found once for all aggregates of the same keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from weirflow.ivm.kernel.expressions.compile import compile_expressions
from weirflow.ivm.kernel.fingerprint import fingerprint
from weirflow.ivm.operators.floats import normalized
from weirflow.ivm.zset.batch import Batch, sum_groups, take_columns
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.layout import Layout
from weirflow.ivm.zset.rows import group_rows
from weirflow.sql.foreign import is_foreign
from weirflow.sql.traverse import parts

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.zset.batch import UInt64s
    from weirflow.sql.expr import Expr


class Groups:
    """The groups that a delta touches: their keys, and which rows of the delta belong to each.

    Attributes:
        row_keys: one row for each row of the delta.
        keys: one row for each group.
        order, starts: the delta's rows in group order, and where each group begins.
        codes: the hashes of the keys; None if there are no keys.
        count: how many groups there are.
    """

    def __init__(self, keys: Sequence[pa.Array], length: int) -> None:
        self.codes: UInt64s | None = None
        self.row_keys = tuple(keys)
        if keys:
            self.order, self.starts, self.codes = group_rows(keys, length, Equality.GROUPING)
            self.keys = take_columns(keys, self.order[self.starts])
        else:
            self.order, self.starts = np.arange(length), np.zeros(1, np.int64)
            self.keys = ()
        self.count = len(self.starts)

    def sums(self, rows: np.ndarray) -> np.ndarray:
        """(rows, width) integers added up within each group."""
        return sum_groups(rows, self.order, self.starts)

    def blocks(self, size: int) -> Iterator[tuple[np.ndarray, int, np.ndarray]]:
        """Up to ``size`` rows in group order at a time: the rows, their first group, and where groups begin in them."""
        for begin in range(0, len(self.order), size):
            block = self.order[begin : begin + size]
            first = int(np.searchsorted(self.starts, begin, side="right")) - 1
            last = int(np.searchsorted(self.starts, begin + len(block)))
            yield block, first, np.maximum(self.starts[first:last] - begin, 0)

    @cached_property
    def numbers(self) -> np.ndarray:
        """For each row of the delta, the number of its group."""
        sizes = np.diff(self.starts, append=len(self.order))
        numbers = np.empty(len(self.order), np.int64)
        numbers[self.order] = np.repeat(np.arange(self.count), sizes)
        return numbers

    @cached_property
    def layout(self) -> Layout | None:
        """Where the keys of the groups lie, for compiled kernels; None if these do not read them."""
        return Layout.of(self.keys)


class GroupedInput:
    """Evaluates keys and arguments of the rows of a delta, and groups them by the keys.

    Where a delta is read by several aggregates, what they have in common is evaluated and grouped once. What another
    engine evaluates is evaluated together, since each call of it costs more than it could save.
    """

    def __init__(self, keys: Sequence[Expr], arguments: Sequence[Expr]) -> None:
        together = any(is_foreign(part) for one in (*keys, *arguments) for part in parts(one))
        self._key_count = len(keys)
        self._together = compile_expressions([*keys, *arguments]) if together else None
        self._keys = compile_expressions(keys)
        self._arguments = compile_expressions(arguments)
        self._names = fingerprint(tuple(keys), ()), fingerprint(tuple(arguments), ())

    def evaluate(self, rows: Batch) -> list[pa.Array]:
        """The keys and arguments of rows, for whoever wants to know whether there are any."""
        if self._together is not None:
            return self._together(rows.columns, len(rows))
        return [*self._keys(rows.columns, len(rows)), *self._arguments(rows.columns, len(rows))]

    def of(self, delta: Batch) -> tuple[Groups, list[pa.Array]]:
        """The groups of the rows, and their keys and arguments."""
        if self._together is not None:
            evaluated = self.evaluate(delta)
            return _grouped(evaluated[: self._key_count], len(delta)), evaluated
        named, others = self._names
        keys, groups = delta.once(("groups", named), self._own_groups)
        return groups, [*keys, *delta.once(("values", others), self._own_arguments)]

    def arguments(self, delta: Batch) -> Layout | None:
        """Where the arguments of rows lie, for compiled kernels; None if these do not read them, or there are none."""
        if self._together is not None:
            return None
        named = self._names[1]
        return delta.once(("layout", named), lambda rows: Layout.of(rows.once(("values", named), self._own_arguments)))

    def _own_groups(self, delta: Batch) -> tuple[list[pa.Array], Groups]:
        keys = self._keys(delta.columns, len(delta))
        return keys, _grouped(keys, len(delta))

    def _own_arguments(self, delta: Batch) -> list[pa.Array]:
        return self._arguments(delta.columns, len(delta))


def _grouped(keys: Sequence[pa.Array], length: int) -> Groups:
    return Groups([normalized(key) for key in keys], length)
