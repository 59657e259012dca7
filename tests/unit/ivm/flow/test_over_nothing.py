"""A view whose value cannot be computed over empty sources: the row is not there until it can be computed."""

import pyarrow as pa
import pytest
from support.flow_engine import FlowEngine

from weirflow import DeltaBatch, IncrementalFlow
from weirflow.errors import DataError
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow

SHARE = "SELECT 10 / COUNT(*) AS share FROM t"


def opened(*views, path=None):
    flow = IncrementalFlow("shares", path=path) if path else IncrementalFlow("shares")
    if not flow.sources:
        flow.register_source("t", "k BIGINT, v BIGINT")
        flow.register_source("u", "k BIGINT, w BIGINT")
        for number, sql in enumerate(views):
            flow.register_view(f"view{number}", sql)
    return flow


def rows(flow, name="view0"):
    return sorted(tuple(row.values()) for row in flow.snapshot(name).to_pylist())


def t(*pairs):
    return DeltaBatch.from_inserts([{"k": k, "v": v} for k, v in pairs])


def gone(*pairs):
    return DeltaBatch.from_deletes([{"k": k, "v": v} for k, v in pairs])


def test_the_row_comes_with_the_first_tick_that_it_can_be_computed_for():
    flow = opened(SHARE)
    assert rows(flow) == []
    flow.tick("u", [{"k": 1, "w": 1}])
    assert rows(flow) == []
    flow.tick("t", t((1, 1), (1, 2)))
    assert rows(flow) == [(5.0,)]


def test_a_tick_that_ends_where_nothing_can_be_computed_fails():
    flow = opened(SHARE)
    flow.tick("t", t((1, 1)))
    with pytest.raises(DataError, match="zero"):
        flow.tick("t", gone((1, 1)))
    flow.discard()
    assert rows(flow) == [(10.0,)]
    flow.tick("t", t((2, 2)))
    assert rows(flow) == [(5.0,)]


@pytest.mark.parametrize(
    ("sql", "empty", "one", "two"),
    [
        ("SELECT COUNT(*) AS n FROM t HAVING 10 / COUNT(*) > 1", [], [(1,)], [(2,)]),
        ("SELECT SUM(10 / n) AS s FROM (SELECT COUNT(*) AS n FROM t)", [(None,)], [(10.0,)], [(5.0,)]),
        ("SELECT n, RANK() OVER (ORDER BY 1 / n) AS r FROM (SELECT COUNT(*) AS n FROM t)", [], [(1, 1)], [(2, 1)]),
        ("SELECT EXPLODE(ARRAY(n, 6 / n)) AS x FROM (SELECT COUNT(*) AS n FROM t)", [], [(1,), (6,)], [(2,), (3,)]),
        ("SELECT k, 6 / n AS x FROM u CROSS JOIN (SELECT COUNT(*) AS n FROM t)", [], [], []),
        ("SELECT 2 / n AS x FROM (SELECT COUNT(*) AS n FROM t) ORDER BY 3 / n LIMIT 1", [], [(2.0,)], [(1.0,)]),
        ("SELECT 6/(n+x) y FROM (SELECT COUNT(*) n FROM t), VALUES (0), (1) v(x)", [(6,)], [(3,), (6,)], [(2,), (3,)]),
        ("SELECT 1 / SUM(x) AS y FROM (SELECT 2 / COUNT(*) AS x FROM t)", [(None,)], [(0.5,)], [(1.0,)]),
    ],
)  # fmt: skip
def test_wherever_an_expression_reads_the_row_over_nothing(sql, empty, one, two):
    flow = opened(sql)
    assert rows(flow) == empty
    flow.tick("t", t((1, 1)))
    assert rows(flow) == one
    flow.tick("t", t((1, 1)))
    assert rows(flow) == two


def test_a_view_that_is_registered_later():
    flow = opened()
    flow.tick("t", t((1, 1), (2, 2)))
    flow.register_view("whole", SHARE)
    flow.register_view("part", f"{SHARE} WHERE v > 5")
    assert (rows(flow, "whole"), rows(flow, "part")) == ([(5.0,)], [])
    flow.tick("t", t((3, 9)))
    assert rows(flow, "part") == [(10.0,)]


def test_rows_that_are_there_must_be_computable():
    flow = opened()
    flow.tick("t", t((1, 1)))
    for sql in ("SELECT 10 / (v - 1) AS x FROM t", "SELECT 10 / (COUNT(*) - 1) AS x FROM t"):
        with pytest.raises(DataError, match="zero"):
            flow.register_view("late", sql)


@pytest.mark.parametrize("ticks", [0, 1])
def test_a_flow_that_is_opened_again(tmp_path, ticks):
    flow = opened(SHARE, path=tmp_path)
    flow.tick("u", [{"k": 1, "w": 1}])
    for _ in range(ticks):
        flow.tick("t", t((1, 1)))
    flow.close()
    flow = opened(path=tmp_path)
    assert rows(flow) == [(10.0,)] * ticks
    flow.tick("t", t((2, 2)))
    assert rows(flow) == [(10.0 / (ticks + 1),)]


def test_a_checkpoint_of_what_could_not_be_computed(tmp_path):
    flow = opened(SHARE)
    flow.tick("u", [{"k": 1, "w": 1}])
    flow.checkpoint(tmp_path)
    restored = IncrementalFlow("shares")
    restored.restore(tmp_path)
    restored.tick("t", t((2, 2)))
    assert rows(restored) == [(10.0,)]


class ShareEngine(FlowEngine):
    def schema(self, *_):
        return pa.schema([("share", pa.float64())])


def test_a_view_that_is_recomputed():
    flow = IncrementalFlow("shares", engine=ShareEngine())
    flow.register_source("t", "k BIGINT, v BIGINT")
    flow.register_view("view0", SHARE, mode="diff")
    flow.tick("t", t((1, 1)))
    assert rows(flow) == [(10.0,)]


def test_a_query_has_its_answer_or_fails():
    flow = opened()
    with pytest.raises(DataError, match="zero"):
        flow.sql(SHARE)
    flow.tick("t", t((1, 1)))
    assert flow.sql(SHARE).to_pylist() == [{"share": 10.0}]


def test_a_flow_in_shards(tmp_path):
    with PartitionedFlow(str(tmp_path), 2, InThisProcess()) as flow:
        flow.register_source("t", "k BIGINT, v BIGINT")
        flow.register_source("u", "k BIGINT, w BIGINT")
        flow.register_view("view0", SHARE)
        flow.register_view("sums", "SELECT SUM(10 / n) AS s FROM (SELECT COUNT(*) AS n FROM t)")
        flow.tick("u", [{"k": 1, "w": 1}])
        assert (rows(flow), rows(flow, "sums")) == ([], [(None,)])
        flow.tick("t", t((1, 1), (2, 2)))
        assert (rows(flow), rows(flow, "sums")) == ([(5.0,)], [(5.0,)])
        flow.register_view("late", "SELECT 6 / COUNT(*) AS x FROM t")
        assert rows(flow, "late") == [(3.0,)]
        with pytest.raises(DataError, match="zero"):
            flow.tick("t", gone((1, 1), (2, 2)))
