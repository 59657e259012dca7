"""How far time has come: bounds below which the columns of rows to come, and of rows to go, cannot fall any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Bools

Frontier = Mapping[int, pa.Scalar]
"""By column, the least value that a row of a later delta can have there, unless it is NULL. Others have no bound."""


def may_change(column: pa.Array, bound: pa.Scalar) -> Bools:
    """Which values later deltas may still have: NULLs, and those not below the bound. Structs go by their first field.

    >>> may_change(pa.array([1, 2, None]), pa.scalar(2)).tolist()
    [False, True, True]
    """
    if pa.types.is_struct(column.type):
        present = column.is_valid().to_numpy(zero_copy_only=False)
        inner: Bools = may_change(column.field(0), bound[0]) | ~present
        return inner
    open_: Bools = pc.fill_null(pc.greater_equal(column, bound), fill_value=True).to_numpy(zero_copy_only=False)
    return open_


def least(frontiers: Sequence[Frontier]) -> Frontier:
    """The bounds that hold for all of these alike; structs are compared by their first field."""
    shared = set(frontiers[0]).intersection(*frontiers[1:])
    return {column: min((one[column] for one in frontiers), key=_order) for column in shared}


def _order(bound: pa.Scalar) -> int:
    while pa.types.is_struct(bound.type):
        bound = bound[0]
    if pa.types.is_date32(bound.type):
        return int(bound.value)
    return int(bound.value if pa.types.is_timestamp(bound.type) else bound.as_py())
