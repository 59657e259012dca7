"""``SessionFlow``: an incremental flow in this process, wired to a Session's Spark."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from weirflow.arguments import Lifetime, Name, checked
from weirflow.flows.beside import SessionsBeside
from weirflow.flows.recompute import SparkRecompute
from weirflow.flows.session_tables import SessionTables
from weirflow.flows.spark_flow import CLOCK_EVERY, SparkFlow
from weirflow.ivm.flow import IncrementalFlow

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession


@checked
class SessionFlow(SparkFlow, IncrementalFlow):
    """A flow whose views may also be recomputed by Spark, and whose rows come back as Spark frames.

    Deltas and loads may be frames too. The circuit runs in this process.

    Args:
        session: whose flow it is.
        name: the name of the flow.
        clock_every: the seconds between two looks whether time has brought a row to where a view changes, if views
            follow the system's clock.
        options: those of ``IncrementalFlow``.
    """

    def __init__(
        self, session: FlowSession, name: Name, *, clock_every: Lifetime = CLOCK_EVERY, **options: Any
    ) -> None:
        with ExitStack() as held:
            beside = SessionsBeside(session)
            held.callback(beside.close)
            run, tables = session.operations.run_for_tick, SessionTables(session)
            functions = session._user_functions  # noqa: SLF001 - for flows alone
            is_durable = options.get("path") is not None
            engine = SparkRecompute(lambda: session.spark, beside.open, run, tables, functions, is_durable=is_durable)
            super().__init__(name, engine=engine, **options)
            self._wire(session, engine.reader, self.path, held.pop_all(), clock_every=clock_every)
