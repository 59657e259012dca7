"""The catalogue of bad options: every argument and option of every command, each with each hostile text.

A command ends with an exit code and a message of Weirflow's or the usage, never with a bug's report; it takes no long
time. Commands are found by themselves. Spark is not started: what is asked of it counts as answered.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from typing import TYPE_CHECKING, Any

import pytest
import typer
import typer.testing
from support.bad_arguments import SECONDS
from typer.testing import CliRunner

from weirflow.cli.app import app
from weirflow.cli.options import SessionOptions
from weirflow.errors import ConfigError
from weirflow.spark import engine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

USAGE = {
    ("sql",): ["SELECT 1 AS one"],
    ("explain",): ["SELECT 1 AS one"],
    ("refresh",): ["totals"],
    ("doctor",): [],
    ("version",): [],
    ("streams", "start"): ["jobs.py:orders"],
    ("streams", "list"): ["--at", "jobs"],
    ("streams", "show"): ["orders", "--at", "jobs"],
    ("streams", "stop"): ["orders", "--at", "jobs"],
    ("streams", "log"): ["orders", "--at", "jobs"],
    ("flow", "check"): ["flow"],
    ("flow", "repair"): ["flow"],
    ("serve",): ["--check", "--insecure"],
    ("tokens", "create"): ["me", "--role", "reader", "--path", "data"],
    ("tokens", "list"): ["--path", "data"],
    ("tokens", "revoke"): ["0123456789", "--path", "data"],
    ("nodes", "list"): ["--path", "data"],
    ("nodes", "show"): ["here", "--path", "data"],
    ("nodes", "drain"): ["here", "--path", "data"],
    ("watch",): ["totals", "--server", "elsewhere://127.0.0.1:1"],
}
"""A way to call each command; what it names need not be there."""


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    command = command or typer.main.get_command(app)
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, one in command.commands.items():
        yield from commands(one, (*path, name))


def hostile_texts(folder: Path) -> dict[str, str]:
    (folder / "a file").write_text("no flow, no SQL")
    (folder / "a folder").mkdir()
    (folder / "dead").symlink_to(folder / "nowhere")
    (folder / "loop").symlink_to(folder / "loop")
    return {
        "nothing": "",
        "blanks": "  ",
        "a word": "zzz",
        "a digit": "9",
        "zero": "0",
        "a negative number": "-1",
        "a fraction": "0.5",
        "a huge number": "1e300",
        "nan": "nan",
        "400 digits": "9" * 400,
        "5,000 digits": "9" * 5_000,
        "10,000 letters": "x" * 10_000,
        "a pair": "a=b",
        "a pair without a name": "=b",
        "a pair without a value": "a=",
        "lines": "a\nb",
        "control characters": "a\x1b[31mb\x07",
        "bytes that are no UTF-8": "a\udcffb",
        "quotes": "a'b\"c`d",
        "a format": "%s{}{0}",
        "a hyphen": "-",
        "a parent": "../..",
        "a file": str(folder / "a file"),
        "a folder": str(folder / "a folder"),
        "a path below a file": str(folder / "a file" / "below"),
        "a dead link": str(folder / "dead"),
        "a link to itself": str(folder / "loop"),
        "a URI": "s3://bucket/x",
        "half a URI": "://",
        "a home that is not there": "~nobody-of-that-name/x",
    }


def test_every_command_is_tried():
    assert {path for path, _ in commands()} == set(USAGE)


SHARED = {one.name for one in dataclasses.fields(SessionOptions)} - {"path"}
"""Options that several commands hand to a Session, which makes the same of them: tried with one command."""


def tried(path: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    """How a command is called with a text, ``{}``, for each of its arguments and options."""
    command = dict(commands())[path]
    rest = USAGE[path]
    for one in command.params:
        if one.name in SHARED and path != ("sql",):
            continue
        if one.param_type_name == "argument":
            yield one.name, ["{}", *rest[1:]]
        elif not one.is_flag:
            kept = rest[: rest.index(one.opts[0])] if one.opts[0] in rest else rest
            yield one.name, [*kept, one.opts[0], "{}"]


@pytest.mark.parametrize("path", USAGE, ids=" ".join)
def test_bad_options(path: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def no_spark(*_: object, **__: object) -> None:
        raise ConfigError("There is no Spark here.")

    monkeypatch.setattr(engine, "start_engine", no_spark)
    # The tree of commands is made once, and not for each of a thousand calls.
    monkeypatch.setattr(typer.testing, "_get_command", functools.cache(typer.main.get_command))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEIRFLOW_CACHE_DIR", str(tmp_path / "cache"))
    texts, problems = hostile_texts(tmp_path), []
    for name, usage in tried(path):
        for kind, text in texts.items():
            began = time.perf_counter()
            result = CliRunner().invoke(app, [*path, *(text if one == "{}" else one for one in usage)], input="")
            where = f"weirflow {' '.join(path)} {name}={kind}"
            if result.exit_code not in (0, 1, 2):
                problems.append(f"{where}: exit code {result.exit_code}")
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                problems.append(f"{where}: {type(result.exception).__name__}: {result.exception}")
            if "INTERNAL_ERROR" in result.output or "Traceback" in result.output:
                problems.append(f"{where}: {result.output[-200:]}")
            if len(result.output) > 50_000:
                problems.append(f"{where}: {len(result.output)} characters are said")
            if time.perf_counter() - began > SECONDS:
                problems.append(f"{where}: took {time.perf_counter() - began:.1f} s")
    assert problems == []
