"""Methods that users write and Weirflow calls."""

from __future__ import annotations

from weirflow.arguments.rules import runs_later
from weirflow.errors import ConfigError


def require_plain_methods(owner: type) -> None:
    """``ConfigError`` if a subclass of one of Weirflow's classes overrides a method by an async one or a generator.

    Whoever calls it gets something that would run, and nothing has run.
    """
    ours = [base for base in owner.__mro__[1:] if base.__module__.startswith("weirflow.")]
    for name, member in vars(owner).items():
        if runs_later(member) and any(name in vars(base) for base in ours):
            raise ConfigError(
                f"{owner.__name__}.{name}() is async or a generator, so calling it would run nothing.",
                hint="write a plain method: no async, no yield",
            )
