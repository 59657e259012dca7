"""Names and texts in quotes."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A name as SQL reads it whatever characters it has."""
    return f"`{name.replace('`', '``')}`"


def text_literal(text: str) -> str:
    """A text as SQL reads it whatever characters it has."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
