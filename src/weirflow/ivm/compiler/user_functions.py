"""Functions of users for a flow that has no Session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from weirflow.errors import ConfigError
from weirflow.ivm.compiler.missing_engine import no_engine
from weirflow.sql.registered import UserFunction

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.compiler.view import RecomputeEngine


class FunctionsOnly:
    """In an engine's place: knows functions, and recomputes nothing."""

    def __init__(self, functions: Mapping[str, UserFunction]) -> None:
        self._functions = {name.casefold(): one for name, one in functions.items()}

    def function(self, name: str, version: str | None) -> UserFunction | None:
        """See ``CallingEngine``."""
        found = self._functions.get(name.casefold())
        return found if found is not None and version in (None, found.version) else None

    def schema(self, sql: str, tables: Mapping[str, pa.Schema]) -> pa.Schema:  # noqa: ARG002 - as others
        """See ``RecomputeEngine``."""
        raise no_engine()

    def run(self, sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:  # noqa: ARG002 - as others
        """See ``RecomputeEngine``."""
        raise no_engine()


def with_functions(
    engine: RecomputeEngine | None, functions: Mapping[str, Callable[..., Any] | UserFunction]
) -> FunctionsOnly:
    """What a flow without an engine is given to know these functions."""
    if engine is not None:
        raise ConfigError(
            "A flow takes functions= or engine=, not both.", hint="register the functions with the engine: session.udf"
        )
    return FunctionsOnly(
        {name: one if isinstance(one, UserFunction) else UserFunction(one) for name, one in functions.items()}
    )


def recomputes(engine: RecomputeEngine | None) -> bool:
    """Whether there is an engine that runs whole queries."""
    return engine is not None and not isinstance(engine, FunctionsOnly)
