"""Who coordinates a flow, and which nodes are alive: leases with fencing tokens, heartbeats, small documents."""

from weirflow.metadata.documents import Document, Documents
from weirflow.metadata.keeper import LeaseKeeper
from weirflow.metadata.leases import Lease
from weirflow.metadata.nodes import Membership, Node
from weirflow.metadata.open import open_metadata
from weirflow.metadata.store import Metadata

__all__ = ["Document", "Documents", "Lease", "LeaseKeeper", "Membership", "Metadata", "Node", "open_metadata"]
