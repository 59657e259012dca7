"""Window functions over ordered partitions; each returns one value for each sorted row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.ordering import SortColumn, sort_words
from weirflow.ivm.operators.aggregate.doubles import DoubleFunction
from weirflow.ivm.operators.aggregate.functions import is_linear, linear_function
from weirflow.sql.expr import AggregateCall, Frame, FrameUnit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weirflow.ivm.operators.window.ordered import OrderedPartitions
    from weirflow.sql.expr import WindowCall

    Arguments = Sequence[pa.Array]
    WindowFunction = Callable[[OrderedPartitions, Arguments, WindowCall], pa.Array]

_WHOLE = Frame(FrameUnit.RANGE, None, None)


def evaluate(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    """The call's column, in sorted order; ``arguments`` are in sorted order too."""
    return FUNCTIONS.get(call.function, _linear)(rows, arguments, call).cast(call.type)


def is_supported(call: WindowCall) -> bool:
    """Whether the call has a proven implementation."""
    if call.ignore_nulls or _has_value_offsets(call):
        return False
    return call.function in FUNCTIONS or is_linear(_as_aggregate(call))


def _has_value_offsets(call: WindowCall) -> bool:
    """RANGE frames that count in values instead of peers."""
    frame = call.frame
    return frame is not None and frame.unit is FrameUnit.RANGE and bool(frame.start or frame.end)


def _row_number(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    del arguments, call
    return pa.array(np.arange(rows.count) - rows.begin + 1)


def _rank(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    del arguments, call
    return pa.array(rows.peer_begin - rows.begin + 1)


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


def _shifted(direction: int) -> WindowFunction:
    """LAG and LEAD: the value some rows away in the partition, else the default."""

    def function(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
        del call
        value, default = arguments[0], arguments[2] if len(arguments) > 2 else None  # noqa: PLR2004 - value, offset, default
        offset = arguments[1].to_numpy(zero_copy_only=False).astype(np.int64) if len(arguments) > 1 else 1
        at = np.arange(rows.count) + direction * offset
        inside = (at >= rows.begin) & (at < rows.end)
        shifted = value.take(pa.array(np.where(inside, at, 0), mask=~inside))
        if default is None:
            return shifted
        both = pa.concat_arrays([shifted, default.cast(value.type)])
        return both.take(pa.array(np.arange(rows.count) + np.where(inside, 0, rows.count)))

    return function


def _first_value(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    low, high = rows.frame(call.frame or _WHOLE)
    return arguments[0].take(pa.array(low, mask=low == high))


def _last_value(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    low, high = rows.frame(call.frame or _WHOLE)
    return arguments[0].take(pa.array(high - 1, mask=low == high))


def _nth_value(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    low, high = rows.frame(call.frame or _WHOLE)
    at = low + arguments[1].to_numpy(zero_copy_only=False).astype(np.int64) - 1
    return arguments[0].take(pa.array(np.minimum(at, rows.count - 1), mask=at >= high))


def _extreme(*, largest: bool) -> WindowFunction:
    """MIN and MAX over frames: of ranks, with a table of the best in every power of two, then back to values."""

    def function(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
        value = arguments[0]
        low, high = rows.frame(call.frame or _WHOLE)
        by_rank = np.lexsort(sort_words((value,), [SortColumn(0, descending=largest, nulls_first=False)])[::-1])
        rank = np.empty(rows.count, np.int64)
        rank[by_rank] = np.arange(rows.count)
        best = _range_minimum(rank, low, high)
        # NULLs rank last: only a frame that holds nothing else has one as its best.
        return value.take(pa.array(by_rank[np.minimum(best, rows.count - 1)], mask=low == high))

    return function


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
    function = linear_function(_as_aggregate(call))
    counted = np.ones(rows.count, np.bool_)
    argument = arguments[0] if arguments else None
    own = function.encode(argument, counted)
    running = np.zeros((rows.count + 1, function.width), np.int64)
    np.cumsum(own, axis=0, out=running[1:])
    low, high = rows.frame(call.frame or _WHOLE)
    totals = running[high] - running[low]
    if not isinstance(function, DoubleFunction) or argument is None:
        return function.decode(totals)
    escapes = function.escapes(argument, counted)
    if escapes is None:
        return function.decode(totals)
    far: dict[int, dict[int, int]] = {}
    for row, slot, amount in zip(*(column.tolist() for column in escapes), strict=True):
        for frame in np.flatnonzero((low <= row) & (row < high)).tolist():
            slots = far.setdefault(frame, {})
            slots[slot] = slots.get(slot, 0) + amount
    return function.decode(totals, {frame: list(slots.items()) for frame, slots in far.items()})


def _as_aggregate(call: WindowCall) -> AggregateCall:
    return AggregateCall(call.function, call.arguments, call.type, position=call.position)


FUNCTIONS: dict[str, WindowFunction] = {
    "row_number": _row_number,
    "rank": _rank,
    "dense_rank": _dense_rank,
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
    "ntile": _ntile,
    "lag": _shifted(-1),
    "lead": _shifted(1),
    "first_value": _first_value,
    "last_value": _last_value,
    "nth_value": _nth_value,
    "min": _extreme(largest=False),
    "max": _extreme(largest=True),
}
