"""Functions as bytes, by which another process has a copy of them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from pyspark import cloudpickle

from weirflow.errors import ConfigError


def copied(function: Callable[..., Any], described: str) -> bytes:
    """A function as bytes: by its name if a module has it, else (in a script, a notebook, a lambda) whole.

    Raises:
        ConfigError: it holds something that cannot be copied.
    """
    try:
        content: bytes = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]  # it has no types
    except Exception as error:
        raise ConfigError(
            f"The function {described} cannot be sent to another process: {error}.",
            hint="use the Session that it is called with, and make in the function what cannot be copied",
        ) from error
    return content


def from_copy(content: bytes) -> Callable[..., Any]:
    """The function again; it raises what its imports raise."""
    function: Callable[..., Any] = cloudpickle.loads(content)
    return function


def copy_whole(module: ModuleType) -> None:
    """Have the functions of a module sent whole from now on, as those of a script are: others cannot import it."""
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # as above
