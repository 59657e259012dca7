"""Runs: sorted, different rows; saved and mapped back."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pytest
from support.rows import VALUES, coarse_hash, colliding_hash, count_rows, sliced

from weirflow.errors import StorageError
from weirflow.ivm.kernel.runs.run import Run, sorted_run
from weirflow.ivm.zset.hashing import Equality, hash_rows

pytestmark = pytest.mark.usefixtures("either_kernel")


def make_run(columns: list[pa.Array], values: np.ndarray, row_hash=hash_rows) -> Run:
    codes = row_hash(columns, len(values), Equality.IDENTITY)
    return sorted_run(codes, columns, values, Equality.IDENTITY)


def test_equal_rows_add_up_and_zeros_vanish():
    for row_hash in (hash_rows, coarse_hash, colliding_hash):
        run = make_run([pa.array(["a", "b", "a", "c", "b"])], np.array([[1], [2], [3], [0], [-2]]), row_hash)
        assert count_rows([run.batch]) == {(b"a",): 4}
        assert (len(run), run.codes.tolist()) == (1, sorted(run.codes.tolist()))


def test_a_row_stays_while_one_of_its_values_is_not_zero():
    run = make_run([pa.array([1, 2])], np.array([[0, 5], [0, 0]]))
    assert (run.columns[0].to_pylist(), run.values.tolist()) == ([1], [[0, 5]])


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_every_type_is_saved_and_mapped_back(type_, tmp_path):
    array = sliced(pa.array(VALUES[type_] * 2, type_))
    run = make_run([array, pa.array(range(len(array)))], np.arange(2, 2 * len(array) + 2).reshape(-1, 2))
    run.save(tmp_path / "run")
    loaded = Run.load(tmp_path / "run")
    assert loaded.codes.tolist() == run.codes.tolist()
    assert loaded.values.tolist() == run.values.tolist()
    assert [column.type for column in loaded.columns] == [type_, pa.int64()]
    assert count_rows([loaded.batch]) == count_rows([run.batch])
    assert loaded.nbytes > 0


def test_a_mapped_run_allocates_nothing(tmp_path):
    run = make_run(
        [pa.array(range(200_000)), pa.array([f"row {n}" for n in range(200_000)])], np.ones((200_000, 1), int)
    )
    run.save(tmp_path / "run")
    before = pa.total_allocated_bytes()
    loaded = Run.load(tmp_path / "run")
    assert len(loaded) == 200_000
    assert pa.total_allocated_bytes() - before < 10_000


def test_empty_runs_and_runs_without_columns(tmp_path):
    for name, run in {
        "empty": make_run([pa.array([], pa.string())], np.empty((0, 3), np.int64)),
        "no columns": make_run([], np.array([[1], [2]])),
    }.items():
        run.save(tmp_path / name)
        loaded = Run.load(tmp_path / name)
        assert (len(loaded), loaded.values.tolist()) == (len(run), run.values.tolist())


def test_a_run_is_saved_to_any_binary_file(tmp_path):
    sink = io.BytesIO()
    make_run([pa.array([1])], np.array([[1]])).save(sink)
    (tmp_path / "run").write_bytes(sink.getvalue())
    assert count_rows([Run.load(tmp_path / "run").batch]) == {(1,): 1}


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:0], lambda data: data[: len(data) // 2], lambda data: b"x" * len(data), lambda data: data[:-9]],
    ids=["empty", "half", "other", "tail"],
)
def test_a_damaged_file_is_a_storage_error(damage, tmp_path):
    path = tmp_path / "run"
    make_run([pa.array(range(1000))], np.ones((1000, 1), np.int64)).save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(StorageError, match="run"):
        Run.load(path)


def test_other_arrow_files_and_missing_files_are_storage_errors(tmp_path):
    with pa.ipc.new_file(str(tmp_path / "other"), pa.schema([("x", pa.int64())])) as writer:
        writer.write_batch(pa.record_batch({"x": [1]}))
    for name in ("other", "missing"):
        with pytest.raises(StorageError, match=name):
            Run.load(tmp_path / name)


@pytest.mark.parametrize("length", [1 << 19, (1 << 19) + 1, 600_063])
def test_the_search_in_a_large_run(length):
    random = np.random.default_rng(length)
    codes = np.sort(random.integers(0, 2**40, length, dtype=np.uint64))
    codes[1000:2000] = codes[1000]
    codes[-100:] = codes[-1]
    run = Run(codes, (), np.ones((length, 1), np.int64))
    near = np.concatenate([codes[[0, 1, 63, 64, 65, 1000, 1500, 2000, -101, -100, -1]], random.choice(codes, 500)])
    needles = np.sort(np.concatenate([near, near - np.uint64(1), near + np.uint64(1), np.array([0, 2**63], np.uint64)]))
    assert run.search(needles).tolist() == codes.searchsorted(needles).tolist()
    assert run.search(needles[-1:]).tolist() == [length]
    assert run.search(needles[:0]).tolist() == []
