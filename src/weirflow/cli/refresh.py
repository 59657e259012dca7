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
    views: Annotated[
        list[str] | None, typer.Argument(help="Names of materialized views, written as in SQL.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Refresh all materialized views of the schema.")] = False,
    schema: Annotated[
        str | None, typer.Option(help="The schema for --all, such as lake.gold; the current one by default.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Compute everything, and build the state again.")] = False,
    cascade: Annotated[
        bool, typer.Option("--cascade", help="First refresh the materialized views that these read.")
    ] = False,
    parallel: Annotated[
        int | None,
        typer.Option(
            min=1, max=64, help="How many to refresh at a time; by default as many as Spark has cores, at most 4."
        ),
    ] = None,
    report: ReportOptions,
    session: SessionOptions,
) -> None:
    """Bring materialized views up to date, several at a time. A view is refreshed after the views that it reads.

    If a view fails, only the views that read it are skipped. Views that are up to date are left alone, so the same
    command continues where an earlier one was stopped.

    The exit code is 0 if all views are up to date, and 1 if a view failed or was skipped.

    [bold]Examples[/bold]

      weirflow refresh lake.gold.totals -p iceberg

      weirflow refresh --all --schema lake.gold -p iceberg --json
    """
    with reported(report):
        names = list(views or ())
        if bool(names) == every:
            raise typer.BadParameter("give either the names of views or --all", param_hint="'[VIEWS]...'")
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
