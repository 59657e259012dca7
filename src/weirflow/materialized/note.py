"""``Note``: what a materialized view holds, as the commit of its table says it."""

from __future__ import annotations

import msgspec

FORMAT = 1


class SourceMark(msgspec.Struct, frozen=True):
    """How a table was read: its id, and its version or snapshot. None if it tells none, or has none yet."""

    origin: str | None
    version: str | None


Marks = dict[str, SourceMark]
"""By the whole names of tables."""


class StateName(msgspec.Struct, frozen=True):
    """The state that a commit names.

    Attributes:
        generation: its folder.
        commit: the number of its commit there.
        sources: the versions of the tables that it is at, which may be older than those that the view was made of.
    """

    generation: str
    commit: int
    sources: Marks


class Note(msgspec.Struct, frozen=True):
    """What one refresh left.

    Attributes:
        view: the id of the view.
        epoch: the number of the refresh.
        attempt: tells it from others of the same number.
        base: the version of the target that it was made for; None for its first.
        sources: how each table was read.
        state: None if there is none.
        mode: ``full`` or ``incremental``.
        code: why it was full; None for an increment.
        revision: of the view's definition, whose query the rows are those of.
    """

    view: str
    epoch: int
    attempt: str
    base: str | None
    sources: Marks
    state: StateName | None
    mode: str
    code: str | None = None
    format: int = FORMAT
    revision: int = 0


def encode_note(note: Note) -> str:
    """As a commit carries it."""
    return msgspec.json.encode(note).decode()


def decode_note(text: str | None, view: str) -> Note | None:
    """The note of a view in what a commit carries; None if that is something else, or of a format that is not known."""
    if text is None:
        return None
    try:
        found = msgspec.json.decode(text, type=Note)
    except msgspec.MsgspecError:
        return None
    return found if found.view == view and found.format == FORMAT else None
