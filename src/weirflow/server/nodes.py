"""``ServerNodes``: this server among the nodes of its metadata store, and what runs where."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weirflow._version import __version__
from weirflow.errors import ConfigError, LeaseLost, MetadataError, did_you_mean

if TYPE_CHECKING:
    from weirflow.metadata.leases import LeaseInfo
    from weirflow.metadata.nodes import Membership, Node
    from weirflow.metadata.store import Metadata

_log = logging.getLogger(__name__)

_DRAINS = "server/drain/"
_LOOK_SECONDS = 1.0
_HOSTS_SECONDS = 5.0


class ServerNodes:
    """The nodes that share a metadata store: servers, the coordinators of flows in shards, executors' hosts.

    Args:
        store: where they are.
        name: this server's id among them; None for one who only looks.
        on_drain: called once, in a thread, when somebody wants this server to drain.
        hosts: the hosts of the executors that this server's Spark has now.
    """

    def __init__(
        self,
        store: Metadata,
        name: str | None = None,
        *,
        on_drain: Callable[[], None] | None = None,
        hosts: Callable[[], list[str]] | None = None,
    ) -> None:
        self._store = store
        self.name = name
        self._on_drain = on_drain
        self._hosts = hosts
        self._member: Membership | None = None
        self._executors: dict[str, Membership] = {}
        self._look_again = 0.0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def join(self, address: str, doors: dict[str, str | None]) -> None:
        """Be listed, and listen for the wish that this server drains."""
        assert self.name is not None
        self._forget_wish(self.name)
        info = {"kind": "server", "version": __version__, "pid": os.getpid(), "host": socket.gethostname(), **doors}
        self._member = self._store.join(self.name, address, info)
        self._thread = threading.Thread(target=self._look, name="weirflow-nodes", daemon=True)
        self._thread.start()

    def draining(self) -> None:
        """Be listed as terminating; does nothing if the store cannot be reached, for the end comes all the same."""
        if self._member is not None:
            try:
                self._member.drain()
            except (MetadataError, LeaseLost) as error:
                _log.warning("other nodes do not know yet that this server ends: %s", error.message)

    def leave(self) -> None:
        """Be listed no more."""
        self._ended.set()
        if self._thread is not None and threading.current_thread() is not self._thread:
            self._thread.join()
        for member in (*self._executors.values(), *([self._member] if self._member else [])):
            try:
                member.leave()
            except MetadataError as error:
                _log.warning("%s stays listed until its time is over: %s", member.name, error.message)

    # Looking

    def all(self) -> tuple[Node, ...]:
        """The nodes that were heard of lately."""
        return self._store.alive_nodes()

    def leases(self) -> tuple[LeaseInfo, ...]:
        """The leases that hold now."""
        return self._store.leases()

    def drain(self, name: str) -> Node:
        """Have a server drain and end. It hears of it within some seconds.

        Raises:
            ConfigError: no server that runs has this name.
        """
        servers = {node.id: node for node in self.all() if node.info.get("kind") == "server"}
        if name not in servers:
            raise ConfigError(
                f"No server among the nodes is called {name!r}.",
                hint=did_you_mean(name, servers) or (f"there are {', '.join(servers)}" if servers else "there is none"),
            )
        known = self._store.documents.get(_DRAINS + name)
        self._store.documents.put(_DRAINS + name, {}, expected_version=known.version if known else 0)
        return servers[name]

    # Inner workings

    def _look(self) -> None:
        told = False
        while not self._ended.wait(_LOOK_SECONDS):
            try:
                self._list_executors()
                if not told and self._store.documents.get(f"{_DRAINS}{self.name}") is not None:
                    told = True
                    if self._on_drain is not None:
                        self._on_drain()
            except MetadataError as error:
                _log.warning("the nodes cannot be looked at: %s", error.message)

    def _list_executors(self) -> None:
        """The hosts of executors join by this server, which hears of them from Spark, and leave with it."""
        if time.monotonic() < self._look_again:
            return
        self._look_again = time.monotonic() + _HOSTS_SECONDS
        hosts = set(self._hosts()) if self._hosts is not None else set()
        for gone in self._executors.keys() - hosts:
            self._executors.pop(gone).leave()
        for host in hosts - self._executors.keys():
            info = {"kind": "executor", "server": self.name}
            self._executors[host] = self._store.join(f"{self.name}/executor/{host}", host, info)

    def _forget_wish(self, name: str) -> None:
        """A wish from before a restart has been obeyed."""
        known = self._store.documents.get(_DRAINS + name)
        if known is not None:
            self._store.documents.delete(known.name, expected_version=known.version)


def lease_json(lease: LeaseInfo) -> dict[str, Any]:
    """A lease as JSON."""
    return {
        "name": lease.name,
        "owner": lease.owner,
        "token": lease.token,
        "since": lease.since.isoformat(timespec="seconds"),
        "seconds_left": round(lease.left, 1),
    }


def node_json(node: Node) -> dict[str, Any]:
    """A node as JSON."""
    return {
        "id": node.id,
        "address": node.address,
        "state": node.state.value,
        "joined": node.joined.isoformat(timespec="seconds"),
        "age": round(node.age, 1),
        "info": dict(node.info),
    }
