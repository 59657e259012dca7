"""``weirflow tokens``: who may use a server, made, listed and revoked where the server keeps them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weirflow.cli.failures import reported
from weirflow.cli.options import ReportOptions, spread
from weirflow.cli.output import Stdout, render_table
from weirflow.errors import ConfigError

if TYPE_CHECKING:
    from weirflow.metadata.store import Metadata
    from weirflow.server.access.tokens import TokenInfo, Tokens

_LIMITS = "Limits (by default those of the server)"

tokens = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")


@tokens.callback()
def _tokens() -> None:
    """Decide who may use a server, and for what.

    The server does not have to run. A running server notices the change within two seconds.

    [bold]Examples[/bold]

      weirflow tokens create ann --role admin --path data

      weirflow tokens create dashboard --role reader --flow shop --flow 'sales_*' --days 90 --path data

      weirflow tokens revoke 3f9a12b4c5 --path data
    """


@dataclass(frozen=True)
class StoreOptions:
    """Where a server keeps its tokens."""

    path: Annotated[Path | None, typer.Option(help="The folder of the server's Session.")] = None
    config: Annotated[
        Path | None, typer.Option(help="The server's settings file; by default weirflow.toml in this folder.")
    ] = None

    def metadata(self) -> "Metadata":
        """The store there; raises ``ConfigError`` if nothing is kept there."""
        from weirflow.server.settings import load_config  # noqa: PLC0415 - imports pydantic
        from weirflow.server.store import is_kept, open_store  # noqa: PLC0415 - as above

        session = load_config(file=self.config, session={"path": self.path}).session
        if not is_kept(session):
            raise ConfigError(
                "It is not known where the server keeps its tokens and nodes.",
                hint="give the server's --path or --config, or set WEIRFLOW_PATH or WEIRFLOW_METADATA_URL",
            )
        return open_store(session)

    @contextmanager
    def tokens(self) -> "Iterator[Tokens]":
        """The tokens there."""
        from weirflow.server.access.tokens import Tokens  # noqa: PLC0415 - help does without

        with self.metadata() as store:
            yield Tokens(store)


@dataclass(frozen=True)
class LimitOptions:
    """What a token may have where that is not what the server lets each token have."""

    statement_seconds: Annotated[
        float | None, typer.Option(min=0.001, help="How many seconds a statement may take.", rich_help_panel=_LIMITS)
    ] = None
    result_bytes: Annotated[
        int | None, typer.Option(min=1, help="How many bytes a result in one answer may have.", rich_help_panel=_LIMITS)
    ] = None
    message_bytes: Annotated[
        int | None, typer.Option(min=1024, help="How many bytes a request may have.", rich_help_panel=_LIMITS)
    ] = None
    statements_at_once: Annotated[
        int | None, typer.Option(min=1, help="How many requests may run at a time.", rich_help_panel=_LIMITS)
    ] = None
    watches_at_once: Annotated[
        int | None, typer.Option(min=1, help="How many watches may be open.", rich_help_panel=_LIMITS)
    ] = None


def create(
    *,
    name: Annotated[str, typer.Argument(help="Whose token it is, or what it is for.", metavar="NAME")],
    role: Annotated[str, typer.Option(help="reader, writer, operator or admin.", metavar="ROLE")],
    flow: Annotated[
        list[str] | None,
        typer.Option(
            "--flow", help="A flow that it may use, or a pattern such as sales_*; repeatable. All by default."
        ),
    ] = None,
    catalog: Annotated[
        list[str] | None,
        typer.Option("--catalog", help="A catalog that it may use, or a pattern; repeatable. All by default."),
    ] = None,
    days: Annotated[float | None, typer.Option(min=0.0001, max=36_500, help="How many days it is valid.")] = None,
    limits: LimitOptions,
    store: StoreOptions,
    report: ReportOptions,
) -> None:
    """Make a token and print it. It is shown only now: the server keeps nothing but its hash."""
    with reported(report):
        from weirflow.server.access.caller import Role  # noqa: PLC0415 - help does without
        from weirflow.types import one_of  # noqa: PLC0415 - as above

        chosen = one_of(Role, role, "No role is called")
        lifetime = None if days is None else timedelta(days=days)
        with store.tokens() as opened:
            info, token = opened.create(
                name,
                chosen,
                flows=tuple(flow or "*"),
                catalogs=tuple(catalog or "*"),
                lifetime=lifetime,
                limits=asdict(limits),
            )
        if report.json:
            typer.echo(json.dumps({**_json(info), "token": token}))
            return
        typer.echo(token)
        typer.echo(f"Token {info.id} of {info.name}, {info.role}; it is not shown again.", err=True)


def list_(*, store: StoreOptions, report: ReportOptions) -> None:
    """List the tokens, without their secrets."""
    with reported(report):
        with store.tokens() as opened:
            found = [_json(info) for info in opened.all()]
        if report.json:
            typer.echo(json.dumps({"tokens": found}))
            return
        rows = [{name: _shown(value) for name, value in one.items()} for one in found]
        columns = ["id", "name", "role", "flows", "catalogs", "created", "expires", "limits"]
        Stdout().write(render_table(columns, [[row[name] for name in columns] for row in rows]))


def revoke(
    *,
    token: Annotated[str, typer.Argument(help="The id of the token; `weirflow tokens list` shows it.", metavar="ID")],
    store: StoreOptions,
    report: ReportOptions,
) -> None:
    """Revoke a token: from now on it is refused."""
    with reported(report):
        with store.tokens() as opened:
            info = opened.revoke(token)
        typer.echo(json.dumps({"revoked": _json(info)}) if report.json else f"Revoked {info.id}, of {info.name}.")


for _name, _command in (("create", create), ("list", list_), ("revoke", revoke)):
    tokens.command(_name)(spread(_command))


def _json(info: "TokenInfo") -> dict[str, Any]:
    return {
        "id": info.id,
        "name": info.name,
        "role": info.role.value,
        "flows": list(info.flows),
        "catalogs": list(info.catalogs),
        "created": info.created.isoformat(),
        "expires": info.expires.isoformat() if info.expires else None,
        "limits": dict(info.limits),
    }


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}={limit:g}" for name, limit in value.items()) or "the server's"
    return ", ".join(value) if isinstance(value, list) else value or "never"
