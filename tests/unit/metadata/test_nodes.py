import threading
import time
from datetime import UTC, datetime

import pytest
from support.processes import wait_until

from weirflow.errors import ConfigError, LeaseLost
from weirflow.types import NodeState


def seen(metadata, ttl=15.0):
    return [(node.id, node.address, node.state, node.info) for node in metadata.alive_nodes(ttl)]


def test_nodes_join_drain_and_leave(metadata, other):
    with metadata.join("n2", "host2:50060"), other.join("n1", "host1:50060", {"cores": 4, "tags": ["é"]}) as first:
        one = ("n1", "host1:50060", NodeState.RUNNING, {"cores": 4, "tags": ["é"]})
        two = ("n2", "host2:50060", NodeState.RUNNING, {})
        assert seen(metadata) == seen(other) == [one, two]
        first.drain()
        assert seen(metadata) == [("n1", "host1:50060", NodeState.TERMINATING, one[3]), two]
        first.leave()
        assert seen(metadata) == [two]
    assert seen(metadata) == []


def test_a_node_tells_when_it_joined_and_was_last_heard_of(metadata):
    with metadata.join("n1", "host:1"):
        (node,) = metadata.alive_nodes()
    assert abs((datetime.now(UTC) - node.joined).total_seconds()) < 5
    assert 0 <= node.age < 5
    assert hash(node)


def test_heartbeats_keep_a_node_alive_while_it_drains(metadata):
    with metadata.join("n1", "host:1", ttl=3.0) as member:
        member.drain()
        begin = time.monotonic()
        while time.monotonic() < begin + 3.6:
            assert [node[2] for node in seen(metadata, 3.0)] == [NodeState.TERMINATING]
            time.sleep(0.02)


def test_a_node_that_is_not_heard_of_is_not_alive(metadata, other):
    member = other.join("n1", "host:1", ttl=0.3)
    member._keeper.stop()
    wait_until(lambda: seen(metadata, 0.3) == [], 30, "gone")
    assert [node[0] for node in seen(metadata, 60)] == ["n1"]
    member.renew()
    assert len(seen(metadata, 10)) == 1


def test_a_process_that_joins_again_replaces_the_one_before(metadata, other):
    lost, told = [], threading.Event()
    old = metadata.join("n1", "old:1", ttl=0.3, on_lost=lambda error: (lost.append(error), told.set()))
    old.drain()
    with other.join("n1", "new:1"):
        assert told.wait(30)
        assert [(error.code, error.name) for error in lost] == [("LEASE_LOST", "n1")]
        assert not old.valid
        for call in (old.renew, old.drain):
            with pytest.raises(LeaseLost):
                call()
        old.leave()
        assert seen(metadata) == [("n1", "new:1", NodeState.RUNNING, {})]


def test_a_node_that_has_left_stays_gone(metadata):
    member = metadata.join("n1", "host:1")
    member.leave()
    member.leave()
    with pytest.raises(LeaseLost):
        member.renew()
    assert seen(metadata) == []


def test_nodes_of_yesterday_are_forgotten(metadata):
    metadata.join("old", "host:1")._keeper.stop()
    metadata._database.run("UPDATE weirflow_nodes SET heartbeat = clock() - 86401")
    with metadata.join("new", "host:2"):
        assert metadata._database.run("SELECT id FROM weirflow_nodes") == [("new",)]


@pytest.mark.parametrize("info", [{"a": float("nan")}, {"a": object()}, {1: "a"}, {"a": (1,)}])
def test_info_that_is_not_json_is_refused(metadata, info):
    with pytest.raises(ConfigError, match=r"info of a node is not JSON|info's key"):
        metadata.join("n1", "host:1", info)
    assert seen(metadata) == []
