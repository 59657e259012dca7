"""What becomes of the rows of stretches: their window functions before and after a change, and where these differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.kernel.sort_keys import SortColumn
from weirflow.ivm.operators.window.functions import evaluate
from weirflow.ivm.operators.window.ordered import OrderedPartitions, RowsBefore, sorted_rows
from weirflow.ivm.zset.batch import Batch, take_columns
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.rows import consolidate, equal_rows_at, expand_ranges

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Bools, Int64s
    from weirflow.sql.expr import SortKey, WindowCall

    Compiled = Callable[[Sequence[pa.Array], int], list[pa.Array]]


class Evaluated:
    """Rows by partition and in order, with what the calls read of each.

    Args:
        calls: the window functions.
        inputs: for each, its arguments, then its sort keys.
        partition: the partition of each row, ascending.
        rows: the input's columns.
        kept: the order of the rows, and their sort keys.
        before, is_whole: see ``OrderedPartitions``.
    """

    def __init__(
        self,
        calls: Sequence[WindowCall],
        inputs: Sequence[Compiled],
        partition: Int64s,
        rows: Sequence[pa.Array],
        *,
        kept: tuple[tuple[SortKey, ...], Sequence[pa.Array]],
        before: RowsBefore | None,
        is_whole: bool,
    ) -> None:
        self._calls = calls
        self._partition = partition
        self.rows = rows
        self._order, self._keys = kept
        self._before = before
        self._is_whole = is_whole
        self._inputs = [one(rows, len(partition)) for one in inputs]

    def __len__(self) -> int:
        return len(self._partition)

    def windowed(self, times: Int64s) -> list[pa.Array]:
        """The calls' columns for each row so many ``times``, in order."""
        copies = None if (times == 1).all() else np.repeat(np.arange(len(times)), times)
        partition = self._partition if copies is None else self._partition[copies]
        main = OrderedPartitions(
            partition,
            _copied(self._keys, copies),
            descending=_descends(self._order),
            before=self._before,
            is_whole=self._is_whole,
        )
        columns = []
        for call, inputs in zip(self._calls, self._inputs, strict=True):
            check()
            if not len(partition):
                columns.append(pa.array([], call.type))
                continue
            given = _copied(inputs, copies)
            arguments, keys = given[: len(call.arguments)], given[len(call.arguments) :]
            if call.order_by == self._order:
                columns.append(evaluate(main, arguments, call))
            else:
                columns.append(self._reordered(call, partition, arguments, keys, _copied(self.rows, copies)))
        return columns

    def _reordered(
        self,
        call: WindowCall,
        partition: Int64s,
        arguments: Sequence[pa.Array],
        keys: Sequence[pa.Array],
        rows: Sequence[pa.Array],
    ) -> pa.Array:
        """The column of a call whose order is another one."""
        order = [SortColumn(at, key.descending, key.nulls_first) for at, key in enumerate(call.order_by)]
        placed = sorted_rows(partition, keys, order, rows)
        partitions = OrderedPartitions(
            partition[placed], take_columns(keys, placed), descending=_descends(call.order_by)
        )
        back = np.empty(len(placed), np.int64)
        back[placed] = np.arange(len(placed))
        return evaluate(partitions, take_columns(arguments, placed), call).take(pa.array(back))


def _copied(columns: Sequence[pa.Array], copies: Int64s | None) -> Sequence[pa.Array]:
    return columns if copies is None else take_columns(columns, copies)


def _descends(order: Sequence[SortKey]) -> bool:
    return bool(order) and order[0].descending


class Limit:
    """Rows of which nobody asks for those that rank behind the first.

    Args:
        column: which of the calls ranks the rows.
        most: the greatest rank that is asked for.
    """

    def __init__(self, column: int, most: int) -> None:
        self.column = column
        self.most = most

    def lets_pass(self, windowed: Sequence[pa.Array]) -> Bools:
        """Which rows rank among the first."""
        passed: Bools = windowed[self.column].to_numpy() <= self.most
        return passed


def difference(rows: Evaluated, old: Int64s, new: Int64s, limit: Limit | None) -> Batch:
    """What rows that were there ``old`` times and are ``new`` times take away and add, with the calls' columns."""
    were, are = rows.windowed(old), rows.windowed(new)
    # Copy by copy, as far as there are as many; a row's copies have values of their own.
    both = np.minimum(old, new)
    was_at, is_at = expand_ranges(np.cumsum(old) - old, both), expand_ranges(np.cumsum(new) - new, both)
    same = equal_rows_at(were, was_at, are, is_at, Equality.IDENTITY)
    gone, come = np.ones(int(old.sum()), np.bool_), np.ones(int(new.sum()), np.bool_)
    if limit is not None:
        gone, come = limit.lets_pass(were), limit.lets_pass(are)
        same &= gone[was_at] & come[is_at]
    gone[was_at[same]] = False
    come[is_at[same]] = False
    sides = []
    for times, values, wanted, sign in ((old, were, gone, -1), (new, are, come, 1)):
        at = np.flatnonzero(wanted)
        of_row = at if (times == 1).all() else np.repeat(np.arange(len(times)), times)[at]
        columns = (*take_columns(rows.rows, of_row), *take_columns(values, at))
        sides.append(Batch(columns, np.full(len(at), sign, np.int64)))
    emitted = Batch.concat(sides)
    # Equal rows may have swapped their values.
    return emitted if max(old.max(initial=0), new.max(initial=0)) <= 1 else consolidate(emitted)
