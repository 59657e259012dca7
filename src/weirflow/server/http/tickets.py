"""Tickets for browsers: an ``EventSource`` cannot send a header, and a token does not belong into a URL."""

from __future__ import annotations

import secrets
import threading
import time
from typing import TYPE_CHECKING

from weirflow.errors import AuthenticationFailed, ServerBusy

if TYPE_CHECKING:
    from weirflow.server.access.caller import Caller

LIFETIME = 30.0
"""For how many seconds a ticket can be used."""
_MOST = 10_000


class StreamTickets:
    """Tickets that stand for a caller, once, for some seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callers: dict[str, tuple[Caller, float]] = {}

    def issue(self, caller: Caller) -> str:
        """A ticket for a caller."""
        now = time.monotonic()
        with self._lock:
            self._callers = {one: known for one, known in self._callers.items() if known[1] > now}
            if len(self._callers) >= _MOST:
                raise ServerBusy("Too many tickets wait to be used.", retry_after=LIFETIME)
            ticket = secrets.token_urlsafe(24)
            self._callers[ticket] = (caller, now + LIFETIME)
        return ticket

    def redeem(self, ticket: str) -> Caller:
        """Whose a ticket is; it is used up by that. ``AuthenticationFailed`` if it is nobody's."""
        with self._lock:
            caller, until = self._callers.pop(ticket, (None, 0.0))
        if caller is None or until <= time.monotonic():
            raise AuthenticationFailed(
                "The ticket is no longer valid.", hint=f"POST /v1/tickets gives one for {LIFETIME:.0f} seconds"
            )
        return caller
