"""Where the checkpoint of a streaming query is."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

from weirflow.errors import ConfigError
from weirflow.types import Profile

OPTION = "checkpointLocation"
_FOLDER = "queries"
_NAME = re.compile(r"[\w.-]+")


@dataclass(frozen=True)
class CheckpointPlace:
    """A checkpoint's location.

    Attributes:
        location: what Spark is given; None if Spark is to find a folder of its own.
        why: where the location comes from, for people.
        temporary: whether it goes with the query.
    """

    location: str | None
    why: str
    temporary: bool = False

    def remove(self) -> None:
        """Remove what goes with the query."""
        if self.temporary and self.location is not None:
            shutil.rmtree(self.location, ignore_errors=True)

    def __str__(self) -> str:
        return f"{self.location}, {self.why}" if self.location else self.why


def is_checkpoint_option(name: str) -> bool:
    """Whether an option is a name of the checkpoint's location: Spark's, or ``checkpoint.location``."""
    return name.casefold() in ("checkpointlocation", "checkpoint.location")


def checkpoint_place(
    given: str | None, *, name: str | None, profile: Profile, checkpoints: str, remote: bool, own: bool
) -> CheckpointPlace:
    """Where a query saves its progress.

    Args:
        given: the location that its writer was told.
        name: the query's name, if it was given one.
        profile: the Session's durability profile.
        checkpoints: where that profile keeps checkpoints.
        remote: whether Spark's driver is elsewhere, so that a folder of this machine is no use to it.
        own: whether Spark finds a folder for this sink by itself.
    """
    if given is not None:
        return CheckpointPlace(given, "as given")
    if profile is not Profile.DEV_LOCAL:
        return CheckpointPlace(_derived(checkpoints, name, profile), f"from the profile {profile} and the query's name")
    if not remote:
        return CheckpointPlace(
            tempfile.mkdtemp(prefix="weirflow-stream-"), "temporary, removed when the query ends", temporary=True
        )
    if own:
        return CheckpointPlace(None, "a temporary folder of the server")
    raise ConfigError(
        "This sink needs a checkpoint that the server can reach, and none is given.",
        hint='set option("checkpointLocation", ...) to a folder of the server or of an object store',
    )


def spark_uri(uri: str) -> str:
    """A storage URI as Spark's file systems call it."""
    return f"s3a://{uri.removeprefix('s3://')}" if uri.startswith("s3://") else uri


def _derived(checkpoints: str, name: str | None, profile: Profile) -> str:
    if name is None:
        raise ConfigError(
            f"The profile {profile} keeps a query's checkpoint under its name, but this query has none.",
            hint='give it one with query_name(...), or set option("checkpointLocation", ...)',
        )
    if not _NAME.fullmatch(name) or name.strip(".") == "":
        raise ConfigError(
            f"{name!r} cannot be the name of a checkpoint's folder.",
            hint='use letters, digits, ".", "_" and "-", or set option("checkpointLocation", ...)',
        )
    return spark_uri(f"{checkpoints.rstrip('/')}/{_FOLDER}/{name}")


def split_options(options: Mapping[str, str]) -> tuple[str | None, dict[str, str]]:
    """The checkpoint's location among a writer's options, and the others."""
    given = {value for name, value in options.items() if is_checkpoint_option(name)}
    if len(given) > 1:
        raise ConfigError(
            f"Two places are given for the checkpoint: {' and '.join(sorted(given))}.",
            hint="checkpointLocation and checkpoint.location are the same option; give one",
        )
    others = {name: value for name, value in options.items() if not is_checkpoint_option(name)}
    return next(iter(given), None), others
