"""Aggregates over frames that look at every row of each frame: lists of values, and folds of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.bounds import require_result
from weirflow.ivm.kernel.deadline import checked
from weirflow.ivm.kernel.sort_keys import SortColumn, sort_words
from weirflow.ivm.operators.aggregate.listed import joined_texts
from weirflow.ivm.operators.aggregate.percentiles import Percentile
from weirflow.ivm.operators.aggregate.recompute import FOLDS
from weirflow.ivm.zset.rows import expand_ranges
from weirflow.sql.expr import AggregateCall, Literal, WindowCall

if TYPE_CHECKING:
    from weirflow.ivm.operators.window.ordered import OrderedPartitions
    from weirflow.ivm.operators.window.values import Arguments


def collect_list(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    """The values of the frame that are not NULL, in the window's order."""
    values, sizes = _present(rows, arguments[0], call)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=call.type)


def listed(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    """The texts of the frame that are not NULL, in the window's order, with a delimiter between them."""
    delimiter = call.arguments[1]
    assert isinstance(delimiter, Literal), "the binder gives a constant"
    texts, sizes = _present(rows, arguments[0], call)
    return joined_texts(texts, sizes, delimiter.value, call.position)


def _present(rows: OrderedPartitions, value: pa.Array, call: WindowCall) -> tuple[pa.Array, np.ndarray]:
    """The values of all frames that are not NULL, one frame after the other, and how many each has."""
    low, high = rows.frame(call)
    present = value.is_valid().to_numpy(zero_copy_only=False)
    before = np.concatenate([[0], np.cumsum(present)])
    sizes = before[high] - before[low]
    require_result(8 * int(sizes.sum()), call.function, call.position)
    return value.drop_null().take(pa.array(expand_ranges(before[low], sizes))), sizes


def mode(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    """The value that most rows of the frame have; of several the smallest, or the largest."""
    value, largest = arguments[0], call.arguments[1]
    assert isinstance(largest, Literal), "the binder gives a constant"
    order = SortColumn(0, descending=bool(largest.value), nulls_first=False)
    words = np.stack(sort_words([value], [order]))
    by_rank = np.lexsort(words[::-1])
    begins = np.concatenate([[True], (words[:, by_rank[1:]] != words[:, by_rank[:-1]]).any(axis=0)])
    ranks = np.empty(len(value), np.int64)
    ranks[by_rank] = np.cumsum(begins) - 1
    holders = by_rank[begins]  # a row for each rank
    nothing = len(holders) - 1 if value.null_count else len(holders)
    different, which = _frames(rows, call)
    found = np.full(len(different), -1)
    for at, (low, high) in enumerate(checked(different.tolist())):
        counts = np.bincount(ranks[low:high])[:nothing]
        if counts.any():
            found[at] = holders[counts.argmax()]
    return value.take(pa.array(found, mask=found < 0)).take(pa.array(which))


def _frames(rows: OrderedPartitions, call: WindowCall) -> tuple[np.ndarray, np.ndarray]:
    """The different frames, as (low, high), and which of them is each row's."""
    different, which = np.unique(np.column_stack(rows.frame(call)), axis=0, return_inverse=True)
    return different, which.reshape(-1)


def percentile(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    """A percentile of the rows of each frame; rows that share a frame share its result."""
    function = Percentile(call)
    share = arguments[1][0].as_py() if rows.count else None
    different, which = _frames(rows, call)
    results = []
    for low, high in checked(different.tolist()):
        inside = [argument.slice(low, high - low) for argument in arguments]
        _, values, counts = function.rows(inside, np.ones(high - low, np.int64))
        results.append(function.of(values, counts, share))
    return pa.array(results, call.type).take(pa.array(which))


def folded(rows: OrderedPartitions, arguments: Arguments, call: WindowCall) -> pa.Array:
    """A fold of the rows of each frame; rows that share a frame share its result."""
    fold = FOLDS[call.function](AggregateCall(call.function, call.arguments, call.type, position=call.position))
    values = list(zip(*(argument.to_pylist() for argument in arguments), strict=True))
    different, which = _frames(rows, call)
    results = [fold(values[low:high]) for low, high in checked(different.tolist())]
    return pa.array(results, call.type).take(pa.array(which))
