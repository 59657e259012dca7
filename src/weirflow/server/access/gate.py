"""``Gate``: from what a request carries to who it is from."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Protocol

from weirflow.errors import AuthenticationFailed
from weirflow.server.access.caller import Caller, Role

if TYPE_CHECKING:
    from weirflow.server.access.tokens import Tokens

_JWT_DOTS = 2


class Issuer(Protocol):
    """Knows callers by JWTs that somebody else has signed."""

    def caller(self, token: str, peer: str) -> Caller:
        """Whose a JWT is; ``AuthenticationFailed`` if it is not to be trusted."""


class Gate:
    """Knows callers by their bearer tokens.

    Args:
        tokens: the tokens of this server.
        issuer: who else may say who somebody is.
        insecure: whether those on this machine need no token; they may do everything then.
    """

    def __init__(self, tokens: Tokens, issuer: Issuer | None = None, *, insecure: bool = False) -> None:
        self.tokens = tokens
        self._issuer = issuer
        self._insecure = insecure

    @property
    def insecure(self) -> bool:
        """Whether those on this machine need no token."""
        return self._insecure

    def caller(self, bearer: str | None, peer: str) -> Caller:
        """Who a request is from.

        Args:
            bearer: the token, without the word "Bearer"; None if there is none.
            peer: the address of the other side, such as ``127.0.0.1:5000``, ``ipv4:127.0.0.1:5000`` as gRPC writes
                it, or an address alone.

        Raises:
            AuthenticationFailed: there is no token, or it is not good.
        """
        if not bearer:
            if self._insecure and is_loopback(peer):
                return Caller("local", Role.ADMIN, peer=peer)
            raise AuthenticationFailed(
                "The request has no token.", hint="send the header `Authorization: Bearer TOKEN`"
            )
        if self._issuer is not None and bearer.count(".") == _JWT_DOTS:
            return self._issuer.caller(bearer, peer)
        return self.tokens.caller(bearer, peer)


def is_loopback(peer: str) -> bool:
    """Whether an address is one of this machine's own, that nobody else can have.

    >>> is_loopback("ipv4:127.0.0.1:40312"), is_loopback("[::1]:80"), is_loopback("192.0.2.7")
    (True, True, False)
    """
    text = peer.removeprefix("ipv4:").removeprefix("ipv6:").replace("%5B", "[").replace("%5D", "]")
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    if text == "localhost":
        return True
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False
