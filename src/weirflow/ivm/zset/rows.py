"""Exact equality of rows, and grouping by it: hashes only say where to look."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from weirflow.ivm import compiled
from weirflow.ivm.zset.batch import Batch, add_segments, take_array, take_columns
from weirflow.ivm.zset.buffers import (
    bits,
    byte_strings,
    is_bytes,
    is_fixed_width,
    raw_dtype,
    raw_values,
    struct_fields,
    validity,
    value_offsets,
)
from weirflow.ivm.zset.hashing import Equality, RowHash, hash_layout, hash_rows
from weirflow.ivm.zset.layout import Layout
from weirflow.ivm.zset.lists import same_bits
from weirflow.ivm.zset.sorting import sorted_codes

if TYPE_CHECKING:
    from weirflow.ivm.zset.batch import Bools, Int64s, UInt64s

_EQUAL = pc.get_function("equal")


def equal_rows(left: Sequence[pa.Array], right: Sequence[pa.Array], equality: Equality, length: int) -> Bools:
    """Whether row i of ``left`` equals row i of ``right``, for ``length`` rows of equal types. NULL equals NULL."""
    equal = np.ones(length, np.bool_)
    for one, other in zip(left, right, strict=True):
        equal &= equal_arrays(one, other, equality)
    return equal


def equal_rows_at(
    left: Sequence[pa.Array], left_at: Int64s, right: Sequence[pa.Array], right_at: Int64s, equality: Equality
) -> Bools:
    """Whether the left rows at ``left_at`` equal the right rows at ``right_at``, pair by pair."""
    if compiled.kernels is not None and (one := Layout.of(left)) is not None:
        other = one if right is left else Layout.of(right)
        if other is not None:
            found: Bools = compiled.kernels.equal_pairs(
                one.address, left_at, other.address, right_at, len(left), equality is Equality.GROUPING
            )
            return found
    equal = np.ones(len(left_at), np.bool_)
    for one, other in zip(left, right, strict=True):
        if one.null_count == 0 and other.null_count == 0:
            # The common case of plain keys: they are compared where they are, or gathered; nothing is built.
            if compiled.kernels is not None and _cleared(equal, one, left_at, other, right_at):
                continue
            if is_fixed_width(one.type):
                equal &= equal_values(raw_values(one)[left_at], raw_values(other)[right_at], equality)
                continue
            if pt.is_list(one.type) and (same := same_bits(one, left_at, other, right_at)) is not None:
                others = np.flatnonzero(~same)  # which may be equal all the same, as 0.0 and -0.0 are
                if len(others):
                    pair = (take_array(one, left_at[others]), take_array(other, right_at[others]))
                    equal[others] &= equal_arrays(*pair, equality)
                continue
        equal &= equal_arrays(take_array(one, left_at), take_array(other, right_at), equality)
    return equal


def _cleared(equal: Bools, left: pa.Array, left_at: Int64s, right: pa.Array, right_at: Int64s) -> bool:
    """Clear ``equal`` where values differ, if there is a compiled way to compare them; whether there is."""
    if raw_dtype(left.type) == np.int64:
        compiled.kernels.equal_integers(raw_values(left), left_at, raw_values(right), right_at, equal)
        return True
    one, other = byte_strings(left), byte_strings(right)
    if one is None or other is None:
        return False
    compiled.kernels.equal_bytes(*one, left_at, *other, right_at, equal)
    return True


def equal_arrays(left: pa.Array, right: pa.Array, equality: Equality) -> Bools:
    """Whether value i of ``left`` equals value i of ``right``; both have the same type and length."""
    type_ = left.type
    if is_fixed_width(type_):
        equal = equal_values(raw_values(left), raw_values(right), equality)
    elif is_bytes(type_):
        equal = bits(_EQUAL.call([left, right]))
    elif pt.is_boolean(type_):
        equal = bits(left) == bits(right)
    elif pt.is_null(type_):
        return np.ones(len(left), np.bool_)
    else:
        equal = _equal_nested(left, right, equality)
    left_valid, right_valid = validity(left), validity(right)
    if left_valid is None and right_valid is None:
        return equal
    left_valid = np.ones(len(left), np.bool_) if left_valid is None else left_valid
    right_valid = np.ones(len(left), np.bool_) if right_valid is None else right_valid
    both: Bools = (equal & left_valid & right_valid) | ~(left_valid | right_valid)
    return both


def equal_values(left: Any, right: Any, equality: Equality) -> Bools:
    """``equal_arrays`` of what ``raw_values`` shows, where nothing is NULL."""
    if left.ndim > 1:
        words: Bools = (left == right).all(axis=1)
        return words
    equal: Bools = left == right
    if left.dtype.kind == "f":
        equal |= (left != left) & (right != right)  # noqa: PLR0124 (only NaN differs from itself)
        if equality is Equality.IDENTITY:
            equal &= np.signbit(left) == np.signbit(right) if not np.isnan(left).any() else _same_sign(left, right)
    return equal


def _same_sign(left: Any, right: Any) -> Bools:
    same: Bools = (np.signbit(left) == np.signbit(right)) | np.isnan(left)
    return same


def _equal_nested(left: pa.Array, right: pa.Array, equality: Equality) -> Bools:
    if pt.is_struct(left.type):
        return equal_rows(struct_fields(left), struct_fields(right), equality, len(left))
    left_offsets, right_offsets = value_offsets(left), value_offsets(right)
    lengths = np.diff(left_offsets)
    equal: Bools = lengths == np.diff(right_offsets)
    compared = np.flatnonzero(equal & (lengths > 0))
    if len(compared) == 0:
        return equal
    left_at = expand_ranges(left_offsets[compared], lengths[compared])
    right_at = expand_ranges(right_offsets[compared], lengths[compared])
    if pt.is_map(left.type):
        elements = equal_rows_at([left.keys, left.items], left_at, [right.keys, right.items], right_at, equality)
    else:
        elements = equal_rows_at([left.values], left_at, [right.values], right_at, equality)
    first = np.cumsum(lengths[compared]) - lengths[compared]
    equal[compared] = np.logical_and.reduceat(elements, first)
    if pt.is_map(left.type):
        # Entries in another order make an equal map; few maps get here, since hashes were compared before.
        doubtful = compared[~equal[compared]]
        one, other = (canonical(take_array(side, doubtful), equality) for side in (left, right))
        equal[doubtful] = [a == b for a, b in zip(one, other, strict=True)]
    return equal


def expand_ranges(starts: Int64s, lengths: Int64s) -> Int64s:
    """All positions of the ranges that begin at ``starts``, one range after the other.

    >>> expand_ranges(np.array([10, 20]), np.array([2, 3])).tolist()
    [10, 11, 20, 21, 22]
    """
    total = int(lengths.sum())
    shift = starts - np.cumsum(lengths) + lengths
    positions: Int64s = np.repeat(shift, lengths) + np.arange(total)
    return positions


def canonical(array: pa.Array, equality: Equality) -> list[Hashable]:
    """A Python value for each of the array's values; equal exactly when the values are. For the rare, slow paths."""
    type_ = array.type
    if pt.is_null(type_):
        return [None] * len(array)
    keys: Iterable[Hashable]
    if pt.is_struct(type_):
        fields = [canonical(field, equality) for field in struct_fields(array)]
        keys = zip(*fields, strict=True) if fields else [()] * len(array)
    elif pt.is_map(type_):
        entries = list(zip(canonical(array.keys, equality), canonical(array.items, equality), strict=True))
        keys = [frozenset(entries[start:stop]) for start, stop in pairwise(value_offsets(array).tolist())]
    elif pt.is_nested(type_):
        values = canonical(array.values, equality)
        keys = [tuple(values[start:stop]) for start, stop in pairwise(value_offsets(array).tolist())]
    elif is_bytes(type_):
        return list(array.cast(pa.large_binary()).to_pylist())
    elif pt.is_boolean(type_):
        keys = bits(array).tolist()
    else:
        keys = _canonical_values(raw_values(array), equality)
    valid = validity(array)
    if valid is None:
        return list(keys)
    return [key if present else None for key, present in zip(keys, valid.tolist(), strict=True)]


def _canonical_values(values: Any, equality: Equality) -> list[Hashable]:
    if values.ndim > 1:
        return [tuple(words) for words in values.tolist()]
    if values.dtype.kind == "f":
        values = values + 0.0 if equality is Equality.GROUPING else values.copy()
        values[np.isnan(values)] = np.nan
        values = values.view(f"i{values.dtype.itemsize}")
    return list(values.tolist())


def canonical_rows(columns: Sequence[pa.Array], length: int, equality: Equality) -> list[Hashable]:
    """``canonical`` of whole rows, as tuples."""
    return list(zip(*[canonical(column, equality) for column in columns], strict=True)) if columns else [()] * length


def group_sorted(
    codes: UInt64s, repeated: Int64s, columns: Sequence[pa.Array], equality: Equality, at: Int64s
) -> tuple[Int64s | None, Int64s | None]:
    """Group equal rows of ``columns``, whose ``codes`` are sorted and equal for equal rows.

    Row i is that of the columns at ``at[i]``; at the places ``repeated`` the code is that of the place before.

    Returns (order, starts): the rows taken in ``order`` (None: as they are) have equal rows side by side, and each
    group begins at one of ``starts`` (None: every row is a group of its own). Codes stay sorted in that order.
    """
    if len(repeated) == 0:
        return None, None
    length = len(codes)
    fresh = np.ones(length, np.bool_)
    fresh[repeated] = False
    starts = fresh.nonzero()[0]
    equal = equal_rows_at(columns, at[repeated], columns, at[repeated - 1], equality)
    if equal.all():
        return None, starts
    differs = repeated[~equal]
    stretch = np.unique(np.searchsorted(starts, differs, side="right") - 1)
    first, sizes = starts[stretch], np.diff(starts, append=length)[stretch]
    fresh[differs] = True
    # Two rows that differ are two groups; of three or more, the first may equal the last.
    longer = sizes > 2  # noqa: PLR2004
    collided = expand_ranges(first[longer], sizes[longer])
    values = take_columns(columns, at[collided])
    order = _group_collided(values, collided, fresh, equality)
    return order, np.flatnonzero(fresh)


def _group_collided(columns: Sequence[pa.Array], rows: Int64s, fresh: Bools, equality: Equality) -> Int64s | None:
    """An order that puts equal rows among ``rows`` (whole stretches of equal codes) together; updates ``fresh``.

    ``columns`` are those of just these rows.
    """
    if len(rows) == 0:
        return None
    numbers: dict[Hashable, int] = {}
    values = canonical_rows(columns, len(rows), equality)
    groups = np.array([numbers.setdefault(value, len(numbers)) for value in values])
    # Groups are numbered as they first appear and equal rows share a stretch, so the stretches keep their order.
    by_group = np.argsort(groups, kind="stable")
    order = np.arange(len(fresh))
    order[rows] = rows[by_group]
    ordered = groups[by_group]
    fresh[rows[0]] = True
    fresh[rows[1:]] = ordered[1:] != ordered[:-1]
    return order


class GroupedRows(NamedTuple):
    """Rows in groups: ``order[starts[g]:starts[g + 1]]`` are those of group g, and ``codes[g]`` is their hash."""

    order: Int64s
    starts: Int64s
    codes: UInt64s


def group_rows(
    columns: Sequence[pa.Array], length: int, equality: Equality = Equality.IDENTITY, *, row_hash: RowHash = hash_rows
) -> GroupedRows:
    """Group equal rows. Exact whatever the hash; rows of a group keep their order, groups are sorted by hash."""
    if compiled.kernels is not None and row_hash is hash_rows and (layout := Layout.of(columns)) is not None:
        grouped = _group_layout(layout, equality)
        if grouped is not None:
            return grouped
    order, codes, repeated = sorted_codes(row_hash(columns, length, equality))
    regrouped, starts = group_sorted(codes, repeated, columns, equality, order)
    if starts is None:
        return GroupedRows(order, np.arange(length), codes)
    return GroupedRows(order if regrouped is None else order[regrouped], starts, codes[starts])


def _group_layout(layout: Layout, equality: Equality) -> GroupedRows | None:
    """``group_rows`` by compiled kernels; None if rows that differ have equal codes."""
    order, starts, own, exact = compiled.kernels.group_table(
        layout.address, layout.count, hash_layout(layout, equality), equality is Equality.GROUPING
    )
    return GroupedRows(order, starts, own) if exact else None


def consolidate(batch: Batch, *, row_hash: RowHash = hash_rows) -> Batch:
    """Each different row once, with the sum of its weights; rows whose weights cancel are gone.

    The order of rows is unspecified. Raises DataError when a sum of weights leaves int64.
    """
    if len(batch) == 0:
        return batch
    grouped = None
    if compiled.kernels is not None and row_hash is hash_rows and batch.layout is not None:
        grouped = _group_layout(batch.layout, Equality.IDENTITY)
    order, starts, _ = grouped or group_rows(batch.columns, len(batch), row_hash=row_hash)
    if len(starts) == len(batch):
        return batch if batch.weights.all() else batch.filter(batch.weights != 0)
    weights = add_segments(batch.weights[order], starts)
    kept = np.flatnonzero(weights)
    return Batch(take_columns(batch.columns, order[starts[kept]]), weights[kept])
