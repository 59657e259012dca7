"""Spark's order of values as unsigned integers, so that rows of any types can be sorted by NumPy.

NaN is greater than all other numbers, -0.0 equals 0.0, strings compare by their bytes, arrays and structs by their
elements. What is left equal is told apart by all columns, so that the order of different rows is total.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from weirflow.ivm.zset.batch import take_columns
from weirflow.ivm.zset.buffers import (
    bits,
    is_bytes,
    is_fixed_width,
    raw_values,
    struct_fields,
    validity,
    value_offsets,
)
from weirflow.ivm.zset.hashing import Equality, has_floats
from weirflow.ivm.zset.rows import equal_rows_at
from weirflow.ivm.zset.sorting import sort_order

if TYPE_CHECKING:
    import numpy.typing as npt

    from weirflow.ivm.zset.batch import Bools, Int64s, UInt64s

_SIGN = np.uint64(1 << 63)
_LAST = np.uint64(0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True, slots=True)
class SortColumn:
    """One key of an order: the column at ``index``. Spark's default is NULLs first when ascending."""

    index: int
    descending: bool = False
    nulls_first: bool = True


def prefixes(columns: Sequence[pa.Array], order: Sequence[SortColumn], length: int) -> UInt64s:
    """64 bits for each row that never contradict the order: a smaller prefix means an earlier row."""
    if not order:
        return np.zeros(length, np.uint64)
    first = order[0]
    array = columns[first.index]
    prefix = _ascending_prefix(array, length)
    if first.descending:
        prefix = ~prefix
    valid = validity(array) if not pt.is_null(array.type) else None
    if valid is not None:
        prefix[~valid] = 0 if first.nulls_first else _LAST
    return prefix


def _ascending_prefix(array: pa.Array, length: int) -> UInt64s:
    type_ = array.type
    if is_bytes(type_):
        return _first_bytes(array)
    if pt.is_boolean(type_):
        return bits(array).astype(np.uint64)
    if not is_fixed_width(type_):
        return np.zeros(length, np.uint64)
    words = _fixed_words(array, Equality.GROUPING)
    if pt.is_decimal128(type_):
        # The low word as a signed number where it holds all of the value, the nearest number where it does not.
        high, low = words[0].view(np.int64) ^ np.int64(-(2**63)), words[1]
        fits = high == low.view(np.int64) >> np.int64(63)
        return np.where(fits, low ^ _SIGN, np.where(high < 0, np.uint64(0), _LAST))
    return words[0].copy()


def _first_bytes(array: pa.Array) -> UInt64s:
    offsets = value_offsets(array)
    first, last = int(offsets[0]), int(offsets[-1])
    padded = np.zeros(last - first + 8, np.uint8)
    if last > first:
        padded[:-8] = np.frombuffer(array.buffers()[2], np.uint8, last - first, first)
    words = np.ndarray((last - first + 1,), ">u8", padded, strides=(1,))[offsets[:-1] - first].astype(np.uint64)
    kept = np.clip(np.diff(offsets), 0, 8)
    prefix: UInt64s = words & _KEPT_BYTES[kept]
    return prefix


_KEPT_BYTES = np.array([((1 << 64) - 1) ^ ((1 << (64 - 8 * count)) - 1) for count in range(9)], np.uint64)


def sort_words(columns: Sequence[pa.Array], order: Iterable[SortColumn]) -> list[UInt64s]:
    """Words whose lexicographic order is that of these rows, and which are equal for identical rows only.

    They compare rows of one call only: strings are replaced by their rank among the rows.
    """
    words: list[UInt64s] = []
    told_apart = set()
    for key in order:
        words += _column_words(columns[key.index], key, Equality.GROUPING)
        if not has_floats(columns[key.index].type):
            told_apart.add(key.index)
    for index, column in enumerate(columns):
        if index not in told_apart:
            words += _column_words(column, SortColumn(index), Equality.IDENTITY)
    return words


def key_words(columns: Sequence[pa.Array], order: Iterable[SortColumn]) -> list[UInt64s]:
    """As ``sort_words``, equal for all rows that sort alike."""
    return [word for key in order for word in _column_words(columns[key.index], key, Equality.GROUPING)]


def _column_words(array: pa.Array, key: SortColumn, equality: Equality) -> list[UInt64s]:
    if pt.is_null(array.type):
        return []
    if is_fixed_width(array.type):
        words = _fixed_words(array, equality)
    elif pt.is_boolean(array.type):
        words = [bits(array).astype(np.uint64)]
    elif is_bytes(array.type):
        words = [_ranks(array)]
    else:
        words = [_nested_ranks(array, equality)]
    if key.descending:
        words = [~word for word in words]
    valid = validity(array)
    if valid is None:
        return words
    absent = valid if key.nulls_first else ~valid
    return [absent.astype(np.uint64), *(np.where(valid, word, np.uint64(0)) for word in words)]


def _fixed_words(array: pa.Array, equality: Equality) -> list[UInt64s]:
    values = raw_values(array)
    if pt.is_decimal(array.type) and values.ndim > 1:
        return [
            values[:, index] ^ _SIGN if index == values.shape[1] - 1 else values[:, index]
            for index in reversed(range(values.shape[1]))
        ]
    if pt.is_interval(array.type):
        halves = np.ascontiguousarray(values).view("<i4").reshape(-1, 4)
        return [_signed(halves[:, 0]), _signed(halves[:, 1]), _signed(values[:, 1].view(np.int64))]
    if values.ndim > 1:
        return [words.byteswap() for words in np.ascontiguousarray(values).T]
    if values.dtype.kind == "u":
        return [values.astype(np.uint64)]
    return [_float_word(values, equality) if values.dtype.kind == "f" else _signed(values)]


def value_words(values: Any) -> UInt64s:
    """Words that compare as these int64 or float64 values do in SQL: -0.0 equals 0.0, NaN is the greatest."""
    return _float_word(values, Equality.GROUPING) if values.dtype.kind == "f" else _signed(values)


def double_words(values: Any) -> UInt64s:
    """Words that compare as float64 values do and tell them apart: -0.0 comes before 0.0. None of them is 0."""
    return _float_word(values, Equality.IDENTITY)


def doubles_of(words: UInt64s) -> npt.NDArray[np.float64]:
    """The values whose ``double_words`` these are."""
    doubles: npt.NDArray[np.float64] = np.where(words & _SIGN, words & ~_SIGN, ~words).view(np.float64)
    return doubles


def _signed(values: Any) -> UInt64s:
    word: UInt64s = values.astype(np.int64).view(np.uint64) ^ _SIGN
    return word


def _float_word(values: Any, equality: Equality) -> UInt64s:
    wide = values.astype(np.float64)
    if equality is Equality.GROUPING:
        wide += 0.0
    wide[np.isnan(wide)] = np.nan
    word = wide.view(np.uint64)
    # Negative numbers: all bits flipped, since a larger magnitude is smaller; positive ones: above the negative ones.
    flipped: UInt64s = np.where(word & _SIGN, ~word, word | _SIGN)
    return flipped


def _ranks(array: pa.Array) -> UInt64s:
    binary = array.cast(pa.large_binary() if pt.is_large_string(array.type) else pa.binary())
    return raw_values(pc.rank(binary, tiebreaker="dense")).copy()


def _nested_ranks(array: pa.Array, equality: Equality) -> UInt64s:
    keys = _comparable(array, equality)
    numbers = {key: number for number, key in enumerate(sorted(set(keys)))}
    return np.array([numbers[key] for key in keys], np.uint64)


def _comparable(array: pa.Array, equality: Equality) -> list[Any]:
    """Python values that sort as Spark sorts the array's, NULL first; maps by their sorted entries."""
    type_ = array.type
    values: Iterable[Any]
    if pt.is_null(type_):
        return [(0,)] * len(array)
    if pt.is_struct(type_):
        fields = [_comparable(field, equality) for field in struct_fields(array)]
        values = zip(*fields, strict=True) if fields else [()] * len(array)
    elif pt.is_map(type_):
        entries = list(zip(_comparable(array.keys, equality), _comparable(array.items, equality), strict=True))
        values = [tuple(sorted(entries[start:stop])) for start, stop in pairwise(value_offsets(array).tolist())]
    elif pt.is_nested(type_):
        elements = _comparable(array.values, equality)
        values = [tuple(elements[start:stop]) for start, stop in pairwise(value_offsets(array).tolist())]
    elif is_bytes(type_):
        values = array.cast(pa.large_binary()).to_pylist()
    elif pt.is_boolean(type_):
        values = bits(array).tolist()
    else:
        values = zip(*(word.tolist() for word in _fixed_words(array, equality)), strict=True)
    valid = validity(array)
    if valid is None:
        return [(1, value) for value in values]
    return [(1, value) if present else (0,) for value, present in zip(values, valid.tolist(), strict=True)]


def row_order(
    codes: UInt64s, prefix: UInt64s, columns: Sequence[pa.Array], order: Sequence[SortColumn]
) -> tuple[Int64s, Int64s]:
    """(order, tied): the order that sorts rows by code, prefix and then exactly; and where in it rows may be equal.

    Row ``order[t]`` has the code and prefix of the row before it for each t in ``tied``.
    """
    result = sort_order(codes)
    sorted_codes = codes[result]
    repeated = _stretches(sorted_codes[1:] == sorted_codes[:-1])
    if len(repeated) == 0:
        return result, repeated
    rows = result[repeated]
    result[repeated] = rows = rows[_by_code_and_prefix(codes[rows], prefix[rows])]
    same = (codes[rows[1:]] == codes[rows[:-1]]) & (prefix[rows[1:]] == prefix[rows[:-1]])
    tied = _undecided(columns, rows, same)
    if len(tied) == 0:
        return result, repeated[1:][same]
    rows = rows[tied]
    words = [codes[rows], prefix[rows], *sort_words(take_columns(columns, rows), order)]
    result[repeated[tied]] = rows[np.lexsort(words[::-1])]
    return result, repeated[1:][same]


def _undecided(columns: Sequence[pa.Array], rows: Int64s, same: Bools) -> Int64s:
    """Where rows tie that differ. A row and those that take it back tie, too, but have no order among them."""
    after = np.flatnonzero(same) + 1
    differs = after[~equal_rows_at(columns, rows[after], columns, rows[after - 1], Equality.IDENTITY)]
    if len(differs) == 0:
        return differs
    stretch = np.concatenate(([0], np.cumsum(~same)))
    return np.flatnonzero(np.isin(stretch, stretch[differs]))


def _by_code_and_prefix(codes: UInt64s, prefix: UInt64s) -> Int64s:
    if len(codes) < _MANY_ROWS:
        return np.lexsort((prefix, codes))
    # Spread over all 64 bits, prefixes are sorted as fast as codes; the second sort keeps the first one's order.
    low = prefix.min()
    spread = (prefix - low) << np.uint64(64 - max(int(prefix.max() - low).bit_length(), 1))
    order = sort_order(spread)
    return order[sort_order(codes[order])]


_MANY_ROWS = 1 << 16


def _stretches(same_as_before: Any) -> Int64s:
    """The positions that belong to a pair, given whether each position from the second on pairs with the last."""
    paired = np.zeros(len(same_as_before) + 1, np.bool_)
    paired[1:] = same_as_before
    paired[:-1] |= same_as_before
    return np.flatnonzero(paired)
