"""How a ``DeltaBatch`` is shown: a weight, then the row's values; long batches and values are cut."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_ROWS = 20
_MAX_COLUMNS = 16
_MAX_CELL = 32


def text(data: pa.RecordBatch) -> str:
    """The batch, whose last column holds weights, as an aligned table of text."""
    names, rows = _cells(data)
    title = f"DeltaBatch of {_count(data.num_rows, 'row')}"
    lines = [("", *names), *rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(names) + 1)]
    table = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    return "\n".join([title, *(line.rstrip() for line in table), *(f"  {note}" for note in _notes(data))])


def html(data: pa.RecordBatch) -> str:
    """The batch as a table for notebooks: green insertions, red retractions."""
    names, rows = _cells(data)
    head = "".join(f"<th>{escape(name)}</th>" for name in ("", *names))
    body = "".join(
        f'<tr style="color:{"#1a7f37" if row[0].startswith("+") else "#cf222e"}">'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row)
        + "</tr>"
        for row in rows
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in _notes(data))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def _cells(data: pa.RecordBatch) -> tuple[list[str], list[tuple[str, ...]]]:
    shown = min(data.num_columns - 1, _MAX_COLUMNS)
    head = data.slice(0, _MAX_ROWS)
    weights = [f"{weight:+d}" for weight in head.column(data.num_columns - 1).to_pylist()]
    columns = [[_cell(value) for value in head.column(index)] for index in range(shown)]
    names = [_cut(name) for name in data.schema.names[:shown]]
    return names, list(zip(weights, *columns, strict=True))


def _notes(data: pa.RecordBatch) -> list[str]:
    rows, columns = data.num_rows - _MAX_ROWS, data.num_columns - 1 - _MAX_COLUMNS
    return [f"... {_count(number, what)} more" for number, what in ((rows, "row"), (columns, "column")) if number > 0]


def _cell(value: pa.Scalar) -> str:
    if not value.is_valid:
        return "NULL"
    try:
        return _cut(str(value))
    except (OverflowError, ValueError):  # a date or time that Python's types cannot hold
        return f"{value.type}({value.value})"


def _cut(cell: str) -> str:
    # Control characters would break the table's lines.
    printable = "".join(char if char.isprintable() else repr(char)[1:-1] for char in cell[: _MAX_CELL + 1])
    return printable if len(printable) <= _MAX_CELL else printable[: _MAX_CELL - 3] + "..."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
