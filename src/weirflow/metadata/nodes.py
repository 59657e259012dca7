"""Nodes: who is there, by their heartbeats."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from weirflow.errors import LeaseLost, MetadataError
from weirflow.metadata.keeper import LeaseKeeper
from weirflow.metadata.names import require_name, require_seconds, to_json
from weirflow.types import NodeState

if TYPE_CHECKING:
    from weirflow.metadata.database import Database

NODE_TTL = 15.0
"""Seconds without a heartbeat after which a node counts as gone, unless one says otherwise."""

_FORGOTTEN = "DELETE FROM weirflow_nodes WHERE heartbeat < clock() - 86400"
_JOIN = """
INSERT INTO weirflow_nodes (id, claim, address, state, joined, heartbeat, info)
VALUES (?, ?, ?, 'running', clock(), clock(), ?)
ON CONFLICT (id) DO UPDATE SET
    claim = excluded.claim, address = excluded.address, state = excluded.state,
    joined = excluded.joined, heartbeat = excluded.heartbeat, info = excluded.info"""
_HEARTBEAT = "UPDATE weirflow_nodes SET heartbeat = clock() WHERE id = ? AND claim = ? RETURNING id"
_DRAIN = """
UPDATE weirflow_nodes SET state = 'terminating', heartbeat = clock() WHERE id = ? AND claim = ? RETURNING id"""
_LEAVE = "DELETE FROM weirflow_nodes WHERE id = ? AND claim = ?"
_ALIVE = """
SELECT id, address, state, joined, clock() - heartbeat, info FROM weirflow_nodes WHERE heartbeat > clock() - ?"""


@dataclass(frozen=True)
class Node:
    """A node, as it last reported.

    Attributes:
        id: its name, which one process at a time has.
        address: where it can be reached.
        state: running, or terminating: still there, but takes no new work.
        joined: when it joined, by the database's clock.
        age: seconds since its last heartbeat.
        info: what it told about itself.
    """

    id: str
    address: str
    state: NodeState
    joined: datetime
    age: float
    info: Mapping[str, Any] = field(hash=False)


class Membership(contextlib.AbstractContextManager["Membership"]):
    """This process as a node. A thread sends heartbeats until the node leaves, even while it drains.

    As a context manager, it leaves at the end. ``name`` is the node's id; ``ttl`` is three times the pause between
    heartbeats.
    """

    def __init__(
        self,
        database: Database,
        node_id: str,
        claim: str,
        *,
        ttl: float,
        on_lost: Callable[[LeaseLost], None] | None = None,
    ) -> None:
        self.name = node_id
        self.ttl = ttl
        self._database = database
        self._claim = claim
        self._process = os.getpid()
        self._over = False
        self._left = False
        self._gone = False
        self._keeper = LeaseKeeper(self, on_lost=on_lost)

    @property
    def valid(self) -> bool:
        """Whether this process is the node, as far as it knows; false after ``leave()`` or when it was replaced."""
        return not self._over

    @property
    def released(self) -> bool:
        """Whether the process itself has left."""
        return self._left

    def renew(self) -> None:
        """Send a heartbeat now; the thread does it by itself.

        Raises:
            LeaseLost: another process has joined with this id, this one has left, or it has not reported for a day.
        """
        self._change(_HEARTBEAT)

    def drain(self) -> None:
        """Be listed as terminating, so that this node gets no new work. Raises ``LeaseLost`` like ``renew()``."""
        self._change(_DRAIN)

    def leave(self) -> None:
        """Stop the heartbeats and leave the list of nodes. Does nothing the second time, or in a forked child.

        If it raises, it can be called again.
        """
        if os.getpid() != self._process:
            return
        self._keeper.stop()
        if self._left or not self._over:
            self._over = self._left = True
            if not self._gone:
                self._database.run(_LEAVE, (self.name, self._claim))
                self._gone = True

    def __exit__(self, *_: object) -> None:
        self.leave()

    def __repr__(self) -> str:
        return f"<membership of node {self.name!r}>"

    def _change(self, sql: str) -> None:
        if self._over or not self._database.run(sql, (self.name, self._claim)):
            self._over = True
            raise LeaseLost(
                f"This process is not the node {self.name!r} any more.",
                uri=self._database.uri,
                name=self.name,
                hint="give each process a node id of its own, and join again",
            )


def join(
    database: Database,
    node_id: str,
    address: str,
    info: Mapping[str, Any],
    *,
    ttl: float,
    on_lost: Callable[[LeaseLost], None] | None,
) -> Membership:
    """What ``Metadata.join`` does. Nodes that were not heard of for a day are forgotten on the way."""
    require_name("The id of a node", node_id)
    require_name("The address of a node", address)
    ttl = require_seconds("The time to live of a node", ttl)
    text = to_json("The info of a node", dict(info))
    claim = uuid.uuid4().hex
    database.run(_FORGOTTEN)
    try:
        database.run(_JOIN, (node_id, claim, address, text))
        return Membership(database, node_id, claim, ttl=ttl, on_lost=on_lost)
    except MetadataError:
        raise
    except BaseException:
        with contextlib.suppress(MetadataError):
            database.run(_LEAVE, (node_id, claim))
        raise


def alive_nodes(database: Database, ttl: float) -> tuple[Node, ...]:
    """What ``Metadata.alive_nodes`` does."""
    rows = database.run(_ALIVE, (require_seconds("The time to live of a node", ttl),))
    nodes = [
        Node(node_id, address, NodeState(state), datetime.fromtimestamp(joined, UTC), max(age, 0.0), json.loads(info))
        for node_id, address, state, joined, age, info in rows
    ]
    return tuple(sorted(nodes, key=lambda node: node.id))
