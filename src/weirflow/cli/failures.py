"""How a command ends when it does not succeed: what is printed, and the exit code."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from weirflow.errors import QueryError, SqlPosition, StorageError, WeirflowError

if TYPE_CHECKING:
    from weirflow.cli.options import ReportOptions

FAILED = 1
CANCELLED = 130
"""As shells report the end by Ctrl-C."""
NOBODY_READS = 141
"""As shells report the end by a broken pipe."""
_LONGEST_PATH = 200


class OutputClosed(Exception):
    """Whoever read standard output, such as head, has had enough. Not an error, so not a ``WeirflowError``."""


@dataclass
class Statement:
    """The SQL of the command, once it is known: errors show the line they are about."""

    sql: str = ""


@contextlib.contextmanager
def reported(
    report: ReportOptions,
    *,
    interrupted: str = "Cancelled; nothing runs any more.",
    codes: Mapping[type[WeirflowError], int] | None = None,
) -> Iterator[Statement]:
    """Run a command's body. Whatever it raises is reported on stderr and becomes an exit code.

    Args:
        report: how.
        interrupted: what Ctrl-C has come to.
        codes: the exit codes of errors that have one of their own.
    """
    statement = Statement()
    try:
        yield statement
    except (typer.Exit, typer.BadParameter):
        raise
    except (OutputClosed, BrokenPipeError):
        _discard_stdout()
        raise typer.Exit(NOBODY_READS) from None
    except KeyboardInterrupt:
        _report(report, "OPERATION_CANCELLED", interrupted)
        raise typer.Exit(CANCELLED) from None
    except WeirflowError as error:
        position = error.position if isinstance(error, QueryError) else None
        _report(report, error.code, error.message, hint=error.hint, position=position, sql=statement.sql)
        raise typer.Exit((codes or {}).get(type(error), FAILED)) from None
    except OSError as error:
        where = "" if error.filename is None else f"{str(error.filename)[:_LONGEST_PATH]}: "
        _report(report, StorageError.code, f"{where}{error.strerror or error}.", hint="check the paths that were given")
        raise typer.Exit(FAILED) from None
    except Exception as error:  # noqa: BLE001 - a bug of ours must not greet users with a traceback
        hint = None if report.debug else "--debug shows where"
        _report(report, "INTERNAL_ERROR", f"{type(error).__name__}: {error}", hint=hint)
        raise typer.Exit(FAILED) from None


def _report(
    report: ReportOptions,
    code: str,
    message: str,
    *,
    hint: str | None = None,
    position: SqlPosition | None = None,
    sql: str = "",
) -> None:
    if report.debug:
        traceback.print_exc()
    if report.json:
        line, column = (position.line, position.column) if position else (None, None)
        error = {"code": code, "message": message, "hint": hint, "line": line, "column": column}
        typer.echo(json.dumps({"error": error}, ensure_ascii=False), err=True)
        return
    typer.echo(typer.style(f"error [{code}]", fg="red", bold=True) + f": {message}", err=True)
    if position is not None:
        typer.echo(f"  at line {position.line}, column {position.column}", err=True)
        for line_of_excerpt in excerpt(sql, position):
            typer.echo(f"    {line_of_excerpt}", err=True)
    if hint:
        typer.echo(typer.style("  hint", bold=True) + f": {hint}", err=True)


def excerpt(sql: str, position: SqlPosition) -> list[str]:
    r"""The line of SQL that an error is about and, below it, carets under the place; empty if it is not there.

    >>> excerpt("SELECT a\nFROM nope", SqlPosition(2, 6, "nope"))
    ['FROM nope', '     ^^^^']
    """
    lines = sql.split("\n")
    if not 1 <= position.line <= len(lines):
        return []
    line = lines[position.line - 1].replace("\t", " ").rstrip("\r")
    before, rest = line[: position.column - 1], line[position.column - 1 :]
    fragment = position.fragment.partition("\n")[0]
    length = _width(fragment) if fragment and rest.startswith(fragment.replace("\t", " ")) else 1
    return [line, " " * _width(before) + "^" * max(length, 1)]


def _width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    from rich.cells import cell_len  # noqa: PLC0415 - rich is slow to import, and help does without

    return cell_len(text)


def _discard_stdout() -> None:
    """Python flushes standard output as it exits, and would complain once more that nobody reads."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
