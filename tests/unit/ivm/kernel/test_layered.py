"""State with a layer: reads see the layer, storage does not until it is kept."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from support.rows import batch, count_rows

from weirflow.ivm.kernel.layered import LayeredArrangement, LayeredSums

TYPES = (pa.int64(), pa.string())


def keys(*values):
    return (pa.array(values, pa.int64()),)


def found(arrangement, *values):
    return count_rows([arrangement.probe(keys(*values)).batch])


@pytest.fixture
def rows():
    arrangement = LayeredArrangement(TYPES, 1)
    arrangement.insert(batch(TYPES, [(1, "a"), (2, "b")]))
    arrangement.keep()
    arrangement.insert(batch(TYPES, [(1, "a"), (1, "c")], [-1, 1]))
    arrangement.insert(batch(TYPES, [(1, "c")]))
    return arrangement


@pytest.fixture
def sums():
    state = LayeredSums((pa.int64(),), 1)
    state.add(keys(1, 2), np.array([[5], [6]]))
    state.keep()
    state.add(keys(1, 3), np.array([[-5], [7]]))
    state.add(keys(3), np.array([[1]]))
    return state


def test_a_probe_finds_stored_rows_and_those_of_the_layer(rows):
    assert found(rows, 1, 2) == Counter({(1, b"c"): 2, (2, b"b"): 1})
    matches = rows.probe(keys(1), consolidated=True)
    assert (matches.batch.columns[1].to_pylist(), matches.batch.weights.tolist()) == (["c"], [2])


def test_what_is_stored_leaves_the_layer_out(rows):
    assert count_rows([rows.probe_stored(keys(1)).batch]) == Counter({(1, b"a"): 1})
    assert count_rows(rows.rows()) == Counter({(1, b"a"): 1, (2, b"b"): 1})


def test_a_layer_that_is_kept_is_stored(rows):
    rows.keep()
    assert count_rows(rows.rows()) == Counter({(1, b"c"): 2, (2, b"b"): 1})
    assert found(rows, 1, 2) == Counter({(1, b"c"): 2, (2, b"b"): 1})


def test_a_layer_that_is_forgotten_is_gone(rows):
    rows.forget()
    rows.keep()
    assert found(rows, 1, 2) == Counter({(1, b"a"): 1, (2, b"b"): 1})


def test_a_layer_of_many_inserts_stays_a_few_runs():
    arrangement = LayeredArrangement(TYPES, 1)
    for start in range(0, 60_000, 1000):
        arrangement.insert(batch(TYPES, [(start + at, "x") for at in range(1000)]))
    assert len(arrangement._both.runs) < 15


def test_a_lookup_adds_the_layer(sums):
    assert sums.lookup(keys(1, 2, 3)).tolist() == [[0], [6], [8]]


def test_sums_are_kept_or_forgotten(sums):
    sums.forget()
    assert sums.lookup(keys(1, 2, 3)).tolist() == [[5], [6], [0]]
    sums.add(keys(2), np.array([[1]]))
    sums.keep()
    assert sums.lookup(keys(1, 2, 3)).tolist() == [[5], [7], [0]]
