"""What only some flows can do: those that can say so, others refuse it in one sentence, and nothing has changed."""

from __future__ import annotations

import inspect

import pyarrow as pa
import pytest
from prometheus_client import CollectorRegistry

from weirflow.errors import ConfigError
from weirflow.flows.local import SessionFlow
from weirflow.flows.sharded import PartitionedIncrementalFlow
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.flow.backend import Capability, FlowBackend
from weirflow.ivm.flow.flow import Flow
from weirflow.ivm.flow.local import LocalBackend
from weirflow.ivm.sharded.backend import ShardedBackend
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow


@pytest.fixture
def local():
    with IncrementalFlow("here", registry=CollectorRegistry()) as flow:
        yield declared(flow)


@pytest.fixture
def sharded(tmp_path):
    with PartitionedFlow(str(tmp_path), 2, InThisProcess(), name="there", registry=CollectorRegistry()) as flow:
        yield declared(flow)


def declared(flow):
    flow.register_source("orders", "id BIGINT, amount BIGINT")
    flow.register_view("totals", "SELECT SUM(amount) AS total FROM orders")
    flow.tick("orders", [{"id": 1, "amount": 5}])
    return flow


def test_a_flow_in_this_process_has_no_shards(local):
    assert (local.capabilities, local.partitions, local.takes_frames) == ({Capability.CHECKPOINTS}, 1, False)
    for act in (
        lambda: local.rescale(2),
        lambda: local.register_source("pages", "id BIGINT", spread="everywhere"),
    ):
        with pytest.raises(ConfigError, match="The flow 'here' runs in one process, and has no shards"):
            act()
    with pytest.raises(ConfigError, match="'here' has its rows in one process"):
        local._backend.frames(["totals"])
    assert (local.sources, local.epoch) == (("orders",), 1)


def test_a_flow_in_shards_does_all_that_one_in_a_process_does(sharded):
    assert sharded.capabilities == {Capability.CHECKPOINTS, Capability.FRAMES, Capability.SHARDS}
    assert (sharded.partitions, sharded.takes_frames) == (2, True)
    assert sharded.plan(sharded).kept == ("totals",)


@pytest.mark.parametrize("backend", [LocalBackend, ShardedBackend])
def test_a_backend_does_what_it_declares_and_no_more(backend):
    stands_for = {
        Capability.CHECKPOINTS: {"save", "restore", "plan"},
        Capability.FRAMES: {"frames"},
        Capability.SHARDS: {"rescale"},
    }
    for capability, methods in stands_for.items():
        own = {name for name in methods if getattr(backend, name) is not getattr(FlowBackend, name)}
        assert own == (methods if capability in backend.capabilities else set())


@pytest.mark.parametrize("kind", ["local", "sharded"])
def test_what_both_do_is_the_same(kind, request):
    flow = request.getfixturevalue(kind)
    assert flow.stream("totals").read_all() == flow.snapshot("totals") == pa.table({"total": [5]})
    assert flow.explain("totals").startswith("totals: incremental\n")
    assert "totals" in flow.explain()
    assert flow.source("orders").schema.names == ["id", "amount"]
    flow.register_view("late", "SELECT id FROM pages")
    assert list(flow.waiting) == ["late"]
    assert flow.explain().endswith(f"\nlate: waiting\n  why: {flow.waiting['late']}")
    watch = flow.watch_output("late")
    with pytest.raises(ConfigError, match="is a source"):
        flow.watch_output("orders")
    flow.register_source("pages", "id BIGINT")
    flow.tick("pages", [{"id": 7}])
    assert watch.get(timeout=0)[1].to_arrow().column("id").to_pylist() == [7]


def test_no_public_method_of_a_flow_is_written_twice():
    classes = {one for kind in (SessionFlow, PartitionedIncrementalFlow) for one in inspect.getmro(kind)} - {object}
    written = [name for one in classes if one is not Flow for name in vars(one) if not name.startswith("_")]
    assert sorted(written) == sorted(set(written))
    assert set(written) & set(vars(Flow)) == {"close"}  # which stops what feeds the flow first
