"""64-bit hashes of rows: the same in every process, aware of NULLs, vectorised for every type.

Rows that are equal have equal hashes; the reverse is never relied upon. Two equalities exist, see ``Equality``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from weirflow.ivm import compiled
from weirflow.ivm.zset.buffers import (
    bits,
    byte_strings,
    is_bytes,
    is_fixed_width,
    raw_values,
    struct_fields,
    validity,
    value_offsets,
)
from weirflow.ivm.zset.layout import Layout

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Int64s, UInt64s


class Equality(Enum):
    """When two values are the same. NULL equals NULL and NaN equals NaN in both; maps ignore the order of entries."""

    GROUPING = "grouping"
    """As GROUP BY and joins compare: -0.0 equals 0.0."""
    IDENTITY = "identity"
    """As rows are told apart when weights add up: -0.0 differs from 0.0."""


class RowHash(Protocol):
    """A hash of rows. Tests replace it by a constant to show that nothing depends on its quality."""

    def __call__(self, columns: Sequence[pa.Array], length: int, equality: Equality) -> UInt64s:
        """One hash for each of ``length`` rows; equal rows must get equal hashes."""


def has_floats(type_: pa.DataType) -> bool:
    """Whether the two equalities can differ for values of this type."""
    if pt.is_nested(type_):
        return any(has_floats(type_.field(index).type) for index in range(type_.num_fields))
    return bool(pt.is_floating(type_))


_NULL = np.uint64(0x9E6C63D0676A9A99)
_EMPTY_ROW = np.uint64(0x2545F4914F6CDD1D)
_COLUMN = np.uint64(0xD1342543DE82EF95)
_STEP = 0x9E3779B97F4A7C15
_BLOCK = 1 << 15
"""Rows hashed at a time: the temporaries of one block stay in the processor's cache."""
_SHORT_WORDS = 8
"""Strings up to this many 8-byte words are hashed word by word across rows, the rest of longer ones row by row."""
_SEGMENT_WORDS = 1 << 17
_PLAIN = {pa.int64().id, pa.timestamp("us").id}
"""Types whose values are hashed as they are."""


def hash_rows(columns: Sequence[pa.Array], length: int, equality: Equality) -> UInt64s:
    """One hash for each row of ``columns``, all of which have ``length`` values."""
    if compiled.kernels is not None and (layout := Layout.of(columns)) is not None:
        return hash_layout(layout, equality)
    if length <= _BLOCK:
        return _hash_block(columns, length, equality)
    hashes = np.empty(length, np.uint64)
    for start in range(0, length, _BLOCK):
        stop = min(start + _BLOCK, length)
        part = [column.slice(start, stop - start) for column in columns]
        hashes[start:stop] = _hash_block(part, stop - start, equality)
    return hashes


def hash_layout(layout: Layout, equality: Equality) -> UInt64s:
    """``hash_rows`` of columns whose layout is known, by compiled kernels; not to be changed."""
    if equality is Equality.IDENTITY and layout.identities is not None:
        return layout.identities
    hashes: UInt64s = compiled.kernels.hash_table(
        layout.address, layout.count, layout.length, equality is Equality.GROUPING
    )
    if equality is Equality.IDENTITY:
        layout.identities = hashes
    return hashes


def _hash_block(columns: Sequence[pa.Array], length: int, equality: Equality) -> UInt64s:
    if not columns:
        return np.full(length, _EMPTY_ROW, np.uint64)
    hashes = _hash_array(columns[0], equality)
    for column in columns[1:]:
        hashes *= _COLUMN
        hashes += _hash_array(column, equality)
    return hashes


def _hash_array(array: pa.Array, equality: Equality) -> UInt64s:
    """Hashes of one array's values, in an array that the caller may change."""
    type_ = array.type
    if is_bytes(type_):
        hashes = _hash_bytes(array)
    elif compiled.kernels is not None and type_.id in _PLAIN:
        hashes = compiled.kernels.hash_integers(raw_values(array))
    elif is_fixed_width(type_) or pt.is_boolean(type_):
        hashes = _hash_words(_words(array, equality))
    elif pt.is_null(type_):
        return np.full(len(array), _NULL, np.uint64)
    elif pt.is_struct(type_):
        hashes = _hash_block(struct_fields(array), len(array), equality)
        _mix(hashes)
    else:
        hashes = _hash_lists(array, equality)
    valid = validity(array)
    if valid is not None:
        hashes[~valid] = _NULL
    return hashes


def _mix(words: UInt64s) -> UInt64s:
    """The finalizer of splitmix64, in place: every bit of the input changes about half of the output's bits."""
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


def _words(array: pa.Array, equality: Equality) -> UInt64s:
    """Fixed-width values as (rows, words) of 64 bits, in an array that the caller may change."""
    if pt.is_boolean(array.type):
        return bits(array).astype(np.uint64).reshape(-1, 1)
    values = raw_values(array)
    if values.dtype.kind == "f":
        # Adding 0.0 turns -0.0 into 0.0 and copies; NaNs become one NaN whatever their bits were.
        values = values + 0.0 if equality is Equality.GROUPING else values.copy()
        values[np.isnan(values)] = np.nan
        values = values.view(f"i{values.dtype.itemsize}")
    if values.ndim == 1:
        return values.astype(np.int64).view(np.uint64).reshape(-1, 1)
    return np.array(values, dtype=np.uint64)


def _hash_words(words: UInt64s) -> UInt64s:
    if compiled.kernels is not None and words.shape[1] == 1:
        hashes: UInt64s = compiled.kernels.hash_integers(words.view(np.int64)[:, 0])
        return hashes
    hashes = words[:, 0] if words.shape[1] == 1 else np.ascontiguousarray(words[:, 0])
    hashes += np.uint64(_STEP)
    _mix(hashes)
    for index in range(1, words.shape[1]):
        hashes += words[:, index]
        _mix(hashes)
    return hashes


def _hash_bytes(array: pa.Array) -> UInt64s:
    """A sum over 8-byte words of the mixed word and its position, so that words may be added in any order."""
    if compiled.kernels is not None and (strings := byte_strings(array)) is not None:
        fast: UInt64s = compiled.kernels.hash_bytes(*strings)
        return fast
    offsets, data = value_offsets(array), array.buffers()[2]
    first, last = int(offsets[0]), int(offsets[-1])
    # A padded copy of just these values: reading a whole word at the last byte stays inside.
    padded = np.zeros(last - first + 8, np.uint8)
    if last > first:
        padded[:-8] = np.frombuffer(data, np.uint8, last - first, first)
    words = np.ndarray((last - first + 1,), "<u8", padded, strides=(1,))
    starts = offsets[:-1] - first
    lengths = np.diff(offsets)
    hashes = lengths.astype(np.uint64)
    hashes += np.uint64(_STEP)
    _mix(hashes)
    shortest, longest = (int(lengths.min()), int(lengths.max())) if len(lengths) else (0, 0)
    active: Int64s | slice = slice(None)
    # The first word counts for every value, also for an empty one: a hash must not depend on the other values here.
    for index in range(min(max((longest + 7) // 8, 1), _SHORT_WORDS)):
        if index and shortest <= 8 * index:
            active = np.flatnonzero(lengths > 8 * index)
        word = words[starts[active] + 8 * index]
        word &= _mask(lengths[active] - 8 * index)
        word += np.uint64((index + 1) * _STEP & 0xFFFFFFFFFFFFFFFF)
        hashes[active] += _mix(word)
    if longest > 8 * _SHORT_WORDS:
        _add_long(hashes, words, starts, lengths)
    return hashes


_MASKS = np.array([(1 << (8 * count)) - 1 for count in range(9)], np.uint64)


def _mask(remaining: Int64s) -> UInt64s:
    """Which bits of a word belong to a value that has ``remaining`` bytes from the word's first byte on."""
    return _MASKS[np.minimum(remaining, 8)]


def _add_long(hashes: UInt64s, words: UInt64s, starts: Int64s, lengths: Int64s) -> None:
    """Add the words of long values from the ``_SHORT_WORDS``-th on, a segment of them at a time."""
    rows = np.flatnonzero(lengths > 8 * _SHORT_WORDS)
    counts = (lengths[rows] + 7) // 8 - _SHORT_WORDS
    ends = np.cumsum(counts)
    for begin in range(0, int(ends[-1]), _SEGMENT_WORDS):
        flat = np.arange(begin, min(begin + _SEGMENT_WORDS, int(ends[-1])))
        owner = ends.searchsorted(flat, "right")
        index = flat - (ends - counts)[owner] + _SHORT_WORDS
        row = rows[owner]
        word = words[starts[row] + 8 * index] & _mask(lengths[row] - 8 * index)
        word += (index + 1).astype(np.uint64) * np.uint64(_STEP)
        edges = np.flatnonzero(np.diff(owner, prepend=-1))
        hashes[row[edges]] += np.add.reduceat(_mix(word), edges)


_FLOAT_BITS = {
    4: (0x7FFFFFFF, 0x7F800000, 0x7FC00000),
    8: (0x7FFFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF8000000000000),
}
"""By the bytes of a float: the bits of its size, those of infinity, and those of NaN."""


def _has_plain_floats(values: pa.Array) -> bool:
    return values.null_count == 0 and values.type.id in (pa.float32().id, pa.float64().id)


def _hash_lists(array: pa.Array, equality: Equality) -> UInt64s:
    """A sum over the elements' hashes, mixed with their positions except in maps, whose order has no meaning."""
    offsets = value_offsets(array)
    if compiled.kernels is not None and pt.is_list(array.type) and _has_plain_floats(array.values):
        values = raw_values(array.values)
        fast: UInt64s = compiled.kernels.hash_floats(
            values.view(f"i{values.itemsize}"), offsets, *_FLOAT_BITS[values.itemsize], equality is Equality.GROUPING
        )
        return fast
    first, last = int(offsets[0]), int(offsets[-1])
    lengths = np.diff(offsets)
    if pt.is_map(array.type):
        entries = [array.keys.slice(first, last - first), array.items.slice(first, last - first)]
        elements = hash_rows(entries, last - first, equality)
    else:
        elements = hash_rows([array.values.slice(first, last - first)], last - first, equality)
        elements += (np.arange(first, last) - np.repeat(offsets[:-1], lengths)).astype(np.uint64) * np.uint64(_STEP)
    _mix(elements)
    sums = np.zeros(last - first + 1, np.uint64)
    np.cumsum(elements, out=sums[1:])
    hashes = sums[offsets[1:] - first] - sums[offsets[:-1] - first]
    hashes += lengths.astype(np.uint64) * _COLUMN
    return _mix(hashes)
