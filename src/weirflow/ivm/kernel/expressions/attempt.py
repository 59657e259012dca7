"""TRY: NULL where what is inside raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.errors import DataError
from weirflow.ivm.kernel.expressions.failures import NOT_READ
from weirflow.ivm.kernel.expressions.retype import retyped
from weirflow.ivm.kernel.expressions.rows import broadcast

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.rows import Node, Rows, Value
    from weirflow.ivm.kernel.expressions.signature import CallSignature, FormBuilder


def attempt(signature: CallSignature, nodes: list[Node]) -> Node:
    """The value of the only argument, or NULL. Rows that raise are found by halving, so a few of them cost little."""
    (node,), kind = nodes, signature.result

    def run(rows: Rows) -> Value:
        try:
            return node(rows)
        except DataError as error:
            _require_none(error)
            return _halved(node, kind, rows)

    return run


def _halved(node: Node, kind: pa.DataType, rows: Rows) -> pa.Array:
    """The values of rows of which one raises; not by recursion, for there may be many."""
    pieces: list[pa.Array] = []
    ahead = [(0, rows.length)]
    while ahead:
        start, stop = ahead.pop()
        wanted = np.zeros(rows.length, np.bool_)
        wanted[start:stop] = True
        part = rows.where(wanted)
        try:
            pieces.append(retyped(broadcast(node(part), part.length), kind))
        except DataError as error:
            _require_none(error)
            if stop - start == 1:
                pieces.append(pa.nulls(1, kind))
                continue
            middle = (start + stop) // 2
            ahead += [(middle, stop), (start, middle)]
    return pa.concat_arrays(pieces)


def _require_none(error: DataError) -> None:
    """Raise what has a value in Spark."""
    if error.condition in NOT_READ:
        raise error


FORMS: dict[str, FormBuilder] = {"try": attempt}
