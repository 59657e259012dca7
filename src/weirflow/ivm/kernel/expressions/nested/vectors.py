"""Functions of vectors: arrays of FLOAT or DOUBLE."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.expressions.rows import on_arrays
from weirflow.ivm.kernel.vectors.distances import distances, norms
from weirflow.ivm.kernel.vectors.vectors import Vectors
from weirflow.types import VectorMetric

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel


def vector_distance(signature: CallSignature) -> Kernel | None:
    """How far two vectors are from each other, by a constant metric."""
    metric = signature.constants[2]
    if not all(map(_is_vector, signature.types[:2])) or metric is None or not metric.is_valid:
        return None
    chosen = VectorMetric(metric.as_py())

    def run(one: pa.Array, other: pa.Array) -> pa.Array:
        at = np.arange(len(one))
        found = distances(chosen, Vectors.of(one), at, Vectors.of(other), at)
        return pa.array(found.values, mask=~found.valid)

    pairs = on_arrays(run)
    return lambda one, other, _: pairs(one, other)


def vector_norm(signature: CallSignature) -> Kernel | None:
    """The length of a vector; NULL if one of its elements is."""
    if not _is_vector(signature.types[0]):
        return None

    def run(arrays: pa.Array) -> pa.Array:
        vectors = Vectors.of(arrays)
        return pa.array(norms(vectors), mask=~vectors.usable)

    return on_arrays(run)


def _is_vector(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) and pa.types.is_floating(kind.value_type))


FUNCTIONS: dict[str, Builder] = {"vector_distance": vector_distance, "vector_norm": vector_norm}
