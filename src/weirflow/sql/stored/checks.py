"""What a stored plan must be, and the errors for what it is not."""

from __future__ import annotations

from typing import Any

from weirflow.errors import NotIncremental, Reason, StorageError

_HINT = "open the flow with the version of Weirflow that registered the view, or restore its files from a copy"


def exactly(kind: type[Any] | tuple[type[Any], ...], data: Any) -> Any:
    """The data, if it is of this type or of one of these, and of none derived from it: True is no number here."""
    if type(data) not in (kind if isinstance(kind, tuple) else (kind,)):
        raise TypeError(f"{str(data)[:50]} is out of place")
    return data


def place_in(data: Any) -> int:
    """A number in a table, which counts from its beginning."""
    place: int = exactly(int, data)
    if place < 0:
        raise IndexError(f"{place} is no place")
    return place


def not_stored(what: str) -> NotIncremental:
    """The error for what has no form in which it could be stored."""
    return NotIncremental(f"{what} cannot be stored with a view.", reason=Reason.TYPE_NOT_SUPPORTED)


def unreadable(why: str) -> StorageError:
    """The error for a text that is no plan of this version."""
    return StorageError(f"The stored plan of a view cannot be read: {why}.", uri="the plan of a view", hint=_HINT)
