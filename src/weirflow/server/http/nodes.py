"""Nodes and leases: who is there, and who owns what."""

from __future__ import annotations

from weirflow.server.http.calls import Answer, Call, answer_json
from weirflow.server.nodes import lease_json, node_json


def list_nodes(call: Call) -> Answer:
    """The servers, coordinators and executors' hosts that were heard of lately."""
    return answer_json({"nodes": [node_json(node) for node in call.parts.nodes.all()]})


def drain_node(call: Call) -> Answer:
    """Have a server finish what it has, take nothing new, and end."""
    call.object()
    return answer_json(node_json(call.parts.nodes.drain(call.path["node"])), 202)


def list_leases(call: Call) -> Answer:
    """The leases that hold now: what is owned, by whom, and until when; those of flows that the token is for."""
    leases = [one for one in call.parts.nodes.leases() if _is_seen(call, one.name)]
    return answer_json({"leases": [lease_json(one) for one in leases]})


def _is_seen(call: Call, lease: str) -> bool:
    """Whether a lease may be told of: the name of a flow's ends in the flow's."""
    return not lease.startswith("flow/") or call.caller.sees_flow(lease.rpartition("/")[2])
