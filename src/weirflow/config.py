"""Settings: every knob of a Session, from arguments or ``WEIRFLOW_*`` environment variables.

Arguments win over the environment, the environment over the defaults. Secrets are ``SecretStr``: no repr,
error or log shows them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict, SettingsError

from weirflow.arguments import Folder, Name, require
from weirflow.environment import COMPILED, ENV_PREFIX, SERVER_PREFIX
from weirflow.errors import ConfigError, did_you_mean
from weirflow.types import Placement, Profile

SparkLogLevel = Literal["off", "error", "warn", "info", "debug"]
ProgressMode = Literal["auto", "on", "off"]

_MOST_CORES = 100_000


def _default_cache_dir() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weirflow"


class Settings(BaseSettings):
    """All settings of one Session. Immutable once built."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
    )

    placement: Placement = Field(Placement.EMBEDDED, description="where Spark runs")
    durability_profile: Profile | None = Field(
        None, description="which stores are used; by default chosen by the placement"
    )
    path: Path | None = Field(None, description="folder of the durable stores of a single-node Session")
    # Not in the repr: the parameters of an address and Spark's configuration may hold secrets.
    endpoint: str | None = Field(
        None, repr=False, description="sc://host:port or spark://host:port, for distributed Sessions"
    )
    token: SecretStr | None = Field(None, description="bearer token, or the cluster's shared secret")
    checkpoint_uri: str | None = Field(None, description="where checkpoints are stored: a file, s3, gs or az URI")
    metadata_url: SecretStr | None = Field(None, description="postgresql:// URL of the metadata store")
    packages: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="connectors by name, or Maven coordinates; comma-separated in the environment"
    )
    catalogs: dict[str, SecretStr | dict[str, SecretStr]] = Field(
        default_factory=dict,
        repr=False,
        description="catalogs by name: an address, or an address with options; JSON in the environment",
    )
    spark_conf: dict[str, str] = Field(
        default_factory=dict, repr=False, description="further Spark configuration; JSON in the environment"
    )
    cores: int | None = Field(None, ge=1, le=_MOST_CORES, description="how many cores local Spark uses; all by default")
    driver_memory: str = Field("2g", pattern=r"^\d+[mgMG]$", description="heap of the driver's JVM")
    worker_python: Path | None = Field(
        None, description="Python of Spark's workers on a cluster; this interpreter by default"
    )
    connect_timeout: float = Field(
        10.0, gt=0, le=10**9, description="seconds after which an endpoint counts as unreachable"
    )
    spark_log_level: SparkLogLevel = Field("off", description="what Spark logs to stderr")
    progress: ProgressMode = Field("auto", description="progress bar: auto shows it in terminals and notebooks")
    cache_dir: Path = Field(
        default_factory=_default_cache_dir, description="connector jars and the JVM's class archive"
    )
    class_archive: bool = Field(
        default=True, description="keep an archive of Spark's classes, which halves the start of every later Session"
    )

    @field_validator("packages", mode="before")
    @classmethod
    def _split_packages(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("cores", "connect_timeout", mode="before")
    @classmethod
    def _no_bool(cls, value: Any) -> Any:
        if isinstance(value, bool):
            raise ValueError("it must be a number, not True or False")  # noqa: TRY004 - pydantic reads this one
        return value

    @field_validator("packages")
    @classmethod
    def _names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for package in value:
            require(Name, package)
        return value

    @field_validator("path", "cache_dir", "worker_python", mode="before")
    @classmethod
    def _places(cls, value: Any) -> Any:
        return None if value is None else require(Folder, value)


def load_settings(**arguments: Any) -> Settings:
    """Build Settings from arguments and environment; arguments that are None count as not given.

    Raises ``ConfigError`` for a value that cannot be used and for a ``WEIRFLOW_*`` variable nobody reads.
    """
    _refuse_unknown_variables()
    given = {name: value for name, value in arguments.items() if value is not None}
    _refuse_unknown_arguments(given)
    try:
        return Settings(**given)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}" for problem in error.errors()
        )
        # The chained pydantic error adds nothing and may quote its input.
        raise ConfigError(f"Settings cannot be used: {problems}.", hint=_nearest_choice(error, given)) from None
    except SettingsError as error:
        raise ConfigError(f"Settings cannot be used: {error}.", hint="write a mapping as JSON") from None


def _nearest_choice(error: ValidationError, given: dict[str, Any]) -> str | None:
    """What was meant by a value that is none of the choices of its setting."""
    for problem in error.errors():
        name = str(problem["loc"][0]) if problem["loc"] else ""
        value = given.get(name, os.environ.get(f"{ENV_PREFIX}{name.upper()}"))
        choices = re.findall(r"'([^']+)'", str((problem.get("ctx") or {}).get("expected", "")))
        if choices and isinstance(value, str):
            return did_you_mean(value, choices)
    return None


def _refuse_unknown_variables() -> None:
    known = {name.upper() for name in Settings.model_fields} | {COMPILED.removeprefix(ENV_PREFIX)}
    own = (name for name in os.environ if name.startswith(ENV_PREFIX) and not name.startswith(SERVER_PREFIX))
    given = sorted(name.removeprefix(ENV_PREFIX) for name in own)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ConfigError(
            f"No setting is called {ENV_PREFIX}{unknown[0]}.",
            hint=did_you_mean(unknown[0], known, prefix=ENV_PREFIX) or "`weirflow doctor --settings` lists them all",
        )


def _refuse_unknown_arguments(given: dict[str, Any]) -> None:
    unknown = sorted(given.keys() - Settings.model_fields.keys())
    if unknown:
        raise ConfigError(f"No setting is called {unknown[0]!r}.", hint=did_you_mean(unknown[0], Settings.model_fields))
