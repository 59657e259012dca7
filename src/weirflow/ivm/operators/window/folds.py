"""Aggregates over frames that look at every row of each frame: lists of values, and folds of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.bounds import require_result
from weirflow.ivm.kernel.deadline import checked
from weirflow.ivm.operators.aggregate.recompute import FOLDS
from weirflow.ivm.zset.rows import expand_ranges
from weirflow.sql.expr import AggregateCall, WindowCall

if TYPE_CHECKING:
    from weirflow.ivm.operators.window.ordered import OrderedPartitions
    from weirflow.ivm.operators.window.values import Arguments


def collect_list(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    """The values of the frame that are not NULL, in the window's order."""
    (value,) = arguments
    low, high = rows.frame(call)
    present = value.is_valid().to_numpy(zero_copy_only=False)
    before = np.concatenate([[0], np.cumsum(present)])
    sizes = before[high] - before[low]
    require_result(8 * int(sizes.sum()), call.function, call.position)
    values = value.drop_null().take(pa.array(expand_ranges(before[low], sizes)))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=call.type)


def folded(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    """A fold of the rows of each frame; rows that share a frame share its result."""
    fold = FOLDS[call.function](AggregateCall(call.function, call.arguments, call.type, position=call.position))
    values = list(zip(*(argument.to_pylist() for argument in arguments), strict=True))
    frames = np.column_stack(rows.frame(call))
    different, which = np.unique(frames, axis=0, return_inverse=True)
    results = [fold(values[low:high]) for low, high in checked(different.tolist())]
    return pa.array(results, call.type).take(pa.array(which.reshape(-1)))
