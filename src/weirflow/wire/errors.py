"""Errors as they cross a wire: every ``WeirflowError`` arrives as one of the same class, with all that it says.

Nothing is unpickled: what arrives is text and plain values, put into a class that is looked up by its code.
"""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from weirflow.errors import Reason, SqlPosition, WeirflowError
from weirflow.wire.messages import Message, pack, unpack

_OWN = frozenset({"message", "hint", "position", "retry_after", "code"})


class Failure(Message, frozen=True):
    """An error.

    Attributes:
        code: which one.
        message: what happened, to what.
        hint: what to do about it.
        position: where in the SQL text: line, column, and what is there.
        retry_after: seconds after which the same call may succeed; None where that is not known.
        details: the other attributes of its class, plain values.
    """

    code: str
    message: str
    hint: str | None = None
    position: tuple[int, int, str] | None = None
    retry_after: float | None = None
    details: dict[str, Any] = msgspec.field(default_factory=dict)


def failure_of(error: WeirflowError) -> Failure:
    """An error as it is sent."""
    known = error.__dict__
    position = known.get("position")
    return Failure(
        error.code,
        error.message,
        error.hint,
        (position.line, position.column, position.fragment) if isinstance(position, SqlPosition) else None,
        known.get("retry_after"),
        {name: value for name, value in known.items() if name not in _OWN and _is_sent(name, value)},
    )


def error_of(failure: Failure) -> WeirflowError:
    """The error that was sent; of the nearest class above where its own is unknown here, or needs what was not sent."""
    kind = _kinds().get(failure.code, WeirflowError)
    details = {name: _own_value(name, value) for name, value in failure.details.items() if _is_name(name)}
    if failure.retry_after is not None:
        details["retry_after"] = failure.retry_after
    while not _needed(kind) <= details.keys():
        kind = kind.__base__  # type: ignore[assignment]  # the root needs nothing, so it stays among our errors
    error = kind.__new__(kind, failure.message)
    error.args = (failure.message,)
    error.__dict__.update({**_defaults(kind), **details, "message": failure.message, "hint": failure.hint})
    if failure.position is not None:
        error.__dict__["position"] = SqlPosition(*failure.position)
    if error.code != failure.code:
        error.__dict__["code"] = failure.code
    return error


def pack_error(error: WeirflowError) -> bytes:
    """An error as bytes."""
    return pack(failure_of(error))


def unpack_error(content: bytes) -> WeirflowError:
    """The error that was sent; ``ConfigError`` if the bytes hold none."""
    return error_of(unpack(content, Failure))


def _kinds() -> dict[str, type[WeirflowError]]:
    """The classes by their codes; of several with one code, the most general."""
    found: dict[str, type[WeirflowError]] = {}
    ahead = [WeirflowError]
    while ahead:
        kind = ahead.pop(0)
        found.setdefault(kind.code, kind)
        ahead += kind.__subclasses__()
    return found


def _parameters(kind: type[WeirflowError]) -> list[inspect.Parameter]:
    return [
        one
        for one in inspect.signature(kind.__init__).parameters.values()
        if one.kind is one.KEYWORD_ONLY and one.name not in ("hint", "position")
    ]


def _needed(kind: type[WeirflowError]) -> set[str]:
    return {one.name for one in _parameters(kind) if one.default is one.empty}


def _defaults(kind: type[WeirflowError]) -> dict[str, Any]:
    """What attributes have that were not sent."""
    own = {one.name: one.default for one in _parameters(kind) if one.default is not one.empty}
    return {**own, "position": None} if "position" in inspect.signature(kind.__init__).parameters else own


def _is_name(name: str) -> bool:
    return name.isidentifier() and not name.startswith("_") and name not in (*_OWN, "args")


def _is_sent(name: str, value: Any) -> bool:
    """Whether a value is plain; errors may carry others, for who is in the same process."""
    if not _is_name(name):
        return False
    try:
        msgspec.msgpack.encode(value, enc_hook=_refused)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
    return not isinstance(value, msgspec.Struct)


def _refused(value: Any) -> Any:
    raise TypeError(type(value))


def _own_value(name: str, value: Any) -> Any:
    if name == "reason" and isinstance(value, str) and value in Reason.__members__:
        return Reason(value)
    return tuple(value) if isinstance(value, list) else value


__all__ = ["Failure", "error_of", "failure_of", "pack_error", "unpack_error"]
