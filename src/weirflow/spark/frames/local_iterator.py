"""PySpark's iterators over a frame that is read partition by partition, made to end without a word."""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


def ending_quietly(items: Iterator[T]) -> Iterator[T]:
    """The same iterator, not begun yet, which may now be dropped after its Spark is gone.

    As it is collected PySpark tells Spark to stop. From 4.3 on it then closes the connection too, which sends what
    could not be sent once more, and Python prints that error although nobody can act on it.
    """
    if inspect.isgenerator(items):
        reader: Any = inspect.getgeneratorlocals(items).get("self")
        if hasattr(reader, "_sockfile"):
            reader._sockfile = _QuietlyClosed(reader._sockfile)  # noqa: SLF001 - PySpark has no public way to it
    return items


class _QuietlyClosed:
    """A file whose ``close`` raises nothing, even if what it holds cannot be written any more."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
