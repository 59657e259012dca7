"""Settings of a server: from flags or arguments, ``WEIRFLOW_SERVER_*`` variables, and a file ``weirflow.toml``.

The first that says something counts. The file has a table ``[server]`` for what is here and a table ``[session]`` for
the Session that the server owns.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from weirflow.config import Settings, load_settings
from weirflow.environment import ENV_PREFIX, SERVER_PREFIX
from weirflow.errors import ConfigError, did_you_mean
from weirflow.server.access.gate import is_loopback
from weirflow.server.access.limits import Limits

CONFIG_FILE = "weirflow.toml"
"""The file that is read from the current folder if none is named."""

_TABLES = ("server", "session")
_MOST = 10**12
_LAST_PORT = 65_535


class ServerSettings(BaseSettings):
    """All settings of a server but those of its Session. Immutable once built."""

    model_config = SettingsConfigDict(
        env_prefix=SERVER_PREFIX, frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=True
    )

    http: str | None = Field("127.0.0.1:8080", description="the address for HTTP, as host:port; `off` does not listen")
    flight: str | None = Field("127.0.0.1:8815", description="the address for Arrow Flight, as host:port; or `off`")
    insecure: bool = Field(default=False, description="let everybody on this machine do everything without a token")
    tls_certificate: Path | None = Field(None, description="the server's certificate chain, a PEM file")
    tls_key: Path | None = Field(None, description="the certificate's private key, a PEM file")
    advertise: str | None = Field(None, description="host:port at which clients reach Flight, if it differs")
    node: str | None = Field(None, description="this server's name among the nodes; by default host and process")
    issuer: str | None = Field(None, description="the issuer of accepted JWTs, as in their claim `iss`")
    jwks: str | None = Field(None, description="the issuer's keys: an https:// URL or a file of a JWK set")
    audience: str | None = Field(None, description="the audience that JWTs must have in their claim `aud`")
    claim: str = Field("weirflow", description="the claim in JWTs with role, flows and catalogs")
    startup: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="functions to call with the Session at each start, as file.py:name or module:name"
    )
    warm: bool = Field(
        default=True, description="start Spark at once instead of with the first statement that needs it"
    )
    audit_log: Path | None = Field(None, description="the audit log; by default server/audit.log under the path")
    spool: str | None = Field(None, description="where results wait to be fetched: a folder, or a storage URI")
    drain_seconds: float = Field(30.0, ge=0, le=_MOST, description="seconds that requests have to finish at the end")
    statement_seconds: float | None = Field(600.0, gt=0, le=_MOST, description="seconds that a statement may take")
    result_bytes: int = Field(64 << 20, ge=1, le=_MOST, description="bytes that a result in one answer may have")
    message_bytes: int = Field(64 << 20, ge=1024, le=_MOST, description="bytes that a request may have")
    statements_at_once: int = Field(128, ge=1, le=_MOST, description="requests that a token may have at a time")
    watches_at_once: int = Field(10_000, ge=1, le=_MOST, description="watches that a token may have open")
    flight_watches: int = Field(256, ge=1, le=_MOST, description="watches that may be open over Flight in all")
    spool_seconds: float = Field(900.0, gt=0, le=_MOST, description="seconds for which a result can be fetched")
    spool_bytes: int = Field(32 << 30, ge=1024, le=_MOST, description="bytes that waiting results may have in all")

    @field_validator("startup", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("startup")
    @classmethod
    def _printable(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            if not one.isprintable():
                raise ValueError(f"{one!a} is not the name of a function; write file.py:function")
        return value

    @field_validator("http", "flight", "advertise")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value in (None, "", "off"):
            return None
        parse_address(value)
        return value

    @property
    def limits(self) -> Limits:
        """What each token may have."""
        return Limits(
            self.statement_seconds,
            self.result_bytes,
            self.message_bytes,
            self.statements_at_once,
            self.watches_at_once,
        )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then variables; the file comes with the arguments, without what variables say."""
        del settings_cls, dotenv_settings, file_secret_settings
        return init_settings, env_settings


@dataclass(frozen=True)
class ServerConfig:
    """All that a server is started with.

    Attributes:
        server: its own settings.
        session: the settings of its Session.
        file: the file that was read; None if there is none.
    """

    server: ServerSettings
    session: Settings
    file: Path | None = None


def load_config(
    *,
    file: Path | None = None,
    session: Mapping[str, Any] | None = None,
    server: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> ServerConfig:
    """Put together what arguments, variables and the file say; None counts as not said.

    Args:
        file: the file; by default ``weirflow.toml`` in the current folder, if there is one.
        session: settings of the Session.
        server: settings of the server.
        environment: the variables; by default those of the process.

    Raises:
        ConfigError: a value cannot be used, or nobody reads it.
    """
    variables = os.environ if environment is None else environment
    _refuse_unknown_variables(variables)
    found = file or (Path(CONFIG_FILE) if Path(CONFIG_FILE).is_file() else None)
    tables = _read(found) if found is not None else {}
    wanted_session = _merged(tables.get("session", {}), session, variables, ENV_PREFIX)
    wanted_server = _merged(tables.get("server", {}), server, variables, SERVER_PREFIX)
    unknown = sorted(wanted_server.keys() - ServerSettings.model_fields.keys())
    if unknown:
        raise ConfigError(
            f"No setting of a server is called {unknown[0]!r}.",
            hint=did_you_mean(unknown[0], ServerSettings.model_fields),
        )
    config = ServerConfig(_server_settings(wanted_server), load_settings(**_placed(wanted_session, variables)), found)
    _require_consistent(config.server)
    return config


def parse_address(text: str) -> tuple[str, int]:
    """The host and the port of ``host:port``; port 0 is any that is free. ``ValueError`` if it is none.

    >>> parse_address("[::1]:8080")
    ('::1', 8080)
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > _LAST_PORT:
        raise ValueError(f"it must be host:port, such as 127.0.0.1:8080, not {text[:100]!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _server_settings(given: dict[str, Any]) -> ServerSettings:
    try:
        return ServerSettings(**given)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}" for problem in error.errors()
        )
        raise ConfigError(f"The server's settings cannot be used: {problems}.") from None
    except SettingsError as error:
        raise ConfigError(f"The server's settings cannot be used: {error}.") from None


def _merged(in_file: Any, given: Mapping[str, Any] | None, variables: Mapping[str, str], prefix: str) -> dict[str, Any]:
    """What arguments say, and what the file says of things that neither arguments nor variables speak of."""
    arguments = {name: value for name, value in (given or {}).items() if value is not None}
    if not isinstance(in_file, dict):
        raise ConfigError(f"In {CONFIG_FILE}, [server] and [session] are tables.")
    left = {
        name: value
        for name, value in in_file.items()
        if name not in arguments and f"{prefix}{name.upper()}" not in variables
    }
    return {**left, **arguments}


def _placed(session: dict[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
    """A path says that the Session is a durable one, unless something else is said."""
    has_path = "path" in session or f"{ENV_PREFIX}PATH" in variables
    is_placed = "placement" in session or f"{ENV_PREFIX}PLACEMENT" in variables
    return {**session, "placement": "single-node"} if has_path and not is_placed else session


def _read(file: Path) -> dict[str, Any]:
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"There is no file {file}.") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}.") from None
    unknown = sorted(tables.keys() - set(_TABLES))
    if unknown:
        raise ConfigError(
            f"{file} has {unknown[0]!r}, which nobody reads.", hint="settings are in the tables [server] and [session]"
        )
    return tables


def _refuse_unknown_variables(variables: Mapping[str, str]) -> None:
    known = {name.upper() for name in ServerSettings.model_fields}
    for name in sorted(variables):
        if name.startswith(SERVER_PREFIX) and name.removeprefix(SERVER_PREFIX) not in known:
            raise ConfigError(
                f"No setting is called {name}.",
                hint=did_you_mean(name.removeprefix(SERVER_PREFIX), known, prefix=SERVER_PREFIX),
            )


def _require_consistent(settings: ServerSettings) -> None:
    if settings.http is None and settings.flight is None:
        raise ConfigError(
            "A server needs at least one address to listen on.", hint="give it an address for HTTP or for Flight"
        )
    if (settings.tls_certificate is None) != (settings.tls_key is None):
        raise ConfigError("TLS needs a certificate and its key.", hint="set tls_certificate and tls_key")
    if (settings.issuer is None) != (settings.jwks is None):
        raise ConfigError("JWTs need an issuer and its keys.", hint="set issuer and jwks")
    if settings.insecure:
        for door, address in (("HTTP", settings.http), ("Flight", settings.flight)):
            if address is not None and not is_loopback(parse_address(address)[0]):
                raise ConfigError(
                    f"{door} at {address} can be reached from other machines, so it needs tokens.",
                    hint="leave out --insecure, or listen on 127.0.0.1",
                )
