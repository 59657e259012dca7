"""``SessionsBeside``: native sessions beside a Session's own, whose settings and temporary views can be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirflow.flows.own_session import with_settings_of

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

    def alike(self) -> Any:
        """A native session in which SQL means what it means in the Session now."""
        return with_settings_of(self._session.spark, self.open())

    def close(self) -> None:
        """Let go of those that a server holds."""
        while self._held:
            from weirflow.spark.launch.connect import close_connect  # noqa: PLC0415 - needs the extra connect

            close_connect(self._held.pop())
