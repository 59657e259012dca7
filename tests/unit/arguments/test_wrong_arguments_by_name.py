"""Wrong arguments that look right at first: each is refused, by its name, and nothing has happened."""

import functools
import math
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest

from weirflow import DeltaBatch, IncrementalFlow, Lateness, RestartPolicy, Session, Trigger, open_checkpoint_storage
from weirflow.errors import ConfigError, FlowError, WeirflowError
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.metadata import open_metadata
from weirflow.process.joins import JoinInput, interval_join
from weirflow.state import InMemoryStateBackend, KeyedStateStore, RocksDbStateBackend, StateDescriptor, Ttl
from weirflow.testing.sequence import SequenceSource


@pytest.fixture
def flow():
    flow = IncrementalFlow("shop")
    flow.register_source("orders", "id BIGINT, amount BIGINT")
    flow.register_view("totals", "SELECT SUM(amount) AS total FROM orders")
    flow.tick("orders", [{"id": 1, "amount": 5}])
    return flow


ROW = [{"id": 2, "amount": 7}]


async def later(_epoch, _delta):
    pass


def one_by_one(_epoch, _delta):
    yield 1


OF_A_FLOW = {
    "tick without a source": lambda flow: flow.tick(None),
    "tick of nothing": lambda flow: flow.tick("orders", None),
    "tick of deltas given twice": lambda flow: flow.tick({"orders": ROW}, ROW),
    "tick of text": lambda flow: flow.tick("orders", ""),
    "tick of a column that is none": lambda flow: flow.tick("orders", {"id": 1, "amount": 2}),
    "token is a number": lambda flow: flow.tick("orders", ROW, token=5),
    "token is empty": lambda flow: flow.tick("orders", ROW, token=""),
    "source is bytes": lambda flow: flow.tick(b"orders", ROW),
    "from_epoch is yet to come": lambda flow: flow.watch_output("totals", from_epoch=99),
    "from_epoch is negative": lambda flow: flow.watch_output("totals", from_epoch=-1),
    "capacity is none": lambda flow: flow.watch_output("totals", capacity=0),
    "snapshot is a number": lambda flow: flow.watch_output("totals", snapshot=1),
    "epoch is a bool": lambda flow: flow.snapshot("totals", epoch=True),
    "callback is None": lambda flow: flow.on_delta("totals", None),
    "callback takes nothing": lambda flow: flow.on_delta("totals", lambda: None),
    "uri is a number": lambda flow: flow.checkpoint(5),
    "uri is bytes": lambda flow: flow.checkpoint(b"place"),
    "uri has NUL": lambda flow: flow.checkpoint("place\0"),
    "dedup is negative": lambda flow: flow.register_source("more", "id BIGINT", dedup=-1),
    "dedup is a fraction": lambda flow: flow.register_source("more", "id BIGINT", dedup=1.5),
    "name is empty": lambda flow: flow.register_source("", "id BIGINT"),
    "lateness is text": lambda flow: flow.register_source("more", "at TIMESTAMP", lateness="5 minutes"),
    "materialized is text": lambda flow: flow.register_view("more", "SELECT id FROM orders", materialized="no"),
    "every is no time": lambda flow: flow.sink("totals", "folder", every=-1),
    "position is text": lambda flow: flow.feed("orders", ROW, position="1"),
    "callback is async": lambda flow: flow.on_delta("totals", later),
    "callback is a generator": lambda flow: flow.on_delta("totals", one_by_one),
    "sink is async": lambda flow: flow.sink("totals", later),
    "view has no name": lambda flow: flow.view(functools.partial(str)),
    "data has no columns": lambda flow: flow.tick("orders", {}),
    "other is no flow": lambda flow: flow.plan(None),
    "names is one name": lambda flow: flow.snapshots("totals"),
    "rows do not fit": lambda flow: flow.too_late("orders", pa.table({"x": [1]})),
}


@pytest.mark.parametrize("call", OF_A_FLOW)
def test_a_flow_refuses_and_works_on(flow, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError):
        OF_A_FLOW[call](flow)
    assert list(tmp_path.iterdir()) == []
    assert (flow.epoch, flow.sources, flow.views, flow.pending) == (1, ("orders",), ("totals",), False)
    flow.tick("orders", ROW)
    assert flow.snapshot("totals").to_pylist() == [{"total": 12}]


@pytest.mark.parametrize(
    "options",
    [
        {"checkpoint_every": "9"},
        {"checkpoint_every": 1.5},
        {"checkpoint_every": -1},
        {"history": -1},
        {"history": True},
        {"history": 10**400},
        {"fsync": None},
        {"fsync": -1},
        {"path": b"place"},
        {"path": ""},
        {"path": "a\0b"},
        {"path": "s3://bucket/shop"},
        {"path": "file:///shop"},
        {"path": "x" * 300},
        {"name": ""},
        {"name": 5},
        {"engine": "spark"},
        {"registry": {}},
    ],
)
def test_a_flow_is_not_made_of_wrong_options(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=rf"IncrementalFlow\(\): {next(iter(options))} is"):
        IncrementalFlow(**{"name": "shop", **options})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("delay", ["-5 minutes", "soon", "", "5", "1000000 years", 5, timedelta(minutes=5), None])
def test_a_delay_that_is_none_is_refused_when_it_is_written(delay):
    with pytest.raises(WeirflowError, match=r"delay is|is not a length of time"):
        Lateness("at", delay)


@pytest.mark.parametrize("partitions", [0, -1, 1.5, "2", True, 10**9])
def test_a_number_of_shards_that_cannot_be(partitions):
    with pytest.raises(ConfigError, match="partitions is"):
        PartitionedFlow("memory://", partitions, InThisProcess())
    with Session.embedded() as session, pytest.raises(ConfigError, match="partitions is"):
        session.flow("shop", partitions=partitions)


@pytest.mark.parametrize("ttl", [0, -1, math.nan, math.inf, 1e300, "10", True, None])
def test_a_lease_that_holds_for_no_time_or_for_ever(ttl):
    with open_metadata("memory://") as metadata:
        with pytest.raises(ConfigError, match="ttl is"):
            metadata.acquire("flow/shop", "me", ttl)
        assert metadata.acquire("flow/shop", "me", 10).token == 1


@pytest.mark.parametrize("wait", [-1, math.nan, math.inf, "1"])
def test_a_wait_that_is_none(wait):
    with open_metadata("memory://") as metadata, pytest.raises(ConfigError, match="wait is"):
        metadata.acquire("flow/shop", "me", 10, wait)


@pytest.mark.parametrize("timeout", [-1, math.nan, math.inf, 1e300, "1", True])
def test_a_timeout_that_is_none(flow, timeout):
    with flow.watch_output("totals") as watch, pytest.raises(ConfigError, match="timeout is"):
        watch.get(timeout)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RestartPolicy(delay=math.nan),
        lambda: RestartPolicy(attempts=True),
        lambda: RestartPolicy(retry=(int,)),
        lambda: RestartPolicy(retry=OSError),
        lambda: Trigger.processing_time(math.nan),
        lambda: Trigger.processing_time("5 seconds"),
        lambda: Ttl(5),
        lambda: Ttl(timedelta(seconds=5), time="wall"),
        lambda: StateDescriptor("", str, int),
        lambda: StateDescriptor("n", str, int, version=True),
        lambda: KeyedStateStore(None, "op"),
        lambda: KeyedStateStore(InMemoryStateBackend(), "op", groups=1.5),
        lambda: open_checkpoint_storage(5),
        lambda: open_checkpoint_storage("memory://").put("a", "text"),
        lambda: open_checkpoint_storage("memory://").stream("a", 0),
        lambda: DeltaBatch([{"id": 1}]),
        lambda: DeltaBatch.from_inserts(""),
        lambda: DeltaBatch.from_inserts([{"id": 1}], schema="id INT"),
        lambda: DeltaBatch.from_inserts([{"id": 1}]).filter("x"),
        lambda: DeltaBatch.from_inserts([{"id": 1}]).add([{"id": 1}]),
        lambda: JoinInput("id BIGINT", []),
        lambda: JoinInput(5, "id"),
        lambda: interval_join(None, None, lower=timedelta(0), upper=timedelta(1)),
        lambda: open_metadata(":memory:"),
        lambda: open_metadata("sqlite:///:memory:"),
        lambda: RocksDbStateBackend(""),
        lambda: RocksDbStateBackend("state", fsync=-1),
        lambda: SequenceSource(pa.schema({"id": pa.int64()}), b"place"),
        lambda: DeltaBatch.from_inserts({}),
        lambda: Session(cores=True),
        lambda: Session(connect_timeout=math.inf),
        lambda: Session(cache_dir="a\0b"),
        lambda: Session.single_node(b"place"),
    ],
)
def test_other_things_are_not_made_of_wrong_arguments(make):
    with pytest.raises(ConfigError):
        make()


def test_an_empty_mapping_of_deltas_is_an_epoch_without_changes(flow):
    before = flow.snapshot("totals")
    assert (flow.tick({}).epoch, flow.snapshot("totals")) == (2, before)


@pytest.mark.parametrize(("given", "meant"), [("shop", "here/shop"), ("~/shop", "home/shop")])
def test_all_of_a_flow_is_in_its_folder_wherever_the_process_goes(given, meant, tmp_path, monkeypatch):
    for name in ("home", "here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    flow = IncrementalFlow("shop", path=given)
    flow.register_source("orders", "id BIGINT")
    flow.tick("orders", [{"id": 1}])
    monkeypatch.chdir(tmp_path / "there")
    flow.checkpoint()
    flow.tick("orders", [{"id": 2}])
    flow.close()
    assert [f"{one.parent.name}/{one.name}" for one in tmp_path.glob("*/*")] == [meant]
    with IncrementalFlow("shop", path=tmp_path / meant) as again:
        assert sorted(again.snapshot("orders").column("id").to_pylist()) == [1, 2]


def test_names_of_any_kind_of_text_can_be_kept(tmp_path):
    with IncrementalFlow(np.str_("shop"), path=tmp_path / "flow") as flow:
        flow.register_source(np.str_("orders"), "id BIGINT", key=np.str_("id"))
        flow.register_view(np.str_("same"), np.str_("SELECT id FROM orders"))
        flow.tick({np.str_("orders"): [{"id": 1}]}, token=np.str_("first"))
    with IncrementalFlow("shop", path=tmp_path / "flow") as again:
        assert again.snapshot("same").to_pylist() == [{"id": 1}]
        assert again.tick("orders", [{"id": 2}], token="first").replayed


def test_a_token_is_not_repeated_when_it_is_wrong():
    with pytest.raises(ConfigError) as error:
        Session.distributed("sc://localhost:1", b"hunter2")
    assert "hunter2" not in str(error.value)


def test_a_closed_flow_is_not_read(flow):
    flow.close()
    for call in (
        lambda: flow.snapshot("totals"),
        lambda: flow.sql("SELECT 1 AS one"),
        flow.describe,
        lambda: flow.on_delta("totals", lambda _epoch, _delta: None),
    ):
        with pytest.raises(FlowError, match="is closed"):
            call()
