"""Tokens: who may use a server, kept in its metadata store as hashes of their secrets."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from weirflow.arguments import Name, checked
from weirflow.errors import AuthenticationFailed, ConfigError, MetadataError, did_you_mean
from weirflow.server.access.caller import EVERYTHING, Caller, Role
from weirflow.server.access.limits import own_limits
from weirflow.types import one_of

if TYPE_CHECKING:
    from weirflow.metadata.store import Metadata

_PREFIX = "wf"
_DOCUMENTS = "server/token/"
_ID_BYTES = 5
_SECRET_BYTES = 32
_KNOWN_SECONDS = 2.0
_LONGEST = 512


@dataclass(frozen=True)
class TokenInfo:
    """A token as it is listed; its secret is known to nobody but its owner.

    Attributes:
        id: what it is revoked by.
        name: whose it is, or what it is for.
        role: what it may be used for.
        flows: the flows it is for, as patterns.
        catalogs: the catalogs it is for, as patterns.
        created: when it was made.
        expires: from when on it is refused; None for never.
        limits: what it may have where that is not what the server lets each token have, by the names of ``Limits``.
    """

    id: str
    name: str
    role: Role
    flows: tuple[str, ...]
    catalogs: tuple[str, ...]
    created: datetime
    expires: datetime | None
    limits: Mapping[str, Any] = field(default_factory=dict)


@checked
class Tokens:
    """The tokens of a metadata store.

    Changes that others make are seen within two seconds. If the store cannot be reached, what was read last holds.
    """

    def __init__(self, store: Metadata) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._known: dict[str, tuple[TokenInfo, bytes]] = {}
        self._read_at: float | None = None

    def create(
        self,
        name: Name,
        role: Role | str,
        *,
        flows: Sequence[Name] = EVERYTHING,
        catalogs: Sequence[Name] = EVERYTHING,
        lifetime: timedelta | None = None,
        limits: Mapping[Name, Any] | None = None,
    ) -> tuple[TokenInfo, str]:
        """Make a token. It is returned here and never again: only its hash is kept.

        Args:
            name: whose it is, or what it is for.
            role: ``reader``, ``writer``, ``operator`` or ``admin``.
            flows: the flows it is for, as names and patterns such as ``sales_*``; an admin's is for all.
            catalogs: the catalogs it is for, likewise.
            lifetime: for how long it is good; None for ever.
            limits: its own ``statement_seconds``, ``result_bytes``, ``message_bytes``, ``statements_at_once`` and
                ``watches_at_once``, more or less than the server's; what is not given is the server's.
        """
        chosen = one_of(Role, role, "No role is called")
        if not name.strip() or not name.isprintable():
            raise ConfigError("A token needs a name that can be printed.", hint="say whose it is, or what it is for")
        if chosen is Role.ADMIN and not tuple(flows) == tuple(catalogs) == EVERYTHING:
            raise ConfigError(
                "An admin's token is for everything: whoever may do all that Spark can do reaches every flow.",
                hint="leave out the flows and catalogs, or make it an operator's",
            )
        if lifetime is not None and lifetime <= timedelta(0):
            raise ConfigError(f"create(): lifetime is {lifetime}; it must be longer than 0.")
        own = own_limits(limits or {})
        created = datetime.now(UTC).replace(microsecond=0)
        try:
            expires = None if lifetime is None else created + lifetime
        except OverflowError:
            raise ConfigError("No token can be valid for so long.", hint="leave out the lifetime") from None
        token_id, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
        info = TokenInfo(token_id, name, chosen, tuple(flows), tuple(catalogs), created, expires, own)
        self._store.documents.put(_DOCUMENTS + token_id, _to_document(info, _hash(secret)), expected_version=0)
        self._forget()
        return info, f"{_PREFIX}_{token_id}_{secret}"

    def all(self) -> tuple[TokenInfo, ...]:
        """All tokens, also those that have expired, the oldest first."""
        found = (_from_document(one.name, one.value)[0] for one in self._store.documents.list(_DOCUMENTS))
        return tuple(sorted(found, key=lambda info: (info.created, info.id)))

    def revoke(self, token_id: Name) -> TokenInfo:
        """Have a token refused from now on, by this process at once and by others within two seconds."""
        found = self._store.documents.get(_DOCUMENTS + token_id) if token_id else None
        if found is None:
            known = [info.id for info in self.all()]
            raise ConfigError(
                f"No token has the id {token_id!r}.", hint=did_you_mean(token_id, known) or "`weirflow tokens list`"
            )
        self._store.documents.delete(found.name, expected_version=found.version)
        self._forget()
        return _from_document(found.name, found.value)[0]

    def caller(self, token: str, peer: str) -> Caller:
        """Whose a token is; ``AuthenticationFailed`` if it is nobody's. Says in no case which part of it is wrong."""
        prefix, _, rest = token.partition("_")
        token_id, _, secret = rest.partition("_")
        known = self._current().get(token_id) if len(token) <= _LONGEST and prefix == _PREFIX else None
        given = _hash(secret)
        if not hmac.compare_digest(given, known[1] if known else _hash("")) or known is None:
            raise refused()
        info = known[0]
        if info.expires is not None and info.expires <= datetime.now(UTC):
            raise AuthenticationFailed(f"The token {info.id} has expired.", hint="ask for a new one")
        return Caller(info.name, info.role, info.flows, info.catalogs, info.id, peer, info.limits)

    def _current(self) -> dict[str, tuple[TokenInfo, bytes]]:
        with self._lock:
            if self._read_at is None or time.monotonic() - self._read_at > _KNOWN_SECONDS:
                try:
                    documents = self._store.documents.list(_DOCUMENTS)
                except MetadataError:
                    if self._read_at is None:
                        raise
                else:
                    read = (_from_document(one.name, one.value) for one in documents)
                    self._known = {info.id: (info, digest) for info, digest in read}
                self._read_at = time.monotonic()
            return self._known

    def _forget(self) -> None:
        with self._lock:
            self._read_at = None


def refused() -> AuthenticationFailed:
    """The error for a token that is not known."""
    return AuthenticationFailed(
        "The server does not know this token.", hint="it was revoked, or belongs to another server; ask for a new one"
    )


def _hash(secret: str) -> bytes:
    # A secret of 256 random bits cannot be guessed, so there is nothing for a slow hash to slow down.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _to_document(info: TokenInfo, digest: bytes) -> dict[str, Any]:
    return {
        "name": info.name,
        "role": info.role.value,
        "flows": list(info.flows),
        "catalogs": list(info.catalogs),
        "created": info.created.isoformat(),
        "expires": info.expires.isoformat() if info.expires else None,
        "sha256": digest.hex(),
        **({"limits": dict(info.limits)} if info.limits else {}),
    }


def _from_document(name: str, value: dict[str, Any]) -> tuple[TokenInfo, bytes]:
    expires = value["expires"]
    info = TokenInfo(
        name.removeprefix(_DOCUMENTS),
        value["name"],
        Role(value["role"]),
        tuple(value["flows"]),
        tuple(value["catalogs"]),
        datetime.fromisoformat(value["created"]),
        datetime.fromisoformat(expires) if expires else None,
        value.get("limits", {}),
    )
    return info, bytes.fromhex(value["sha256"])
