"""Lists of numbers that are all of one length are taken and compared as Arrow does, whatever lies around them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from weirflow.ivm.zset.batch import take_array, take_columns
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.lists import same_bits, stretches, take_lists
from weirflow.ivm.zset.rows import equal_rows_at

FLOATS = pa.list_(pa.float32())


def vectors(count, width=20, kind=FLOATS):
    numbers = np.arange(count * width).reshape(count, width)
    return pa.array([row.tolist() for row in numbers], kind)


ALIKE = {
    "whole": vectors(9),
    "a slice": vectors(15).slice(3, 9),
    "of slices": pa.ListArray.from_arrays(pa.array(range(0, 181, 20), pa.int32()), vectors(20).values.slice(7, 200)),
    "integers": vectors(9, kind=pa.list_(pa.int64())),
    "times": vectors(9, kind=pa.list_(pa.timestamp("us", "UTC"))),
}
UNLIKE = {
    "short": vectors(9, width=3),
    "of different lengths": pa.array([[1.0] * (16 + one) for one in range(9)], FLOATS),
    "with NULL": pa.array([None, *[[1.0] * 16] * 8], FLOATS),
    "with NULL in it": pa.array([[None] * 16, *[[1.0] * 16] * 8], FLOATS),
    "of texts": pa.array([["a"] * 16] * 9, pa.list_(pa.string())),
    "empty": pa.array([[]] * 9, FLOATS),
}
PLACES = np.array([8, 0, 3, 3, 5])


@pytest.mark.parametrize("column", ALIKE.values(), ids=ALIKE)
def test_numbers_of_one_length_are_taken_as_rows(column):
    taken = take_lists(column, PLACES)
    assert taken is not None
    taken.validate(full=True)
    assert taken.equals(column.take(pa.array(PLACES)))


@pytest.mark.parametrize("column", [*ALIKE.values(), *UNLIKE.values()], ids=[*ALIKE, *UNLIKE])
def test_all_lists_are_taken(column):
    assert take_array(column, PLACES).equals(column.take(pa.array(PLACES)))
    assert take_columns([column], PLACES[:0])[0].equals(column.slice(0, 0))


@pytest.mark.parametrize("column", UNLIKE.values(), ids=UNLIKE)
def test_others_are_left_to_arrow(column):
    assert take_lists(column, PLACES) is None


def test_lists_equal_if_their_numbers_do():
    nan, other_nan = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    rows = np.zeros((6, 20), np.float32)
    rows[1, 19], rows[2, 19], rows[3, 19], rows[4, 19], rows[5, 0] = -0.0, nan, other_nan, 1.0, 1.0
    column = pa.ListArray.from_arrays(pa.array(range(0, 121, 20), pa.int32()), pa.array(rows.ravel()))
    left, right = np.divmod(np.arange(36), 6)
    same = [[one] for one in range(6)]
    same[2], same[3] = [2, 3], [2, 3]
    found = equal_rows_at([column], left, [column], right, Equality.IDENTITY).reshape(6, 6)
    assert [np.flatnonzero(row).tolist() for row in found] == same
    same[0], same[1] = [0, 1], [0, 1]
    found = equal_rows_at([column], left, [column], right, Equality.GROUPING).reshape(6, 6)
    assert [np.flatnonzero(row).tolist() for row in found] == same
    assert same_bits(column, left, column, right).reshape(6, 6).tolist() == np.eye(6, dtype=bool).tolist()


def test_no_list_of_another_length_has_the_same_bits():
    column = pa.array([[1.0] * 16, [1.0] * 17, [1.0] * 16], FLOATS)
    assert same_bits(column, np.array([0]), column, np.array([1])) is None
    assert same_bits(column, np.array([0]), column, np.array([2])).tolist() == [True]


def test_stretches_end_where_the_numbers_end():
    assert stretches(np.arange(5), np.array([3, 0]), 2).tolist() == [[3, 4], [0, 1]]
    assert stretches(np.arange(0), np.array([0, 0]), 0).shape == (2, 0)
