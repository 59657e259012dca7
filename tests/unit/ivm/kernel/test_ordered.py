"""The first rows of each key, without reading the rest."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from support.rows import VALUES, batch, coarse_hash, colliding_hash, count_rows

from weirflow.ivm.kernel.ordered import OrderedArrangement
from weirflow.ivm.kernel.sort_keys import SortColumn
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.hashing import hash_rows

pytestmark = pytest.mark.usefixtures("either_kernel")

TYPES = [pa.string(), pa.int64()]
DESCENDING = [SortColumn(1, descending=True, nulls_first=False)]
every_hash = pytest.mark.parametrize("row_hash", [hash_rows, coarse_hash, colliding_hash])


def first(arrangement: OrderedArrangement, keys: list[object], count: int) -> list[tuple[object, ...]]:
    found = arrangement.first([pa.array(keys, TYPES[0])], count)
    columns = [column.to_pylist() for column in found.batch.columns]
    return list(zip(found.probe_index.tolist(), *columns, found.batch.weights.tolist(), strict=True))


@every_hash
def test_the_first_rows_of_each_key(row_hash):
    arrangement = OrderedArrangement(TYPES, 1, DESCENDING, row_hash=row_hash)
    rows = [("a", 1), ("a", 9), ("a", None), ("b", 4), (None, 7), ("a", 5)]
    for row in rows:
        arrangement.insert(batch(TYPES, [row]))
    assert first(arrangement, ["a", None, "c", "b"], 2) == [
        (0, "a", 9, 1),
        (0, "a", 5, 1),
        (1, None, 7, 1),
        (3, "b", 4, 1),
    ]
    assert first(arrangement, ["a"], 4)[-1] == (0, "a", None, 1)


@every_hash
def test_a_row_counts_as_often_as_its_weight(row_hash):
    arrangement = OrderedArrangement(TYPES, 1, DESCENDING, row_hash=row_hash)
    arrangement.insert(batch(TYPES, [("a", 9), ("a", 8), ("a", 7)], [2, 3, 1]))
    assert first(arrangement, ["a"], 3) == [(0, "a", 9, 2), (0, "a", 8, 1)]


@every_hash
def test_retracted_rows_are_passed_over_however_many(row_hash):
    arrangement = OrderedArrangement(TYPES, 1, DESCENDING, row_hash=row_hash)
    arrangement.insert(batch(TYPES, [("a", number) for number in range(3_000)]))
    arrangement.insert(batch(TYPES, [("a", number) for number in range(2, 3_000)], [-1] * 2_998))
    assert first(arrangement, ["a"], 1) == [(0, "a", 1, 1)]
    arrangement.insert(batch(TYPES, [("a", 0), ("a", 1)], [-1, -1]))
    assert first(arrangement, ["a"], 1) == []


def test_rows_behind_what_another_run_has_not_shown_yet_are_not_first(monkeypatch):
    """Of the second run only four rows are read at first; its fifth comes before the last row of the first run."""
    monkeypatch.setattr("weirflow.ivm.kernel.runs.spine.HEAD_ROWS", 1)
    arrangement = OrderedArrangement(TYPES, 1, DESCENDING)
    arrangement.insert(batch(TYPES, [("a", 100), ("a", 50)]))
    arrangement.insert(batch(TYPES, [("a", n) for n in (100, 99, 98, 97, 60)], [-1, -1, -1, -1, 1]))
    arrangement.insert(batch(TYPES, [("a", n) for n in (99, 98, 97)]))
    assert len(arrangement.runs) == 3
    assert first(arrangement, ["a"], 1) == [(0, "a", 60, 1)]


def test_a_huge_group_is_not_read(monkeypatch):
    arrangement = OrderedArrangement(TYPES, 1, DESCENDING)
    numbers = np.random.default_rng(2).permutation(300_000)
    keys = pa.array(["hot"] * 299_999 + ["cold"])
    arrangement.insert(Batch((keys, pa.array(numbers)), np.ones(300_000, np.int64)))
    arrangement.insert(batch(TYPES, [("hot", int(numbers[:299_999].max()))], [-1]))
    taken = []
    monkeypatch.setattr(
        "weirflow.ivm.kernel.ordered.take_columns",
        lambda columns, indices: taken.append(len(indices)) or [column.take(pa.array(indices)) for column in columns],
    )
    best = np.sort(numbers[:299_999])[-2]
    assert first(arrangement, ["hot", "cold"], 1) == [(0, "hot", best, 1), (1, "cold", numbers[-1], 1)]
    assert sum(taken) < 100


def test_a_huge_group_is_merged_in_slices():
    arrangement = OrderedArrangement(TYPES, 1, DESCENDING)
    for start in (0, 1, 2):
        numbers = pa.array(np.arange(start, 60_000, 3))
        arrangement.insert(Batch((pa.array(["hot"] * 20_000), numbers), np.ones(20_000, np.int64)))
    while used := arrangement.maintain(1_000):
        assert used < 2_000
    assert [len(run) for run in arrangement.runs] == [60_000]
    assert [row[2] for row in first(arrangement, ["hot"], 3)] == [59_999, 59_998, 59_997]


def test_one_order_without_key_columns():
    arrangement = OrderedArrangement(TYPES, 0, [SortColumn(0), SortColumn(1, descending=True)])
    arrangement.insert(batch(TYPES, [("b", 1), ("a", 1), ("a", 2), ("b", 5)]))
    found = arrangement.first([], 3)
    assert list(zip(*(column.to_pylist() for column in found.batch.columns), strict=True)) == [
        ("a", 2),
        ("a", 1),
        ("b", 5),
    ]
    assert len(arrangement.probe([])) == 4


@every_hash
@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_rows_of_every_type_add_up_and_cancel(type_, row_hash):
    types = [pa.int64(), type_]
    rows = [(key, value) for value in VALUES[type_] for key in (1, 2)]
    arrangement = OrderedArrangement(types, 1, [SortColumn(1)], row_hash=row_hash)
    for _ in range(3):
        arrangement.insert(batch(types, rows))
    arrangement.insert(batch(types, rows[1:], [-3] * (len(rows) - 1)))
    expected = count_rows([batch(types, rows[:1], [3])])
    assert count_rows(arrangement.rows()) == expected
    assert count_rows([arrangement.probe([pa.array([1, 2])]).batch]) == expected


def test_nothing_stored_and_nothing_asked():
    arrangement = OrderedArrangement(TYPES, 1, DESCENDING)
    assert first(arrangement, ["a"], 1) == []
    arrangement.insert(batch(TYPES, []))
    assert first(arrangement, [], 1) == []
    assert (arrangement.row_count, arrangement.nbytes, list(arrangement.rows())) == (0, 0, [])
