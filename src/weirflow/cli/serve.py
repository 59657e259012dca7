"""``weirflow serve``: a server in the foreground, until SIGTERM or Ctrl-C."""

import json
import logging
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weirflow.cli.failures import FAILED, reported
from weirflow.cli.options import ReportOptions, SessionOptions

if TYPE_CHECKING:
    from weirflow.server.settings import ServerConfig

_SERVER = "Server"
_SWITCH_SECONDS = 0.001
"""How long one thread computes while others wait: a tick gives up its turn for each file and each message that it has,
and would else wait 5 ms for each thread that computes before it has another."""


@dataclass(frozen=True)
class ServerOptions:
    """How a server is reached. What is left out comes from ``WEIRFLOW_SERVER_*``, then from the file."""

    config: Annotated[
        Path | None,
        typer.Option(
            help="The settings file; by default weirflow.toml in this folder, if there is one.", rich_help_panel=_SERVER
        ),
    ] = None
    http: Annotated[
        str | None,
        typer.Option(
            help="The address for HTTP; 127.0.0.1:8080 by default. off does not listen.",
            rich_help_panel=_SERVER,
            metavar="HOST:PORT",
        ),
    ] = None
    flight: Annotated[
        str | None,
        typer.Option(
            help="The address for Arrow Flight; 127.0.0.1:8815 by default. off does not listen.",
            rich_help_panel=_SERVER,
            metavar="HOST:PORT",
        ),
    ] = None
    insecure: Annotated[
        bool | None,
        typer.Option(
            "--insecure",
            help="Let everybody on this machine do everything without a token. Only for loopback addresses.",
            rich_help_panel=_SERVER,
        ),
    ] = None
    tls_certificate: Annotated[
        Path | None, typer.Option(help="A PEM file: the certificate chain.", rich_help_panel=_SERVER)
    ] = None
    tls_key: Annotated[
        Path | None, typer.Option(help="A PEM file: the certificate's key.", rich_help_panel=_SERVER)
    ] = None
    startup: Annotated[
        list[str],
        typer.Option(
            help="A function to call with the Session at each start, as file.py:name; repeatable.",
            rich_help_panel=_SERVER,
            metavar="FUNCTION",
        ),
    ] = field(default_factory=list)
    node: Annotated[str | None, typer.Option(help="This server's name among the nodes.", rich_help_panel=_SERVER)] = (
        None
    )
    drain_seconds: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="How many seconds requests may take to finish at the end; 30 by default.",
            rich_help_panel=_SERVER,
        ),
    ] = None
    log_level: Annotated[
        str,
        typer.Option(help="What to log to stderr: debug, info, warning or error.", rich_help_panel=_SERVER),
    ] = "info"

    def arguments(self) -> dict[str, Any]:
        """The server's settings that these options amount to."""
        return {
            "http": self.http,
            "flight": self.flight,
            "insecure": self.insecure or None,
            "tls_certificate": self.tls_certificate,
            "tls_key": self.tls_key,
            "startup": tuple(self.startup) or None,
            "node": self.node,
            "drain_seconds": self.drain_seconds,
        }


def serve(
    *,
    session: SessionOptions,
    server: ServerOptions,
    report: ReportOptions,
    check: Annotated[
        bool, typer.Option("--check", help="Start nothing; print what would be started, and what is wrong with it.")
    ] = False,
) -> None:
    """Run a server: own a Session, and let others reach it over HTTP and Arrow Flight SQL.

    Settings come from options, then WEIRFLOW_* and WEIRFLOW_SERVER_* variables, then weirflow.toml. After
    SIGTERM or Ctrl-C the server finishes its current requests and refuses new ones; a second one ends it at once.

    [bold]Examples[/bold]

      weirflow tokens create ann --role admin --path data

      weirflow serve --path data

      weirflow serve --insecure --http 127.0.0.1:8080
    """
    with reported(report, interrupted="Ended."):
        from weirflow.server.settings import load_config  # noqa: PLC0415 - imports pydantic, and help does without

        given = session.arguments()
        if check:
            config = load_config(file=server.config, session=given, server=server.arguments())
            _tell(config, as_json=report.json)
            return
        _log_to_stderr(server.log_level)
        _run(given, server, as_json=report.json)


def _run(session: dict[str, Any], options: ServerOptions, *, as_json: bool) -> None:
    from weirflow.server.server import Server  # noqa: PLC0415 - imports pyarrow, and help does without

    made = Server(
        {name: value for name, value in session.items() if value is not None},
        config=options.config,
        **options.arguments(),
    )
    heard: list[int] = []

    def on_signal(number: int, _frame: Any) -> None:
        if heard:
            sys.exit(128 + number)
        heard.append(number)
        made.ask_to_stop()

    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, on_signal)
    sys.setswitchinterval(_SWITCH_SECONDS)
    made.start()
    doors = {"http": made.http_url, "flight": made.flight_url}
    if as_json:
        typer.echo(json.dumps({"ready": doors}))
    else:
        typer.echo("Ready: " + ", ".join(url for url in doors.values() if url is not None))
    sys.stdout.flush()
    made.wait()
    if not made.stop():
        raise typer.Exit(FAILED)


def _tell(config: "ServerConfig", *, as_json: bool) -> None:
    from weirflow.server.plan import plan_of  # noqa: PLC0415 - as above

    plan = plan_of(config)
    if as_json:
        typer.echo(json.dumps({"plan": plan.lines, "problems": plan.problems}))
    else:
        for name, value in plan.lines.items():
            typer.echo(f"{name:<14} {value}")
        for problem in plan.problems:
            typer.echo(typer.style("problem", fg="red", bold=True) + f": {problem}", err=True)
    if plan.problems:
        raise typer.Exit(FAILED)


def _log_to_stderr(level: str) -> None:
    chosen = logging.getLevelNamesMapping().get(level.upper())
    if chosen is None:
        raise typer.BadParameter(f"no level is called {level!r}; there are debug, info, warning, error")
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    logging.getLogger("weirflow").setLevel(chosen)
