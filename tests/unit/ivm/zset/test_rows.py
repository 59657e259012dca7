"""Exact equality and grouping of rows, whatever the hash."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from support.rows import (
    MINUS_ZERO,
    NAN,
    OTHER_NAN,
    VALUES,
    ZERO,
    batch,
    coarse_hash,
    colliding_hash,
    count_rows,
    sliced,
)

from weirflow.errors import DataError
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.hashing import Equality, hash_rows
from weirflow.ivm.zset.rows import consolidate, equal_rows_at, expand_ranges, group_rows

pytestmark = pytest.mark.usefixtures("either_kernel")

HASHES = {"hash_rows": hash_rows, "coarse": coarse_hash, "colliding": colliding_hash}
every_hash = pytest.mark.parametrize("row_hash", HASHES.values(), ids=HASHES)


@pytest.mark.parametrize("equality", list(Equality))
@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_values_of_every_type_equal_only_themselves(type_, equality):
    array = pa.array(VALUES[type_], type_)
    left, right = np.divmod(np.arange(len(array) ** 2), len(array))
    for other in (array, sliced(array)):
        assert equal_rows_at([array], left, [other], right, equality).tolist() == (left == right).tolist()


def test_zeros_and_nans():
    array = pa.array([ZERO, MINUS_ZERO, NAN, OTHER_NAN])
    left, right = np.array([0, 2, 0]), np.array([1, 3, 2])
    assert equal_rows_at([array], left, [array], right, Equality.GROUPING).tolist() == [True, True, False]
    assert equal_rows_at([array], left, [array], right, Equality.IDENTITY).tolist() == [False, True, False]


def test_maps_with_entries_in_another_order_are_equal():
    array = pa.array(
        [[("a", 1), ("b", 2)], [("b", 2), ("a", 1)], [("b", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64())
    )
    equal = equal_rows_at([array], np.array([0, 0]), [array], np.array([1, 2]), Equality.IDENTITY)
    assert equal.tolist() == [True, False]


@every_hash
@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_equal_values_of_every_type_are_grouped(type_, row_hash):
    array = sliced(pa.array(VALUES[type_] * 3 + VALUES[type_][:2], type_))
    order, starts, _ = group_rows([array], len(array), row_hash=row_hash)
    groups = [sorted(group.tolist()) for group in np.split(order, starts[1:])]
    distinct = len(VALUES[type_])
    assert sorted(groups) == [list(range(value, len(array), distinct)) for value in range(distinct)]


@every_hash
def test_a_stranger_between_equal_rows(row_hash):
    order, starts, _ = group_rows([pa.array(["a", "b", "a"])], 3, row_hash=row_hash)
    assert sorted(group.tolist() for group in np.split(order, starts[1:])) == [[0, 2], [1]]


@every_hash
def test_grouping_follows_the_equality(row_hash):
    array = pa.array([ZERO, NAN, MINUS_ZERO, OTHER_NAN, None, None])
    for equality, groups in ((Equality.GROUPING, 3), (Equality.IDENTITY, 4)):
        assert len(group_rows([array], 6, equality, row_hash=row_hash)[1]) == groups


@every_hash
def test_consolidation_adds_up_and_drops_zeros(row_hash):
    types = [pa.string(), pa.int64()]
    rows = [("a", 1), ("b", 2), ("a", 1), ("c", None), ("b", 2), ("d", 4), (None, None)]
    consolidated = consolidate(batch(types, rows, [1, 1, 2, 5, -1, 0, -3]), row_hash=row_hash)
    assert count_rows([consolidated]) == {(b"a", 1): 3, (b"c", None): 5, (None, None): -3}
    assert len(consolidated) == 3


def test_consolidation_of_nothing_and_of_rows_without_columns():
    assert len(consolidate(Batch.empty([pa.int64()]))) == 0
    assert consolidate(Batch((), np.array([2, 3, -1]))).weights.tolist() == [4]
    assert len(consolidate(Batch((), np.array([2, -2])))) == 0


def test_weights_do_not_wrap():
    with pytest.raises(DataError, match="64-bit"):
        consolidate(batch([pa.int64()], [(1,), (1,)], [2**63 - 1, 1]))
    with pytest.raises(DataError, match="64-bit"):
        consolidate(batch([pa.int64()], [(1,), (1,)], [-(2**63), -1]))
    kept = consolidate(batch([pa.int64()], [(1,), (1,), (1,)], [2**63 - 1, 1, -1]))
    assert kept.weights.tolist() == [2**63 - 1]


def test_ranges_may_be_empty():
    assert expand_ranges(np.array([5, 9, 1]), np.array([0, 2, 1])).tolist() == [9, 10, 1]
    assert expand_ranges(np.array([], np.int64), np.array([], np.int64)).tolist() == []
