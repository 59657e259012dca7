"""``SessionsBeside``: native sessions beside a Session's own, whose settings and temporary views can be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession


class SessionsBeside:
    """Opens native sessions that share the Session's Spark, and lets go of them."""

    def __init__(self, session: FlowSession) -> None:
        self._session = session
        self._held: list[Any] = []

    def open(self) -> Any:
        """A native session."""
        native = self._session.spark
        if hasattr(native, "newSession"):
            return native.newSession()
        from weirflow.spark.launch.connect import clone_connect  # noqa: PLC0415 - needs the extra connect

        self._held.append(clone_connect(native))
        return self._held[-1]

    def close(self) -> None:
        """Let go of those that a server holds."""
        while self._held:
            from weirflow.spark.launch.connect import close_connect  # noqa: PLC0415 - needs the extra connect

            close_connect(self._held.pop())
