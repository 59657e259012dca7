"""``weirflow watch``: the changes of a view on a server, as they happen."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from weirflow.cli.failures import reported
from weirflow.cli.options import ReportOptions
from weirflow.cli.output import Stdout

if TYPE_CHECKING:
    from weirflow.ivm.flow.outputs.subscription import Subscription

_SERVER = "weirflow://127.0.0.1:8815"
_LOOK_SECONDS = 1.0


def watch(
    *,
    view: Annotated[str, typer.Argument(help="The view: its name, or flow.view.", metavar="VIEW")],
    server: Annotated[
        str, typer.Option(help="The server: weirflow://host:port, or weirflow+tls://host:port.", metavar="URL")
    ] = _SERVER,
    token: Annotated[
        str | None,
        typer.Option(help="The token. Better put it in the variable WEIRFLOW_TOKEN, which no process list shows."),
    ] = None,
    as_of: Annotated[
        int | None, typer.Option(min=0, help="The epoch to begin with; by default the current one.")
    ] = None,
    snapshot: Annotated[bool, typer.Option(help="Print all rows of that epoch first.")] = True,
    progress: Annotated[bool, typer.Option(help="Also print epochs that change nothing.")] = False,
    upsert: Annotated[
        str | None,
        typer.Option(
            help="Key columns, separated by commas: print only the newest row of each key.", metavar="COLUMNS"
        ),
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="End after the changes of this many epochs.")] = None,
    report: ReportOptions,
) -> None:
    """Print the changes of a view on a server, one JSON object for each row, until Ctrl-C.

    A row has the view's columns, _epoch and _weight. If the connection breaks, the command connects again and continues
    without a gap.

    [bold]Examples[/bold]

      weirflow watch shop.totals

      weirflow watch totals --server weirflow+tls://flows.example.com --no-snapshot

      weirflow watch shop.totals --upsert customer --as-of 120
    """
    with reported(report):
        from weirflow.client import RemoteSession  # noqa: PLC0415 - imports the kernel, and help does without

        stdout = Stdout()
        with (
            RemoteSession(server, token or os.environ.get("WEIRFLOW_TOKEN") or None) as session,
            session.subscribe(_statement(view, as_of, upsert, snapshot=snapshot, progress=progress)) as changes,
        ):
            try:
                _print(changes, stdout, epochs)
            except KeyboardInterrupt:  # how it is meant to end
                return


def _statement(view: str, as_of: int | None, upsert: str | None, *, snapshot: bool, progress: bool) -> str:
    from weirflow.sql.quoting import quoted  # noqa: PLC0415 - as above

    name = ".".join(quoted(part) for part in view.split("."))
    options = [f"SNAPSHOT = {str(snapshot).lower()}", f"PROGRESS = {str(progress).lower()}"]
    if upsert:
        options.append(f"UPSERT = ({', '.join(quoted(column.strip()) for column in upsert.split(','))})")
    past = "" if as_of is None else f" AS OF {as_of}"
    return f"SUBSCRIBE TO {name}{past} WITH ({', '.join(options)})"


def _print(changes: "Subscription", stdout: Stdout, epochs: int | None) -> None:
    from weirflow.rows.json_values import json_values, to_json  # noqa: PLC0415 - as above

    printed = 0
    while epochs is None or printed < epochs:
        batch = changes.get(_LOOK_SECONDS)
        if batch is None:
            if changes.closed:
                return
            continue
        printed += 1
        columns = [json_values(column) for column in batch.columns]
        for row in zip(*columns, strict=True):
            stdout.write(to_json(dict(zip(batch.schema.names, row, strict=True))) + "\n")
        stdout.flush()
