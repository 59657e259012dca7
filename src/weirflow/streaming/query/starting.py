"""From the spec of a query to a query that runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weirflow.spark.compat import has_real_time_mode
from weirflow.spark.frames.source_options import require_known_options
from weirflow.streaming.query.batches import BatchGate
from weirflow.streaming.query.checkpoints import CheckpointPlace, checkpoint_place
from weirflow.streaming.query.handle import QueryInfo, StreamingQuery
from weirflow.streaming.query.run import QueryRun
from weirflow.streaming.savepoints.saver import QuerySaver
from weirflow.streaming.support import is_real_time, require_supported
from weirflow.streaming.trigger import TriggerKind

if TYPE_CHECKING:
    from weirflow.spark.streaming.plan import QueryShape
    from weirflow.streaming.host import StreamHost
    from weirflow.streaming.query.spec import QuerySpec

_WORDS = {
    TriggerKind.ONCE: "once",
    TriggerKind.AVAILABLE_NOW: "availableNow",
    TriggerKind.PROCESSING_TIME: "processingTime",
    TriggerKind.CONTINUOUS: "continuous",
}
_REAL_TIME = "realTime"


def start_query(
    spec: QuerySpec, host: StreamHost, began: Callable[[QueryRun], None], ended: Callable[[QueryRun], None]
) -> StreamingQuery:
    """Start a query and return its handle; whatever cannot be is refused before anything is started.

    Args:
        spec: what the writer was told.
        host: the Session.
        began: called with the run when it is started.
        ended: called when it has ended for good.
    """
    require_known_options(spec.sink.name, spec.options)
    shape = host.run("check a stream", lambda: _checked(spec))
    place = checkpoint_place(
        spec.checkpoint,
        name=spec.name,
        profile=host.profile,
        checkpoints=host.checkpoints,
        remote=host.distributed,
        own=spec.sink.own_checkpoint,
    )
    spec = spec.resolved(place.location)
    saver = QuerySaver(host, spec, shape)
    try:
        if spec.savepoint is not None:
            saver.restore(*spec.savepoint)
        run = _started(spec, shape, host, place, began=began, ended=ended)
    except BaseException:
        place.remove()
        raise
    return StreamingQuery(run, _info(spec, shape, place, run.id), *(spec.sink.kept(spec, host) or ()), saver=saver)


def adopt_query(native: Any, began: Callable[[QueryRun], None], ended: Callable[[QueryRun], None]) -> StreamingQuery:
    """The handle of a query that runs on Spark already; it does not stop the query when it is dropped."""
    run = QueryRun(lambda: native, gate=None, policy=None, batched=True, ended=ended)
    began(run)
    return StreamingQuery(run, QueryInfo(native.name or run.id, run.id), owned=False)


def _checked(spec: QuerySpec) -> QueryShape:
    """What the query is made of, if all that is asked for is possible."""
    from weirflow.spark.streaming.plan import query_shape  # noqa: PLC0415 - imports pyspark

    shape = query_shape(spec.frame)
    require_supported(spec, shape)
    spec.sink.check(spec)
    return shape


def _started(
    spec: QuerySpec,
    shape: QueryShape,
    host: StreamHost,
    place: CheckpointPlace,
    *,
    began: Callable[[QueryRun], None],
    ended: Callable[[QueryRun], None],
) -> QueryRun:
    ids: list[str] = []
    known = threading.Event()
    listed: list[Callable[[BaseException | None], None]] = []

    def query_id() -> str:
        known.wait()
        return ids[0]

    def over(run: QueryRun) -> None:
        known.wait()
        place.remove()
        if gate is not None:
            gate.release()
        for end in listed:
            end(run.error)
        ended(run)

    taker = spec.sink.taker(spec, host, query_id)
    gate = taker if isinstance(taker, BatchGate) else None
    if spec.late:
        from weirflow.spark.streaming.late import note_checkpoint  # noqa: PLC0415 - imports pyspark

        for uri in spec.late:
            note_checkpoint(uri, place.location)
    run = QueryRun(
        _native(spec, shape, taker),
        gate=gate,
        policy=spec.policy,
        batched=spec.trigger.kind is not TriggerKind.CONTINUOUS,
        ended=over,
    )
    ids.append(run.id)
    began(run)
    listed.append(host.follow(f"stream {spec.name}", run.id, run.stop, lambda: _note(run)))
    known.set()
    return run


def _native(spec: QuerySpec, shape: QueryShape, taker: Callable[[Any, int], Any] | None) -> Callable[[], Any]:
    """What starts the query on Spark, each time anew."""
    from weirflow.spark.streaming.query import start_native  # noqa: PLC0415 - imports pyspark
    from weirflow.spark.streaming.settings import process_settings  # noqa: PLC0415 - imports pyspark

    conf, trigger = process_settings(shape, ends=spec.trigger.ends), _native_trigger(spec, shape)

    def begin(writer: Any) -> Any:
        writer = writer.outputMode(spec.mode.value).options(**spec.options).queryName(spec.name)
        if spec.partition_by:
            writer = writer.partitionBy(*spec.partition_by)
        return spec.sink.begin(writer, spec) if taker is None else writer.foreachBatch(taker).start()

    return lambda: start_native(spec.frame, trigger, conf, begin)


def _native_trigger(spec: QuerySpec, shape: QueryShape) -> tuple[str, Any] | None:
    """PySpark's keyword for the trigger, and its value; None for its default."""
    trigger, words = spec.trigger, f"{spec.trigger.ms} milliseconds"
    match trigger.kind:
        case TriggerKind.CONTINUOUS if is_real_time(spec, shape) and has_real_time_mode(spec.frame):
            return _REAL_TIME, words
        case TriggerKind.PROCESSING_TIME if not trigger.ms:
            return None
        case kind:
            return _WORDS[kind], True if trigger.ends else words


def _info(spec: QuerySpec, shape: QueryShape, place: CheckpointPlace, query_id: str) -> QueryInfo:
    delivery, why = spec.sink.promise(spec.mode)
    trigger, policy = _native_trigger(spec, shape), spec.policy
    real_time = trigger is not None and trigger[0] == _REAL_TIME
    return QueryInfo(
        name=str(spec.name),
        query_id=query_id,
        output_mode=spec.mode,
        trigger=f"{spec.trigger}, in Spark's real-time mode" if real_time else str(spec.trigger),
        sink=spec.sink.target(spec),
        delivery=delivery,
        because=f"{why}, as long as the query runs" if place.temporary else why,
        checkpoint=str(place),
        restarts=f"up to {policy.attempts} in a row after transient errors" if policy else "none",
    )


def _note(run: QueryRun) -> str:
    last = run.last()
    return str(last) if last else ""
