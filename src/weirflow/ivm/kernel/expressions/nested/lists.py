"""The inside of Arrow's lists and maps: where each begins, what it holds, how to build another like it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.expressions.rows import valid_mask, validity

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Entries(NamedTuple):
    """The keys and items of maps laid end to end, and where each map begins; the last offset is the end."""

    offsets: NDArray[np.int32]
    keys: pa.Array
    items: pa.Array


def lengths(array: pa.Array) -> NDArray[np.int32]:
    """How many elements each list or map has; none for NULLs, whatever they hold."""
    raw = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset)
    sizes: NDArray[np.int32] = np.diff(raw)
    if array.null_count:
        sizes = np.where(valid_mask(array, len(array)), sizes, 0).astype(np.int32)
    return sizes


def list_offsets(array: pa.Array) -> NDArray[np.int32]:
    """Where each list begins in ``array.flatten()``, and where the last one ends."""
    offsets = np.zeros(len(array) + 1, np.int32)
    np.cumsum(lengths(array), out=offsets[1:])
    return offsets


def entries_of(array: pa.Array) -> Entries:
    """The entries of maps, without those of NULL maps."""
    raw = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset)
    offsets = list_offsets(array)
    keys, items = array.keys, array.items
    if offsets[-1] != raw[-1] - raw[0]:
        wanted = np.repeat(raw[:-1] - offsets[:-1], lengths(array)) + np.arange(offsets[-1])
        chosen = pa.array(wanted)
        return Entries(offsets, keys.take(chosen), items.take(chosen))
    first, count = int(raw[0]), int(offsets[-1])
    return Entries(offsets, keys.slice(first, count), items.slice(first, count))


def map_from(
    offsets: NDArray[np.int32], keys: pa.Array, items: pa.Array, kind: pa.DataType, nulls: pa.Array | None = None
) -> pa.Array:
    """Maps of ``kind`` from their entries; NULL where ``nulls`` is."""
    entries = pa.StructArray.from_arrays([keys, items], fields=list(kind.field(0).type))
    bitmap = validity(nulls) if nulls is not None else None
    return pa.Array.from_buffers(kind, len(offsets) - 1, [bitmap, pa.py_buffer(offsets)], children=[entries])


def list_from(
    offsets: NDArray[np.int32], values: pa.Array, kind: pa.DataType, nulls: pa.Array | None = None
) -> pa.Array:
    """Lists of ``kind`` from their elements; NULL where ``nulls`` is."""
    bitmap = validity(nulls) if nulls is not None else None
    return pa.Array.from_buffers(kind, len(offsets) - 1, [bitmap, pa.py_buffer(offsets)], children=[values])
