"""``Leadership``: this process as the coordinator of a flow: its lease, and its place in the list of nodes."""

from __future__ import annotations

import os
import socket

from weirflow.errors import MetadataError
from weirflow.metadata import LeaseKeeper, Membership, open_metadata


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
        self._process = os.getpid()
        self._ended = False
        self._keeper: LeaseKeeper | None = None
        self._node: Membership | None = None
        self.store = open_metadata(metadata)
        try:
            self.lease = self.store.acquire(f"flow/{uri}", me, seconds, wait)
        except BaseException:
            self.store.close()
            raise
        try:
            self._keeper = LeaseKeeper(self.lease)
            self._node = self.store.join(f"{me}/{flow}", host, {"flow": flow, "uri": uri})
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Let the lease go; others may have it at once. Does nothing the second time, nor in a forked child.

        An end that was interrupted goes on when it is called again.
        """
        if self._ended or os.getpid() != self._process:
            return
        failure: MetadataError | None = None
        for step in (self._leave, self._let_go):
            try:
                step()
            except MetadataError as error:
                failure = failure or error
        self._ended = True
        self.store.close()
        if failure is not None:
            raise failure

    def _leave(self) -> None:
        if self._node is not None:
            if self._node.valid:
                self._node.drain()
            self._node.leave()

    def _let_go(self) -> None:
        if self._keeper is not None:
            self._keeper.stop()
        if self.lease.valid or self.lease.released:
            self.lease.release()
