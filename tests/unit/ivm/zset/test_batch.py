"""Weighted rows as Arrow columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from support.rows import VALUES, batch, count_rows, sliced

from weirflow.ivm.zset.batch import Batch, add_segments, one_array

pytestmark = pytest.mark.usefixtures("either_kernel")

TYPES = [pa.string(), pa.int64()]
ROWS = [("a", 1), ("b", None), (None, 3)]


def test_rows_are_taken_filtered_and_sliced_with_their_weights():
    rows = batch(TYPES, ROWS, [1, -2, 3])
    assert count_rows([rows.take(np.array([2, 0]))]) == {(None, 3): 3, (b"a", 1): 1}
    assert count_rows([rows.filter(np.array([False, True, False]))]) == {(b"b", None): -2}
    assert count_rows([rows.slice(1, 2)]) == {(b"b", None): -2, (None, 3): 3}
    assert rows.filter(np.ones(3, np.bool_)) is rows


def test_columns_are_selected_in_any_order():
    assert count_rows([batch(TYPES, ROWS).select([1, 0])]) == {(1, b"a"): 1, (None, b"b"): 1, (3, None): 1}


def test_batches_are_added_and_negated():
    rows = batch(TYPES, ROWS, [1, -2, 3])
    both = Batch.concat([rows, rows.slice(0, 1), Batch.empty(TYPES)])
    assert count_rows([both]) == {(b"a", 1): 2, (b"b", None): -2, (None, 3): 3}
    assert count_rows([both, both.negate()]) == {}


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_every_type_survives(type_):
    array = sliced(pa.array(VALUES[type_], type_))
    rows = Batch((array,), np.ones(len(array), np.int64))
    again = Batch.concat([rows.slice(0, 2), rows.slice(2, len(rows) - 2)])
    assert again.types == (type_,)
    assert count_rows([again]) == count_rows([rows])
    assert Batch.empty([type_]).types == (type_,)


def test_tables_of_several_chunks_become_one_array():
    table = pa.table({"a": pa.chunked_array([[1, 2], [3]])})
    assert count_rows([Batch.of_arrow(table, -1)]) == {(1,): -1, (2,): -1, (3,): -1}
    assert one_array(table.column("a")).to_pylist() == [1, 2, 3]
    assert one_array(pa.chunked_array([], pa.int64())).to_pylist() == []


def test_rows_without_columns_are_counted_by_their_weights():
    assert len(Batch((), np.array([1, 2]))) == 2
    assert Batch.concat([Batch((), np.array([1])), Batch((), np.array([2]))]).weights.tolist() == [1, 2]


def test_sums_of_segments():
    assert add_segments(np.array([1, 2, 3, -4]), np.array([0, 2])).tolist() == [3, -1]
    assert add_segments(np.array([[1, 10], [2, 20]]), np.array([0])).tolist() == [[3, 30]]
    assert add_segments(np.empty(0, np.int64), np.empty(0, np.int64)).tolist() == []
