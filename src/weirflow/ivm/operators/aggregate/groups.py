"""Groups: which rows of a delta belong together, found once for all aggregates of the same keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.expressions.compile import compile_expressions
from weirflow.ivm.operators.floats import normalized
from weirflow.ivm.operators.shared import SharedExpressions
from weirflow.ivm.zset.batch import Batch, sum_groups, take_columns
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.layout import Layout, places_of
from weirflow.ivm.zset.rows import group_rows
from weirflow.sql.foreign import is_foreign
from weirflow.sql.traverse import parts

if TYPE_CHECKING:
    from weirflow.ivm.operators.shared import Named
    from weirflow.ivm.zset.batch import Int64s, UInt64s
    from weirflow.sql.expr import Expr


class TakenKeys(NamedTuple):
    """Keys of some groups.

    Attributes:
        columns, types: the keys.
        table: where they lie, as a ``Layout`` has it; None if kernels do not read them, or there are no rows.
        held: bytes that they keep alive.
    """

    columns: tuple[pa.Array, ...]
    types: Sequence[pa.DataType]
    table: Int64s | None
    held: int


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
        self._taken: dict[bytes, TakenKeys] = {}

    def taken(self, groups: np.ndarray) -> TakenKeys:
        """The keys of some groups, in this order; the same for all who ask for the same."""
        wanted = groups.tobytes()
        if wanted not in self._taken:
            columns = take_columns(self.keys, groups)
            places = places_of(columns)
            held = sum([column.get_total_buffer_size() for column in columns])
            self._taken[wanted] = TakenKeys(
                columns, [key.type for key in columns], None if places is None else np.array(places, np.int64), held
            )
        return self._taken[wanted]

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

    @cached_property
    def place(self) -> tuple[int, int, int, int, int, int] | None:
        """As a job of ``compiled.groups`` has it; None if kernels do not read the keys."""
        if self.layout is None or self.codes is None:
            return None
        order, starts, codes = (int(pa.py_buffer(one).address) for one in (self.order, self.starts, self.codes))
        return len(self.order), order, starts, self.count, codes, self.layout.address


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
        self._shared = None if together else (SharedExpressions(keys), SharedExpressions(arguments))

    @property
    def is_together(self) -> bool:
        """Whether keys and arguments are evaluated together, anew whenever they are asked for."""
        return self._together is not None

    def evaluate(self, rows: Batch) -> list[pa.Array]:
        """The keys and arguments of rows, for whoever wants to know whether there are any."""
        if self._together is not None:
            return self._together(rows.columns, len(rows))
        return [*self._keys(rows.columns, len(rows)), *self._arguments(rows.columns, len(rows))]

    def of(self, delta: Batch) -> tuple[Groups, list[pa.Array]]:
        """The groups of the rows, and their keys and arguments."""
        if self._shared is None:
            evaluated = self.evaluate(delta)
            return _grouped(evaluated[: self._key_count], len(delta)), evaluated
        (rows, keys), (_, arguments) = (one.over(delta) for one in self._shared)
        values, groups = _groups(rows, keys)
        return groups, [*values, *_values(rows, arguments)]

    def laid_out(self, delta: Batch) -> tuple[Groups, Layout | None]:
        """The groups of the rows, and where the arguments lie, for compiled kernels; not of an input ``is_together``.

        The latter is None if there are none, or kernels do not read them.
        """
        assert self._shared is not None
        (rows, keys), (_, arguments) = self._shared[0].over(delta), self._shared[1].over(delta)
        layout = rows.once(("layout", arguments.name), lambda rows: Layout.of(_values(rows, arguments)))
        return _groups(rows, keys)[1], layout


def _groups(rows: Batch, keys: Named) -> tuple[list[pa.Array], Groups]:
    """The keys of rows, and their groups."""

    def find(rows: Batch) -> tuple[list[pa.Array], Groups]:
        values = keys.of(rows)
        return values, _grouped(values, len(rows))

    return rows.once(("groups", keys.name), find)


def _values(rows: Batch, arguments: Named) -> list[pa.Array]:
    return rows.once(("values", arguments.name), arguments.of)


def _grouped(keys: Sequence[pa.Array], length: int) -> Groups:
    return Groups([normalized(key) for key in keys], length)
