"""Streaming queries as text and as HTML, wherever they run."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weirflow.streaming.query.progress import QueryProgress
    from weirflow.types import QueryState

_COLUMNS = ("batch", "rows in", "rows out", "rows/s", "watermark", "state rows", "ms")
_BATCHES = 10


def as_text(name: str, state: QueryState, message: str, last: QueryProgress | None) -> str:
    """A query in a few lines: its state, what it does and its last batch."""
    return "\n".join([f"{name}: {state}", *([f"  {message}"] if message else []), *([f"  {last}"] if last else [])])


def as_html(name: str, state: QueryState, recent: Sequence[QueryProgress]) -> str:
    """A query and its last batches as a table."""
    rows = "".join(
        f"<tr><td>{one.batch}</td><td>{one.input_rows}</td>"
        f"<td>{'' if one.output_rows is None else one.output_rows}</td>"
        f"<td>{one.processed_rows_per_second:.0f}</td><td>{one.watermark or ''}</td>"
        f"<td>{one.state_rows}</td><td>{one.duration_ms}</td></tr>"
        for one in recent[-_BATCHES:]
    )
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    title = f"<p><b>{escape(name)}</b> {state}</p>"
    return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
