"""What a task does: take parcels in, run its stage on its shard, send parcels on and report."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator

from weirflow.errors import DataError, StorageError
from weirflow.ivm.durability.records import decode_rows, encode_rows
from weirflow.ivm.sharded.worker.files import flow_files
from weirflow.ivm.sharded.worker.reports import Failure, Parcel, RefusedDelta, ShardReport, StageTask, TickReport
from weirflow.ivm.sharded.worker.shard import Shard
from weirflow.ivm.zset.batch import Batch

_MOST_SHARDS = 256
"""How many stages of shards a process keeps at hand; most of their state is mapped files."""
_ROWS_IN_PARCEL = 1 << 18
_REPORT = -1

_warm: OrderedDict[tuple[str, bytes, int, int], Shard] = OrderedDict()
"""The shards whose state is in this process: a cache. A shard is used by one task at a time and taken out for it."""

Sent = tuple[int, Parcel]
"""A parcel and the shard of the next stage that it goes to."""


def run_stage(task: StageTask, shard: int, parcels: Iterable[Parcel], where: str) -> Iterator[Sent]:
    """Run a stage on a shard: yields what goes to the shards of the next stage, including reports.

    An error of the data or of the storage is reported; the coordinator raises it.
    """
    reports = []
    inbox: dict[int, dict[int, list[Batch]]] = {}
    for parcel in parcels:
        if parcel.report is not None:
            reports.append(parcel)
        else:
            inbox.setdefault(parcel.tick, {}).setdefault(parcel.node, []).append(decode_rows(parcel.rows))
    received = {tick: {node: Batch.concat(rows) for node, rows in nodes.items()} for tick, nodes in inbox.items()}
    failure: Failure | None = None
    try:
        yield from _run(task, shard, received, where)
    except RefusedDelta as refused:
        failure = Failure(refused.error.code, refused.error.message, refused.error.hint, refused=True)
    except DataError as error:
        failure = Failure(error.code, error.message, error.hint)
    except StorageError as error:
        failure = Failure(error.code, error.message, error.hint, error.uri)
    if failure is not None:
        yield shard, Parcel(_REPORT, report=ShardReport(task.stage, shard, where=where, failure=failure))
    yield from ((shard, parcel) for parcel in reports)


def _run(task: StageTask, shard: int, inbox: dict[int, dict[int, Batch]], where: str) -> Iterator[Sent]:
    place = (task.uri, task.definition, task.stage, shard)
    files = flow_files(task.uri)
    begun = time.perf_counter()
    one = _warm.pop(place, None) or Shard(task.definition, task.stage, shard, files)
    warm = one.load(task)
    loaded = time.perf_counter()
    done = [one.step(task, task.ticks[0], inbox.get(0, {}))]
    for number, tick in enumerate(task.ticks[1:], 1):
        one.catch_up(done[-1])
        done.append(one.step(task, tick, inbox.get(number, {})))
    finished = time.perf_counter()
    states, packs = one.save(task)
    ticks = [
        TickReport(
            {name: files.write_rows(rows, task.epoch, task.inline) for name, rows in result.outputs.items()},
            result.rows_in,
        )
        for result in done
    ]
    saved = time.perf_counter()
    report = ShardReport(
        task.stage,
        shard,
        version=one.version,
        states=states,
        packs=packs,
        released=one.released,
        ticks=ticks,
        watermarks=done[-1].watermarks,
        warm=warm,
        where=where,
        load_ms=1000 * (loaded - begun),
        step_ms=1000 * (finished - loaded),
        save_ms=1000 * (saved - finished),
        rows=one.rows,
    )
    for number, result in enumerate(done):
        for target, node, rows in (*result.sent, *one.carried(task, result)):
            for start in range(0, len(rows), _ROWS_IN_PARCEL):
                part = rows if len(rows) <= _ROWS_IN_PARCEL else rows.slice(start, _ROWS_IN_PARCEL)
                yield target, Parcel(node, encode_rows(part), tick=number)
    yield shard, Parcel(_REPORT, report=report)
    _warm[place] = one
    while len(_warm) > _MOST_SHARDS:
        _warm.popitem(last=False)
