"""Rows that were given are as they were given, whatever becomes of the memory they came from."""

import numpy as np
import pandas as pd
import pytest

from weirflow import DeltaBatch, IncrementalFlow
from weirflow.errors import DataError

MADE = {
    "NumPy": lambda numbers: {"id": numbers},
    "a series": lambda numbers: {"id": pd.Series(numbers, copy=False)},
    "a frame": lambda numbers: pd.DataFrame({"id": numbers}, copy=False),
    "a frame of masked numbers": lambda numbers: pd.DataFrame(
        {"id": pd.arrays.IntegerArray(numbers, np.zeros(len(numbers), bool))}, copy=False
    ),
}


@pytest.fixture(params=MADE)
def made(request):
    return MADE[request.param]


def test_a_delta_never_changes(made):
    numbers = np.array([1, 2, 3])
    delta = DeltaBatch.from_inserts(made(numbers))
    numbers[:] = 9
    assert delta == DeltaBatch.from_inserts([{"id": 1}, {"id": 2}, {"id": 3}])


def test_a_buffer_that_is_filled_again_for_the_next_tick(made):
    flow = IncrementalFlow()
    flow.register_source("numbers", "id BIGINT")
    flow.register_view("same", "SELECT id FROM numbers")
    watch, called = flow.watch_output("same"), []
    flow.on_delta("same", lambda _, delta: called.append(delta))
    numbers = np.array([1, 2])
    for _ in range(2):
        flow.tick("numbers", made(numbers))
        numbers += 2
    expected = [DeltaBatch.from_inserts([{"id": 1}, {"id": 2}]), DeltaBatch.from_inserts([{"id": 3}, {"id": 4}])]
    assert [watch.get(0)[1], watch.get(0)[1]] == expected
    assert called == expected
    assert sorted(flow.snapshot("same", epoch=1).column(0).to_pylist()) == [1, 2]
    assert sorted(flow.snapshot("same").column(0).to_pylist()) == [1, 2, 3, 4]


def test_a_tick_that_failed_keeps_what_it_was_given(made):
    flow = IncrementalFlow()
    flow.register_source("numbers", "id BIGINT")
    flow.register_view("shares", "SELECT 10 / (id - 1) AS share FROM numbers")
    numbers = np.array([1, 2])
    with pytest.raises(DataError):
        flow.tick("numbers", made(numbers))
    numbers[:] = 7
    with pytest.raises(DataError):
        flow.retry()
