"""Arrays with elements added, left out or put into another order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.bounds import require_result
from weirflow.ivm.kernel.expressions.failures import failure
from weirflow.ivm.kernel.expressions.nested import order as nested_order
from weirflow.ivm.kernel.expressions.nested.lists import lengths, list_offsets
from weirflow.ivm.kernel.expressions.nested.selection import codes_of, gathered, known, owners_of, within
from weirflow.ivm.kernel.expressions.retype import retyped
from weirflow.ivm.kernel.expressions.rows import first_row, numbers, on_arrays, valid_mask
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.rows import expand_ranges

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

_MOST = 2_147_483_632
"""Elements of an array, Spark's."""


def array_insert(signature: CallSignature) -> Kernel | None:
    """``array_insert(array, place, element)``: from 1, or from the end if negative; NULLs fill gaps."""
    kind, position = signature.types[0], signature.position
    if not pa.types.is_list(kind) or signature.types[1] != pa.int32():
        return None

    def run(arrays: pa.Array, places: pa.Array, elements: pa.Array) -> pa.Array:
        wanted, sizes, valid = numbers(places).astype(np.int64), lengths(arrays).astype(np.int64), known(arrays, places)
        if first_row(wanted == 0, arrays, places) is not None:
            raise failure("INVALID_INDEX_OF_ZERO", "The index 0 is invalid: the first element has index 1.", position)
        longer = np.where(valid, np.maximum(sizes, np.abs(wanted) - 1) + 1, 0)
        if (longer > _MOST).any():
            condition = "COLLECTION_SIZE_LIMIT_EXCEEDED.FUNCTION"
            raise failure(condition, f"An array of {longer.max()} elements is too large.", position)
        # Of what is added in front of the array's own elements for a place that lies before them all.
        ahead = np.where(valid & (wanted < 0), longer - 1 - sizes, 0)
        inserted = np.where(wanted > 0, wanted - 1, longer + wanted)
        own, starts = owners_of(arrays), np.cumsum(longer) - longer
        kept = valid[own]
        at = within(arrays) + ahead[own]
        at += at >= inserted[own]
        pool = pa.concat_arrays([retyped(one, kind.value_type) for one in (arrays.flatten(), elements)])
        result = np.full(int(longer.sum()), -1, np.int64)
        result[(starts[own] + at)[kept]] = np.flatnonzero(kept)
        result[(starts + inserted)[valid]] = len(own) + np.flatnonzero(valid)
        return gathered(pool, result, longer, signature, arrays, places)

    return on_arrays(run)


def array_added(signature: CallSignature) -> Kernel | None:
    """``array_append`` and ``array_prepend``, of an element that may be NULL."""
    kind, behind = signature.types[0], signature.function == "array_append"
    if not pa.types.is_list(kind):
        return None

    def run(arrays: pa.Array, elements: pa.Array) -> pa.Array:
        valid = valid_mask(arrays, len(arrays))
        values = arrays.flatten()
        pool = pa.concat_arrays([retyped(one, kind.value_type) for one in (values, elements)])
        added = len(values) + np.flatnonzero(valid)
        owners = np.concatenate([owners_of(arrays), np.flatnonzero(valid)])
        places = np.concatenate([np.arange(len(values)), added])
        if not behind:
            owners, places = np.roll(owners, valid.sum()), np.roll(places, valid.sum())
        order = np.argsort(owners, kind="stable")
        return gathered(pool, places[order], lengths(arrays) + valid, signature, arrays)

    return on_arrays(run)


def array_compact(signature: CallSignature) -> Kernel | None:
    """Without NULLs."""
    if not pa.types.is_list(signature.types[0]):
        return None

    def run(arrays: pa.Array) -> pa.Array:
        values = arrays.flatten()
        kept = np.flatnonzero(valid_mask(values, len(values)))
        sizes = np.bincount(owners_of(arrays)[kept], minlength=len(arrays))
        return gathered(values, kept, sizes, signature, arrays)

    return on_arrays(run)


def array_repeat(signature: CallSignature) -> Kernel | None:
    """An element so many times; not at all if that is negative."""
    if signature.types[1] != pa.int32():
        return None

    def run(elements: pa.Array, counts: pa.Array) -> pa.Array:
        times = np.where(valid_mask(counts, len(counts)), np.maximum(numbers(counts).astype(np.int64), 0), 0)
        if (times > _MOST).any():
            condition = "COLLECTION_SIZE_LIMIT_EXCEEDED.PARAMETER"
            raise failure(condition, f"An array of {times.max()} elements is too large.", signature.position)
        require_result(8.0 * float(times.sum(dtype=np.float64)), signature.function, signature.position)
        return gathered(elements, np.repeat(np.arange(len(elements)), times), times, signature, counts)

    return on_arrays(run)


def array_slice(signature: CallSignature) -> Kernel | None:
    """``slice(array, start, length)``: from 1, or from the end if negative; nothing if that is before the array."""
    if not pa.types.is_list(signature.types[0]) or signature.types[1:] != (pa.int32(), pa.int32()):
        return None
    position = signature.position

    def run(arrays: pa.Array, starts: pa.Array, counts: pa.Array) -> pa.Array:
        wanted, count = numbers(starts).astype(np.int64), numbers(counts).astype(np.int64)
        row = first_row((wanted == 0) | (count < 0), arrays, starts, counts)
        if row is not None:
            part = "START" if wanted[row] == 0 else "LENGTH"
            what = "begins at 1, not 0" if part == "START" else f"cannot have a length of {count[row]}"
            raise failure(f"INVALID_PARAMETER_VALUE.{part}", f"A slice {what}.", position)
        sizes, valid = lengths(arrays).astype(np.int64), known(arrays, starts, counts)
        first = np.where(wanted > 0, wanted - 1, sizes + wanted)
        taken = np.where(valid & (first >= 0) & (first < sizes), np.minimum(count, sizes - first), 0)
        places = expand_ranges(list_offsets(arrays)[:-1].astype(np.int64) + np.where(taken > 0, first, 0), taken)
        return gathered(arrays.flatten(), places, taken, signature, arrays, starts, counts)

    return on_arrays(run)


def array_sort(signature: CallSignature) -> Kernel | None:
    """``array_sort(array)``: ascending, NULLs last; equal elements stay in their order."""
    kind = signature.types[0]
    key = nested_order.sort_key(kind.value_type) if pa.types.is_list(kind) and len(signature.types) == 1 else None
    if key is None:
        return None

    def run(arrays: pa.Array) -> pa.Array:
        values = arrays.flatten()
        codes, count = codes_of(values, Equality.GROUPING)
        first = np.full(count, len(values), np.int64)
        np.minimum.at(first, codes, np.arange(len(values)))
        samples = values.take(pa.array(first)).to_pylist()
        ranks = np.full(count, count, np.int64)
        there = sorted((at for at in range(count) if samples[at] is not None), key=lambda at: key(samples[at]))
        ranks[np.array(there, np.int64)] = np.arange(len(there))
        order = np.lexsort((ranks[codes], owners_of(arrays)))
        return gathered(values, order, lengths(arrays), signature, arrays)

    return on_arrays(run)


def arrays_zip(signature: CallSignature) -> Kernel | None:
    """``arrays_zip(a, b, ...)``: structs of the elements at the same places; the shorter ones have NULLs there."""
    kind = signature.result
    if not signature.types:
        return lambda: pa.scalar([], kind)
    if not all(pa.types.is_list(one) for one in signature.types):
        return None

    def run(*arrays: pa.Array) -> pa.Array:
        valid = known(*arrays)
        sizes = [lengths(one).astype(np.int64) for one in arrays]
        longest = np.where(valid, np.max(sizes, axis=0), 0)
        owners = np.repeat(np.arange(len(valid)), longest)
        at = np.arange(len(owners)) - np.repeat(np.cumsum(longest) - longest, longest)
        fields = []
        for one, size, field in zip(arrays, sizes, kind.value_type, strict=True):
            beyond = at >= size[owners]
            places = pa.array(np.where(beyond, 0, list_offsets(one)[owners] + at), mask=beyond)
            fields.append(retyped(one.flatten().take(places), field.type))
        structs = pa.Array.from_buffers(kind.value_type, len(owners), [None], children=fields)
        return gathered(structs, np.arange(len(owners)), longest, signature, *arrays)

    return on_arrays(run)


FUNCTIONS: dict[str, Builder] = {
    "array_append": array_added,
    "array_prepend": array_added,
    "array_insert": array_insert,
    "array_compact": array_compact,
    "array_repeat": array_repeat,
    "slice": array_slice,
    "array_sort": array_sort,
    "arrays_zip": arrays_zip,
}
