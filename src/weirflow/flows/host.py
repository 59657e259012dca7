"""What flows need of the Session they run in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from weirflow.config import Settings
    from weirflow.flows.functions import SessionFunctions
    from weirflow.spark.frames.frame import DataFrame
    from weirflow.streaming.query.manager import StreamingQueryManager
    from weirflow.types import Profile

T = TypeVar("T")

Params = Mapping[str, Any] | Sequence[Any]
"""Values for the parameter markers of a statement."""


class Work(Protocol):
    """Runs Spark work, each piece listed among the Session's operations."""

    def run(self, description: str, call: Callable[[], T]) -> T:
        """Run a piece of work."""

    def run_for_tick(self, description: str, call: Callable[[], T]) -> T:
        """Run a piece of work that belongs to a tick, and has its deadline."""


class Description(Protocol):
    """Where the Session runs."""

    @property
    def profile(self) -> Profile:
        """Its durability profile."""

    @property
    def spark(self) -> str:
        """Its Spark, in words."""


class FlowSession(Protocol):
    """The Session, as far as flows know it."""

    @property
    def spark(self) -> Any:
        """The native session; starts Spark."""

    @property
    def settings(self) -> Settings:
        """The settings, secrets included."""

    @property
    def operations(self) -> Work:
        """What runs Spark work."""

    @property
    def _user_functions(self) -> SessionFunctions:
        """The functions that were registered in it."""

    @property
    def streams(self) -> StreamingQueryManager:
        """The streaming queries."""

    def describe(self) -> Description:
        """Where it runs."""

    def tables(self) -> list[str]:
        """The names of the tables registered in it."""

    def drop(self, name: str) -> None:
        """Forget a table."""

    def from_arrow(self, data: Any) -> DataFrame:
        """Tabular data as a frame."""

    def _shows(self, table: str) -> bool:
        """Whether a temporary view is what a query sees of a flow, and none of the user's."""

    def _wrapped(self, native: Any) -> DataFrame:
        """A native frame as ours."""
