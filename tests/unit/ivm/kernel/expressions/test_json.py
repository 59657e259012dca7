"""What of JSON and of texts of times is not read though Spark reads it, and what is read however deep it is."""

import sys

import pyarrow as pa
import pytest

from weirflow import IncrementalFlow
from weirflow.errors import DataError
from weirflow.ivm.kernel.expressions.json.reader import LENIENT, OF_RECORDS, Malformed
from weirflow.ivm.kernel.expressions.json.writer import value_text

NOT_READ = [
    ("12:30", "TIME_WITHOUT_DATE"),
    ("T12:30:45.5 EST", "TIME_WITHOUT_DATE"),
    ("GMT12:30", "TIME_WITHOUT_DATE"),
    ("2024-07-01 10:00:00 SystemV/EST5EDT", "UNSUPPORTED_TIME_ZONE"),
]


@pytest.mark.parametrize(("text", "condition"), NOT_READ)
@pytest.mark.parametrize("call", ["from_json(j, 'a TIMESTAMP').a", "TRY_CAST(get_json_object(j, '$.a') AS TIMESTAMP)"])
def test_a_time_that_is_not_read_fails_the_tick_and_is_never_null(text, condition, call):
    if text.startswith("GMT") and "CAST" in call:
        return  # only JSON may have these letters anywhere
    with IncrementalFlow() as flow:
        flow.register_source("t", pa.schema([("j", pa.string())]))
        flow.register_view("v", f"SELECT {call} AS x FROM t")
        with pytest.raises(DataError) as error:
            flow.tick("t", [{"j": f'{{"a": "{text}", "n": 1}}'}])
        assert error.value.condition == condition
        flow.discard()
        flow.tick("t", [{"j": '{"a": "2024-07-01 10:00:00 EST"}'}])
        assert [str(row["x"]) for row in flow.snapshot("v").to_pylist()] == ["2024-07-01 15:00:00+00:00"]


def test_a_time_without_a_date_is_no_null_for_try():
    with IncrementalFlow() as flow:
        flow.register_source("t", pa.schema([("s", pa.string())]))
        flow.register_view("v", "SELECT try_to_timestamp(s) AS at FROM t")
        flow.tick("t", [{"s": "12:60"}])
        assert flow.snapshot("v").to_pylist() == [{"at": None}]
        with pytest.raises(DataError, match="has no date"):
            flow.tick("t", [{"s": "12:30"}])


@pytest.mark.parametrize("reader", [LENIENT, OF_RECORDS])
@pytest.mark.parametrize(("start", "end"), [("[", "]"), ('{"a":', "}"), ("[{'a':", "}]")])
def test_documents_are_read_as_deep_as_jackson_reads_them(reader, start, end):
    inside = "" if start == "[" else "1"
    levels = 2 if "'" in start else 1
    limit = sys.getrecursionlimit()
    for extra in (0, 9_000):  # a higher limit of Python's changes nothing
        sys.setrecursionlimit(limit + extra)
        try:
            deepest = start * (1_000 // levels) + inside + end * (1_000 // levels)
            assert value_text(reader(deepest)).replace('"', "") == deepest.replace('"', "").replace("'", "")
            with pytest.raises(Malformed):
                reader(f"[{deepest}]")
        finally:
            sys.setrecursionlimit(limit)
    assert len(reader(f"[{'[],' * 3_000}1]")) == 3_001
