"""What an expression makes is bounded: the tick fails whole, with a typed error, before the memory is taken."""

import pytest
from prometheus_client import CollectorRegistry

from weirflow.errors import DataError, ResultTooLarge
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.kernel import bounds
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow

KIB = 1024


@pytest.fixture
def flow():
    flow = IncrementalFlow()
    flow.register_source("t", "s STRING, p STRING, n INT")
    return flow


def row(size, number=2_000_000_000):
    return {"s": "x" * size, "p": "y" * size, "n": number}


@pytest.mark.parametrize(
    "expression",
    ["repeat(s, n)", "repeat(s, 2000000000)", "lpad(s, n, 'x')", "rpad(s, n, 'é')", "space(n)", "space(2000000000)"],
)
def test_two_billion_characters_are_refused_and_the_flow_goes_on(flow, expression):
    flow.register_view("v", f"SELECT length({expression}) AS x FROM t")
    with pytest.raises(ResultTooLarge, match=r"would make .* GiB of values at once; the most is 1 GiB") as caught:
        flow.tick("t", [row(10)])
    assert isinstance(caught.value, DataError)
    assert (caught.value.code, flow.pending, flow.epoch) == ("RESULT_TOO_LARGE", True, 0)
    assert "fewer rows" in caught.value.hint
    assert caught.value.position is not None
    flow.discard()
    if "2000000000" not in expression:
        flow.tick("t", [row(10, 20)])
        assert flow.snapshot("v").to_pylist() == [{"x": 200 if "repeat" in expression else 20}]


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ("repeat(s, 10)", 100),
        ("concat(s, s, p, p)", 250),
        ("s || s || s || s", 250),
        ("concat_ws(p, s, s)", 300),
        ("concat_ws(p, split(s, ''))", 20),
        ("array_join(split(s, ''), p)", 20),
        ("array_join(array(s, NULL, NULL), '-', p)", 300),
        ("replace(s, 'x', p)", 30),
        ("replace(s, 'x', 'yyyyyyyyyy')", 100),
        ("replace(s, p, repeat(p, 10))", 30),
        ("regexp_replace(s, 'x', 'yyyyyyyyyy')", 90),
        ("regexp_replace(s, '(x+)', '$1$1$1$1')", 200),
        ("split(s, '')", 60),
        ("split(s, 'x')", 60),
        ("concat(split(s, ''), split(s, ''))", 30),
        ("array(s, s, s, s)", 250),
    ],
)
def test_what_grows_is_bounded(flow, monkeypatch, expression, fits):
    monkeypatch.setattr(bounds, "MOST_BYTES", KIB)
    flow.register_view("v", f"SELECT {expression} AS x FROM t")
    flow.tick("t", [row(fits)])
    with pytest.raises(ResultTooLarge):
        flow.tick("t", [row(KIB)])


def test_all_rows_of_a_batch_count(flow, monkeypatch):
    monkeypatch.setattr(bounds, "MOST_BYTES", KIB)
    flow.register_view("v", "SELECT n, repeat(s, 10) AS x FROM t")
    flow.register_view("w", "SELECT n, repeat('x', 100) AS x FROM t")
    flow.tick("t", [row(10, number) for number in range(10)])
    with pytest.raises(ResultTooLarge, match="repeat would make"):
        flow.tick("t", [row(20, number) for number in range(10)])
    flow.discard()
    with pytest.raises(ResultTooLarge, match="A constant of all rows would make"):
        flow.tick("t", [row(1, number) for number in range(20)])


def test_texts_that_double_from_view_to_view_are_bounded(flow, monkeypatch):
    monkeypatch.setattr(bounds, "MOST_BYTES", KIB * KIB)
    flow.register_view("v0", "SELECT s FROM t")
    for number in range(1, 16):
        flow.register_view(f"v{number}", f"SELECT concat(s, s) AS s FROM v{number - 1}")
    with pytest.raises(ResultTooLarge, match="concat would make"):
        flow.tick("t", [row(100)])
    assert flow.snapshot("v1").num_rows == 0


def test_rows_that_do_not_need_what_is_too_large_are_not_to_blame(flow):
    flow.register_view("v", "SELECT CASE WHEN n < 100 THEN length(repeat(s, n)) ELSE -1 END AS x FROM t")
    flow.tick("t", [row(10), row(10, 3)])
    assert sorted(each["x"] for each in flow.snapshot("v").to_pylist()) == [-1, 30]


def test_in_shards_it_is_the_same_error(tmp_path):
    with PartitionedFlow(str(tmp_path), 2, InThisProcess(), registry=CollectorRegistry()) as flow:
        flow.register_source("t", "s STRING, p STRING, n INT")
        flow.register_view("v", "SELECT length(repeat(s, n)) AS x FROM t")
        with pytest.raises(ResultTooLarge, match="repeat would make"):
            flow.tick("t", [row(10)])
        assert flow.pending
        flow.discard()
        flow.tick("t", [row(10, 3)])
        assert flow.snapshot("v").to_pylist() == [{"x": 30}]
