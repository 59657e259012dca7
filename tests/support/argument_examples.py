"""Objects to call, valid arguments for every public call that needs no Spark, and what unusual values mean."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
from support.bad_arguments import ANYTHING, Situation
from support.memory_vectors import MemoryVectors

from weirflow import DeltaBatch, IncrementalFlow, Server, VectorViewSpec
from weirflow.checkpoint import open_checkpoint_storage
from weirflow.checkpoint.keyed_state.checkpoints import KeyedStateCheckpoints
from weirflow.checkpoint.keyed_state.savepoints import Savepoints
from weirflow.ivm.flow.position import Position
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.metadata import open_metadata
from weirflow.process import CoProcessFunction, CoProcessRunner, ProcessFunction, ProcessRunner
from weirflow.process.joins import JoinInput
from weirflow.server.access.tokens import Tokens
from weirflow.spark.jobs.assignments import TaskAssignment
from weirflow.state import (
    Aggregate,
    InMemoryStateBackend,
    KeyedStateStore,
    KeyGroupRange,
    Migrations,
    StateDescriptor,
)
from weirflow.state.migrations import Step
from weirflow.streaming.query.restart import RestartPolicy
from weirflow.streaming.trigger import TriggerKind
from weirflow.testing import CoProcessHarness, ManualClock, ProcessHarness
from weirflow.testing.sequence import SequenceSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


ON_SPARK = frozenset(
    {
        *("ConnectedStreams", "DataFrame", "DataStreamWriter", "DetachedQuery", "KeyedStream", "MaterializedView"),
        *("Operation", "Operations", "PartitionedIncrementalFlow", "ProcessedStream", "QuerySavepoints"),
        *("Session", "SessionFlow", "StreamingDataFrame", "StreamingQuery", "StreamingQueryManager"),
        *("Submitted", "TableFeed", "WindowedStream"),
    }
)
"""Classes that need a Session; test_bad_arguments_on_spark.py has them."""

ORDERS = "id BIGINT, amount BIGINT"
TOTALS = "SELECT COUNT(*) AS n, SUM(amount) AS total FROM orders"
ALL = KeyGroupRange(0, 128)
COUNT = Aggregate(lambda: 0, lambda count, _: count + 1, lambda count: count)


def new_flow() -> IncrementalFlow:
    flow = IncrementalFlow("shop")
    flow.register_source("orders", ORDERS)
    flow.register_view("totals", TOTALS)
    flow.tick("orders", [{"id": 1, "amount": 5}])
    return flow


def new_flow_in_shards() -> PartitionedFlow:
    flow = PartitionedFlow(f"memory://{uuid.uuid4().hex}", 2, InThisProcess())
    flow.register_source("orders", ORDERS)
    flow.register_view("totals", TOTALS)
    flow.tick("orders", [{"id": 1, "amount": 5}])
    return flow


def ids() -> str:
    return "SELECT id FROM orders"


def require_rows(flow: IncrementalFlow | PartitionedFlow) -> None:
    assert (flow.sources, flow.views, flow.pending) == (("orders",), ("totals",), False)
    assert flow.snapshot("totals").to_pylist() == [{"n": 1, "total": 5}]
    flow.tick("orders", [{"id": 2, "amount": 7}])
    assert flow.snapshot("totals").to_pylist() == [{"n": 2, "total": 12}]


def new_watch():
    flow = new_flow()
    watch = flow.watch_output("totals")
    flow.tick("orders", [{"id": 2, "amount": 7}])
    return watch


def new_library() -> IncrementalFlow:
    flow = IncrementalFlow("library")
    flow.register_source("docs", "id BIGINT, v ARRAY<FLOAT>")
    flow.register_view("chunks", "SELECT id, v FROM docs")
    return flow


def require_delta(watch) -> None:
    assert watch.get(0)[1].inserts().to_pylist() == [{"n": 2, "total": 12}]


class Counting(ProcessFunction):
    output = "word STRING, n BIGINT"

    def open(self, ctx):
        self.n = ctx.value(StateDescriptor("n", str, int))

    def on_element(self, ctx, key, _row):
        self.n.set(self.n.get(0) + 1)
        ctx.emit({"word": key, "n": self.n.get()})


class Pairing(CoProcessFunction):
    output = "word STRING"

    def on_left(self, ctx, key, _row):
        ctx.emit({"word": key})

    def on_right(self, ctx, key, row):
        pass


WORDS = [{"word": "a"}]


def require_counting(runner) -> None:
    assert [row["n"] for _ in range(2) for row in runner.run(WORDS).rows.to_pylist()] == [1, 2]


def require_pairing(runner) -> None:
    assert runner.run(WORDS, []).rows.to_pylist() == WORDS


def new_store() -> KeyedStateStore:
    store = KeyedStateStore(InMemoryStateBackend(), "op")
    store.value(StateDescriptor("known", str, int))
    store.set_key("ann")
    return store


def require_store(store) -> None:
    seen = store.value(StateDescriptor("after", str, int))
    store.set_key("bob")
    seen.set(3)
    store.flush()
    assert seen.get() == 3


def slot(kind: str, value: object, *more: object) -> Callable[[], object]:
    return lambda: getattr(new_store(), kind)(StateDescriptor("slot", str, value), *more)


def require_slot(write: str, *values: object, read: object) -> Callable[[object], None]:
    def require(state) -> None:
        getattr(state, write)(*values)
        got = state.get(*values[:-1])
        assert got == read

    return require


def new_timers():
    timers = new_store().timers(StateDescriptor("timers", str, None))
    timers.add(5)
    return timers


def require_timers(timers) -> None:
    assert (timers.first(), [at for at, _ in timers.until(6)]) == (5, [5])


def new_checkpoints() -> KeyedStateCheckpoints:
    checkpoints = KeyedStateCheckpoints(open_checkpoint_storage("memory://"))
    checkpoints.save({ALL: InMemoryStateBackend()}, epoch=1)
    return checkpoints


def require_checkpoints(checkpoints) -> None:
    assert checkpoints.find().epoch == 1


def new_savepoints() -> Savepoints:
    savepoints = Savepoints(open_checkpoint_storage("memory://"))
    savepoints.create("first", {ALL: InMemoryStateBackend()})
    return savepoints


def require_savepoints(savepoints) -> None:
    assert [one.name for one in savepoints.list()] == ["first"]


def new_storage(uri: object):
    storage = open_checkpoint_storage(uri)
    storage.put("there", b"12345")
    return storage


def require_storage(storage) -> None:
    assert storage.get("there") == b"12345"
    assert [info.name for info in storage.list()] == ["there"]


def new_documents():
    documents = open_metadata("memory://").documents
    documents.put("there", {"a": 1}, expected_version=0)
    return documents


def require_documents(documents) -> None:
    assert [(one.name, one.version, one.value) for one in documents.list()] == [("there", 1, {"a": 1})]


def require_lease(metadata) -> None:
    assert metadata.alive_nodes() == ()
    with metadata.acquire("after", "me", 10) as lease:
        assert lease.valid


def harness() -> ProcessHarness:
    return ProcessHarness(Counting(), key="word")


def require_harness(one) -> None:
    assert one.push(*WORDS) == [{"word": "a", "n": 1}]


def require_co_harness(one) -> None:
    assert one.push_left(*WORDS) == WORDS


def require_migrations(migrations) -> None:
    migrations.add(Step("after", 1, 2, lambda value: value))
    assert [step.slot for step in migrations.path("after", 1, 2)] == ["after"]


def require_sequence(source) -> None:
    with source:
        assert source.add([{"id": 1}]) == 0


def _require(holds: bool) -> None:
    assert holds


def new_delta() -> DeltaBatch:
    return DeltaBatch.from_inserts([{"id": 1}, {"id": 2}])


def require_delta_batch(delta) -> None:
    assert delta == DeltaBatch.from_inserts([{"id": 2}, {"id": 1}])


def new_server() -> Server:
    """One that was not started, and is asked to stop: there is nothing to wait for."""
    server = Server({}, http="127.0.0.1:0", flight="off", insecure=True)
    server.ask_to_stop()
    return server


SITUATIONS = {
    "IncrementalFlow": Situation(new_flow, require_rows),
    "PartitionedFlow": Situation(new_flow_in_shards, require_rows),
    "Watch": Situation(new_watch, require_delta),
    "DeltaBatch": Situation(new_delta, require_delta_batch),
    "ProcessRunner": Situation(lambda: ProcessRunner(Counting(), key="word"), require_counting),
    "CoProcessRunner": Situation(lambda: CoProcessRunner(Pairing(), key=("word", "word")), require_pairing),
    "ProcessHarness": Situation(harness, require_harness),
    "CoProcessHarness": Situation(lambda: CoProcessHarness(Pairing(), key=("word", "word")), require_co_harness),
    "KeyedStateStore": Situation(new_store, require_store),
    "ValueState": Situation(slot("value", int), require_slot("set", 1, read=1)),
    "ListState": Situation(slot("list", list[int]), require_slot("set", [1], read=[1])),
    "MapState": Situation(slot("map", dict[str, int]), require_slot("put", "a", 1, read=1)),
    "BroadcastState": Situation(
        lambda: new_store().broadcast(StateDescriptor("slot", None, dict[str, int])),
        require_slot("put", "a", 1, read=1),
    ),
    "ReducingState": Situation(slot("reducing", int, max), require_slot("add", 3, read=3)),
    "AggregatingState": Situation(slot("aggregating", int, COUNT), require_slot("add", 3, read=1)),
    "TimerState": Situation(new_timers, require_timers),
    "KeyGroupRange": Situation(lambda: ALL, lambda groups: _require(5 in groups)),
    "Migrations": Situation(Migrations, require_migrations),
    "SequenceSource": Situation(lambda: SequenceSource(pa.schema({"id": pa.int64()})), require_sequence),
    "KeyedStateCheckpoints": Situation(new_checkpoints, require_checkpoints),
    "Savepoints": Situation(new_savepoints, require_savepoints),
    "ObjectStoreStorage": Situation(lambda: new_storage("memory://"), require_storage),
    "Documents": Situation(new_documents, require_documents),
    "Metadata": Situation(lambda: open_metadata("memory://"), require_lease),
    "Server": Situation(new_server, lambda server: _require(server.stop())),
    "Tokens": Situation(
        lambda: Tokens(open_metadata("memory://")),
        lambda tokens: _require(tokens.caller(tokens.create("ann", "reader")[1], "").name == "ann"),
    ),
    "ManualClock": Situation(lambda: ManualClock(5), lambda clock: _require(clock() == 5)),
    "RestartPolicy": Situation(RestartPolicy, lambda policy: _require(policy == RestartPolicy())),
}


def valid_arguments(folder: Path) -> dict[str, Callable[[], object]]:
    """A valid value for each argument that must be given, by ``call.argument`` or the argument's name."""
    numbers = iter(range(10**9))

    new_flow().checkpoint(folder / "saved")

    def kept() -> Path:
        path = folder / f"kept {next(numbers)}"
        with IncrementalFlow("shop", path=path) as flow:
            flow.register_source("orders", ORDERS)
        return path

    return {
        "address": lambda: "host:1",
        "assignments": lambda: [TaskAssignment(0, 0, 0, 0, "1", "a", "a:1", "ANY", "SUCCESS", 5, 0)],
        "columns": lambda: "word STRING, at BIGINT",
        "how": lambda: "left",
        "lower": lambda: timedelta(0),
        "upper": lambda: timedelta(seconds=1),
        "place": lambda: int,
        "versions": lambda: JoinInput("word STRING, since BIGINT, price BIGINT", "word", "since"),
        "table": lambda: JoinInput("word STRING, since BIGINT, price BIGINT", "word", "since"),
        **{
            f"{one}.left": lambda: JoinInput("word STRING, at BIGINT", "word", "at")
            for one in ("KeyedJoin", "interval_join", "temporal_join", "stream_table_join")
        },
        **{
            f"{one}.right": lambda: JoinInput("word STRING, since BIGINT, price BIGINT", "word", "since")
            for one in ("KeyedJoin", "interval_join")
        },
        "IncrementalFlow.checkpoint.uri": lambda: folder / f"checkpoint {next(numbers)}",
        "IncrementalFlow.checkpoint_full.uri": lambda: folder / f"checkpoint {next(numbers)}",
        "RocksDbStateBackend.path": lambda: folder / f"state {next(numbers)}",
        "SequenceSource.schema": lambda: pa.schema({"id": pa.int64()}),
        "SequenceSource.add.rows": lambda: [{"id": 1}],
        "open_metadata.uri": lambda: folder / f"metadata {next(numbers)}.db",
        "add": lambda: lambda total, value: total + value,
        "aggregate": lambda: COUNT,
        "at": lambda: 7,
        "backend": InMemoryStateBackend,
        "backends": lambda: {ALL: InMemoryStateBackend()},
        "batches": lambda: [WORDS],
        "body": lambda: b"\x01",
        "by": lambda: timedelta(seconds=1),
        "callback": lambda: lambda _epoch, _delta: None,
        "changes": dict,
        "checkpoints": new_checkpoints,
        "column": lambda: "at",
        "condition": lambda: [True, False],
        "create": lambda: lambda: 0,
        "data": lambda: [{"id": 1, "amount": 1}],
        "delay": lambda: "5 minutes",
        "delta": lambda: [{"id": 3, "amount": 1}],
        "descriptor": lambda: StateDescriptor("new", str, int),
        "descriptors": dict,
        "duration": lambda: timedelta(seconds=1),
        "end": lambda: 8,
        "entry": lambda: "a",
        "epoch": lambda: 2 + next(numbers),
        "error": OSError,
        "expected_version": lambda: 1,
        "failures": lambda: 1,
        "first": lambda: 0,
        "from_version": lambda: 1,
        "function": Counting,
        "groups": lambda: ALL,
        "keep": lambda: 1,
        "kept": lambda: open_metadata("memory://").acquire("kept", "me", 10),
        "key": lambda: "word",
        "key_bytes": lambda: b"ann",
        "k": lambda: 3,
        "keys": lambda: ["ann"],
        "kind": lambda: TriggerKind.ONCE,
        "left": lambda: WORDS,
        "length": lambda: 2,
        "ms": lambda: 5,
        "name": lambda: "there",
        "names": lambda: ["totals"],
        "new": lambda: [{"id": 1}],
        "node_id": lambda: "n1",
        "old": lambda: [{"id": 2}],
        "operator": lambda: "op",
        "origin": lambda: "here",
        "other": new_flow,
        "owner": lambda: "me",
        "parallelism": lambda: 2,
        "spec": lambda: VectorViewSpec("orders", "v", k=1, queries="orders"),
        "position": lambda: Position("feed", "here", str(next(numbers))),
        "queries": lambda: "orders",
        "query": lambda: "SELECT 1 AS one",
        "reduce": lambda: max,
        "result": lambda: lambda total: total,
        "right": lambda: WORDS,
        "rows": lambda: WORDS,
        "schema": lambda: "a INT",
        "slot": lambda: "slot",
        "snapshot": lambda: harness().snapshot(),
        "source": lambda: "orders",
        "sql": lambda: "SELECT id FROM orders",
        "start": lambda: 1,
        "state": InMemoryStateBackend,
        "step": lambda: Step("slot", 1, 2, lambda value: value),
        "storage": lambda: open_checkpoint_storage("memory://"),
        "stream": lambda: "feed",
        "to": lambda: 5,
        "store": MemoryVectors,
        "spawn_vector_view.flow": new_library,
        "spawn_vector_view.key": lambda: "id",
        "spawn_vector_view.view": lambda: "chunks",
        "PgVectorStore.dimension": lambda: 3,
        "PgVectorStore.table": lambda: "chunks",
        "PgVectorStore.uri": lambda: "postgresql://host/db",
        "token": lambda: "first",
        "to_version": lambda: 2,
        "ttl": lambda: 10,
        "uri": lambda: folder / "place",
        "value": lambda: 1,
        "values": lambda: [1],
        "version": lambda: 1,
        "UserFunction.call": lambda: str.upper,
        "UserFunction.version": lambda: "1",
        "view": lambda: "totals",
        "wanted": lambda: 1,
        "AggregatingState.value": lambda: 1,
        "CoProcessHarness.function": Pairing,
        "CoProcessHarness.key": lambda: ("word", "word"),
        "CoProcessHarness.restore.snapshot": lambda: CoProcessHarness(Pairing(), key=("word", "word")).snapshot(),
        "CoProcessRunner.function": Pairing,
        "CoProcessRunner.key": lambda: ("word", "word"),
        "DeltaBatch.add.other": new_delta,
        "DeltaBatch.data": lambda: new_delta().to_arrow(),
        "DeltaBatch.from_changes.data": lambda: [{"id": 1, "op": "insert"}],
        "DeltaBatch.from_weighted.data": lambda: [{"id": 1, "_weight": 1}],
        "Documents.put.expected_version": lambda: 0,
        "RemoteSession.endpoint": lambda: "weirflow://127.0.0.1:1",
        "Server.wait.timeout": lambda: 0.01,
        "Tokens.create.name": lambda: "ann",
        "Tokens.create.role": lambda: "reader",
        "Tokens.revoke.token_id": lambda: "0123456789",
        "Documents.put.name": lambda: f"document {next(numbers)}",
        "IncrementalFlow.drop.name": lambda: "totals",
        "PartitionedFlow.drop.name": lambda: "totals",
        "IncrementalFlow.refresh_view.name": lambda: "totals",
        "PartitionedFlow.refresh_view.name": lambda: "totals",
        "IncrementalFlow.register_source.name": lambda: f"source_{next(numbers)}",
        "PartitionedFlow.register_source.name": lambda: f"source_{next(numbers)}",
        "IncrementalFlow.register_view.name": lambda: f"view_{next(numbers)}",
        "PartitionedFlow.register_view.name": lambda: f"view_{next(numbers)}",
        "IncrementalFlow.replace_view.name": lambda: "totals",
        "PartitionedFlow.replace_view.name": lambda: "totals",
        "IncrementalFlow.restore.uri": lambda: folder / "saved",
        "IncrementalFlow.salvage.path": kept,
        "IncrementalFlow.schema.name": lambda: "totals",
        "PartitionedFlow.schema.name": lambda: "totals",
        "IncrementalFlow.sink.to": lambda: folder / f"sink {next(numbers)}",
        "PartitionedFlow.sink.to": lambda: folder / f"sink {next(numbers)}",
        "IncrementalFlow.source.name": lambda: "orders",
        "PartitionedFlow.source.name": lambda: "orders",
        "IncrementalFlow.too_late.rows": lambda: pa.table({"id": [1], "amount": [1]}),
        "PartitionedFlow.too_late.rows": lambda: pa.table({"id": [1], "amount": [1]}),
        "IncrementalFlow.view.function": lambda: ids,
        "PartitionedFlow.view.function": lambda: ids,
        "IncrementalFlow.rescale.partitions": lambda: 3,
        "PartitionedFlow.rescale.partitions": lambda: 3,
        "KeyGroupRange.common.other": lambda: KeyGroupRange(5, 9),
        "KeyedStateStore.keys.slot": lambda: "known",
        "KeyedStateStore.broadcast.descriptor": lambda: StateDescriptor("new", None, dict[str, int]),
        "KeyedStateStore.list.descriptor": lambda: StateDescriptor("new", str, list[int]),
        "KeyedStateStore.map.descriptor": lambda: StateDescriptor("new", str, dict[str, int]),
        "KeyedStateStore.timers.descriptor": lambda: StateDescriptor("new", str, None),
        "LocalStorage.data": lambda: b"1",
        **{f"{one}.put.data": lambda: b"1" for one in ("LocalStorage", "ObjectStoreStorage")},
        **{f"{one}.put_if_absent.data": lambda: b"1" for one in ("LocalStorage", "ObjectStoreStorage")},
        **{
            f"{one}.put_if_absent.name": lambda: f"new/{next(numbers)}"
            for one in ("LocalStorage", "ObjectStoreStorage")
        },
        **{f"{one}.put_if_match.data": lambda: b"1" for one in ("LocalStorage", "ObjectStoreStorage")},
        **{
            f"{one}.put_if_match.version": lambda: new_storage("memory://").head("there").version
            for one in ("LocalStorage", "ObjectStoreStorage")
        },
        "ManualClock.advance.by": lambda: timedelta(seconds=1),
        "Metadata.acquire.name": lambda: f"lease {next(numbers)}",
        "Position.at": lambda: "1",
        "Savepoints.copy.to": lambda: open_checkpoint_storage("memory://"),
        "Savepoints.name": lambda: "first",
        **{f"Savepoints.{one}.name": lambda: "first" for one in ("copy", "delete", "get", "restore")},
        "Savepoints.create.name": lambda: f"savepoint {next(numbers)}",
        "StateDescriptor.key": lambda: str,
        "StateDescriptor.value": lambda: int,
        "StateDescriptor.name": lambda: "slot",
        "TimerState.key.data": lambda: new_timers().until(6)[0][1],
        "group_ranges.groups": lambda: 128,
        "key_group.groups": lambda: 128,
        "apply_state_migration.to_version": lambda: 1,
        "register_state_migration.function": lambda: len,
        "register_state_migration.slot": lambda: f"slot {next(numbers)}",
        "run_co_process.batches": lambda: [(WORDS, WORDS)],
        "run_co_process.function": Pairing,
        "run_co_process.key": lambda: ("word", "word"),
    }


TEXTS = ("empty text", "blanks", "a word", "a digit", "a million letters", "NUL")
TIMES = ("-1", "0", "a large int")
JSON = (
    *("None", "True", *TIMES, "an int of 400 digits", "1.5", "-0.5", "1e300", *TEXTS, "a lone surrogate"),
    *("an empty list", "a list of ints", "an empty dict"),
)
STORED = ("bytes", "nan", "inf", "a dict of ints", "a negative time")
UNSTORED = ("an int of 400 digits", "a lone surrogate")
LARGE = {"a large int": "as many"}
CALLED = {"a class": "it is called", "a function without arguments": "it is called"}


def every(meaning: str, *kinds: str) -> dict[str, str]:
    return dict.fromkeys(kinds, meaning)


ALONGSIDE = {
    **{f"{flow}.{call}": ("delta",) for flow in ("IncrementalFlow", "PartitionedFlow") for call in ("tick", "feed")},
    **{f"{flow}.sink": ("to",) for flow in ("IncrementalFlow", "PartitionedFlow")},
    "IncrementalFlow.checkpoint": ("uri",),
    "VectorViewSpec": ("queries",),
}
"""Arguments with defaults without which a call is refused in its situation."""

OPTIONS = {"IncrementalFlow.salvage": "history"}
"""A further named argument that a call takes."""

REFUSED = {
    **{f"{flow}.force_diff_based": "it takes a Session" for flow in ("IncrementalFlow", "PartitionedFlow")},
    **{f"{flow}.retry": "there is nothing to retry" for flow in ("IncrementalFlow", "PartitionedFlow")},
    "PartitionedFlow.restore": "it has rows of its own",
    "IncrementalFlow.rescale": "it has no shards",
    **{
        f"{flow}.{one}_vector_view": "the source has no vectors"
        for flow in ("IncrementalFlow", "PartitionedFlow")
        for one in ("register", "replace")
    },
    "LocalStorage.put_if_match": "files have no such operation",
    "Tokens.revoke": "there is no such token",
    "PartitionedFlow.sql": "it takes a Session",
}
"""Calls that are refused whatever they are given, and why."""

MEANT: dict[str, dict[str, str]] = {
    "VectorViewSpec.k": LARGE,
    **{f"{one}.sample": {"a large int": "hardly ever"} for one in ("HnswIndex", "IvfIndex")},
    "VectorViewSpec.filter": dict.fromkeys(
        ("NUL", "a digit", "a million letters", "a word"), "SQL, read when the view is registered"
    ),
    # How many there may be at most, or how far it goes.
    **dict.fromkeys(
        ("capacity", "checkpoint_every", "chunk_size", "dedup", "fsync", "history", "keep", "length"), LARGE
    ),
    **dict.fromkeys(("attempts", "delay", "longest", "timeout", "ttl", "wait", "ms"), LARGE),
    "Trigger.processing_time.ms": {"0": "at once", **LARGE},
    "factor": {"1.5": "half as long again"},
    "failures": LARGE,
    **{f"{flow}.sink.every": LARGE for flow in ("IncrementalFlow", "PartitionedFlow")},
    "spawn_vector_view.every": LARGE,
    "PgVectorStore.index_options": {"an empty dict": "none"},
    "Tokens.create.limits": {"an empty dict": "none"},
    "IncrementalFlow.salvage.options": {"0": "none", **LARGE},
    "interval_join.lower": {"a negative time": "before the left row"},
    "KeyedStateCheckpoints.fence": LARGE,
    "KeyedStateCheckpoints.save.epoch": LARGE,
    "apply_state_migration.value": every("a value", *(one for one in JSON if one not in UNSTORED), *STORED),
    "StateDescriptor.version": LARGE,
    **dict.fromkeys(("from_version", "to_version"), LARGE),
    "key_group.groups": LARGE,
    "start": {"a large int": "behind the end, where nothing is"},
    "KeyGroupRange.first": {"0": "the first group"},
    # Times, in milliseconds since 1970.
    **dict.fromkeys(("now", "timestamp_ms", "to", "watermark"), every("a time", *TIMES)),
    **{
        f"TimerState.{one}": every("a time, however far", *TIMES, "an int of 400 digits", "an int of 5,000 digits")
        for one in ("add.at", "remove.at", "until.end")
    },
    # Rows: there may be none.
    **{one: {"an empty list": "no rows"} for one in ("data", "delta", "new", "old")},
    **dict.fromkeys(("batches", "broadcast", "left", "right", "rows"), every("none", "an empty list", "a generator")),
    **{one: {"an empty list": "none"} for one in ("names", "key")},
    **{
        one: {"an empty dict": "none"}
        for one in ("descriptors", "dimensions", "functions", "info", "options", "spread", "tables")
    },
    **{f"{one}.key": every("a column", "a word", "a digit") for one in ("ProcessHarness", "ProcessRunner")},
    **dict.fromkeys(("backend", "uri"), every("a folder in this one", "a word", "a digit")),
    **dict.fromkeys(
        ("open_checkpoint_storage.uri", "open_checkpoint_storage_from_uri.uri"),
        every("a folder, not looked at before it is used", "a path below a file"),
    ),
    # Any text is one.
    **dict.fromkeys(("at", "origin"), every("whatever the stream says", *TEXTS)),
    **dict.fromkeys(("BroadcastState.get.entry", "MapState.get.entry"), every("an entry", *TEXTS)),
    **{
        f"{one}.{method}": every("an entry", *TEXTS)
        for one in ("BroadcastState", "MapState")
        for method in ("put.entry", "remove.entry")
    },
    **{
        f"{one}.items.{argument}": every("an entry, or none", *TEXTS, "None")
        for one in ("BroadcastState", "MapState")
        for argument in ("start", "end")
    },
    "KeyedStateStore.set_key.key": {**every("a key", *TEXTS), "a lone surrogate": "said when it is first used"},
    "prefix": every("the beginning of names", "empty text", "blanks", "a word", "a digit"),
    **{
        f"{one}.{method}.name": every("the name of an object", "blanks", "a word", "a digit")
        for one in ("LocalStorage", "ObjectStoreStorage")
        for method in ("delete", "exists", "put", "put_if_absent")
    },
    **{
        f"{one}.{method}.data": every("bytes, or chunks of them", "bytes", "an empty list", "a generator")
        for one in ("LocalStorage", "ObjectStoreStorage")
        for method in ("put", "put_if_absent")
    },
    "ObjectStoreStorage.put_if_match.data": every("bytes, or chunks of them", "bytes", "an empty list", "a generator"),
    # Values of a slot of ints, keys of a slot of text.
    **{f"{one}.value": every("a value", *TIMES) for one in ("BroadcastState.put", "MapState.put", "ListState.add")},
    **{f"{one}.value": every("a value", *TIMES) for one in ("ReducingState.add", "ValueState.set")},
    "AggregatingState.add.value": {ANYTHING: "the user's function counts it"},
    "default": {ANYTHING: "given back if there is nothing"},
    "values": every("values", "an empty list", "a list of ints", "a generator"),
    "assignments": every("nothing ran", "an empty list"),
    "keys": every("no keys", "an empty list"),
    # Functions.
    **dict.fromkeys(("create", "clock", "UserFunction.call"), CALLED),
    "UserFunction.version": every("a version", *TEXTS[2:]),
    # Looked at when they are used; see the tests below.
    **{one: {ANYTHING: "a type, looked at later"} for one in ("StateDescriptor.key", "StateDescriptor.value", "reads")},
    "Documents.put.value": every("what JSON can say, and gives back", *JSON),
    "body": {"bytes": "a value that needs no step"},
    "RemoteSession.token": every("a token, for all that is known here", "a word", "a digit"),
    **{f"RemoteSession.{one}": every("a long time", "a large int") for one in ("connect_timeout", "retry_timeout")},
    "Server.session": every("no settings", "an empty dict"),
    "Server.settings": every("not said", "None"),
    "Server.stop.within": every("a long time", "a large int"),
    **{f"Tokens.create.{one}": every("for none of them", "an empty list") for one in ("flows", "catalogs")},
    "key_bytes": {"bytes": "a key"},
}
"""What values mean that are taken besides those of the forms, by ``call.argument`` or the argument's name."""
