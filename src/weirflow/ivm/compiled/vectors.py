"""Sums over pairs of vectors, in the order of their elements, the twin of ``kernel.vectors.distances``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import boolean, float32, float64, types

from weirflow.ivm.compiled.signatures import INTS, compiled

_FLOATS, _DOUBLES = (types.Array(kind, 1, "C", readonly=True) for kind in (float32, float64))
_SIGNATURES = [
    float64[::1](one, INTS, other, INTS, INTS, boolean) for one in (_FLOATS, _DOUBLES) for other in (_FLOATS, _DOUBLES)
]


@compiled(_SIGNATURES)
def pair_sums(
    left: Any,
    left_starts: Any,
    right: Any,
    right_starts: Any,
    lengths: Any,
    squared: bool,  # noqa: FBT001 - numba
) -> Any:
    """For each pair, the sum of the products of its elements, or of their squared differences, one after the other."""
    result = np.empty(len(lengths), np.float64)
    for pair in range(len(lengths)):
        ours, theirs = left_starts[pair], right_starts[pair]
        total = 0.0
        if squared:
            for step in range(lengths[pair]):
                term = np.float64(left[ours + step]) - np.float64(right[theirs + step])
                total += term * term
        else:
            for step in range(lengths[pair]):
                total += np.float64(left[ours + step]) * np.float64(right[theirs + step])
        result[pair] = total
    return result
