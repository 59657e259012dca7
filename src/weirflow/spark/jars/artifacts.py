"""Artifacts of Maven: how they are named, and what comes with them."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field

from weirflow.errors import ConfigError

_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_COORDINATE = re.compile(rf"(?P<group>{_PART}):(?P<artifact>{_PART}):(?P<version>{_PART})")
# Ivy's names for "whatever is newest today", which a cache cannot keep.
_MOVING_VERSION = re.compile(r"latest\.|LATEST$|RELEASE$")


@dataclass(frozen=True)
class Coordinate:
    """The Maven coordinate of one artifact.

    >>> Coordinate.parse("org.postgresql:postgresql:42.7.4").artifact
    'postgresql'
    """

    group: str
    artifact: str
    version: str

    @classmethod
    def parse(cls, text: str) -> Coordinate:
        """Read ``group:artifact:version``; anything else, or a version that moves, is a ConfigError."""
        found = _COORDINATE.fullmatch(text)
        if found is None:
            raise ConfigError(
                f"{text!r} is not a Maven coordinate.",
                hint="write group:artifact:version, for example org.postgresql:postgresql:42.7.4",
            )
        if _MOVING_VERSION.match(found["version"]):
            raise ConfigError(f"{text!r} names no fixed version.", hint="write the version to use in full")
        return cls(found["group"], found["artifact"], found["version"])

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


class Dependencies(enum.Enum):
    """Which of an artifact's own dependencies come with it."""

    NONE = "none"
    BESIDES_SPARK = "besides-spark"
    ALL = "all"


@dataclass(frozen=True)
class Artifact:
    """One artifact to have in the cache, and ``purpose``, the words for it in messages."""

    coordinate: Coordinate
    dependencies: Dependencies = Dependencies.BESIDES_SPARK
    purpose: str = field(default="", compare=False)

    @property
    def manifest_name(self) -> str:
        """The file that lists this artifact's jars."""
        group, artifact, version = self.coordinate.group, self.coordinate.artifact, self.coordinate.version
        return f"{group}_{artifact}-{version}.{self.dependencies.value}.json"
