"""Puts the commands together. Importing it imports neither pyspark nor pyarrow, so that help is instant."""

import sys
from typing import Annotated

import typer

from weirflow import __version__
from weirflow.cli.doctor import doctor
from weirflow.cli.explain import explain
from weirflow.cli.flow import flow
from weirflow.cli.nodes import nodes
from weirflow.cli.options import spread
from weirflow.cli.refresh import refresh
from weirflow.cli.serve import serve
from weirflow.cli.sql import sql
from weirflow.cli.streams import streams
from weirflow.cli.tokens import tokens
from weirflow.cli.version import version
from weirflow.cli.watch import watch

app = typer.Typer(
    name="weirflow",
    no_args_is_help=True,
    rich_markup_mode="rich",
    # Typer's own tracebacks show local variables, and those hold secrets.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the value of the flag
    if wanted:
        typer.echo(f"weirflow {__version__}")
        raise typer.Exit


@app.callback()
def weirflow(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """SQL and streaming queries on Apache Spark from the shell.

    [bold]Examples[/bold]

      weirflow sql "SELECT 1 AS one"

      weirflow sql -t orders=orders.csv "SELECT customer, sum(amount) FROM orders GROUP BY 1"

      weirflow explain --mode stages -t orders=orders.csv "SELECT count(*) FROM orders"

      weirflow streams start jobs.py:orders --path data

      weirflow flow check data/flows/shop

      weirflow refresh --all --schema lake.gold -p iceberg

      weirflow serve --path data

      weirflow watch shop.totals

      weirflow doctor --start
    """


for command in (sql, explain, refresh, serve, watch, doctor, version):
    app.command()(spread(command))
app.add_typer(streams, name="streams")
app.add_typer(flow, name="flow")
app.add_typer(tokens, name="tokens")
app.add_typer(nodes, name="nodes")


def main() -> None:
    """Run the command that ``sys.argv`` names, and exit with its code."""
    if not sys.stdout.isatty() and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")  # files and pipes get the same bytes wherever they are made
    app(prog_name="weirflow")
