"""What is said where whole queries cannot be run."""

from __future__ import annotations

from weirflow.errors import EngineMissing


def no_engine() -> EngineMissing:
    """The error for a view that is to be recomputed where nothing can."""
    return EngineMissing(
        "A view of mode 'diff' is recomputed by Spark, and this flow has no Session.",
        hint="make the flow with session.flow(name)",
    )
