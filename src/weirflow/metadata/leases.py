"""Leases: one owner at a time for a name, each with a fencing token greater than all before it."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from weirflow.errors import LeaseHeld, LeaseLost, MetadataError
from weirflow.metadata import clock
from weirflow.metadata.holder import is_dead, make_claim
from weirflow.metadata.names import require_name, require_seconds

if TYPE_CHECKING:
    from weirflow.metadata.database import Database

POLL_SECONDS = 0.2

# An acquisition that is sent again after a dropped connection finds its own claim and gets the next token.
_ACQUIRE = """
INSERT INTO weirflow_leases (name, token, claim, owner, since, expires) VALUES (?, 1, ?, ?, clock(), clock() + ?)
ON CONFLICT (name) DO UPDATE SET
    token = weirflow_leases.token + 1, claim = excluded.claim, owner = excluded.owner,
    since = clock(), expires = clock() + ?
WHERE weirflow_leases.expires <= clock() OR weirflow_leases.claim = excluded.claim OR weirflow_leases.claim = ?
RETURNING token"""
_HOLDER = """
SELECT claim, owner, since, expires, expires - clock() FROM weirflow_leases WHERE name = ? AND expires > clock()"""
_RENEW = "UPDATE weirflow_leases SET expires = clock() + ? WHERE name = ? AND claim = ? RETURNING token"
_HELD = "SELECT name, owner, token, since, expires - clock() FROM weirflow_leases WHERE expires > clock()"
_RELEASE = "UPDATE weirflow_leases SET expires = 0, claim = NULL WHERE name = ? AND claim = ?"


@dataclass(frozen=True)
class LeaseInfo:
    """A lease that somebody has.

    Attributes:
        name: the name that is leased.
        owner: who has it.
        token: greater than that of every earlier lease of this name.
        since: when it was acquired, by the database's clock.
        left: for how many seconds it holds unless it is renewed.
    """

    name: str
    owner: str
    token: int
    since: datetime
    left: float


def held_leases(database: Database) -> tuple[LeaseInfo, ...]:
    """What ``Metadata.leases`` does."""
    found = [
        LeaseInfo(name, owner, token, datetime.fromtimestamp(since, UTC), left)
        for name, owner, token, since, left in database.run(_HELD)
    ]
    return tuple(sorted(found, key=lambda lease: lease.name))


class Lease(contextlib.AbstractContextManager["Lease"]):
    """A lease that was acquired. Threads may share it. As a context manager, it is released at the end.

    Attributes:
        name: the name that is leased.
        owner: who has it.
        token: greater than that of every earlier lease of this name. Write it together with your data; readers refuse a
            token smaller than one already seen.
        ttl: for how many seconds an acquisition or renewal is valid.
    """

    def __init__(
        self, database: Database, name: str, owner: str, *, token: int, ttl: float, claim: str, asked: float
    ) -> None:
        self.name = name
        self.owner = owner
        self.token = token
        self.ttl = ttl
        self._database = database
        self._claim = claim
        self._process = os.getpid()
        self._over = False
        self._released = False
        self._let_go = False
        self._until = asked + ttl

    @property
    def valid(self) -> bool:
        """Whether nobody else can have the lease now. This does not ask the database and never waits.

        The time counts from before the last acquisition or renewal was sent, so it is over here before it is over in
        the database, even for a process that was stopped in the meantime. A forked child has no lease: the lease stays
        with its parent.
        """
        return not self._over and clock.monotonic() < self._until and os.getpid() == self._process

    @property
    def released(self) -> bool:
        """Whether the owner itself has released it."""
        return self._released

    def require(self) -> None:
        """Raise ``LeaseLost`` unless the lease is valid."""
        if not self.valid:
            self._require_own()
            raise self._lost("has run out, was released, or went to somebody else")

    def renew(self) -> None:
        """Extend the lease by its time to live from now. A lease that ran out is also renewed if nobody has taken it.

        Raises:
            LeaseLost: it was released, or somebody else has acquired it.
            MetadataError: the database failed; the lease is still valid until its time is over.
        """
        self._require_own()
        asked = clock.monotonic()
        if self._over or not self._database.run(_RENEW, (self.ttl, self.name, self._claim)):
            self._over = True
            raise self._lost("was released, or went to somebody else")
        self._until = asked + self.ttl

    def release(self) -> None:
        """Let others have it at once. Does nothing for a lost lease, in a forked child, or the second time.

        If it raises, it can be called again.
        """
        if os.getpid() != self._process:
            return
        if self._released or not self._over:
            self._over = self._released = True
            if not self._let_go:
                self._database.run(_RELEASE, (self.name, self._claim))
                self._let_go = True

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        state = "valid" if self.valid else "not valid"
        return f"<lease {self.name!r} of {self.owner!r}, token {self.token}, {state}>"

    def _require_own(self) -> None:
        if os.getpid() != self._process:
            raise self._lost(f"belongs to the process {self._process}, which this one was forked from")

    def _lost(self, what: str) -> LeaseLost:
        return LeaseLost(
            f"The lease {self.name!r} of {self.owner!r} with token {self.token} {what}.",
            uri=self._database.uri,
            name=self.name,
            hint="stop what needs the lease, and acquire a new one",
        )


def acquire(database: Database, name: str, owner: str, ttl: float, wait: float | None) -> Lease:
    """What ``Metadata.acquire`` does."""
    require_name("The name of a lease", name)
    require_name("The owner of a lease", owner)
    ttl = require_seconds("The time to live of a lease", ttl)
    end = clock.monotonic() + (require_seconds("The time to wait for a lease", wait) if wait else 0.0)
    claim = make_claim()
    try:
        return _acquire(database, name, owner, ttl=ttl, claim=claim, end=end)
    except MetadataError:
        raise
    except BaseException:
        # It may be ours by now, and nobody would know.
        with contextlib.suppress(MetadataError):
            database.run(_RELEASE, (name, claim))
        raise


def _acquire(database: Database, name: str, owner: str, *, ttl: float, claim: str, end: float) -> Lease:
    dead: str | None = None
    while True:
        asked = clock.monotonic()
        rows = database.run(_ACQUIRE, (name, claim, owner, ttl, ttl, dead))
        if rows:
            return Lease(database, name, owner, token=rows[0][0], ttl=ttl, claim=claim, asked=asked)
        held = database.run(_HOLDER, (name,))
        if not held:  # it was let go of since
            continue
        ((theirs, holder, since, until, left),) = held
        if theirs is not None and theirs != dead and is_dead(theirs):
            dead = theirs
            continue
        now = clock.monotonic()
        if now >= end:
            raise _held(database, name, holder, since, until)
        time.sleep(min(left, POLL_SECONDS, end - now))


def _held(database: Database, name: str, holder: str, since: float, until: float) -> LeaseHeld:
    begun, ends = datetime.fromtimestamp(since, UTC), datetime.fromtimestamp(until, UTC)
    return LeaseHeld(
        f"The lease {name!r} has been held by {holder!r} since {begun:%Y-%m-%d %H:%M:%S} UTC,"
        f" until {ends:%H:%M:%S} unless it is renewed.",
        uri=database.uri,
        name=name,
        owner=holder,
        since=begun,
        until=ends,
        hint="pass wait=seconds to wait for it",
    )
