"""``Leadership``: this process as the coordinator of a flow: its lease, and its place in the list of nodes."""

from __future__ import annotations

import os
import socket

from weirflow.metadata import LeaseKeeper, open_metadata


class Leadership:
    """The lease of a flow, renewed until ``end``.

    Args:
        metadata: the URI of the metadata store.
        uri: where the flow is kept: there is one coordinator for it.
        flow: its name.
        seconds: after how long of silence others may take over.
        wait: for how many seconds to wait for another coordinator; None does not wait.

    Raises:
        LeaseHeld: another process coordinates the flow.
    """

    def __init__(self, metadata: str, uri: str, flow: str, seconds: float, wait: float | None) -> None:
        host, me = socket.gethostname(), f"{socket.gethostname()}/{os.getpid()}"
        self.store = open_metadata(metadata)
        try:
            self.lease = self.store.acquire(f"flow/{uri}", me, seconds, wait)
            self._keeper = LeaseKeeper(self.lease)
            self._node = self.store.join(f"{me}/{flow}", host, {"flow": flow, "uri": uri})
        except BaseException:
            self.store.close()
            raise
        self._ended = False

    def end(self) -> None:
        """Let the lease go; others may have it at once. Does nothing the second time."""
        if self._ended:
            return
        self._ended = True
        self._node.drain()
        self._keeper.stop()
        if self.lease.valid:
            self.lease.release()
        self._node.leave()
        self.store.close()
