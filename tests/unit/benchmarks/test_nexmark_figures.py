"""How ``benchmarks/nexmark.py`` reads what streams put out, compares it, and adds up its times."""

import pyarrow as pa
import pytest
from nexmark import Figures, check, latest


def test_updates_with_equal_keys_replace_each_other():
    updates = [pa.table({"k": [1, 2], "n": [10, 20]}), pa.table({"k": [2, 3], "n": [21, 30]})]
    assert latest(updates, ["k"]).to_pylist() == [{"k": 1, "n": 10}, {"k": 2, "n": 21}, {"k": 3, "n": 30}]


def test_rows_are_compared_in_any_order_and_as_often_as_they_are_there():
    rows = pa.table({"k": [1, 1, None], "v": ["a", "b", None]})
    check("some", rows, rows.take([2, 1, 0]))
    with pytest.raises(SystemExit, match="some is wrong"):
        check("some", rows, rows.take([0, 0, 2]))
    with pytest.raises(SystemExit, match="some is wrong: 3 rows, 4 expected"):
        check("some", rows, rows.take([0, 1, 2, 2]))


def test_figures_are_of_all_batches():
    assert Figures(seconds=[0.1, 0.1, 0.4]).rounded(batch=600) == {
        "events_s": 3000,
        "median_ms": 100.0,
        "p99_ms": 394.0,
        "batches": 3,
    }
