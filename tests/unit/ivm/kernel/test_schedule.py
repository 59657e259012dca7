"""Rows by the moment at which they are due."""

import numpy as np
import pyarrow as pa
import pytest

from weirflow.ivm.kernel.schedule import BEFORE_ALL, Schedule
from weirflow.ivm.zset.batch import Batch

SECOND = 1_000_000


def rows(*values, weight=1):
    return Batch((pa.array(values, pa.int64()),), np.full(len(values), weight, np.int64))


def due(schedule, after, until):
    moments, found = schedule.due(after, until)
    return sorted(zip(moments.tolist(), found.columns[0].to_pylist(), found.weights.tolist(), strict=True))


@pytest.fixture
def schedule():
    made = Schedule([pa.int64()])
    made.insert(np.array([5, 3 * SECOND, 3 * SECOND + 1, 3 * SECOND + 1]), rows(1, 2, 3, 3))
    return made


def test_what_is_due_is_behind_one_moment_and_not_behind_another(schedule):
    assert due(schedule, 5, 3 * SECOND) == [(3 * SECOND, 2, 1)]
    assert due(schedule, None, 3 * SECOND) == [(5, 1, 1), (3 * SECOND, 2, 1)]
    assert due(schedule, 3 * SECOND, 9 * SECOND) == [(3 * SECOND + 1, 3, 2)]
    assert due(schedule, 3 * SECOND + 1, 9 * SECOND) == []


def test_what_was_retracted_is_not_due(schedule):
    schedule.insert(np.array([3 * SECOND]), rows(2, weight=-1))
    assert due(schedule, 5, 3 * SECOND) == []


def test_what_waits_for_the_first_reading_is_due_with_it(schedule):
    schedule.insert(np.array([BEFORE_ALL]), rows(7))
    assert due(schedule, None, 5) == [(BEFORE_ALL, 7, 1), (5, 1, 1)]


@pytest.mark.parametrize(
    ("after", "following"), [(0, 5), (5, 3 * SECOND), (3 * SECOND, 3 * SECOND + 1), (3 * SECOND + 1, None)]
)
def test_the_next_moment_is_the_least_behind_one(schedule, after, following):
    assert schedule.next_due(after) == following


def test_many_rows_of_one_moment_and_merged_runs():
    schedule = Schedule([pa.int64()])
    for part in range(10):
        values = np.arange(part * 3000, part * 3000 + 3000)
        schedule.insert(np.full(3000, 7 * SECOND), Batch((pa.array(values),), np.ones(3000, np.int64)))
        schedule.maintain(1 << 20)
    moments, found = schedule.due(None, 7 * SECOND)
    assert len(moments) == len(np.unique(found.columns[0].to_numpy())) == 30_000
    assert due(schedule, None, 7 * SECOND - 1) == []
