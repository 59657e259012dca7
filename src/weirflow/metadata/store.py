"""``Metadata``: leases, nodes and documents in one database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from weirflow.arguments import Lifetime, Name, Seconds, checked
from weirflow.metadata.documents import Documents
from weirflow.metadata.leases import Lease, LeaseInfo, acquire, held_leases
from weirflow.metadata.nodes import NODE_TTL, Membership, Node, alive_nodes, join
from weirflow.metadata.schema import prepare

if TYPE_CHECKING:
    from weirflow.errors import LeaseLost
    from weirflow.metadata.database import Database


@checked
class Metadata(AbstractContextManager["Metadata"]):
    """The metadata store that ``open_metadata`` returns. Threads may share it; a forked process opens its own.

    Attributes:
        documents: small JSON documents by name.
    """

    def __init__(self, database: Database) -> None:
        prepare(database)
        self._database = database
        self.documents = Documents(database)

    @property
    def uri(self) -> str:
        """Where it is, without credentials."""
        return self._database.uri

    def acquire(self, name: Name, owner: Name, ttl: Lifetime, wait: Seconds | None = None) -> Lease:
        """Become the only owner of a name, with a token greater than that of every earlier owner.

        A valid lease is refused even to an owner with the same name, which may be another process.

        Args:
            name: the name that may have one owner at a time.
            owner: the owner's name, as others see it.
            ttl: seconds after which the lease runs out unless it is renewed, by the database's clock.
            wait: for how many seconds to wait for another owner; None does not wait.

        Raises:
            LeaseHeld: somebody else has it, even after ``wait``.
        """
        return acquire(self._database, name, owner, ttl, wait)

    def leases(self) -> tuple[LeaseInfo, ...]:
        """The leases that are valid now, by name."""
        return held_leases(self._database)

    def join(
        self,
        node_id: Name,
        address: Name,
        info: Mapping[str, Any] | None = None,
        *,
        ttl: Lifetime = NODE_TTL,
        on_lost: Callable[[LeaseLost], None] | None = None,
    ) -> Membership:
        """List this process as a running node, and send its heartbeats until it leaves.

        Args:
            node_id: its name. A process that joins with the same id replaces this one.
            address: where others reach it.
            info: what others should know in addition, as JSON.
            ttl: three heartbeats are sent in this many seconds.
            on_lost: called once, in the thread of the heartbeats, when another process has replaced this one.
        """
        return join(self._database, node_id, address, info or {}, ttl=ttl, on_lost=on_lost)

    def alive_nodes(self, ttl: Lifetime = NODE_TTL) -> tuple[Node, ...]:
        """The nodes that have reported within ``ttl`` seconds by the database's clock, by id."""
        return alive_nodes(self._database, ttl)

    def close(self) -> None:
        """Close the connection. First release leases and leave; what is left over is lost when its time is over."""
        self._database.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<metadata {self.uri}>"
