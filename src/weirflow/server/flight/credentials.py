"""Who calls: the token of each call, and logins by user and password, whose password is a token."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow.flight as fl
from typing_extensions import override

from weirflow.errors import AuthenticationFailed
from weirflow.wire.flight import to_flight
from weirflow.wire.messages import AUTHORIZATION

if TYPE_CHECKING:
    from weirflow.server.access.gate import Gate

MIDDLEWARE = "weirflow"
"""The name by which a call finds its ``Credentials``."""


class NoHandshake(fl.ServerAuthHandler):  # type: ignore[misc]  # pyarrow has no types
    """Lets logins happen at all; who may come in is decided by the header of each call."""

    @override
    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        """Nothing is exchanged but headers."""

    @override
    def is_valid(self, token: Any) -> bytes:
        """Calls bring their own header."""
        return b""


class Credentials(fl.ServerMiddleware):  # type: ignore[misc]  # as above
    """What a call brought.

    Attributes:
        token: without the word before it; None if there is none.
    """

    def __init__(self, token: str | None, *, is_login: bool) -> None:
        self.token = token
        self._is_login = is_login

    @override
    def sending_headers(self) -> Mapping[str, str]:
        """A login is answered with the token for the calls to come."""
        return {AUTHORIZATION: f"Bearer {self.token}"} if self._is_login and self.token else {}


class CredentialsFactory(fl.ServerMiddlewareFactory):  # type: ignore[misc]  # as above
    """Reads the headers of calls; a login with a token that is not known is refused at once."""

    def __init__(self, gate: Callable[[], Gate]) -> None:
        self._gate = gate

    @override
    def start_call(self, info: fl.CallInfo, headers: Mapping[str, Sequence[str]]) -> Credentials:
        """Called before each call."""
        is_login = info.method == fl.FlightMethod.HANDSHAKE
        try:
            token = _token(headers)
            if is_login and token:
                self._gate().caller(token, "a login")
        except AuthenticationFailed as error:
            raise to_flight(error) from None
        return Credentials(token, is_login=is_login)


def _token(headers: Mapping[str, Sequence[str]]) -> str | None:
    given = next((values for name, values in headers.items() if name.lower() == AUTHORIZATION), [])
    if not given:
        return None
    kind, _, content = str(given[0]).strip().partition(" ")
    match kind.lower():
        case "bearer":
            return content.strip() or None
        case "basic":
            return _password(content)
        case _:
            raise AuthenticationFailed(
                "The header 'authorization' is neither Bearer nor Basic.",
                hint="send `Bearer TOKEN`, or log in with any user and the token as the password",
            )


def _password(content: str) -> str | None:
    try:  # some clients leave the padding out
        _, _, password = base64.b64decode(content + "=" * (-len(content) % 4), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise AuthenticationFailed("The header 'authorization' is not valid for Basic.") from None
    return password or None
