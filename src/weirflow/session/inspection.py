"""``Inspection``: looks at a statement on its way to Spark, where statements come from others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from weirflow.spark.frames.frame import DataFrame


class Inspection(Protocol):
    """Refuses, by raising, what somebody may not run or read."""

    def sees_flow(self, name: str) -> bool:
        """Whether a flow is there for whoever asks; names are not looked up in others."""

    def text(self, sql: str) -> None:
        """Told the text that Spark is about to get."""

    def query(self, frame: DataFrame) -> None:
        """Told a query that Spark has analyzed; nothing of it has run."""
