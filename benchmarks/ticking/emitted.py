"""What the deltas of a view add up to."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ticking.data import WEIGHT


def added_up(deltas: pa.Table) -> pa.Table:
    """The rows that are left. Raises ``AssertionError`` when one of them is there other than once."""
    names = [name for name in deltas.column_names if name != WEIGHT]
    summed = deltas.group_by(names).aggregate([(WEIGHT, "sum")])
    weights = summed[f"{WEIGHT}_sum"].to_numpy()
    if not np.isin(weights, (0, 1)).all():
        raise AssertionError("a row of the view has a weight other than one")
    return summed.filter(pa.array(weights == 1)).select(names)
