"""``RelationName``: what SQL calls a source or view of a flow."""

from __future__ import annotations

from dataclasses import dataclass

MOST_PARTS = 2


@dataclass(frozen=True)
class RelationName:
    """A source or view, and its flow if the statement says it."""

    flow: str | None
    name: str

    @classmethod
    def of(cls, *parts: str) -> RelationName | None:
        """The name with these parts; None if they are too many."""
        return None if len(parts) > MOST_PARTS else cls(parts[0] if len(parts) == MOST_PARTS else None, parts[-1])

    def __str__(self) -> str:
        return self.name if self.flow is None else f"{self.flow}.{self.name}"
