"""``weirflow streams``: streaming queries that outlive the shell, each job a process of its own."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weirflow.cli.failures import reported
from weirflow.cli.options import ReportOptions, SessionOptions, spread
from weirflow.cli.output import Stdout, render_table
from weirflow.cli.running import opened
from weirflow.errors import EndpointUnreachable, UnsupportedError, WeirflowError

if TYPE_CHECKING:
    from weirflow.streaming.detached.jobs import DetachedJobs
    from weirflow.streaming.detached.query import DetachedQuery

_LEFT_ALONE = "Cancelled. Running jobs continue."
_LINES = 100
_AT = "The folder of jobs; by default jobs under the folder of --path, or of WEIRFLOW_PATH."

streams = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

Name = Annotated[str, typer.Argument(help="The name of a query or of its job, or the id of a query.", metavar="NAME")]


@streams.callback()
def _streams() -> None:
    """Run streaming queries in separate processes, which outlive this shell.

    [bold]Examples[/bold]

      weirflow streams start jobs.py:orders --path data

      weirflow streams list --path data

      weirflow streams stop orders --path data
    """


@dataclass(frozen=True)
class PlaceOptions:
    """Where jobs are found again."""

    path: Annotated[Path | None, typer.Option(help="The folder of the single-node Session that started them.")] = None
    at: Annotated[Path | None, typer.Option(help=_AT)] = None

    def jobs(self) -> "DetachedJobs":
        """The jobs there; raises ``ConfigError`` if it is not said where."""
        from weirflow.config import load_settings  # noqa: PLC0415 - imports pydantic, and help does without
        from weirflow.streaming.detached.jobs import DetachedJobs, place_of_jobs  # noqa: PLC0415

        return DetachedJobs(place_of_jobs(load_settings(path=self.path), self.at))


def start(
    *,
    function: Annotated[
        str,
        typer.Argument(
            help="A function that takes a Session and returns the query it has started, or several.",
            metavar="FUNCTION",
        ),
    ],
    name: Annotated[
        str | None, typer.Option("--name", help="The job's name; by default the function's.", metavar="NAME")
    ] = None,
    at: Annotated[Path | None, typer.Option(help=_AT)] = None,
    report: ReportOptions,
    session: SessionOptions,
) -> None:
    """Start queries in a separate process, and return once they run.

    FUNCTION is file.py:function or module:function. If the job has ended, the same command starts it again, and its
    queries continue from their checkpoints.

    [bold]Examples[/bold]

      weirflow streams start jobs.py:orders --path data

      weirflow streams start shop.jobs:orders --name nightly --at jobs --endpoint spark://master:7077
    """
    with reported(report), opened(session) as command:
        started = command.detach(function, name, at)
        if report.json:
            _print({"queries": [_document(query) for query in started]})
        else:
            _print("\n".join(f"{query.name} is running; its log is {query.log}" for query in started))


def list_(*, report: ReportOptions, place: PlaceOptions) -> None:
    """List the queries of all jobs, running or ended.

    [bold]Examples[/bold]

      weirflow streams list --path data

      weirflow streams list --at jobs --json
    """
    with reported(report, interrupted=_LEFT_ALONE):
        jobs = place.jobs()
        queries = jobs.queries()
        if report.json:
            _print({"queries": [_listed(query) for query in queries]})
        elif not queries:
            _print(f"There are no jobs at {jobs.at}.")
        else:
            Stdout().write(render_table(("job", "query", "state", "last batch"), [_row(query) for query in queries]))


def show(*, name: Name, report: ReportOptions, place: PlaceOptions) -> None:
    """Show what a query does: its state, its last batch, what it writes and where its progress is kept.

    [bold]Examples[/bold]

      weirflow streams show orders --path data

      weirflow streams show orders --path data --json
    """
    with reported(report, interrupted=_LEFT_ALONE):
        queries = place.jobs().required(name)
        if report.json:
            _print({"queries": [_document(query) for query in queries]})
        else:
            _print("\n\n".join(_shown(query) for query in queries))


def stop(*, name: Name, report: ReportOptions, place: PlaceOptions) -> None:
    """Stop a query, or all queries of a job, after the current batch. With its last query, the process ends, too.

    [bold]Examples[/bold]

      weirflow streams stop orders --path data
    """
    with reported(report, interrupted="Cancelled. If the query was already told to stop, it stops after its batch."):
        queries = place.jobs().required(name)
        for query in queries:
            query.stop()
        if report.json:
            _print({"queries": [_document(query) for query in queries]})
        else:
            _print("\n".join(f"{query.name}: {query.status().state}" for query in queries))


def log(
    *,
    name: Name,
    lines: Annotated[
        int, typer.Option("--lines", "-n", min=0, help="How many lines, from the end; 0 for all.")
    ] = _LINES,
    report: ReportOptions,
    place: PlaceOptions,
) -> None:
    """Print the log of a job: what its process has printed, even if its start failed.

    [bold]Examples[/bold]

      weirflow streams log orders --path data

      weirflow streams log orders --path data --lines 0
    """
    with reported(report, interrupted=_LEFT_ALONE):
        folder = place.jobs().folder(name)
        text = folder.log_tail(lines)
        _print({"log": str(folder.log), "lines": text.splitlines()} if report.json else text)


for command_name, command in (("start", start), ("list", list_), ("show", show), ("stop", stop), ("log", log)):
    streams.command(command_name)(spread(command))


def _print(shown: dict[str, Any] | str) -> None:
    stdout = Stdout()
    stdout.write(f"{shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)}\n")
    stdout.flush()


def _row(query: "DetachedQuery") -> tuple[str, str, str, str]:
    try:
        return query.job, query.name, query.status().state, str(query.last_progress() or "")
    except (EndpointUnreachable, UnsupportedError) as error:  # the others are listed all the same
        return query.job, query.name, "not known", error.message


def _listed(query: "DetachedQuery") -> dict[str, Any]:
    try:
        return _document(query)
    except (EndpointUnreachable, UnsupportedError) as error:  # as above
        return {"job": query.job, "name": query.name, "state": None, "error": _error(error), "log": str(query.log)}


def _shown(query: "DetachedQuery") -> str:
    error = query.exception
    lines = [str(query), *([f"  hint: {error.hint}"] if error and error.hint else []), "", str(query.describe())]
    return "\n".join([*lines, f"{'job':<12} {query.job}", f"{'log':<12} {query.log}"])


def _document(query: "DetachedQuery") -> dict[str, Any]:
    status, last = query.status(), query.last_progress()
    return {
        "job": query.job,
        "name": query.name,
        "id": query.id,
        "run_id": query.run_id,
        "state": status.state,
        "message": status.message,
        "restarts": query.restarts,
        "error": _error(query.exception),
        "last_progress": last.raw if last else None,
        "info": dataclasses.asdict(query.describe()),
        "log": str(query.log),
    }


def _error(error: "WeirflowError | None") -> dict[str, str | None] | None:
    return {"code": error.code, "message": error.message, "hint": error.hint} if error else None
