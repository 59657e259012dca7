"""``weirflow refresh``: bring materialized views up to date, as a job of a scheduler."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weirflow.cli.failures import FAILED, reported
from weirflow.cli.options import ReportOptions, SessionOptions
from weirflow.cli.output import Stdout, render_table
from weirflow.cli.running import opened

if TYPE_CHECKING:
    from weirflow.materialized.together import Outcome
    from weirflow.session import Session

_HEADINGS = ("view", "refresh", "rows", "seconds", "why")


def refresh(
    *,
    views: Annotated[list[str] | None, typer.Argument(help="Their names, as SQL has them.", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="All materialized views of the schema.")] = False,
    schema: Annotated[
        str | None, typer.Option(help="The schema of --all, such as lake.gold; the current one by default.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Compute everything, and build state anew.")] = False,
    cascade: Annotated[bool, typer.Option("--cascade", help="Refresh the views that they read first.")] = False,
    parallel: Annotated[
        int | None,
        typer.Option(
            min=1, max=64, help="How many are refreshed at a time; as many as Spark has cores, up to 4, by default."
        ),
    ] = None,
    report: ReportOptions,
    session: SessionOptions,
) -> None:
    """Bring materialized views up to date, each behind those that it reads, several at a time where they can be.

    A view that fails stops only those that read it. What is up to date is left alone, so that the same command goes on
    where one before it was stopped.

    The exit code is 0 if all are up to date, and 1 if one is not: it failed, or reads one that did.

    [bold]Examples[/bold]

      weirflow refresh lake.gold.totals -p iceberg

      weirflow refresh --all --schema lake.gold -p iceberg --json
    """
    with reported(report):
        names = list(views or ())
        if bool(names) == every:
            raise typer.BadParameter("give the names of views, or --all, and not both", param_hint="'[VIEWS]...'")
        with opened(session) as command:
            done = command.run(
                "refresh",
                lambda: _refreshed(command.session, names, schema, full=full, cascade=cascade, parallel=parallel),
            )
        stdout = Stdout()
        text = json.dumps({"views": [_document(one) for one in done]}) if report.json else _table(done).rstrip("\n")
        stdout.write(f"{text}\n")
        stdout.flush()
        if any(one.record is None for one in done):
            raise typer.Exit(FAILED)


def _refreshed(
    session: "Session", names: list[str], schema: str | None, *, full: bool, cascade: bool, parallel: int | None
) -> "list[Outcome]":
    from weirflow.materialized.opened import open_view, views_in  # noqa: PLC0415 - imports the kernel
    from weirflow.materialized.together import refresh_together  # noqa: PLC0415 - as above

    found = [open_view(session, name) for name in names] if names else views_in(session, schema)
    return refresh_together(session, found, full=full, cascade=cascade, parallel=parallel)


def _document(outcome: "Outcome") -> dict[str, Any]:
    from weirflow.materialized.place import fields_of  # noqa: PLC0415 - as above

    error = outcome.error
    return {
        "view": outcome.view,
        "refreshed": outcome.record is not None,
        "record": None if outcome.record is None else fields_of(outcome.record),
        "error": None if error is None else {"code": error.code, "message": error.message, "hint": error.hint},
        "behind": outcome.behind,
    }


def _table(outcomes: "list[Outcome]") -> str:
    rows: list[list[str | None]] = []
    for one in outcomes:
        record = one.record
        if record is None:
            why = f"it reads {one.behind}" if one.error is None else f"[{one.error.code}] {one.error.message}"
            rows.append([one.view, "failed" if one.error else "left out", None, None, why])
        else:
            changed = None if record.rows is None else str(record.rows)
            rows.append([one.view, record.mode, changed, f"{record.cost.seconds:g}", record.why or ""])
    return render_table(_HEADINGS, rows, [False, False, True, True, False])
