"""What other distributions add to Weirflow: found by entry points, and loaded when a name is asked for.

An extension point is a group of entry points. Names that are Weirflow's own are never looked up, so that what is
installed changes nothing for those who do not ask for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from weirflow.errors import ConfigError, WeirflowError, did_you_mean


@dataclass(frozen=True)
class ExtensionPoint:
    """A point at which other packages can add something, each under a name.

    Attributes:
        group: the group of entry points.
        what: what one such thing is called in messages.
        own: the names of Weirflow's own ones.
        methods: the methods that the object made by an extension must have.
    """

    group: str
    what: str
    own: tuple[str, ...]
    methods: tuple[str, ...]

    @property
    def installed(self) -> tuple[str, ...]:
        """The names that other packages have added."""
        return tuple(sorted({one.name for one in entry_points(group=self.group)} - set(self.own)))

    @property
    def names(self) -> tuple[str, ...]:
        """All names."""
        return (*self.own, *self.installed)

    def has(self, name: str) -> bool:
        """Whether a package has added this name."""
        return name in self.installed

    def make(self, name: str, *arguments: Any) -> Any:
        """Call the extension with this name with some arguments; returns the object that it makes.

        Raises:
            ConfigError: nothing has the name, two packages have it, it cannot be loaded, or what it makes lacks
                methods. The message names the package.
        """
        entry = self._entry(name)
        try:
            made = self._loaded(entry)(*arguments)
        except WeirflowError:
            raise
        except Exception as error:  # noqa: BLE001 - others' code may raise anything; it is told in one sentence
            raise self._broken(entry, "cannot be opened", error, arguments) from None
        return self._whole(entry, made)

    def get(self, name: str) -> Any:
        """The extension with this name, as it is; fails like ``make``."""
        entry = self._entry(name)
        return self._whole(entry, self._loaded(entry))

    def unknown(self, name: str, message: str | None = None, *, mark: str = "") -> ConfigError:
        """The error for a name that does not exist.

        Args:
            name: the name that was asked for.
            message: the message, if something else is wrong than that nothing has the name.
            mark: what follows the name where it is used, such as ``://``.
        """
        known = self.names
        near = None if name in known else did_you_mean(name, known)
        use = f"use {'a path or ' if mark else ''}one of {', '.join(one + mark for one in known)}"
        return ConfigError(
            message or f"No {self.what} is called {name!r}.",
            hint=f"{near} Otherwise {use}" if near else f"{use}; others are added by entry points of {self.group!r}",
        )

    def check(self) -> dict[str, str | ConfigError]:
        """For each added name, the package that provides it, or why it cannot be loaded."""
        found: dict[str, str | ConfigError] = {}
        for name in self.installed:
            try:
                entry = self._entry(name)
                self._loaded(entry)
                found[name] = provider(entry)
            except ConfigError as error:
                found[name] = error
        return found

    # Inner workings

    def _entry(self, name: str) -> EntryPoint:
        found = list(entry_points(group=self.group, name=name))
        if not found:
            raise self.unknown(name)
        if len(found) > 1:
            raise ConfigError(
                f"Several distributions add a {self.what} {name!r}: {' and '.join(sorted(map(provider, found)))}.",
                hint="uninstall all but one of them",
            )
        return found[0]

    def _loaded(self, entry: EntryPoint) -> Any:
        try:
            loaded = entry.load()
        except Exception as error:
            raise self._broken(entry, "cannot be loaded", error) from error
        if not callable(loaded):
            raise ConfigError(
                f"The {self.what} {entry.name!r} of {provider(entry)} is not callable: {entry.value} is of "
                f"type {type(loaded).__name__}.",
                hint="correct the entry point; docs/extending.md shows one of each kind",
            )
        return loaded

    def _whole(self, entry: EntryPoint, made: Any) -> Any:
        missing = [one for one in self.methods if not callable(getattr(made, one, None))]
        if missing:
            raise ConfigError(
                f"The {self.what} {entry.name!r} of {provider(entry)} returned something of type "
                f"{type(made).__name__}, which has no {', '.join(missing)}.",
                hint="docs/extending.md says what it has to do",
            )
        return made

    def _broken(self, entry: EntryPoint, what: str, error: Exception, arguments: tuple[Any, ...] = ()) -> ConfigError:
        why = f"{type(error).__name__}: {error}"
        for one in arguments:
            if isinstance(one, str) and one:  # it may hold a password
                why = why.replace(one, "<uri>")
        return ConfigError(
            f"The {self.what} {entry.name!r} of {provider(entry)} {what}: {why.rstrip('.')}.",
            hint=f"repair or upgrade that distribution, or uninstall it; its entry point is {entry.value}",
        )


def provider(entry: EntryPoint) -> str:
    """The distribution of an entry point."""
    return "a distribution without a name" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"


CHECKPOINT_STORES = ExtensionPoint(
    "weirflow.checkpoint_stores",
    "checkpoint store",
    ("memory", "file", "s3", "gs", "az", "abfs", "abfss"),
    ("put", "put_if_absent", "put_if_match", "get", "map", "get_range", "stream", "head", "exists", "list", "delete"),
)
"""``open(uri, options)`` makes a ``CheckpointStorage``; the name is the URI's scheme."""

METADATA_STORES = ExtensionPoint(
    "weirflow.metadata_stores",
    "metadata store",
    ("memory", "sqlite", "postgresql"),
    ("run", "has_table", "create", "close"),
)
"""``open(uri)`` makes a ``Database``; the name is the URI's scheme."""

STATE_BACKENDS = ExtensionPoint(
    "weirflow.state_backends",
    "state backend",
    ("memory", "rocksdb"),
    ("get", "scan", "operators", "close", "multi_get", "write", "snapshot"),
)
"""``open(uri, groups)`` makes a ``StateBackend`` for a range of key groups; the name is the URI's scheme."""

STAGE_EXECUTORS = ExtensionPoint(
    "weirflow.stage_executors",
    "stage executor",
    ("spark",),
    ("run", "over", "over_all", "each", "rows", "query", "table", "close"),
)
"""``make(spark)`` makes a ``StageExecutor`` beside the Session's own."""

SPREAD_POLICIES = ExtensionPoint("weirflow.spread_policies", "spread policy", ("even",), ())
"""``policy(hashes, shards)`` returns the shard of each hash."""

SINKS = ExtensionPoint(
    "weirflow.sinks",
    "sink",
    (),
    ("describe", "open", "position", "write", "replace", "close"),
)
"""``make(uri)`` makes a ``SinkTarget``; the name is the URI's scheme."""

EXTENSION_POINTS = (CHECKPOINT_STORES, METADATA_STORES, STATE_BACKENDS, STAGE_EXECUTORS, SPREAD_POLICIES, SINKS)
