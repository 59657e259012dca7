"""From what a writer was told to a query that runs."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

from weirflow.streaming.batches import BatchGate
from weirflow.streaming.checkpoints import OPTION, checkpoint_place, split_options
from weirflow.streaming.functions import batch_function
from weirflow.streaming.launch import INNER_NAME
from weirflow.streaming.query import QueryInfo, StreamingQuery
from weirflow.streaming.run import QueryRun
from weirflow.streaming.saving import QuerySaver
from weirflow.streaming.sinks import FOREACH
from weirflow.streaming.trigger import TriggerKind
from weirflow.types import Delivery

if TYPE_CHECKING:
    from collections.abc import Callable

    from weirflow.streaming.checkpoints import CheckpointPlace
    from weirflow.streaming.host import StreamHost
    from weirflow.streaming.launch import Launch
    from weirflow.streaming.support import Asked

_STOP_SECONDS = 5.0


def start_query(
    launch: Launch, host: StreamHost, began: Callable[[QueryRun], None], ended: Callable[[QueryRun], None]
) -> StreamingQuery:
    """Start a query and return its handle; whatever cannot be is refused before anything is started.

    Args:
        launch: what the writer was told.
        host: the Session.
        began: called with the run when it is started.
        ended: called when it has ended for good.
    """
    asked = host.run("check a stream", launch.check)
    given, options = split_options(launch.options)
    place = checkpoint_place(
        given,
        name=launch.name,
        profile=host.profile,
        checkpoints=host.checkpoints,
        remote=host.distributed,
        own=asked.sink.own_checkpoint,
    )
    saver = QuerySaver(host, launch, asked, place)
    try:
        if launch.savepoint is not None:
            saver.restore(*launch.savepoint)
        return _start(_Start(launch, host, asked, options, place), saver, began, ended)
    except BaseException:
        place.remove()
        raise


def adopt_query(native: Any, began: Callable[[QueryRun], None], ended: Callable[[QueryRun], None]) -> StreamingQuery:
    """The handle of a query that runs on Spark already; it does not stop the query when it is dropped."""
    run = QueryRun(lambda: native, gate=None, policy=None, batched=True, ended=ended)
    began(run)
    info = QueryInfo(
        name=native.name or run.id,
        query_id=run.id,
        output_mode=None,
        trigger="not known",
        sink="not known: another client has started it",
        delivery=Delivery.UNKNOWN,
        because="not known here",
        checkpoint="not known",
        restarts="none",
    )
    return StreamingQuery(run, info, owned=False)


class _Start:
    """One start, with what was found out about it."""

    def __init__(
        self, launch: Launch, host: StreamHost, asked: Asked, options: dict[str, str], place: CheckpointPlace
    ) -> None:
        self.launch = launch
        self.host = host
        self.asked = asked
        self.place = place
        self.name = launch.query_name()
        self.options = {**options, **({OPTION: place.location} if place.location else {})}

    def native(self, batches: Callable[[Any, int], Any] | None) -> Callable[[], Any]:
        """What starts the query on Spark."""
        from weirflow.spark.streaming_settings import process_settings  # noqa: PLC0415 - imports pyspark
        from weirflow.spark.streaming_start import NativeLaunch, start_native  # noqa: PLC0415 - imports pyspark

        launch = self.launch
        by_function = batches is not None or launch.format == FOREACH
        native = NativeLaunch(
            frame=launch.frame,
            mode=launch.mode.value,
            trigger=launch.native_trigger(self.asked),
            options=self.options,
            name=self.name,
            format=None if by_function else launch.format,
            partition_by=launch.partition_by,
            table=None if by_function else launch.table,
            batches=batches,
            rows=launch.function if launch.format == FOREACH else None,
            conf=process_settings(self.asked.shape, ends=launch.trigger.ends),
        )
        return lambda: start_native(native)

    def info(self, query_id: str) -> QueryInfo:
        """What the query is."""
        launch, policy = self.launch, self.launch.policy
        delivery, why = launch.delivery(self.asked)
        trigger = launch.native_trigger(self.asked)
        real_time = trigger is not None and trigger[0] == "realTime"
        return QueryInfo(
            name=self.name,
            query_id=query_id,
            output_mode=launch.mode,
            trigger=f"{launch.trigger}, in Spark's real-time mode" if real_time else str(launch.trigger),
            sink=launch.target(),
            delivery=delivery,
            because=f"{why}, as long as the query runs" if self.place.temporary else why,
            checkpoint=str(self.place),
            restarts=f"up to {policy.attempts} in a row after transient errors" if policy else "none",
        )

    def memory(self) -> tuple[Callable[[], Any] | None, Callable[[], None] | None]:
        """What reads the rows of a memory sink, and what forgets them if nobody knows their name."""
        if self.launch.format != "memory":
            return None, None
        host, name = self.host, self.name

        def rows() -> Any:
            return host.run(f"read {name}", lambda: host.spark.table(name).toArrow())

        def forget() -> None:
            with contextlib.suppress(Exception):  # the Session may be closed, and its views with it
                host.spark.catalog.dropTempView(name)

        return rows, forget if name.startswith(INNER_NAME) else None


def _start(
    start: _Start, saver: QuerySaver, began: Callable[[QueryRun], None], ended: Callable[[QueryRun], None]
) -> StreamingQuery:
    launch, host = start.launch, start.host
    runs: list[QueryRun] = []
    known = threading.Event()
    listed: list[Callable[[BaseException | None], None]] = []

    def query_id() -> str:
        known.wait()
        return runs[0].id

    def over(run: QueryRun) -> None:
        known.wait()
        start.place.remove()
        if isinstance(batches, BatchGate):
            batches.release()
        for end in listed:
            end(run.error)
        ended(run)

    batches = batch_function(launch, host, query_id)
    if launch.late:
        from weirflow.spark.streaming_late import note_checkpoint  # noqa: PLC0415 - imports pyspark

        for uri in launch.late:
            note_checkpoint(uri, start.place.location)
    run = QueryRun(
        start.native(batches),
        gate=batches if isinstance(batches, BatchGate) else None,
        policy=launch.policy,
        batched=launch.trigger.kind is not TriggerKind.CONTINUOUS,
        ended=over,
    )
    runs.append(run)
    began(run)
    listed.append(host.follow(f"stream {start.name}", lambda: run.stop(_STOP_SECONDS), lambda: _note(run)))
    known.set()
    return StreamingQuery(run, start.info(run.id), *start.memory(), saver=saver)


def _note(run: QueryRun) -> str:
    last = run.last()
    return str(last) if last else str(run.state()[0])
