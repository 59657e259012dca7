"""What reads and runs views on a Session's Spark, without a flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirflow.flows.functions import SessionFunctions
from weirflow.flows.recompute import SparkRecompute
from weirflow.flows.session_tables import SessionTables
from weirflow.flows.view_reader import ViewReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from weirflow import Session


def spark_engine(session: Session) -> SparkRecompute:
    """The engine of a flow of the Session's."""
    return SparkRecompute(
        lambda: session.spark,
        session.spark.newSession,
        session.operations.run_for_tick,
        SessionTables(session),
        SessionFunctions(),
    )


def plan_reader(open_session: Callable[[], Any]) -> ViewReader:
    """Reads plans of which Spark evaluates nothing, so that they are computed without it."""
    return ViewReader(open_session, SessionFunctions(), in_shards=True)
