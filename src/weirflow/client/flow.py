"""``RemoteFlow``: the flow API for a flow that a server runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from weirflow.arguments import checked
from weirflow.arguments.in_errors import kind_of
from weirflow.errors import ConfigError, UnsupportedError
from weirflow.ivm.flow.flow import Flow

if TYPE_CHECKING:
    from weirflow.ivm.flow.sinks.sink import SinkTarget
    from weirflow.sql.settings import SqlSettings


@checked
class RemoteFlow(Flow):
    """A flow on a server, with the methods of ``Flow``; ``RemoteSession.flow`` makes it.

    Closing it lets go of its watches here; the flow itself goes on. Every tick has a token, so that one whose answer
    was lost is sent again without harm. What can be done only where the flow runs is refused with one sentence.
    """

    @override
    def _frame_view(self, frame: Any) -> tuple[str, str, SqlSettings]:
        raise ConfigError(
            f"A view of a flow on a server is one query in SQL, not {kind_of(frame)}.", hint="write the query as text"
        )

    @override
    def _table_target(self, table: str, mode: str, key: str | Sequence[str] | None) -> SinkTarget:
        raise UnsupportedError(
            "The flow runs on a server, and its sinks are made there.",
            hint="write what watch_output() gives, or make the sink on the server",
        )
