"""A thread that renews a lease, or sends the heartbeats of a node, until it is stopped."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from weirflow.arguments import checked
from weirflow.errors import LeaseLost, MetadataError

_log = logging.getLogger(__name__)

RENEWALS = 3
"""How many fit into a time to live, so that one or two may fail."""
RETRIES = 12
"""The same, after one has failed."""


class Renewable(Protocol):
    """What a keeper keeps: a ``Lease`` or a ``Membership``."""

    @property
    def name(self) -> str:
        """How it is called in messages."""

    @property
    def ttl(self) -> float:
        """For how many seconds a renewal holds."""

    @property
    def valid(self) -> bool:
        """Whether it can still be kept when a renewal has failed."""

    @property
    def released(self) -> bool:
        """Whether its owner gave it up, so that nothing is lost."""

    def renew(self) -> None:
        """Renew it; ``LeaseLost`` if that is not possible any more."""


@checked
class LeaseKeeper(AbstractContextManager["LeaseKeeper"]):
    """Renews a lease at once, and then three times within each time to live, from a daemon thread.

    It ends by itself when the lease is released or lost. A lease is lost when somebody else has it, or when the
    database could not be reached until its time was over. In a process that was stopped for longer, the lease is not
    ``valid`` at once; if nobody took it, the keeper renews it and continues.

    Args:
        kept: the lease.
        on_lost: called once, in the keeper's thread, when the lease is lost; perhaps before the constructor returns. It
            may call ``stop()``.
    """

    def __init__(self, kept: Renewable, *, on_lost: Callable[[LeaseLost], None] | None = None) -> None:
        self._kept = kept
        self._on_lost = on_lost
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"weirflow-keeper-{kept.name}", daemon=True)
        try:
            self._thread.start()
        except BaseException:
            self._stopping.set()  # it may run, and nobody could stop it
            raise

    def stop(self) -> None:
        """Stop renewing, and wait for a renewal that is under way. The lease is not released."""
        self._stopping.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        pause = 0.0
        while not self._stopping.wait(pause):
            try:
                self._kept.renew()
                pause = self._kept.ttl / RENEWALS
            except LeaseLost as lost:
                self._tell(lost)
                return
            except Exception as error:  # noqa: BLE001 - also what has nothing to do with the database, such as no memory
                failure = error if isinstance(error, MetadataError) else _unexpected(error)
                if not self._kept.valid:
                    self._tell(_given_up(self._kept.name, failure))
                    return
                _log.warning("%s could not be renewed, and is tried again: %s", self._kept.name, failure.message)
                pause = self._kept.ttl / RETRIES

    def _tell(self, lost: LeaseLost) -> None:
        if self._stopping.is_set() or self._kept.released:
            return
        _log.warning("%s", lost.message)
        if self._on_lost is not None:
            self._on_lost(lost)


def _unexpected(error: Exception) -> MetadataError:
    return MetadataError(f"{type(error).__name__}: {error}", uri="")


def _given_up(name: str, failure: MetadataError) -> LeaseLost:
    return LeaseLost(
        f"The lease {name!r} has run out, because it could not be renewed: {failure.message}",
        uri=failure.uri,
        name=name,
        hint="acquire a new one when the database is there again",
    )
