"""What to do about a damaged flow, as errors say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def remedy(folder: Path) -> str:
    """The commands for the flow in a folder."""
    return (
        f"'weirflow flow check {folder}' says what is whole, "
        f"'weirflow flow repair {folder}' opens the flow at its last whole epoch"
    )
