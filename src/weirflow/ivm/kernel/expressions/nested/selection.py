"""Arrays made of the elements of others: by their places among all elements, laid end to end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.bounds import require_result, require_takeable
from weirflow.ivm.kernel.expressions.nested.lists import lengths, list_offsets
from weirflow.ivm.kernel.expressions.retype import retyped
from weirflow.ivm.kernel.expressions.rows import nulls_of, valid_mask
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.rows import group_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.ivm.kernel.expressions.signature import CallSignature

    Places = NDArray[np.int64]
    Sizes = NDArray[np.int64] | NDArray[np.int32]

_ELEMENT = 8


def owners_of(arrays: pa.Array) -> Places:
    """For each element of ``arrays.flatten()`` the row it is of."""
    return np.repeat(np.arange(len(arrays)), lengths(arrays))


def within(arrays: pa.Array) -> Places:
    """For each element of ``arrays.flatten()`` its place in its own array, from 0."""
    offsets = list_offsets(arrays)
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets)).astype(np.int64)


def codes_of(values: pa.Array, equality: Equality) -> tuple[Places, int]:
    """A number for each value, equal for equal values, and how many numbers there are. NULL equals NULL."""
    order, starts, _ = group_rows([values], len(values), equality=equality)
    codes = np.empty(len(values), np.int64)
    codes[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(values)))
    return codes, len(starts)


def equality_of(kind: pa.DataType) -> Equality:
    """How Spark's sets of elements tell them apart: -0.0 from 0.0, unless they are nested."""
    return Equality.IDENTITY if pa.types.is_floating(kind) else Equality.GROUPING


def gathered(pool: pa.Array, places: Places, sizes: Sizes, signature: CallSignature, *nulls: pa.Array) -> pa.Array:
    """Arrays of so many elements each, taken from the pool at these places (-1: NULL); NULL where one of ``nulls`` is.

    Sizes are 0 where a result is NULL.
    """
    kind = signature.result
    require_result(float(len(places)) * _ELEMENT, signature.function, signature.position)
    missing = places < 0
    require_takeable([pool], places[~missing], signature.function)
    indexes = pa.array(places, mask=missing) if missing.any() else pa.array(places)
    values = retyped(pool.take(indexes), kind.value_type)
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return pa.Array.from_buffers(kind, len(sizes), [nulls_of(*nulls), pa.py_buffer(offsets)], children=[values])


def known(*arrays: pa.Array) -> NDArray[np.bool_]:
    """Where none of the arrays is NULL."""
    found = np.ones(len(arrays[0]), np.bool_)
    for one in arrays:
        found &= valid_mask(one, len(one))
    return found
