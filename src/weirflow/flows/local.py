"""``SessionFlow``: an incremental flow in this process, wired to a Session's Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirflow.arguments import Name, checked
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
        def another() -> Any:
            return session.spark.newSession()

        engine = SparkRecompute(lambda: session.spark, another, session.operations.run_for_tick)
        super().__init__(name, engine=engine, **options)
        self._wire(session, engine.reader, self.path)
