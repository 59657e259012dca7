"""The options that several commands share, and what their texts mean."""

import dataclasses
import functools
import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from weirflow.errors import ConfigError, PathNotFound, did_you_mean
from weirflow.types import Placement, Profile

_STDIN = "-"
_INTEGER = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_QUOTED = re.compile(r"'(?:[^']|'')*'")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_LONG = range(-(2**63), 2**63)

_SESSION = "Session"
_QUERY = "Query"


@dataclass(frozen=True)
class SessionOptions:
    """Which Spark a command uses. What is left out comes from ``WEIRFLOW_*`` variables, then from the defaults."""

    endpoint: Annotated[
        str | None,
        typer.Option(
            help="A remote Spark: sc://host:port or spark://host:port.", rich_help_panel=_SESSION, metavar="URL"
        ),
    ] = None
    token: Annotated[
        str | None,
        typer.Option(
            help="The endpoint's token. Better put it in the variable WEIRFLOW_TOKEN, which no process list shows.",
            rich_help_panel=_SESSION,
        ),
    ] = None
    path: Annotated[
        Path | None, typer.Option(help="The folder of a durable single-node Session.", rich_help_panel=_SESSION)
    ] = None
    profile: Annotated[
        Profile | None,
        typer.Option(help=f"The durability profile: {', '.join(Profile)}.", rich_help_panel=_SESSION, metavar="NAME"),
    ] = None
    package: Annotated[
        list[str],
        typer.Option(
            "--package",
            "-p",
            help="A connector (kafka, iceberg, delta, s3, ...) or Maven coordinates; repeatable.",
            rich_help_panel=_SESSION,
            metavar="NAME",
        ),
    ] = field(default_factory=list)
    catalog: Annotated[
        list[str],
        typer.Option(
            help="A catalog and its address, such as lake=iceberg-rest+https://host/path; repeatable. Better put "
            "catalogs with secrets in the variable WEIRFLOW_CATALOGS.",
            rich_help_panel=_SESSION,
            metavar="NAME=ADDRESS",
        ),
    ] = field(default_factory=list)
    conf: Annotated[
        list[str],
        typer.Option(help="A Spark setting; repeatable.", rich_help_panel=_SESSION, metavar="NAME=VALUE"),
    ] = field(default_factory=list)
    cores: Annotated[
        int | None,
        typer.Option(min=1, help="How many cores local Spark uses; all by default.", rich_help_panel=_SESSION),
    ] = None
    driver_memory: Annotated[
        str | None,
        typer.Option(
            help="The heap of Spark's driver, such as 4g; 2g by default.", rich_help_panel=_SESSION, metavar="SIZE"
        ),
    ] = None
    spark_log_level: Annotated[
        str | None,
        typer.Option(
            help="What Spark logs to stderr: off (the default), error, warn, info or debug.",
            rich_help_panel=_SESSION,
            metavar="LEVEL",
        ),
    ] = None

    def arguments(self) -> dict[str, Any]:
        """The arguments of ``Session`` that these options amount to; raises ``ConfigError``."""
        conf = dict(_pair(text, "--conf", "NAME=VALUE") for text in self.conf)
        catalogs = dict(_pair(text, "--catalog", "NAME=ADDRESS") for text in self.catalog)
        return {
            "placement": self._placement(),
            "endpoint": self.endpoint,
            "token": self.token,
            "path": self.path,
            "durability_profile": self.profile,
            "packages": tuple(self.package) or None,
            "catalogs": catalogs or None,
            "spark_conf": conf or None,
            "cores": self.cores,
            "driver_memory": self.driver_memory,
            "spark_log_level": self.spark_log_level,
        }

    def _placement(self) -> Placement | None:
        if self.endpoint is not None:
            return Placement.DISTRIBUTED
        return Placement.SINGLE_NODE if self.path is not None else None


@dataclass(frozen=True)
class QueryOptions:
    """A query and what it reads."""

    query: Annotated[
        str | None, typer.Argument(help="The SQL; - reads it from standard input.", show_default=False)
    ] = None
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Read the SQL from a file.", rich_help_panel=_QUERY)
    ] = None
    table: Annotated[
        list[str],
        typer.Option(
            "--table",
            "-t",
            help="Use a parquet, csv or json file, or a folder of them, as the table NAME in SQL; repeatable.",
            rich_help_panel=_QUERY,
            metavar="NAME=PATH",
        ),
    ] = field(default_factory=list)
    param: Annotated[
        list[str],
        typer.Option(
            "--param",
            "-P",
            help="The value of the parameter :NAME: a number, true, false, null, or text; "
            "quote text that looks like another value: \"id='007'\". Repeatable.",
            rich_help_panel=_QUERY,
            metavar="NAME=VALUE",
        ),
    ] = field(default_factory=list)

    def text(self) -> str:
        """The SQL. Not exactly one source of it is a usage error; an unreadable file raises a ``WeirflowError``."""
        if (self.query is None) == (self.file is None):
            raise typer.BadParameter("give the SQL either as an argument, - for standard input, or with --file")
        if self.file is not None:
            sql = _read_sql(self.file)
        else:
            sql = sys.stdin.read() if self.query == _STDIN else self.query or ""
        if not sql.strip():
            raise typer.BadParameter("the SQL is empty")
        return sql

    def params(self) -> dict[str, Any] | None:
        """The values of ``:name`` parameters, or None when none is given; raises ``ConfigError``."""
        pairs = [_pair(text, "--param", "NAME=VALUE") for text in self.param]
        return {name: literal(value) for name, value in pairs} or None


@dataclass(frozen=True)
class ReportOptions:
    """How a command reports."""

    json: Annotated[bool, typer.Option("--json", help="Print one JSON document, errors included (on stderr).")] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command for typer: each parameter that is a dataclass of options becomes one option for each field."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name in groups:
            parameters += _parameters(groups[parameter.name])
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name]))

    @functools.wraps(command)
    def call(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{part.name: given.pop(part.name) for part in dataclasses.fields(group)})
        command(**given)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _parameters(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            part.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=[] if part.default is dataclasses.MISSING else part.default,
            annotation=hints[part.name],
        )
        for part in dataclasses.fields(group)
    ]


def literal(text: str) -> Any:
    """The value that a parameter's text stands for.

    >>> [literal(text) for text in ("7", "1.5", "TRUE", "null", "ann", "'007'")]
    [7, 1.5, True, None, 'ann', '007']
    """
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        return number if (number := int(text)) in _LONG else Decimal(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    return text[1:-1].replace("''", "'") if _QUOTED.fullmatch(text) else text


def nearest_file(path: Path) -> str | None:
    """A hint that names the nearest file beside a missing one, or the folder that is missing."""
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    return did_you_mean(path.name, [entry.name for entry in path.parent.iterdir()])


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    """The two sides of ``NAME=VALUE``. A text without them is not repeated: it could be a secret."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"{option} takes {form}.", hint=f"write {option} {form}, without spaces around =")
    return name.strip(), value


def _read_sql(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PathNotFound(f"There is no file {file}.", hint=nearest_file(file)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read as SQL: {error}.") from error
