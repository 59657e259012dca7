"""``weirflow doctor``: does everything work here, and if not, what to do."""

import dataclasses
import json
import time
from typing import TYPE_CHECKING, Annotated

import typer

from weirflow.cli.failures import FAILED, reported
from weirflow.cli.options import ReportOptions, SessionOptions
from weirflow.cli.output import render_table
from weirflow.cli.running import opened
from weirflow.errors import ConfigError, WeirflowError

if TYPE_CHECKING:
    from weirflow.cli.checks import Check
    from weirflow.config import Settings

_COLOURS = {"ok": "green", "problem": "red", "optional": "yellow"}
_PROBE = "SELECT sum(id) AS total FROM range(1000)"
_PROBE_TOTAL = 499_500


def doctor(
    *,
    start: Annotated[bool, typer.Option("--start", help="Also start Spark and run a query.")] = False,
    settings: Annotated[
        bool, typer.Option("--settings", help="List every setting, its variable and its value instead.")
    ] = False,
    report: ReportOptions,
    session: SessionOptions,
) -> None:
    """Check this machine: prints one line for each check, and what to do about a problem.

    Exits with 1 if there is a problem. An extra that is not installed is not a problem.

    [bold]Examples[/bold]

      weirflow doctor --start

      weirflow doctor --start --endpoint sc://spark.example.com:15002

      weirflow doctor --settings
    """
    with reported(report):
        if settings:
            _list_settings(report, session)
        else:
            _check_all(report, session, start=start)


def _list_settings(report: ReportOptions, session: SessionOptions) -> None:
    from weirflow.cli.settings import shown_settings  # noqa: PLC0415 - imports pydantic, and help does without

    current, check = _settings(session)
    listed = shown_settings(current)
    if report.json:
        typer.echo(json.dumps({"settings": [dataclasses.asdict(one) for one in listed], "check": _as_dict(check)}))
    else:
        rows = [(one.name, one.variable, one.value, one.description) for one in listed]
        typer.echo(render_table(("setting", "variable", "value", "meaning"), rows), nl=False)
        if current is None:
            _print(check)
    if current is None:
        raise typer.Exit(FAILED)


def _check_all(report: ReportOptions, session: SessionOptions, *, start: bool) -> None:
    from weirflow.cli.checks import Verdict, machine_checks  # noqa: PLC0415 - see below
    from weirflow.config import Settings  # noqa: PLC0415 - imports pydantic, and help does without

    current, settings_check = _settings(session)
    checks = []

    def add(check: "Check") -> None:
        checks.append(check)
        if not report.json:
            _print(check)

    for check in machine_checks(current or Settings.model_construct()):
        add(check)
    add(settings_check)
    if start and current is not None:
        add(_started(session))
    failed = any(check.verdict is Verdict.PROBLEM for check in checks)
    if report.json:
        typer.echo(json.dumps({"ok": not failed, "checks": [_as_dict(check) for check in checks]}))
    if failed:
        raise typer.Exit(FAILED)


def _settings(options: SessionOptions) -> "tuple[Settings | None, Check]":
    """The settings of a Session with these options, or None, and what there is to say about them."""
    from weirflow.cli.checks import Check, Verdict  # noqa: PLC0415 - as the next
    from weirflow.session import Session  # noqa: PLC0415 - imports pydantic, and help does without

    try:
        with Session(**options.arguments()) as session:
            info = session.describe()
            return session.settings, Check("Settings", Verdict.OK, f"{info.placement}, profile {info.profile}")
    except ConfigError as error:
        return None, Check("Settings", Verdict.PROBLEM, error.message, error.hint)


def _started(options: SessionOptions) -> "Check":
    """Start Spark for real, and let it add up some numbers."""
    from weirflow.cli.checks import Check, Verdict  # noqa: PLC0415 - imports what help does without

    began = time.monotonic()
    try:
        with opened(options) as command:
            session = command.session

            def work() -> tuple[float, int]:
                up = time.monotonic()
                return up, session.sql(_PROBE).to_arrow().column("total")[0].as_py()

            up, total = command.run(_PROBE, work)
            done = time.monotonic()
            where = session.describe().spark
    except WeirflowError as error:
        return Check("Start", Verdict.PROBLEM, error.message, error.hint)
    found = f"Spark {where} started in {up - began:.1f} s, a query took {done - up:.1f} s"
    if total != _PROBE_TOTAL:
        return Check("Start", Verdict.PROBLEM, f"{found} and gave {total} for {_PROBE}", "check the Spark at work here")
    return Check("Start", Verdict.OK, found)


def _print(check: "Check") -> None:
    verdict = typer.style(f"{check.verdict:<9}", fg=_COLOURS[check.verdict])
    typer.echo(f"{verdict} {check.name:<17} {check.found}" + (f"\n{'':<28}-> {check.advice}" if check.advice else ""))


def _as_dict(check: "Check") -> dict[str, str | None]:
    return {"name": check.name, "verdict": check.verdict, "found": check.found, "advice": check.advice}
