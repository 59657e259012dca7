"""Names in quotes."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A name as SQL reads it whatever characters it has."""
    return f"`{name.replace('`', '``')}`"
