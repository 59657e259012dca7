"""Errors as HTTP answers: a status, and one body for all of them."""

from __future__ import annotations

import math
from typing import Any

from weirflow import errors
from weirflow.errors import QueryError, WeirflowError

_STATUS: tuple[tuple[type[WeirflowError], int], ...] = (
    (errors.AuthenticationFailed, 401),
    (errors.NotAllowed, 403),
    (errors.FlowNotFound, 404),
    (errors.TableNotFound, 404),
    (errors.StreamNotFound, 404),
    (errors.CatalogNotFound, 404),
    (errors.PathNotFound, 404),
    (errors.ObjectNotFound, 404),
    (errors.OperationUnknown, 404),
    (errors.AlreadyExists, 409),
    (errors.TickPending, 409),
    (errors.StreamConflict, 409),
    (errors.SinkConflict, 409),
    (errors.DocumentChanged, 409),
    (errors.LeaseHeld, 409),
    (errors.HistoryGone, 410),
    (errors.MessageTooLarge, 413),
    (errors.ResultTooLarge, 413),
    (errors.ServerBusy, 429),
    (errors.RetryLater, 503),
    (errors.SessionError, 503),
    (errors.OperationCancelled, 409),
    (errors.OperationTimeout, 504),
    (errors.TickTimeout, 504),
    (errors.EndpointError, 502),
    (errors.UnsupportedError, 501),
    (errors.ConfigError, 400),
    (errors.QueryError, 400),
)
"""The first class that fits says the status."""

INTERNAL = "INTERNAL_ERROR"
"""The code of what nobody has foreseen."""


def status_of(error: WeirflowError) -> int:
    """The status that says the most about an error to who knows only HTTP."""
    if type(error) is errors.FlowError:  # those without a class of their own: the flow is not in a state for it
        return 409
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def body_of(error: WeirflowError) -> dict[str, Any]:
    """An error as JSON."""
    position = error.position if isinstance(error, QueryError) else None
    body: dict[str, Any] = {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "position": None
        if position is None
        else {"line": position.line, "column": position.column, "fragment": position.fragment},
    }
    if isinstance(error, errors.RetryLater):
        body["retry_after"] = error.retry_after
    return body


def headers_of(error: WeirflowError) -> dict[str, str]:
    """What else an answer has to say about an error."""
    if isinstance(error, errors.AuthenticationFailed):
        return {"WWW-Authenticate": 'Bearer realm="weirflow"'}
    if isinstance(error, errors.RetryLater):
        return {"Retry-After": str(max(1, math.ceil(error.retry_after)))}
    return {}


def unforeseen() -> dict[str, Any]:
    """The body for what nobody has foreseen; what it was is in the server's log alone."""
    return {"code": INTERNAL, "message": "The server failed.", "hint": "its log says where", "position": None}
