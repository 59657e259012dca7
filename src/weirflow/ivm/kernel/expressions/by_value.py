"""Functions that want a constant, of an argument that is none: once for each of its different values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.expressions.rows import on_arrays, true_mask, valid_mask

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel


def by_value(build: Builder, signature: CallSignature, index: int) -> Kernel | None:
    """A kernel of any values of the argument at ``index``; ``build`` must have one for each constant there."""
    if build(_with(signature, index, pa.scalar(None, signature.types[index]))) is None:
        return None
    known: dict[object, Kernel] = {}

    def run(*arrays: pa.Array) -> pa.Array:
        pieces, rows = [], []
        for value in arrays[index].unique():
            key = value.as_py()
            if key not in known:
                kernel = build(_with(signature, index, value))
                assert kernel is not None, "there is one for each constant"
                known[key] = kernel
            column = arrays[index]
            same = (
                true_mask(pc.equal(column, value), len(column)) if value.is_valid else ~valid_mask(column, len(column))
            )
            at = np.flatnonzero(same)
            pieces.append(known[key](*(one.take(pa.array(at)) for one in arrays)))
            rows.append(at)
        order = np.empty(len(arrays[0]), np.int64)
        order[np.concatenate(rows)] = np.arange(len(order))
        return pa.concat_arrays(pieces).take(pa.array(order))

    return on_arrays(run)


def _with(signature: CallSignature, index: int, value: pa.Scalar) -> CallSignature:
    constants = tuple(value if at == index else one for at, one in enumerate(signature.constants))
    return replace(signature, constants=constants)
