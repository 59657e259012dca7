"""Why a refresh is a full one, each with a code that stays the same from release to release."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FullReason(StrEnum):
    """Why a refresh computes everything; where the query itself is the reason, its code is ``Reason``'s."""

    FIRST_REFRESH = "FIRST_REFRESH"
    """The table holds nothing yet that a refresh has written."""
    REQUESTED = "REQUESTED"
    """It was asked for."""
    POLICY = "POLICY"
    """The view is always refreshed in full."""
    LARGE_CHANGE = "LARGE_CHANGE"
    """So much has changed that this is expected to be faster."""
    QUERY_CHANGED = "QUERY_CHANGED"
    """The view was given another query."""
    NO_STATE = "NO_STATE"
    """The refresh before kept no state."""
    STATE_LOST = "STATE_LOST"
    """The state that the table names is gone or damaged."""
    TARGET_CHANGED = "TARGET_CHANGED"
    """Somebody else has changed rows of the table."""
    SOURCE_REPLACED = "SOURCE_REPLACED"
    """A table that the query reads is another one than before."""
    SOURCE_HISTORY_GONE = "SOURCE_HISTORY_GONE"
    """The version of a table that was read last is gone."""
    SOURCE_COLUMNS_CHANGED = "SOURCE_COLUMNS_CHANGED"
    """A table has other columns or types than before."""
    SOURCE_WITHOUT_CHANGES = "SOURCE_WITHOUT_CHANGES"
    """The query reads a table, or a view, that has no versions."""


ALLOWED_WHEN_STRICT = frozenset({FullReason.FIRST_REFRESH, FullReason.REQUESTED, FullReason.QUERY_CHANGED})


@dataclass(frozen=True)
class Obstacle:
    """What keeps a refresh from being an increment.

    Attributes:
        code: a ``FullReason``, or the reason that the query is not incremental.
        why: a sentence.
        is_lasting: whether it will be the same at the next refresh, so that no state is worth keeping.
    """

    code: str
    why: str
    is_lasting: bool = False
