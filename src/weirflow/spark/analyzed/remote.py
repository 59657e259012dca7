"""``Remote``: an object in the JVM that is fetched when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Remote:
    """An object in the JVM; a call there costs a fraction of a millisecond, so it is fetched when first asked for."""

    __slots__ = ("_fetch", "_found")

    def __init__(self, fetch: Callable[[], Any]) -> None:
        self._fetch: Callable[[], Any] | None = fetch
        self._found: Any = None

    def get(self) -> Any:
        """The object."""
        if self._fetch is not None:
            self._found, self._fetch = self._fetch(), None
        return self._found

    def field(self, name: str) -> Remote:
        """What its method of this name returns; of an option what it holds."""
        return Remote(lambda: _held(getattr(self.get(), name)()))

    def at(self, index: int) -> Remote:
        """An element of a sequence."""
        return Remote(lambda: self.get().apply(index))

    def child(self, index: int) -> Remote:
        """A child of a tree's node."""
        return Remote(lambda: self.get().children().apply(index))


def _held(found: Any) -> Any:
    kind = getattr(found, "getClass", None)
    return found.get() if kind is not None and kind().getName() == "scala.Some" else found
