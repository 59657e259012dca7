"""Large runs in files instead of memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from support.rows import VALUES, batch, count_rows

from weirflow.ivm.kernel.additive import AdditiveArrangement
from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.ordered import OrderedArrangement
from weirflow.ivm.kernel.runs import memory
from weirflow.ivm.kernel.runs.memory import InFiles, in_memory
from weirflow.ivm.zset.batch import Batch


def test_memory_of_any_size_is_writable():
    for shape in (0, 10, 300_000, (300_000, 2)):
        array = in_memory(shape, np.int64)
        array[:] = 7
        assert int(array.sum()) == 7 * array.size
        assert array.flags.c_contiguous


def test_files_have_no_names_and_small_arrays_no_files(tmp_path, monkeypatch):
    allocate = InFiles(tmp_path)
    large, small = allocate((300_000, 2), np.int64), allocate(10, np.uint8)
    large[:] = 7
    small[:] = 1
    assert (large.shape, int(large.sum())) == ((300_000, 2), 4_200_000)
    assert list(tmp_path.iterdir()) == []


def test_bulk_loads_and_merges_take_no_memory_of_arrow(tmp_path):
    arrangement = Arrangement([pa.string(), pa.int64()], 1, spill=tmp_path)
    count, before = 200_000, pa.total_allocated_bytes()
    for start in (0, count, 2 * count):
        numbers = np.arange(start, start + count)
        strings = pa.array([f"customer {number}" for number in numbers.tolist()])
        arrangement.insert(Batch((strings, pa.array(numbers)), np.ones(count, np.int64)))
    while arrangement.maintain(50_000):
        pass
    del strings
    assert pa.total_allocated_bytes() - before < 1_000_000
    assert [len(run) for run in arrangement.runs] == [3 * count]
    found = arrangement.probe([pa.array(["customer 7", f"customer {count + 1}"])])
    assert count_rows([found.batch]) == {(b"customer 7", 7): 1, (f"customer {count + 1}".encode(), count + 1): 1}


def test_every_type_and_every_arrangement(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_SMALL", 1)
    monkeypatch.setattr("weirflow.ivm.kernel.runs.spine.HEAD_ROWS", 2)
    for type_, values in VALUES.items():
        rows = batch([type_], [(value,) for value in values])
        arrangement = Arrangement([type_], 1, spill=tmp_path)
        ordered = OrderedArrangement([type_], 0, [], spill=tmp_path)
        sums = AdditiveArrangement([type_], 1, spill=tmp_path)
        for _ in range(3):
            arrangement.insert(rows)
            ordered.insert(rows)
            sums.add(rows.columns, rows.weights.reshape(-1, 1))
            for state in (arrangement, ordered, sums):
                state.maintain(5)
        expected = {row: 3 * weight for row, weight in count_rows([rows]).items()}
        assert count_rows(arrangement.rows()) == count_rows(ordered.rows()) == expected
        assert sums.lookup(rows.columns).tolist() == [[3]] * len(values)
