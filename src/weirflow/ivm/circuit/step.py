"""One step of one operator, in which rows that are not there cannot fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from weirflow.errors import DataError
from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    import numpy.typing as npt

    from weirflow.ivm.operators.operator import Operator
    from weirflow.ivm.zset.batch import Batch


def stepped(operator: Operator, inputs: Sequence[Batch], *, lenient: bool = False) -> Batch:
    """The operator's output; rows that come and go within the tick are not there, so they cannot fail it.

    Rows for which nothing can be computed are left out if it is ``lenient``, as at the start; their retractions always
    are, since they were never passed on. ``TickTimeout`` if the deadline has passed.
    """
    check()
    try:
        return operator.step(inputs)
    except DataError:
        there = [consolidate(delta) for delta in inputs]
        left = [_without_failing(operator, delta, lenient | (delta.weights < 0)) for delta in there]
        if all(len(after) == len(before) for after, before in zip(left, inputs, strict=True)):
            raise
        operator.discard()
        return operator.step(left)


def _without_failing(operator: Operator, rows: Batch, asked: npt.NDArray[np.bool_]) -> Batch:
    """The rows but those, among the ones asked for, for which the operator's expressions raise."""
    failing: list[int] = []
    ahead = [np.flatnonzero(asked)]
    while ahead:
        some = ahead.pop()
        if not len(some):
            continue
        try:
            operator.evaluate(rows.take(some))
        except DataError:
            if len(some) == 1:
                failing.append(int(some[0]))
            else:
                ahead += np.array_split(some, 2)
    return rows.take(np.setdiff1d(np.arange(len(rows)), failing)) if failing else rows
