"""Data to be written, seen as plain byte views without copying."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from weirflow.errors import ConfigError

if TYPE_CHECKING:
    from weirflow.checkpoint.storage.contract import Data


def as_view(data: object) -> memoryview | None:
    """A flat view of bytes-like data (bytes, a memoryview, an Arrow buffer, ...); None for anything else."""
    try:
        view = memoryview(data)  # type: ignore[arg-type]  # asking is the way to find out
    except TypeError:
        return None
    # Only C-contiguous memory can be cast; a strided view is copied.
    return view.cast("B") if view.c_contiguous else memoryview(view.tobytes())


def views(data: Data) -> Iterator[memoryview]:
    """The data as non-empty flat views, one per chunk.

    Raises:
        ConfigError: data, or one of its chunks, is not bytes-like. Raised when that chunk is reached.
    """
    whole = as_view(data)
    if whole is not None:
        if whole.nbytes:
            yield whole
        return
    if isinstance(data, str | Mapping) or not hasattr(data, "__iter__"):
        raise _not_bytes(data)
    for chunk in data:
        view = as_view(chunk)
        if view is None:
            raise _not_bytes(chunk)
        if view.nbytes:
            yield view


def _not_bytes(value: object) -> ConfigError:
    return ConfigError(
        f"An object is made of bytes; {type(value).__name__} was given.",
        hint="give bytes, another bytes-like object, or an iterable of them",
    )
