"""Vectors of a view as stores hold them."""

import math

import numpy as np
import pyarrow as pa
import pytest

from weirflow.errors import ConfigError
from weirflow.vector.fitted import fitted, vector_column


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float64()), pa.large_list(pa.float64())])
def test_vectors_that_fit_are_as_they_were_and_null_is_none(kind):
    found = fitted(pa.array([[1.0, 0.5], None, [-0.0, 3.4028234663852886e38]], kind), 2)
    assert found.column.type == pa.list_(pa.float32(), 2)
    assert str(found.column.to_pylist()) == "[[1.0, 0.5], None, [-0.0, 3.4028234663852886e+38]]"
    assert (found.unfit.tolist(), found.why) == ([], "")


@pytest.mark.parametrize(
    ("vector", "why"),
    [
        ([1.0], "is of length 1 instead of 2"),
        ([], "is of length 0 instead of 2"),
        ([1.0, 2.0, 3.0], "is of length 3 instead of 2"),
        ([1.0, None], "has NULL at place 2"),
        ([math.nan, 1.0], "has nan at place 1, which is not a finite number of 4 bytes"),
        ([1.0, math.inf], "has inf at place 2, which is not a finite number of 4 bytes"),
        ([1.0, -1e39], "has -1e+39 at place 2, which is not a finite number of 4 bytes"),
    ],
)
def test_a_vector_that_does_not_fit_is_named_and_the_others_are_kept(vector, why):
    found = fitted(pa.array([[1.0, 2.0], None, vector, [3.0, 4.0], vector], pa.list_(pa.float64())), 2)
    assert found.column.to_pylist() == [[1.0, 2.0], None, None, [3.0, 4.0], None]
    assert (found.unfit.tolist(), found.why) == ([2, 4], why)


def test_slices_and_chunks_are_read_from_where_they_begin():
    column = pa.array([[9.0], [1.0, 2.0], [3.0, 4.0], [9.0]], pa.list_(pa.float64()))
    assert fitted(column[1:3], 2).column.to_pylist() == [[1.0, 2.0], [3.0, 4.0]]
    chunks = pa.chunked_array([column[1:2], column[2:3]])
    assert fitted(chunks, 2).column.to_pylist() == [[1.0, 2.0], [3.0, 4.0]]
    assert fitted(pa.chunked_array([], column.type), 2).column.to_pylist() == []


def test_numbers_of_eight_bytes_are_rounded_as_numpy_does():
    values = np.random.default_rng(1).normal(size=(50, 7))
    found = fitted(pa.array(values.tolist(), pa.list_(pa.float64())), 7)
    assert np.array_equal(np.array(found.column.to_pylist(), np.float32), values.astype(np.float32))


SCHEMA = pa.schema({"id": pa.int64(), "v": pa.list_(pa.float32()), "names": pa.list_(pa.string())})


def test_the_only_column_of_vectors_need_not_be_named():
    assert vector_column(SCHEMA, None) == vector_column(SCHEMA, "v") == "v"


@pytest.mark.parametrize(
    ("schema", "wanted", "message"),
    [
        (SCHEMA, "w", "no column 'w'"),
        (SCHEMA, "names", "'names' is no column of vectors; its type is list<item: string>"),
        (SCHEMA.remove(1), None, "no column of vectors"),
        (SCHEMA.append(pa.field("w", pa.list_(pa.float64()))), None, "several columns of vectors: v, w"),
    ],
)
def test_a_view_without_such_a_column_is_refused(schema, wanted, message):
    with pytest.raises(ConfigError, match=message):
        vector_column(schema, wanted)
