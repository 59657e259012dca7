"""Metrics of flows in shards."""

from contextlib import ExitStack

from prometheus_client import CollectorRegistry
from support.sunk_shop import declare, order

from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow


def test_a_closed_flow_leaves_no_series(tmp_path):
    registry = CollectorRegistry()
    with declare(PartitionedFlow(str(tmp_path), 2, InThisProcess(), registry=registry)) as flow:
        order(flow, 5)
        assert any(family.samples for family in registry.collect())
    assert not any(family.samples for family in registry.collect())


def test_flows_of_one_name_are_one_in_the_figures_of_shards(tmp_path):
    registry = CollectorRegistry()
    with ExitStack() as stack:
        for number in range(2):
            flow = PartitionedFlow(str(tmp_path / str(number)), 2, InThisProcess(), name="shop", registry=registry)
            order(declare(stack.enter_context(flow)), 5)
        samples = [sample for family in registry.collect() for sample in family.samples]
    places = [(sample.name, *sorted(sample.labels.items())) for sample in samples]
    assert any(name == "weirflow_shard_rows" for name, *_ in places)
    assert len(set(places)) == len(places)
