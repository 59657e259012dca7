"""Views whose SQL an engine has read: the plan is what they compute, here, in shards, and after every return."""

import json
from collections import Counter
from contextlib import nullcontext

import msgspec
import pyarrow as pa
import pytest
from prometheus_client import CollectorRegistry
from support.flow_engine import FlowEngine
from support.reading_engine import ReadingEngine

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.errors import (
    ColumnNotFound,
    ConfigError,
    NotIncremental,
    QueryError,
    Reason,
    SinkConflict,
    SqlTypeError,
    StorageError,
    TableNotFound,
)
from weirflow.failpoints import watch_failpoints
from weirflow.ivm.compiler.view import Mode, View
from weirflow.ivm.durability.checkup import IDENTITY, check_flow
from weirflow.ivm.durability.log import Log
from weirflow.ivm.durability.records import DefineView, decode_entry, encode_entry
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.flow.folder.entries import entry_view, view_entry
from weirflow.ivm.sharded.checkup import check_shards
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.sql.stored import encode_refusal

# What our parser cannot read at all, and what it stands for.
TOTALS, TOP, LIST = "total per customer!", "the best of (totals", "everything >> of totals"
BOOK = {
    TOTALS: "SELECT customer, SUM(amount) AS total FROM Orders GROUP BY customer",
    TOP: "SELECT customer FROM totals ORDER BY total DESC, customer LIMIT 1",
    LIST: "SELECT * FROM totals",
    "doubled!": "SELECT customer, 2 * SUM(amount) AS total FROM orders GROUP BY customer",
    "counted!": "SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY customer",
    "only names!": "SELECT DISTINCT customer FROM orders",
    "SELECT customer FROM orders": None,
    "SELECT COUNT(*) AS n FROM orders": NotIncremental("Not this.", reason=Reason.FUNCTION_NOT_PROVEN),
}
ORDERS = "customer STRING, amount BIGINT"
NAMES = "SELECT customer FROM orders"
FIRST = [{"customer": "ann", "amount": 5}, {"customer": "bob", "amount": 7}, {"customer": "ann", "amount": 3}]


@pytest.fixture
def engine():
    return ReadingEngine(BOOK)


@pytest.fixture(params=["here", "shards"])
def opened(request, tmp_path):
    """Opens the flow of the test's folder with an engine, or without."""

    def open_flow(engine=None):
        if request.param == "here":
            return IncrementalFlow("shop", path=tmp_path / "flow", engine=engine, registry=CollectorRegistry())
        return PartitionedFlow(str(tmp_path / "flow"), 2, InThisProcess(engine), registry=CollectorRegistry())

    return open_flow


def rows(flow, view):
    return Counter(tuple(row.values()) for row in flow.snapshot(view).to_pylist())


def declare(flow):
    flow.register_source("orders", ORDERS)
    flow.register_view("totals", TOTALS)
    flow.register_view("top", TOP)


def require(flow, ann=8, bob=7):
    assert rows(flow, "totals") == Counter([("ann", ann), ("bob", bob)])
    assert rows(flow, "top") == Counter([("ann" if ann >= bob else "bob",)])
    assert {one.name: (one.kind, one.reads) for one in flow.describe().relations} == {
        "orders": ("source", ()),
        "totals": ("incremental", ("orders",)),
        "top": ("incremental", ("totals",)),
    }


def test_a_view_computes_what_the_engine_has_read(opened, engine):
    with opened(engine) as flow:
        declare(flow)
        flow.tick("orders", FIRST)
        require(flow)
        assert flow.schema("top").names == ["customer"]
        assert "top: incremental" in flow.explain("top")
    assert engine.asked == [(TOTALS, ["orders"]), (TOP, ["orders", "totals"])]
    assert engine.runs == 0


def test_a_view_that_was_bound_keeps_its_rows_where_the_plan_is_the_same(engine, tmp_path):
    engine.texts |= {"SELECT customer FROM orders": "SELECT customer FROM orders"}
    bound, other = "SELECT customer FROM orders", "SELECT customer, amount FROM orders"
    engine.texts[other] = "SELECT customer, -amount AS amount FROM orders"
    flow = IncrementalFlow("shop")
    flow.register_source("orders", ORDERS)
    flow.register_view("bound", bound)
    flow.register_view("other", other)
    flow.tick("orders", FIRST[:1])
    flow.checkpoint(tmp_path)
    again = IncrementalFlow("shop", engine=engine)
    again.register_source("orders", ORDERS)
    again.register_view("bound", bound)
    again.register_view("other", other)
    plan = again.restore(tmp_path)
    assert (plan.kept, plan.rebuilt) == (("bound",), ("other",))
    assert (rows(again, "bound"), rows(again, "other")) == (Counter([("ann",)]), Counter([("ann", -5)]))


def test_a_flow_without_an_engine_goes_on_with_the_plans_of_a_checkpoint(engine, tmp_path):
    engine.texts[NAMES] = "SELECT DISTINCT customer FROM orders"
    flow = IncrementalFlow("shop", engine=engine)
    again = IncrementalFlow("shop")
    for one in (flow, again):
        one.register_source("orders", ORDERS)
        one.register_view("names", NAMES)
    flow.tick("orders", FIRST)
    flow.checkpoint(tmp_path)
    assert str(flow.plan(again)) == "keep     names"
    assert again.restore(tmp_path).kept == ("names",)
    again.tick("orders", FIRST)
    assert rows(again, "names") == Counter([("ann",), ("bob",)])


def test_a_sink_of_another_plan_is_not_continued(engine, tmp_path):
    for read, raises in (
        ("SELECT customer FROM orders", nullcontext()),
        ("SELECT upper(customer) AS customer FROM orders", pytest.raises(SinkConflict, match="another definition")),
    ):
        engine.texts[NAMES] = read
        with IncrementalFlow("shop", path=tmp_path / "flow", engine=engine) as flow:
            flow.register_source("orders", ORDERS)
            flow.register_view("names", NAMES)
            flow.replace_view("names", NAMES)
            with raises:
                flow.sink("names", tmp_path / "out")


def test_a_view_that_is_declared_again_is_not_read_again(opened, engine):
    with opened(engine) as flow:
        declare(flow)
        declare(flow)
        flow.tick("orders", FIRST)
        declare(flow)
        require(flow)
    assert len(engine.asked) == 2


def test_a_flow_opens_without_the_engine_and_goes_on(opened, engine):
    with opened(engine) as flow:
        declare(flow)
        flow.tick("orders", FIRST)
    with opened() as flow:
        require(flow)
        declare(flow)
        flow.tick("orders", [{"customer": "bob", "amount": 10}])
        require(flow, bob=17)
        assert flow.replace_view("totals", TOTALS).rebuilt == ()
        assert set(flow.refresh_view("totals").rebuilt) == {"totals", "top"}
    with opened() as flow:
        require(flow, bob=17)
    assert len(engine.asked) == 2


def test_a_checkpoint_holds_the_plans(opened, engine, tmp_path):
    with opened(engine) as flow:
        declare(flow)
        flow.tick("orders", FIRST)
        if isinstance(flow, IncrementalFlow):
            flow.checkpoint()
        else:
            flow.rescale(3)
    with opened() as flow:
        require(flow)
    if isinstance(flow, IncrementalFlow):
        assert check_flow(tmp_path / "flow").is_whole
    else:
        assert check_shards(open_checkpoint_storage(tmp_path / "flow")).is_whole


def test_a_flow_restores_a_checkpoint_with_plans(engine, tmp_path):
    flow = IncrementalFlow("shop", engine=engine)
    declare(flow)
    flow.tick("orders", FIRST)
    flow.checkpoint(tmp_path)
    empty = IncrementalFlow("shop")
    empty.restore(tmp_path)
    require(empty)
    alike = IncrementalFlow("shop", engine=engine)
    declare(alike)
    assert str(flow.plan(alike)) == "keep     totals, top"
    assert set(alike.restore(tmp_path).kept) == {"totals", "top"}
    require(alike)


def test_a_view_is_dropped_and_replaced(opened, engine):
    with opened(engine) as flow:
        declare(flow)
        flow.tick("orders", FIRST)
        with pytest.raises(ConfigError, match="top reads it"):
            flow.drop("totals")
        assert set(flow.replace_view("totals", "doubled!").rebuilt) == {"totals", "top"}
        require(flow, ann=16, bob=14)
        flow.drop("top")
        flow.drop("totals")
        flow.register_view("totals", TOTALS)
        flow.register_view("top", TOP)
        require(flow)
    with opened() as flow:
        require(flow)


def test_views_that_read_a_replaced_one_are_read_again_over_its_columns(opened, engine):
    with opened(engine) as flow:
        declare(flow)
        flow.register_view("listed", LIST)
        flow.tick("orders", FIRST)
        flow.replace_view("totals", "counted!")
        assert rows(flow, "listed") == Counter([("ann", 2, 8), ("bob", 1, 7)])
        assert rows(flow, "top") == Counter([("ann",)])
        with pytest.raises(ColumnNotFound, match="total"):
            flow.replace_view("totals", "only names!")
        assert rows(flow, "listed") == Counter([("ann", 2, 8), ("bob", 1, 7)])
    with opened() as flow:
        flow.tick("orders", [{"customer": "bob", "amount": 2}])
        assert rows(flow, "listed") == Counter([("ann", 2, 8), ("bob", 2, 9)])
        assert rows(flow, "top") == Counter([("bob",)])


def test_without_an_engine_plans_are_laid_over_other_columns_by_name_or_not_at_all(opened, engine):
    with opened(engine) as flow:
        flow.register_source("orders", ORDERS)
        flow.register_view("totals", TOTALS)
        flow.register_view("listed", LIST)
        flow.tick("orders", FIRST)
    with opened() as flow:
        flow.replace_view(
            "totals", "SELECT COUNT(*) AS n, SUM(amount) AS total, customer FROM orders GROUP BY customer"
        )
        assert rows(flow, "listed") == Counter([("ann", 8), ("bob", 7)])
        with pytest.raises(SqlTypeError, match="'total' of 'totals' is double; a view reads it as bigint"):
            flow.replace_view("totals", "SELECT 1.0D AS total, customer FROM orders")
        with pytest.raises(ColumnNotFound, match="'totals' has no column 'total'"):
            flow.replace_view("totals", "SELECT customer FROM orders")
        assert rows(flow, "listed") == Counter([("ann", 8), ("bob", 7)])


def test_a_view_waits_for_what_it_reads_and_is_read_then(opened, engine):
    engine.texts["SELECT customer, total FROM totals"] = LIST_OF_BOOK
    with opened(engine) as flow:
        flow.register_view("late", "SELECT customer, total FROM totals")
        assert "late" in flow.waiting
        flow.register_source("orders", ORDERS)
        flow.tick("orders", FIRST)
        flow.register_view("totals", TOTALS)
        assert rows(flow, "late") == Counter([("ann", 9), ("bob", 8)])
    with opened() as flow:
        assert rows(flow, "late") == Counter([("ann", 9), ("bob", 8)])


LIST_OF_BOOK = "SELECT customer, total + 1 AS total FROM totals"


def test_views_that_wait_for_a_source_are_read_over_each_other(opened, engine):
    engine.texts["SELECT customer FROM orders"] = "SELECT customer, amount FROM orders"
    engine.texts["SELECT * FROM picked"] = "SELECT amount, customer FROM picked"
    with opened(engine) as flow:
        flow.register_view("twice", "SELECT * FROM picked")
        flow.register_view("picked", "SELECT customer FROM orders")
        assert set(flow.waiting) == {"twice", "picked"}
        flow.register_source("orders", ORDERS)
        flow.tick("orders", FIRST[:1])
        assert rows(flow, "twice") == Counter([(5, "ann")])
    with opened() as flow:
        assert rows(flow, "twice") == Counter([(5, "ann")])


def test_a_view_whose_plan_scans_what_is_not_there_waits(opened, engine):
    schema = pa.schema([("customer", pa.string()), ("amount", pa.int64())])
    engine.plans["early!"] = engine.resolve("only names!", {"orders": schema})
    with opened(engine) as flow:
        flow.register_view("early", "early!")
        flow.register_source("others", ORDERS)
        flow.register_view("later", NAMES)
        assert set(flow.waiting) == {"early", "later"}
        assert all("early" not in tables for _, tables in engine.asked)
        flow.register_source("orders", ORDERS)
        flow.tick("orders", FIRST)
        assert rows(flow, "early") == Counter([("ann",), ("bob",)])
        assert rows(flow, "later") == Counter([("ann",), ("ann",), ("bob",)])


def test_what_the_engine_leaves_to_the_binder_is_bound(opened, engine):
    with opened(engine) as flow:
        flow.register_source("orders", ORDERS)
        flow.register_view("names", "SELECT customer FROM orders")
        flow.tick("orders", FIRST[:2])
        assert rows(flow, "names") == Counter([("ann",), ("bob",)])


def test_what_the_engine_rejects_is_no_view(opened, engine):
    with opened(engine) as flow:
        flow.register_source("orders", ORDERS)
        with pytest.raises(QueryError, match="'SELECT amount FROM orders' is not in the book"):
            flow.register_view("wrong", "SELECT amount FROM orders")
        assert flow.views == ()


COUNT = "SELECT COUNT(*) AS n FROM orders"


def test_what_the_engine_refuses_is_recomputed_if_that_may_be(opened, engine):
    with opened(engine) as flow:
        flow.register_source("orders", ORDERS)
        with pytest.raises(NotIncremental, match="Not this") as caught:
            flow.register_view("n", COUNT, mode="incremental")
        assert caught.value.reason is Reason.FUNCTION_NOT_PROVEN
        flow.register_view("n", COUNT)
        flow.tick("orders", FIRST)
        assert rows(flow, "n") == Counter([(3,)])
        assert "n: diff-based" in flow.explain("n")
        flow.register_view("m", COUNT, mode="diff")
        assert rows(flow, "m") == Counter([(3,)])
    assert engine.runs > 0
    again = FlowEngine()
    with opened(again) as flow:
        flow.tick("orders", FIRST[:1])
        assert rows(flow, "n") == Counter([(4,)])
        assert flow.explain("n").startswith("n: diff-based")


def test_what_only_the_engine_can_read_is_recomputed_over_what_it_says(opened, engine):
    refusal = NotIncremental("Not that.", reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE)
    engine.plans["how many?"] = encode_refusal(refusal, ["ORDERS"])
    engine.meanings["how many?"] = COUNT
    with opened(engine) as flow:
        flow.register_source("orders", ORDERS)
        flow.register_source("others", ORDERS)
        flow.register_view("n", "how many?")
        flow.tick("orders", FIRST)
        flow.tick("others", FIRST)
        assert rows(flow, "n") == Counter([(3,)])
        assert {one.name: one.reads for one in flow.describe().relations}["n"] == ("orders",)
    with opened(engine) as flow:
        flow.tick("orders", FIRST)
        assert rows(flow, "n") == Counter([(6,)])


def test_what_only_the_engine_can_read_does_not_wait(opened, engine):
    with opened(engine) as flow, pytest.raises(TableNotFound, match="Orders"):
        flow.register_view("totals", TOTALS)


def test_a_refusal_without_an_engine_is_what_is_said(engine, tmp_path):
    with IncrementalFlow("shop", path=tmp_path, engine=engine) as flow:
        flow.register_source("orders", ORDERS)
        flow.register_view("n", COUNT)
    with pytest.raises(StorageError, match="Not this"):
        IncrementalFlow("shop", path=tmp_path)


def test_a_view_with_a_plan_is_recomputed_when_it_is_forced(opened, engine):
    with opened(engine) as flow:
        declare(flow)
        flow.tick("orders", FIRST)
        flow.force_diff_based("totals")
        flow.tick("orders", [{"customer": "bob", "amount": 4}])
        assert rows(flow, "totals") == Counter([("ann", 8), ("bob", 11)])
        assert rows(flow, "top") == Counter([("bob",)])
        assert engine.runs > 0


def test_explaining_a_query_reads_it_as_registering_it_would(opened, engine):
    with opened(engine) as flow:
        flow.register_source("orders", ORDERS)
        flow.tick("orders", FIRST)
        assert "aggregate" in flow.explain_query(TOTALS)
        assert "FUNCTION_NOT_PROVEN: Not this." in flow.explain_query(COUNT)


def test_a_replace_that_dies_before_the_log_leaves_the_old_plan(engine, tmp_path):
    with IncrementalFlow("shop", path=tmp_path, engine=engine) as flow:
        declare(flow)
        flow.tick("orders", FIRST)

        def die(name):
            if name == "define.before_log":
                raise RuntimeError("died")

        watch_failpoints(die)
        try:
            with pytest.raises(RuntimeError, match="died"):
                flow.replace_view("totals", "doubled!")
        finally:
            watch_failpoints(None)
        require(flow)
    with IncrementalFlow("shop", path=tmp_path) as flow:
        require(flow)


def test_a_plan_of_a_later_version_is_refused_by_name(engine, tmp_path):
    with IncrementalFlow("shop", path=tmp_path, engine=engine) as flow:
        flow.register_source("orders", ORDERS)
    later = encode_entry(view_entry("totals", View(TOTALS, plan='{"version":7}')))
    log = Log(tmp_path / "log", bytes.fromhex((tmp_path / IDENTITY).read_text()), sync_every=1)
    log.append(later)
    log.close()
    with pytest.raises(StorageError, match="its version is 7, this Weirflow reads 1") as caught:
        IncrementalFlow("shop", path=tmp_path)
    assert "with the version of Weirflow that registered the view" in caught.value.hint


# What is written


def test_a_view_without_a_plan_is_written_as_before(tmp_path):
    entry = encode_entry(view_entry("v", View("SELECT 1", Mode.AUTO)))
    assert msgspec.msgpack.decode(entry) == ["view", "v", "SELECT 1", "auto", True]
    flow = IncrementalFlow("shop")
    flow.register_source("orders", ORDERS)
    flow.register_view("v", "SELECT customer FROM orders")
    flow.checkpoint(tmp_path)
    (path,) = (tmp_path / "manifests").iterdir()
    manifest = json.loads(path.read_bytes().partition(b"\n")[2])
    assert manifest["format"] == 1
    assert set(manifest["views"]["v"]) == {"sql", "mode", "stored", "store", "forced"}


class OldDefineView(DefineView, frozen=True, tag="view", array_like=True):
    """What a version before plans reads."""


def test_a_version_before_plans_refuses_what_has_some(engine, tmp_path):
    with IncrementalFlow("shop", path=tmp_path / "here", engine=engine) as flow:
        declare(flow)
        flow.checkpoint()
        (path,) = (tmp_path / "here" / "manifests").iterdir()
        assert json.loads(path.read_bytes().partition(b"\n")[2])["format"] == 2
    payload = encode_entry(view_entry("v", View(TOTALS, plan="{}")))
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(payload, type=OldDefineView)
    assert entry_view(decode_entry(payload, 1, "")) == View(TOTALS, plan="{}")

    with PartitionedFlow(str(tmp_path / "shards"), 2, InThisProcess(engine)) as flow:
        flow.register_source("orders", ORDERS)
        flow.tick("orders", FIRST)
        flow.register_view("totals", TOTALS)
        flow.tick("orders", FIRST)
        flow.drop("totals")
    formats = [
        json.loads(path.read_bytes().partition(b"\n")[2])["format"]
        for path in sorted((tmp_path / "shards" / "commits").iterdir())
    ]
    assert formats[-3:] == [2, 2, 1]
