"""Functions that users register and views call by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from weirflow.arguments import NotEmpty, checked, runs_later, shown
from weirflow.errors import ConfigError

PREFIX = "function:"
"""How a setting of a foreign call begins that names a function of a user's; its value is the version."""


@checked
@dataclass(frozen=True)
class UserFunction:
    """A Python function that returns the same value for the same arguments, at any time.

    Attributes:
        call: the function; a NULL arrives as None.
        version: the version that is stored with the views that call it. Change it whenever the function returns
            something else.
    """

    call: Callable[..., Any]
    version: Annotated[str, NotEmpty()] = "1"

    def __post_init__(self) -> None:
        """Refuse what gives its value later."""
        if runs_later(self.call):
            raise ConfigError(
                f"UserFunction(): call is {shown(self.call)}; it must be a function, neither async nor a generator."
            )


@dataclass(frozen=True)
class DeclaredFunction:
    """A function that a Session knows by name.

    Attributes:
        name: as views call it.
        version: as ``UserFunction.version``.
        is_deterministic: whether somebody vouches that it gives the same value for the same arguments.
        call: the Python function, if it can be run in this process; otherwise Spark runs it.
        is_anonymous: whether the name was made up, so that no other process can register it again.
    """

    name: str
    version: str
    is_deterministic: bool
    call: Callable[..., Any] | None = None
    is_anonymous: bool = False


def versions(settings: Mapping[str, str]) -> dict[str, str]:
    """The functions that a foreign call needs, by name, with their versions.

    >>> versions({"function:clean": "2", "spark.sql.ansi.enabled": "true"})
    {'clean': '2'}
    """
    return {name.removeprefix(PREFIX): version for name, version in settings.items() if name.startswith(PREFIX)}
