"""``UserCode``: around code of users, so that what it raises says where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from weirflow.arguments import shown
from weirflow.errors import UserCodeError, WeirflowError

if TYPE_CHECKING:
    from types import TracebackType

_NO_KEY = object()


class UserCode:
    """A block that runs callbacks of a function; set ``callback`` and ``key`` to what runs.

    What a callback raises becomes a ``UserCodeError`` with its cause; errors of Weirflow's own get a note.
    """

    def __init__(self, function: str) -> None:
        self._function = function
        self.callback = ""
        self.key: Any = _NO_KEY

    def __call__(self, callback: str) -> Self:
        """For a callback, without a key so far."""
        self.callback = callback
        self.key = _NO_KEY
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if isinstance(error, WeirflowError):
            error.add_note(f"  in {self._where()}")
        elif isinstance(error, Exception):
            raise UserCodeError(
                f"{self._where()} raised {type(error).__name__}: {error}",
                hint="state and timers are as they were before the batch",
            ) from error

    def _where(self) -> str:
        where = f"{self._function}.{self.callback}"
        return where if self.key is _NO_KEY else f"{where} for the key {shown(self.key)}"
