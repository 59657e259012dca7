"""Conditions as masks: SQL keeps a row only where its condition is true, not where it is NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.ivm.zset.buffers import bits, validity

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa


def true_rows(condition: pa.Array) -> npt.NDArray[np.bool_]:
    """Where a boolean column is true."""
    true, known = bits(condition), validity(condition)
    return true if known is None else true & known
