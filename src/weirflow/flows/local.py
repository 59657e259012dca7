"""``SessionFlow``: an incremental flow in this process, wired to a Session's Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirflow.arguments import Name, checked
from weirflow.flows.own_session import with_settings_of
from weirflow.flows.recompute import SparkRecompute
from weirflow.flows.spark_flow import SparkFlow
from weirflow.ivm.flow import IncrementalFlow

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession


@checked
class SessionFlow(SparkFlow, IncrementalFlow):
    """A flow whose views may also be recomputed by Spark, and whose rows come back as Spark frames.

    Deltas and loads may be frames too. The circuit runs in this process.
    """

    def __init__(self, session: FlowSession, name: Name, **options: Any) -> None:
        engine = SparkRecompute(
            lambda: with_settings_of(session.spark, session.spark.newSession()),
            session.operations.run_for_tick,
            session._user_functions,  # noqa: SLF001 - for flows alone
        )
        super().__init__(name, engine=engine, **options)
        self._wire(session, engine.reader, self.path)
