"""Window functions over ordered partitions; each returns one value for each sorted row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.kernel.sort_keys import SortColumn, sort_words
from weirflow.ivm.operators.aggregate.functions import is_linear, linear_function
from weirflow.ivm.operators.aggregate.totals.doubles import DoubleFunction
from weirflow.ivm.operators.aggregate.totals.linear import present_rows
from weirflow.ivm.operators.window.folds import collect_list, folded, listed, mode, percentile
from weirflow.ivm.operators.window.values import first_value, last_value, nth_value, shifted
from weirflow.sql.expr import AggregateCall, WindowCall

if TYPE_CHECKING:
    from weirflow.ivm.operators.window.ordered import OrderedPartitions
    from weirflow.ivm.operators.window.values import Arguments, WindowFunction


def evaluate(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    """The call's column, in sorted order; ``arguments`` are in sorted order too."""
    return FUNCTIONS.get(call.function, _linear)(rows, arguments, call).cast(call.type)


def is_supported(call: WindowCall) -> bool:
    """Whether the call has a proven implementation."""
    if call.ignore_nulls and call.function not in _MAY_IGNORE_NULLS:
        return False
    if call.function in ("percentile", "percentile_disc"):
        return not pa.types.is_list(call.type)
    return call.function in FUNCTIONS or is_linear(as_aggregate(call))


def _row_number(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    del arguments, call
    return pa.array(np.arange(rows.count) - rows.begin + 1 + _rows_before(rows))


def _rank(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    del arguments, call
    return pa.array(rows.peer_begin - rows.begin + 1 + _rows_before(rows))


def _rows_before(rows: OrderedPartitions) -> np.ndarray | int:
    """For each row, how many rows of its partition are not there, before those that are."""
    return 0 if rows.before is None else rows.before.count[rows.partition]


def _dense_rank(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    del arguments, call
    numbered = np.cumsum(rows.new_peer)
    return pa.array(numbered - numbered[rows.begin] + 1)


def _percent_rank(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    del arguments, call
    others = rows.end - rows.begin - 1
    return pa.array((rows.peer_begin - rows.begin) / np.where(others == 0, 1, others))


def _cume_dist(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    del arguments, call
    return pa.array((rows.peer_end - rows.begin) / (rows.end - rows.begin))


def _ntile(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    """Buckets as equal as can be, the larger ones first."""
    del call
    buckets = arguments[0].to_numpy(zero_copy_only=False).astype(np.int64)
    size, place = rows.end - rows.begin, np.arange(rows.count) - rows.begin
    small, larger = size // buckets, size % buckets
    in_larger = place < larger * (small + 1)
    bucket = np.where(in_larger, place // (small + 1), larger + (place - larger * (small + 1)) // np.maximum(small, 1))
    return pa.array(bucket + 1)


def _extreme(*, largest: bool) -> WindowFunction:
    """MIN, MAX and MIN_BY, MAX_BY over frames: of ranks, with the best of every power of two, then back to values.

    ``min_by(x, y)`` ranks by y, and by x among equals.
    """

    def function(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
        ranked = tuple(reversed(arguments))
        low, high = rows.frame(call)
        by_rank = np.lexsort(sort_words(ranked, [SortColumn(0, descending=largest, nulls_first=False)])[::-1])
        rank = np.empty(rows.count, np.int64)
        rank[by_rank] = np.arange(rows.count)
        runs_on = np.array_equal(low, rows.begin)
        best = _running_minimum(rank, rows.partition, high) if runs_on else _range_minimum(rank, low, high)
        best = np.minimum(best, rows.count - 1)
        # NULLs rank last: only a frame that holds nothing else has one as its best.
        return arguments[0].take(
            pa.array(by_rank[best], mask=(low == high) | (best >= rows.count - ranked[0].null_count))
        )

    return function


def _running_minimum(values: np.ndarray, partition: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The minimum of the values of each row's partition before ``high``; meaningless where there are none.

    Values are less than their number, and partitions ascend: those of a later one are made less than all before.
    """
    count = len(values)
    lowest = np.minimum.accumulate(values - partition * count)
    least: np.ndarray = np.maximum(lowest[np.maximum(high - 1, 0)] + partition * count, 0)
    return least


def _range_minimum(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The minimum of ``values[low:high]`` for each pair; meaningless where a range is empty."""
    levels = [values]
    while 2 ** len(levels) <= len(values):
        last, half = levels[-1], 2 ** (len(levels) - 1)
        levels.append(np.minimum(last[: len(last) - half], last[half:]))
    size = np.maximum(high - low, 1)
    level = np.frexp(size.astype(np.float64))[1] - 1
    result = np.zeros(len(low), np.int64)
    for number, table in enumerate(levels):
        mine = np.flatnonzero(level == number)
        first = np.minimum(low[mine], len(table) - 1)
        second = np.clip(high[mine] - 2**number, 0, len(table) - 1)
        result[mine] = np.minimum(table[first], table[second])
    return result


def _linear(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    """COUNT, SUM, AVG and other additive functions: the difference of two running totals."""
    function = linear_function(as_aggregate(call))
    counted = np.ones(rows.count, np.bool_)
    for each in arguments:
        counted = present_rows(each, counted)
    weights = counted.astype(np.int64)
    running = np.zeros((rows.count + 1, function.width), np.int64)
    held = function.encode(arguments, weights, running[1:])
    np.cumsum(running, axis=0, out=running)
    low, high = rows.frame(call)
    totals = running[high] - running[low]
    if rows.before is not None and call in rows.before.totals:
        totals += rows.before.totals[call][rows.partition]
    if held:
        return function.decode(totals, function.read(totals, {}))
    assert isinstance(function, DoubleFunction)
    escapes = function.escapes(arguments, weights)
    far: dict[int, dict[int, int]] = {}
    for row, slot, amount in zip(*(column.tolist() for column in escapes), strict=True):
        check()
        for frame in np.flatnonzero((low <= row) & (row < high)).tolist():
            slots = far.setdefault(frame, {})
            slots[slot] = slots.get(slot, 0) + amount
    escaped = {frame: list(slots.items()) for frame, slots in far.items()}
    return function.decode(totals, function.read(totals, escaped))


def as_aggregate(call: WindowCall) -> AggregateCall:
    """The aggregate that a call computes over its frame."""
    return AggregateCall(call.function, call.arguments, call.type, position=call.position)


FUNCTIONS: dict[str, WindowFunction] = {
    "row_number": _row_number,
    "rank": _rank,
    "dense_rank": _dense_rank,
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
    "ntile": _ntile,
    "lag": shifted(-1),
    "lead": shifted(1),
    "first_value": first_value,
    "any_value": first_value,
    "last_value": last_value,
    "nth_value": nth_value,
    "min": _extreme(largest=False),
    "max": _extreme(largest=True),
    "min_by": _extreme(largest=False),
    "max_by": _extreme(largest=True),
    "collect_list": collect_list,
    "collect_set": folded,
    "percentile": percentile,
    "percentile_disc": percentile,
    "mode": mode,
    "listagg": listed,
}
_MAY_IGNORE_NULLS = frozenset({"lag", "lead", "first_value", "last_value", "nth_value"})
