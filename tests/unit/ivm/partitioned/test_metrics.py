"""Metrics of flows in shards."""

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
