"""Several materialized views, refreshed in one go: at the same time where they can, each behind those that it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.errors import WeirflowError
from weirflow.flows.own_session import be_active
from weirflow.materialized.graph import ViewGraph, view_graph
from weirflow.materialized.pins import Pins
from weirflow.materialized.refresh import Refresh

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession
    from weirflow.materialized.history import RefreshRecord
    from weirflow.materialized.opened import OpenedView

_MOST_AT_A_TIME = 4


@dataclass(frozen=True)
class Outcome:
    """What became of one view.

    Attributes:
        view: its name.
        record: how it was refreshed; None if it was not.
        error: why it was not; None if it was, or if a view that it reads was not.
        behind: the view that it reads and that was not refreshed; None if there is none.
    """

    view: str
    record: RefreshRecord | None = None
    error: WeirflowError | None = None
    behind: str | None = None


def refresh_together(
    session: FlowSession,
    views: Sequence[OpenedView],
    *,
    full: bool = False,
    cascade: bool = False,
    parallel: int | None = None,
) -> list[Outcome]:
    """Refresh views, each behind those of them that it reads, all from the same versions of other tables.

    Those that do not wait for others are refreshed at the same time, in one Spark application, each in a native session
    of its own. An interrupt ends it when those that are being refreshed are done; what was done stays, so that the
    same call goes on from there.

    Args:
        session: whose Spark does it.
        views: which ones.
        full: compute everything.
        cascade: refresh also the views that they read.
        parallel: how many are refreshed at a time; None for as many as Spark has cores, up to four.
    """
    graph = view_graph(session, views, follow=cascade)
    pins = Pins()
    together = parallel or min(_MOST_AT_A_TIME, int(session.spark.sparkContext.defaultParallelism))

    def refresh(view: OpenedView) -> Outcome:
        be_active(session.spark)
        try:
            return Outcome(view.name, Refresh(session, view, full=full, pins=pins).run())
        except WeirflowError as error:
            return Outcome(view.name, error=error)

    return in_waves(graph, refresh, together)


def in_waves(graph: ViewGraph, refresh: Callable[[OpenedView], Outcome], parallel: int) -> list[Outcome]:
    """Refresh the views of a graph, so many at a time, each as soon as those that it reads are done.

    Views that read one that was not refreshed are left out. Outcomes are in the order of the graph.
    """
    done: dict[str, Outcome] = {}
    waiting = {view.table: view for view in graph.views}
    running: dict[Future[Outcome], str] = {}

    def settle() -> None:
        """Leave out what reads a view that was not refreshed; such a view may itself be read."""
        for table, view in list(waiting.items()):  # each is behind those that it reads
            missing = [done[one] for one in graph.reads[table] if one in done and done[one].record is None]
            if missing:
                done[table] = Outcome(view.name, behind=missing[0].view)
                del waiting[table]

    with ThreadPoolExecutor(parallel, thread_name_prefix="weirflow-refresh") as pool:
        try:
            while waiting or running:
                settle()
                ready = [
                    table for table in waiting if not set(graph.reads[table]) & (waiting.keys() | set(running.values()))
                ]
                for table in ready:
                    running[pool.submit(refresh, waiting.pop(table))] = table
                for future in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                    done[running.pop(future)] = future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [done[view.table] for view in graph.views]
