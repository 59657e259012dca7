"""Conditions as masks: SQL keeps a row only where its condition is true, not where it is NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa


def true_rows(condition: pa.Array) -> npt.NDArray[np.bool_]:
    """Where a boolean column is true."""
    filled = pc.fill_null(condition, False) if condition.null_count else condition  # noqa: FBT003 - pc's own signature
    mask: npt.NDArray[np.bool_] = filled.to_numpy(zero_copy_only=False)
    return mask
