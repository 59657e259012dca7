"""``Followed``: work that runs by itself, listed among the operations of a Session."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from weirflow.session.operation import Operation
from weirflow.types import OperationState

if TYPE_CHECKING:
    from weirflow.spark.jobs.control import JobControl


class Followed(Operation):
    """Work that runs by itself, such as a streaming query; cancelling stops it.

    Attributes:
        own_id: what it is known by elsewhere.
    """

    def __init__(
        self, description: str, own_id: str, control: JobControl, stop: Callable[[], None], note: Callable[[], str]
    ) -> None:
        super().__init__(description, control)
        self.own_id = own_id
        self._stop_query = stop
        self._note = note

    @property
    def note(self) -> str:
        """How far it is, or was."""
        return self._note() or str(self.state)

    def _stop_work(self) -> None:
        threading.Thread(target=self._stop_query, name=f"cancel-{self.id}", daemon=True).start()

    def _finish(self, error: BaseException | None) -> None:
        if error is None and self._state is OperationState.CANCELLING:
            error = self._ending_error()
        noted = self._note()
        super()._finish(error)
        # What has ended is listed for a while; the work, and all that Spark has of it, need not stay as long.
        self._note, self._stop_query = lambda: noted, _nothing


def _nothing() -> None:
    """What there is to stop of work that has ended."""
