"""Rows by key: every type, NULLs, floats, collisions, and what a checkpoint needs."""

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
from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.runs.run import Run
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.hashing import hash_rows

pytestmark = pytest.mark.usefixtures("either_kernel")

HASHES = {"hash_rows": hash_rows, "coarse": coarse_hash, "colliding": colliding_hash}
every_hash = pytest.mark.parametrize("row_hash", HASHES.values(), ids=HASHES)


def matches(arrangement: Arrangement, keys: list[pa.Array], **options) -> list[dict[object, int]]:
    """For each probe row, the rows found."""
    found = arrangement.probe(keys, **options)
    length = len(keys[0]) if keys else options.get("count", 1)
    return [dict(count_rows([found.batch.filter(found.probe_index == index)])) for index in range(length)]


@every_hash
@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_keys_of_every_type(type_, row_hash):
    keys = sliced(pa.array(VALUES[type_], type_))
    numbers = pa.array(range(len(keys)))
    arrangement = Arrangement([type_, pa.int64()], 1, row_hash=row_hash)
    arrangement.insert(Batch((keys, numbers), np.ones(len(keys), np.int64)))
    found = arrangement.probe([keys])
    assert found.batch.columns[1].to_pylist() == found.probe_index.tolist()
    assert sorted(found.probe_index.tolist()) == list(range(len(keys)))


def test_null_equals_null_and_floats_group_as_sql_does():
    arrangement = Arrangement([pa.float64(), pa.string()], 1)
    stored = [
        (ZERO, "zero"),
        (MINUS_ZERO, "minus zero"),
        (NAN, "nan"),
        (OTHER_NAN, "other"),
        (None, "null"),
        (1.0, "1"),
    ]
    arrangement.insert(batch(arrangement.types, stored))
    found = arrangement.probe([pa.array([MINUS_ZERO, OTHER_NAN, None, 2.0])])
    pairs = sorted(zip(found.probe_index.tolist(), found.batch.columns[1].to_pylist(), strict=True))
    assert pairs == [(0, "minus zero"), (0, "zero"), (1, "nan"), (1, "other"), (2, "null")]


@every_hash
def test_zeros_of_different_sign_are_different_rows(row_hash):
    types = [pa.float64()]
    arrangement = Arrangement(types, 1, row_hash=row_hash)
    arrangement.insert(batch(types, [(ZERO,), (MINUS_ZERO,), (MINUS_ZERO,), (NAN,)]))
    asked = batch(types, [(ZERO,), (MINUS_ZERO,), (OTHER_NAN,)])
    assert arrangement.weights_of(asked).tolist() == [1, 2, 1]


@every_hash
def test_several_key_columns_and_repeated_probes(row_hash):
    types = [pa.string(), pa.int64(), pa.string()]
    arrangement = Arrangement(types, 2, row_hash=row_hash)
    arrangement.insert(batch(types, [("a", 1, "x"), ("a", 1, "y"), ("a", 2, "z"), (None, 1, "n")], [1, 2, 3, 4]))
    found = matches(arrangement, [pa.array(["a", "a", None, "b"]), pa.array([1, 1, 1, 1])])
    one = {(b"a", 1, b"x"): 1, (b"a", 1, b"y"): 2}
    assert found == [one, one, {(None, 1, b"n"): 4}, {}]


@every_hash
def test_retractions_cancel(row_hash):
    types = [pa.int64(), pa.string()]
    arrangement = Arrangement(types, 1, row_hash=row_hash)
    for number in range(30):
        arrangement.insert(batch(types, [(number % 3, "x" * number)] * 700))
    for number in range(29):
        arrangement.insert(batch(types, [(number % 3, "x" * number)], [-700]))
        arrangement.maintain(50)
    last = {(2, b"x" * 29): 700}
    assert matches(arrangement, [pa.array([0, 1, 2])], consolidated=True) == [{}, {}, last]
    assert count_rows(arrangement.rows()) == last


@every_hash
def test_without_key_columns_every_row_matches(row_hash):
    arrangement = Arrangement([pa.string()], 0, row_hash=row_hash)
    arrangement.insert(batch([pa.string()], [("a",), ("b",), ("a",)]))
    stored = {(b"a",): 2, (b"b",): 1}
    assert matches(arrangement, []) == [stored]
    assert matches(arrangement, [], count=2) == [stored, stored]
    assert matches(arrangement, [], count=0) == []


def test_rows_without_columns():
    arrangement = Arrangement([], 0)
    arrangement.insert(Batch((), np.array([2, 3])))
    assert arrangement.probe([]).batch.weights.tolist() == [5]
    assert arrangement.weights_of(Batch((), np.array([1]))).tolist() == [5]


def test_nothing_stored_and_nothing_asked():
    types = [pa.int64(), pa.string()]
    arrangement = Arrangement(types, 1)
    assert len(arrangement.probe([pa.array([1])])) == 0
    assert arrangement.probe([pa.array([1])]).batch.types == tuple(types)
    arrangement.insert(batch(types, []))
    arrangement.insert(batch(types, [(1, "a")]))
    assert len(arrangement.probe([pa.array([], pa.int64())])) == 0
    assert arrangement.weights_of(batch(types, [])).tolist() == []
    assert (arrangement.row_count, arrangement.maintain(100)) == (1, 0)
    assert arrangement.nbytes > 0


def test_a_bulk_insertion_and_many_probes():
    count = 200_000
    numbers = np.random.default_rng(1).permutation(count)
    arrangement = Arrangement([pa.int64(), pa.int64()], 1)
    arrangement.insert(Batch((pa.array(numbers % 50_000), pa.array(numbers)), np.ones(count, np.int64)))
    found = arrangement.probe([pa.array(np.arange(50_000))])
    assert len(found) == count
    assert np.array_equal(np.sort(found.batch.columns[1].to_numpy()), np.arange(count))
    assert np.array_equal(found.batch.columns[1].to_numpy() % 50_000, found.probe_index)


def test_one_key_with_many_rows_is_merged_in_slices():
    types = [pa.int64(), pa.int64()]
    arrangement = Arrangement(types, 1)
    for start in (0, 20_000, 40_000):
        values = pa.array(np.arange(start, start + 20_000))
        arrangement.insert(Batch((pa.array(np.zeros(20_000, np.int64)), values), np.ones(20_000, np.int64)))
    steps = 0
    while used := arrangement.maintain(1_000):
        steps += 1
        assert used < 2_000
    assert steps >= 20
    assert len(arrangement.runs) == 1


def test_weights_do_not_wrap_and_a_failed_insertion_changes_nothing():
    types = [pa.int64()]
    arrangement = Arrangement(types, 1)
    arrangement.insert(batch(types, [(1,)], [2**63 - 1]))
    with pytest.raises(DataError):
        arrangement.insert(batch(types, [(1,)], [1]))
    assert arrangement.weights_of(batch(types, [(1,)])).tolist() == [2**63 - 1]


def test_runs_are_immutable_and_shared_by_a_restored_arrangement(tmp_path):
    types = [pa.int64(), pa.string()]
    arrangement = Arrangement(types, 1)
    arrangement.insert(batch(types, [(1, "a"), (2, "b")]))
    saved = []
    for number, run in enumerate(arrangement.runs):
        run.save(tmp_path / str(number))
        saved.append(Run.load(tmp_path / str(number)))
    arrangement.insert(batch(types, [(1, "a")], [-1]))
    restored = Arrangement(types, 1, runs=saved)
    assert count_rows(restored.rows()) == {(1, b"a"): 1, (2, b"b"): 1}
    restored.insert(batch(types, [(2, "b")], [-1]))
    assert count_rows(restored.rows()) == {(1, b"a"): 1}
    assert count_rows(arrangement.rows()) == {(2, b"b"): 1}
