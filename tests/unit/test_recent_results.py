"""Recent results of Spark's are few, small, and only for just the same rows."""

import pyarrow as pa

from weirflow.flows.evaluation import RecentResults

FOUND = pa.table({"value": ["x"]})


def test_only_the_same_question_over_the_same_rows_is_answered():
    recent = RecentResults()
    rows = pa.table({"_wf0": ["a"]})
    recent.put("question", rows, FOUND)
    assert recent.get("question", pa.table({"_wf0": ["a"]})) is FOUND
    assert recent.get("question", pa.table({"_wf0": ["b"]})) is None
    assert recent.get("other", rows) is None


def test_few_and_small_results_are_kept():
    recent = RecentResults()
    for number in range(100):
        recent.put(number, pa.table({"_wf0": [number]}), FOUND)
    kept = [number for number in range(100) if recent.get(number, pa.table({"_wf0": [number]})) is not None]
    assert kept == list(range(36, 100))
    large = pa.table({"_wf0": pa.array(range(10_001))})
    recent.put("large", large, FOUND)
    assert recent.get("large", large) is None


def test_zeros_of_different_signs_are_not_taken_for_each_other():
    recent = RecentResults()
    for kind in (pa.float64(), pa.list_(pa.float32())):
        value = 0.0 if kind == pa.float64() else [0.0]
        recent.put("question", pa.table({"_wf0": pa.array([value], kind)}), FOUND)
        other = -0.0 if kind == pa.float64() else [-0.0]
        assert recent.get("question", pa.table({"_wf0": pa.array([other], kind)})) is None
