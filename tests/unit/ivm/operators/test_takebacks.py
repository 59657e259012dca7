"""Which rows of runs count, however much of it was found out ahead."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.operators.nearest.takebacks import Takebacks
from weirflow.ivm.zset.batch import Batch

KINDS = (pa.int64(), pa.list_(pa.float32()))


def rows(changed):
    numbers = pa.array(list(changed), KINDS[0])
    vectors = pa.array([[float(one)] * 20 for one in changed], KINDS[1])
    return Batch((numbers, vectors), np.array(list(changed.values()), np.int64))


@pytest.mark.parametrize("ahead", [0, 1, 2, 100])
def test_rows_that_were_taken_back_do_not_count(ahead):
    runs, held = [], Counter()
    # 3 goes and comes back, 4 is there twice and goes once, 5 goes before it is known to have come.
    # What is there twice and goes once stays, but for one of its kind that goes twice.
    many = range(10, 30)
    for changed in (
        {1: 1, 2: 1, 3: 1, 4: 1, 5: -1} | dict.fromkeys(many, 1),
        {3: -1, 4: 1, 6: 1} | dict.fromkeys(many, 1),
        {2: -1, 5: 1, 4: -1} | dict.fromkeys(many, -1) | {20: -2},
        {3: 1, 7: 1},
    ):
        one = Arrangement(KINDS, 1)
        one.insert(rows(changed))
        runs += one.runs
        held.update(changed)
    takebacks = Takebacks(KINDS)
    while ahead and takebacks.prepare(runs, ahead):
        pass
    masks, left = takebacks.among(runs)
    found = Counter(dict(zip(left.columns[0].to_pylist(), left.weights.tolist(), strict=True)))
    for run in runs:
        for at in np.flatnonzero(masks.get(run, np.ones(len(run), bool))):
            found[run.columns[0][at].as_py()] += int(run.values[at, 0])
    # What is left is there, but how often has to be asked.
    assert set(found) == {one for one, weight in held.items() if weight > 0}
    assert {one: weight for one, weight in found.items() if one not in left.columns[0].to_pylist()} == {
        one: weight for one, weight in held.items() if weight > 0 and one not in (3, 4, *many)
    }
    assert sorted(left.columns[0].to_pylist()) == [3, 4, *(one for one in many if one != 20)]


def test_so_many_rows_are_looked_at_ahead():
    runs = []
    for changed in (dict.fromkeys(range(10), 1), dict.fromkeys(range(10), -1)):
        one = Arrangement(KINDS, 1)
        one.insert(rows(changed))
        runs += one.runs
    takebacks = Takebacks(KINDS)
    assert [takebacks.prepare(runs, 4) for _ in range(4)] == [4, 4, 2, 0]
