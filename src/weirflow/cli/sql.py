"""``weirflow sql``: run a query and print its rows, or write them to a file."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from weirflow.cli.failures import reported
from weirflow.cli.options import QueryOptions, ReportOptions, SessionOptions
from weirflow.cli.output import WRITERS, Format, Stdout, TextWriter, write_document, write_table
from weirflow.cli.running import opened
from weirflow.cli.tables import check_tables, parse_tables, register_tables
from weirflow.errors import ConfigError

if TYPE_CHECKING:
    from weirflow.cli.result import Result

T = TypeVar("T")

_TABLE_ROWS = 100


def sql(
    *,
    query: QueryOptions,
    format: Annotated[  # noqa: A002 - the option's name
        Format | None,
        typer.Option("--format", help="How to print rows; by default as a table on a terminal, and as csv elsewhere."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=0,
            help=f"How many rows to print; 0 for all. Default: {_TABLE_ROWS} in a table, all in other formats.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to a file instead: .parquet, .csv, .jsonl or .arrow."),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", help="Stop the query after this many seconds.", metavar="SECONDS")
    ] = None,
    report: ReportOptions,
    session: SessionOptions,
) -> None:
    r"""Run a SQL query on Spark and print its rows.

    [bold]Examples[/bold]

      weirflow sql "SELECT 1 AS one"

      weirflow sql -t orders=orders.csv -t people=people.parquet \
        "SELECT name, sum(amount) FROM orders JOIN people USING (id) GROUP BY name"

      weirflow sql -f report.sql -P day=2026-01-31 -o report.parquet

      echo "SELECT * FROM range(5)" | weirflow sql - --format jsonl | head -2
    """
    if report.json and format is not None:
        raise typer.BadParameter("--json is a format of its own; leave --format out")
    if output is not None and format is not None:
        raise typer.BadParameter("the name of the --output file says the format; leave --format out")
    with reported(report) as statement:
        statement.sql = query.text()
        request = _Request(statement.sql, query, session, timeout)
        everything = None if limit == 0 else limit
        if output is not None:
            _to_file(request, everything, output, report)
        elif report.json:
            _stream(request, everything, write_document)
        elif (format or _default_format()) is Format.TABLE:
            _to_table(request, _TABLE_ROWS if limit is None else everything)
        else:
            _stream(request, everything, WRITERS[format or _default_format()])


def _default_format() -> Format:
    return Format.TABLE if sys.stdout.isatty() else Format.CSV


@dataclass(frozen=True)
class _Request:
    """A query and what it runs on."""

    sql: str
    query: QueryOptions
    session: SessionOptions
    timeout: float | None

    def run(self, limit: int | None, use: "Callable[[Result], T]", *, quiet: bool = False) -> T:
        """Run the query and let ``use`` read its rows."""
        from weirflow.cli.result import queried  # noqa: PLC0415 - imports pyarrow, and help does without

        if self.timeout is not None and self.timeout <= 0:
            raise ConfigError(f"A timeout of {self.timeout:g} s leaves no time to run.", hint="give seconds above 0")
        params, tables = self.query.params(), parse_tables(self.query.table)
        with opened(self.session, quiet=quiet) as command:
            check_tables(command.session, tables)

            def work() -> T:
                register_tables(command.session, tables)
                with queried(command.session, self.sql, params, limit) as result:
                    return use(result)

            return command.run(self.sql, work, self.timeout)


def _stream(request: _Request, limit: int | None, write: "Callable[[Result, TextWriter], None]") -> None:
    """Print rows as they come."""
    stdout = Stdout()

    def use(result: "Result") -> None:
        write(result, stdout)
        stdout.flush()

    # A progress bar would be drawn among the rows.
    request.run(limit, use, quiet=sys.stdout.isatty())


def _to_table(request: _Request, limit: int | None) -> None:
    """Print all rows at once, after the last progress bar is gone."""

    def use(result: "Result") -> str:
        drawn = StringIO()
        write_table(result, drawn)
        return drawn.getvalue()

    stdout = Stdout()
    stdout.write(request.run(limit, use))
    stdout.flush()


def _to_file(request: _Request, limit: int | None, file: Path, report: ReportOptions) -> None:
    """Write the rows to a file and say how many."""
    from weirflow.cli.files import check_output, write_file  # noqa: PLC0415 - imports pyarrow, and help does without

    def use(result: "Result") -> tuple[int, bool]:
        write_file(result, file)
        return result.row_count, result.truncated

    check_output(file)
    count, truncated = request.run(limit, use)
    if report.json:
        typer.echo(json.dumps({"output": str(file), "row_count": count, "truncated": truncated}))
    else:
        rows = "1 row" if count == 1 else f"{count} rows"
        typer.echo(f"{rows} written to {file}" + ("; there are more" if truncated else ""), err=True)
