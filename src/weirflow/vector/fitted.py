"""Vectors as stores hold them: all of one length, finite, of 4-byte floats; what does not fit is found and named."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.errors import ConfigError, did_you_mean


@dataclass(frozen=True)
class FittedVectors:
    """A column of vectors.

    Attributes:
        column: a list of so many 4-byte floats for each row; NULL where there is none, and where it does not fit.
        unfit: the places of those that do not fit.
        why: what is wrong with the first of them; empty if there is none.
    """

    column: pa.Array
    unfit: np.ndarray[tuple[int], np.dtype[np.intp]]
    why: str


def is_vector(kind: pa.DataType) -> bool:
    """Whether a column of this type holds vectors: ``ARRAY<FLOAT>`` or ``ARRAY<DOUBLE>``."""
    return (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and kind.value_type in (pa.float32(), pa.float64())


def vector_column(schema: pa.Schema, wanted: str | None) -> str:
    """The column of the vectors: the wanted one, or the only one that there is; otherwise ``ConfigError``."""
    candidates: list[str] = [field.name for field in schema if is_vector(field.type)]
    if wanted is None:
        if len(candidates) == 1:
            return candidates[0]
        found = f"several columns of vectors: {', '.join(candidates)}" if candidates else "no column of vectors"
        hint = (
            "say which with vector=" if candidates else "give the view a column of type ARRAY<FLOAT> or ARRAY<DOUBLE>"
        )
        raise ConfigError(f"The view has {found}.", hint=hint)
    if wanted not in schema.names:
        raise ConfigError(f"The view has no column {wanted!r}.", hint=did_you_mean(wanted, schema.names))
    if wanted not in candidates:
        raise ConfigError(
            f"The column {wanted!r} is no column of vectors; its type is {schema.field(wanted).type}.",
            hint="a vector is an ARRAY<FLOAT> or ARRAY<DOUBLE>; cast the column in the view",
        )
    return wanted


def fitted(column: pa.ChunkedArray | pa.Array, dimension: int) -> FittedVectors:
    """Vectors of a view as a store holds them."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    count = len(column)
    present = np.asarray(column.is_valid())
    lengths = np.asarray(pc.fill_null(pc.list_value_length(column), 0)).astype(np.int64)
    long_enough = present & (lengths == dimension)
    kept = column.filter(pa.array(long_enough)).flatten()
    complete = np.asarray(kept.is_valid()).reshape(-1, dimension).all(axis=1)
    with np.errstate(over="ignore"):  # what is too large is found below
        values = np.asarray(pc.fill_null(kept, 0.0)).astype(np.float32).reshape(-1, dimension)
    finite = np.isfinite(values).all(axis=1)
    fits = long_enough.copy()
    fits[long_enough] = complete & finite
    whole = np.zeros((count, dimension), np.float32)
    whole[fits] = values[complete & finite]
    made = pa.FixedSizeListArray.from_arrays(pa.array(whole.ravel()), dimension, mask=pa.array(~fits))
    unfit = np.flatnonzero(present & ~fits)
    return FittedVectors(made, unfit, _why(column[int(unfit[0])], dimension) if len(unfit) else "")


def _why(vector: pa.ListScalar, dimension: int) -> str:
    """What is wrong with a vector that does not fit."""
    values = vector.as_py()
    if len(values) != dimension:
        return f"is of length {len(values)} instead of {dimension}"
    if None in values:
        return f"has NULL at place {values.index(None) + 1}"
    at, value = next((at, value) for at, value in enumerate(values, 1) if not _is_float(value))
    return f"has {value} at place {at}, which is not a finite number of 4 bytes"


def _is_float(value: float) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.isfinite(np.float32(value)))
