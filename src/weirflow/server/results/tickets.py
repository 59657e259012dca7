"""Tickets: by which a result, or a part of it, is fetched, as often as is wanted until it expires."""

from __future__ import annotations

import re
from dataclasses import dataclass

from weirflow.errors import TicketExpired

RESULT = b"result/"
"""How the tickets of results begin."""
_TICKET = re.compile(r"result/([0-9a-f]{32})/(\*|0|[1-9][0-9]{0,8})")


@dataclass(frozen=True)
class ResultTicket:
    """What to fetch.

    Attributes:
        result: the id of a result.
        part: which of its parts, counted from 0; None for all, one after the other.
    """

    result: str
    part: int | None = None

    def __bytes__(self) -> bytes:
        return f"result/{self.result}/{'*' if self.part is None else self.part}".encode()


def read_ticket(content: bytes) -> ResultTicket:
    """What a ticket says; ``TicketExpired`` if it is none."""
    found = _TICKET.fullmatch(content.decode("ascii", "replace"))
    if found is None:
        raise gone()
    return ResultTicket(found[1], None if found[2] == "*" else int(found[2]))


def gone() -> TicketExpired:
    """The error for a ticket of which nothing is known: it has expired, or there never was such a result."""
    return TicketExpired(
        "There is no result for this ticket: it has expired, was dropped, or belongs to somebody else.",
        hint="run the statement again",
    )
