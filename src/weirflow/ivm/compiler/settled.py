"""Engines whose SQL means what the settings of a view say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from weirflow.sql.settings import SqlSettings

Engine = TypeVar("Engine")


@runtime_checkable
class SettledEngine(Protocol):
    """An engine that reads and runs SQL with the settings that it is asked to."""

    def settings_now(self) -> SqlSettings:
        """Those of its Session now, which a view that is registered now keeps."""

    def under(self, settings: SqlSettings) -> Self:
        """The same engine, with these settings."""


def under(engine: Engine, settings: SqlSettings | None) -> Engine:
    """The engine with a view's settings, if it has any; without, with those that its Session has then."""
    return engine.under(settings) if settings is not None and isinstance(engine, SettledEngine) else engine


def is_settled(engine: object) -> bool:
    """Whether an engine has settings of its own."""
    return isinstance(engine, SettledEngine)


def settings_now(engine: object) -> SqlSettings | None:
    """The settings that an engine's Session has now; None if it has none."""
    return engine.settings_now() if isinstance(engine, SettledEngine) else None
