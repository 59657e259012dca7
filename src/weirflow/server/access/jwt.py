"""``JwtIssuer``: callers known by JWTs that an OpenID Connect issuer has signed."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from weirflow.errors import AuthenticationFailed, ConfigError
from weirflow.server.access.caller import EVERYTHING, Caller, Role

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Those of key pairs: with a shared secret, whoever can check a token could also make one."""
_FRESH_SECONDS = 300.0
_AGAIN_SECONDS = 10.0
_FETCH_SECONDS = 5.0
_LEEWAY_SECONDS = 30
_LONGEST = 16_384
_MOST_BYTES = 1 << 20


class JwtIssuer:
    """Takes the JWTs of one issuer.

    What the caller may do is in one claim, an object: ``{"role": "reader", "flows": ["shop"], "catalogs": ["lake"]}``,
    whose ``flows`` and ``catalogs`` may be left out for all.

    Args:
        issuer: what the claim ``iss`` must be.
        keys: where the issuer's keys are: an ``https://`` URL of a JWK set, or a file of one. They are read again when
            a token has a key that is not known, and every five minutes.
        audience: what the claim ``aud`` must be, or contain; None for anything.
        claim: the name of the claim that says what the caller may do.
    """

    def __init__(self, issuer: str, keys: str, *, audience: str | None = None, claim: str = "weirflow") -> None:
        if "://" in keys and not keys.startswith("https://") and not _is_local(keys):
            raise ConfigError("The issuer's keys must come over https.", hint="set jwks to an https:// URL or a file")
        self._issuer = issuer
        self._place = keys
        self._claim = claim
        self._lock = threading.Lock()
        self._keys: KeySet | None = None
        self._read_at = 0.0
        wanted: dict[str, Any] = {"iss": {"essential": True, "value": issuer}, "exp": {"essential": True}}
        wanted["sub"] = {"essential": True}
        if audience is not None:
            wanted["aud"] = {"essential": True, "value": audience}
        self._registry = jwt.JWTClaimsRegistry(leeway=_LEEWAY_SECONDS, **wanted)

    def caller(self, token: str, peer: str) -> Caller:
        """Whose a JWT is; ``AuthenticationFailed`` if it is not signed by the issuer, or not good now."""
        if len(token) > _LONGEST:
            raise _refused("it is too long")
        try:
            decoded = self._decoded(token)
            self._registry.validate(decoded.claims)
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise _refused(_reason(error)) from None
        return self._named(decoded.claims, peer)

    def _decoded(self, token: str) -> jwt.Token:
        try:
            return jwt.decode(token, self._current(), algorithms=list(_ALGORITHMS))
        except (JoseError, ValueError):
            return jwt.decode(token, self._current(newer=True), algorithms=list(_ALGORITHMS))

    def _named(self, claims: dict[str, Any], peer: str) -> Caller:
        said = claims.get(self._claim)
        if not isinstance(said, dict) or said.get("role") not in tuple(Role):
            raise AuthenticationFailed(
                f"The JWT does not say what it is for: its claim {self._claim!r} has no role.",
                hint=f'the issuer has to set {self._claim} to an object such as {{"role": "reader"}}',
            )
        if said["role"] == Role.ADMIN and ("flows" in said or "catalogs" in said):
            raise _refused("an admin is for everything, and it names flows or catalogs")
        return Caller(
            str(claims["sub"])[:200],
            Role(said["role"]),
            _patterns(said, "flows"),
            _patterns(said, "catalogs"),
            None,
            peer,
        )

    def _current(self, *, newer: bool = False) -> KeySet:
        """The issuer's keys; a token with a bad signature has them read again at most every ten seconds."""
        with self._lock:
            age = time.monotonic() - self._read_at
            if self._keys is None or age > (_AGAIN_SECONDS if newer else _FRESH_SECONDS):
                try:
                    self._keys = KeySet.import_key_set(json.loads(self._fetched()))
                except (OSError, ValueError, JoseError) as error:
                    if self._keys is None:
                        raise AuthenticationFailed(
                            f"The keys of the issuer {self._issuer} could not be read: {type(error).__name__}.",
                            hint="the server's operator has to look at the setting jwks",
                        ) from None
                self._read_at = time.monotonic()
            return self._keys

    def _fetched(self) -> bytes:
        if "://" not in self._place:
            return Path(self._place).read_bytes()
        try:
            with urlopen(Request(self._place), timeout=_FETCH_SECONDS) as answer:  # noqa: S310 - the scheme was checked
                content: bytes = answer.read(_MOST_BYTES)
                return content
        except URLError as error:
            raise OSError(error.reason) from None


def _patterns(said: dict[str, Any], name: str) -> tuple[str, ...]:
    value = said.get(name)
    if value is None:
        return EVERYTHING
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _refused(f"its {name} are no list of names")
    return tuple(value)


def _refused(why: str) -> AuthenticationFailed:
    return AuthenticationFailed(f"The JWT is not good: {why}.", hint="get a new one from its issuer")


def _reason(error: Exception) -> str:
    """Why, without the token: the errors of joserfc have codes."""
    code = getattr(error, "error", "")
    claim = getattr(error, "claim", "")
    return " ".join(str(part) for part in (code or "it cannot be read", claim) if part)


def _is_local(keys: str) -> bool:
    """Plain HTTP is enough on this machine, where nobody is in between."""
    return keys.startswith(("http://127.0.0.1:", "http://localhost:", "http://[::1]:"))
