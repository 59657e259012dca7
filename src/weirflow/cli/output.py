"""A query's result on standard output: a table for people, CSV and JSON for programs."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from io import StringIO
from typing import TYPE_CHECKING, Any, Protocol

from typing_extensions import override

from weirflow.cli.failures import OutputClosed

if TYPE_CHECKING:
    from weirflow.cli.result import Result

_NUMERIC = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_QUOTED_IN_CSV = re.compile(r'[",\r\n]|^$|^\s|\s$')


class Format(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSONL = "jsonl"
    JSON = "json"


class TextWriter(Protocol):
    """Where text goes: standard output or a file."""

    def write(self, text: str, /) -> Any:
        """Write the text."""


class Stdout(TextWriter):
    """Standard output. Once nobody reads it, writing raises ``OutputClosed``."""

    @override
    def write(self, text: str, /) -> None:
        self._unless_closed(lambda: sys.stdout.write(text))

    def flush(self) -> None:
        """Pass on what was written, and learn whether somebody reads it."""
        self._unless_closed(sys.stdout.flush)

    @staticmethod
    def _unless_closed(act: Callable[[], object]) -> None:
        closed = False
        try:
            act()
        except BrokenPipeError:
            closed = True
        if closed:  # outside the except block: a broken pipe in an error's context is taken for Spark's
            raise OutputClosed


def write_csv(result: Result, sink: TextWriter) -> None:
    """A header and one line for each row. NULL is an empty field, the empty string is ``""``."""
    from weirflow.rows.json_values import as_text  # noqa: PLC0415 - imports pyarrow, and help does without

    sink.write(",".join(_csv_field(column.name) for column in result.columns) + "\n")
    for row in result.rows():
        sink.write(",".join("" if value is None else _csv_field(as_text(value)) for value in row) + "\n")


def write_jsonl(result: Result, sink: TextWriter) -> None:
    """One object in each line. Nothing at all for no rows."""
    from weirflow.rows.json_values import to_json  # noqa: PLC0415 - as above

    result.require_distinct_names("an object of JSON")
    names = [column.name for column in result.columns]
    for row in result.rows():
        sink.write(to_json(dict(zip(names, row, strict=True))) + "\n")


def write_json(result: Result, sink: TextWriter) -> None:
    """An array of objects, one in each line."""
    from weirflow.rows.json_values import to_json  # noqa: PLC0415 - as above

    result.require_distinct_names("an object of JSON")
    names = [column.name for column in result.columns]
    _write_list((to_json(dict(zip(names, row, strict=True))) for row in result.rows()), sink)
    sink.write("\n")


def write_document(result: Result, sink: TextWriter) -> None:
    """One document with columns, rows as arrays in the columns' order, their count, and whether there are more."""
    from weirflow.rows.json_values import to_json  # noqa: PLC0415 - as above

    columns = to_json([{"name": column.name, "type": column.type} for column in result.columns])
    sink.write(f'{{"columns":{columns},"rows":')
    _write_list((to_json(row) for row in result.rows()), sink)
    sink.write(f',"row_count":{result.row_count},"truncated":{to_json(result.truncated)}}}\n')


def write_table(result: Result, sink: TextWriter) -> None:
    """A table with lines, NULL dimmed, numbers to the right. Wide as the terminal, or as need be in a file."""
    from weirflow.rows.json_values import as_text  # noqa: PLC0415 - as above

    rows = [[None if value is None else as_text(value) for value in row] for row in result.rows()]
    headings = [column.name for column in result.columns]
    numeric = [column.type.startswith(_NUMERIC) for column in result.columns]
    sink.write(render_table(headings, rows, numeric))
    counted = f"{result.row_count} row{'' if result.row_count == 1 else 's'}"
    sink.write(f"first {counted}; use --limit 0 for all\n" if result.truncated else f"{counted}\n")


WRITERS: dict[Format, Callable[[Result, TextWriter], None]] = {
    Format.TABLE: write_table,
    Format.CSV: write_csv,
    Format.JSONL: write_jsonl,
    Format.JSON: write_json,
}


def render_table(
    headings: Sequence[str], rows: Iterable[Sequence[str | None]], numeric: Sequence[bool] | None = None
) -> str:
    """A table as text for standard output, in colour if that is a terminal."""
    from rich.console import Console  # noqa: PLC0415 - rich is slow to import, and help does without
    from rich.measure import Measurement  # noqa: PLC0415 - as above
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    table = Table()
    for heading, is_numeric in zip(headings, numeric or [False] * len(headings), strict=True):
        table.add_column(Text(_visible(heading)), justify="right" if is_numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("NULL", style="dim") if cell is None else Text(_visible(cell)) for cell in row))
    drawn = StringIO()
    terminal = sys.stdout.isatty()
    console = Console(file=drawn, force_terminal=terminal, width=None if terminal else sys.maxsize)
    if not terminal:
        natural = Measurement.get(console, console.options, table).maximum
        console.width = max(natural, 1)
    console.print(table)
    return drawn.getvalue()


def _visible(text: str) -> str:
    """Text that cannot move a terminal's cursor, colour it or break a row."""
    return _CONTROL.sub(lambda found: repr(found.group())[1:-1], text)


def _csv_field(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _QUOTED_IN_CSV.search(text) else text


def _write_list(items: Iterable[str], sink: TextWriter) -> None:
    sink.write("[")
    for number, item in enumerate(items):
        sink.write(("," if number else "") + "\n" + item)
    sink.write("\n]")
