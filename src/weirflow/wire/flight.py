"""Errors over Flight: which of Flight's kinds one is, and back."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.flight as fl

from weirflow.errors import (
    AuthenticationFailed,
    ConfigError,
    EndpointError,
    EndpointUnreachable,
    MetadataError,
    NotAllowed,
    OperationCancelled,
    OperationTimeout,
    RetryLater,
    SessionError,
    SqlPosition,
    StorageError,
    TickTimeout,
    WeirflowError,
)
from weirflow.wire.errors import pack_error, unpack_error
from weirflow.wire.messages import pack

_KINDS: tuple[tuple[type[WeirflowError], type[fl.FlightError]], ...] = (
    (AuthenticationFailed, fl.FlightUnauthenticatedError),
    (NotAllowed, fl.FlightUnauthorizedError),
    (RetryLater, fl.FlightUnavailableError),
    (OperationCancelled, fl.FlightCancelledError),
    (OperationTimeout, fl.FlightTimedOutError),
    (TickTimeout, fl.FlightTimedOutError),
    (StorageError, fl.FlightInternalError),
    (MetadataError, fl.FlightInternalError),
    (SessionError, fl.FlightInternalError),
)
_LONGEST_MESSAGE = 600
_LONGEST_INFO = 4500  # gRPC's clients take 8 kB of what comes with a status, and the text comes twice


class ConnectionLost(EndpointUnreachable, code="ENDPOINT_UNREACHABLE"):
    """The connection broke, or there is none: whether the call was done is not known. Not for users."""


class CallTimedOut(EndpointUnreachable, code="ENDPOINT_UNREACHABLE"):
    """The server did not answer in time: whether the call was done is not known. Not for users."""


def to_flight(error: WeirflowError) -> fl.FlightError:
    """An error for whoever is on the other side: for any client of Flight by its text, for ours whole."""
    kind = next((kind for own, kind in _KINDS if isinstance(error, own)), fl.FlightServerError)
    info = pack_error(error)
    if len(info) > _LONGEST_INFO:
        info = pack_error(_shorter(error))
    return kind(_cut(str(error), _LONGEST_MESSAGE), extra_info=info)


def of_flight(error: Exception, where: str) -> WeirflowError:
    """The error that Flight brought, or what its failing means for a call to the server at ``where``."""
    info = getattr(error, "extra_info", None)
    if info:
        try:
            return unpack_error(bytes(info))
        except ConfigError:
            pass  # of a server that is none of ours: its text is all there is
    said = str(error).split(". gRPC client debug context", 1)[0].split(". Detail:", 1)[0]
    match error:
        case fl.FlightUnauthenticatedError():
            return AuthenticationFailed(
                f"The server at {where} refused the token: {said}.", hint="pass a token that is valid there"
            )
        case fl.FlightUnavailableError():
            return ConnectionLost(
                f"The server at {where} does not answer: {said}.", hint="check the address, and that the server runs"
            )
        case fl.FlightTimedOutError():
            return CallTimedOut(f"The server at {where} did not answer in time: {said}.", hint="give it more time")
        case _:
            return EndpointError(f"The server at {where} failed: {said}.")


def _shorter(error: WeirflowError) -> WeirflowError:
    """The same error with less text."""
    function, arguments = error.__reduce__()
    copy: WeirflowError = function(*arguments)
    for name, value in list(copy.__dict__.items()):
        if isinstance(value, str):
            copy.__dict__[name] = _cut(value, _LONGEST_INFO // 3 if name == "message" else _LONGEST_INFO // 9)
        elif isinstance(value, SqlPosition):
            copy.__dict__[name] = replace(value, fragment=_cut(value.fragment, _LONGEST_INFO // 9))
        elif value is not None and len(pack(value)) > _LONGEST_INFO // 9:
            del copy.__dict__[name]
    return copy


def _cut(text: str, longest: int) -> str:
    """The beginning and the end of a text that takes more bytes."""
    content = text.encode(errors="replace")
    if len(content) <= longest:
        return text
    begin, end = content[: longest // 2], content[-longest // 2 :]
    return f"{begin.decode(errors='ignore')} … {end.decode(errors='ignore')}"
