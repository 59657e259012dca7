"""The spine keeps few runs, with bounded work each time, and forgets what cancels."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.runs.merge import CodeOrder
from weirflow.ivm.kernel.runs.spine import HEAD_ROWS, Spine
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.hashing import Equality, hash_rows

pytestmark = pytest.mark.usefixtures("either_kernel")

FUEL = 12


def add(spine: Spine, values: np.ndarray, weight: int = 1) -> None:
    column = pa.array(values)
    codes = hash_rows([column], len(values), Equality.IDENTITY)
    spine.insert([column], np.full((len(values), 1), weight), codes)


def test_the_number_of_runs_grows_with_the_logarithm_of_the_rows():
    spine = Spine(CodeOrder(Equality.IDENTITY))
    most = 0
    for start in range(0, 500_000, 500):
        add(spine, np.arange(start, start + 500))
        assert spine.maintain(500 * FUEL) <= 500 * FUEL * 2
        most = max(most, len(spine.runs))
    assert spine.row_count == 500_000
    assert most <= 16


def test_a_bulk_load_is_one_run_until_half_as_much_may_cancel_rows_of_it():
    spine = Spine(CodeOrder(Equality.IDENTITY))
    add(spine, np.arange(100_000))
    assert spine.maintain(10**9) == 0
    add(spine, np.arange(100_000, 140_000))
    assert spine.maintain(10**9) == 0
    add(spine, np.arange(11_000), -1)
    assert spine.maintain(10**9) == 151_000
    assert [len(run) for run in spine.runs] == [129_000]


def test_what_cancels_nothing_is_merged_when_there_are_three_of_a_size():
    spine = Spine(CodeOrder(Equality.IDENTITY))
    for start in (0, 100_000):
        add(spine, np.arange(start, start + 100_000))
        assert spine.maintain(10**9) == 0
    add(spine, np.arange(200_000, 300_000))
    assert spine.maintain(10**9) == 300_000
    assert [len(run) for run in spine.runs] == [300_000]


def test_reading_goes_on_while_a_merge_is_under_way():
    spine = Spine(CodeOrder(Equality.IDENTITY))
    add(spine, np.arange(50_000))
    add(spine, np.arange(50_000, 90_000))
    add(spine, np.arange(2_000), -1)
    while spine.maintain(5_000):
        assert spine.row_count >= 88_000
    assert [len(run) for run in spine.runs] == [88_000]


def test_small_insertions_share_one_run():
    spine = Spine(CodeOrder(Equality.IDENTITY))
    for start in range(0, HEAD_ROWS, 64):
        add(spine, np.arange(start, start + 64))
        assert len(spine.runs) == 1
    add(spine, np.arange(HEAD_ROWS), -1)
    spine.maintain(10**6)
    assert (spine.row_count, spine.nbytes, spine.runs) == (0, 0, ())


@pytest.fixture
def pairs(request) -> int:
    return 1_000_000 if request.config.getoption("--campaign", default=False) else 100_000


def test_memory_stays_flat_over_insertions_and_deletions(pairs):
    """Every row is different, so that nothing but cancellation keeps the state small."""
    arrangement = Arrangement([pa.string(), pa.int64()], 1)
    step, alive = 500, 20
    window: list[Batch] = []
    sizes = []
    for start in range(0, pairs, step):
        rows = np.arange(start, start + step)
        strings = pa.array([f"customer {number} of a long series of names" for number in rows.tolist()])
        window.append(Batch((strings, pa.array(rows)), np.ones(step, np.int64)))
        arrangement.insert(window[-1])
        if len(window) > alive:
            arrangement.insert(window.pop(0).negate())
        arrangement.maintain(2 * step * FUEL)
        sizes.append((arrangement.row_count, arrangement.nbytes, len(arrangement.runs), pa.total_allocated_bytes()))
    warm = len(sizes) // 4
    for early, late in zip(np.max(sizes[:warm], axis=0), np.max(sizes[warm:], axis=0), strict=True):
        assert late <= 1.25 * early
    assert max(size[0] for size in sizes) < 4 * step * alive
    for batch in window:
        arrangement.insert(batch.negate())
    while arrangement.maintain(10**6):
        pass
    assert sum(map(len, arrangement.rows())) == 0
