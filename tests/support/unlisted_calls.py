"""Public calls that are not for users to make, or whose arguments are looked at elsewhere, and why."""

from __future__ import annotations

MADE_BY_WEIRFLOW = frozenset(
    {
        *("AggregatingState", "Batch", "BroadcastState", "CatalogInfo", "ConnectedStreams", "DataFrame"),
        *("DataStreamWriter", "Layout"),
        *("DetachedQuery", "Document", "Documents", "EvolutionPlan", "FlowGauges", "FlowGraph", "FlowInfo"),
        *(
            "HarnessSnapshot",
            "KeyedJoin",
            "KeyedStream",
            "Lease",
            "ListState",
            "LocalStorage",
            "MapState",
            "MaterializedInfo",
            "MaterializedView",
            "Membership",
        ),
        *("Metadata", "MigrationReport", "Node", "ObjectInfo", "ObjectStoreStorage", "Operation", "Operations"),
        *("PartitionedFlow", "PartitionedIncrementalFlow", "ProcessResult", "ProcessedStream", "Progress", "QueryInfo"),
        *(
            "QueryProgress",
            "QuerySavepoint",
            "QuerySavepoints",
            "QueryStatus",
            "ReducingState",
            "RelationInfo",
        ),
        *("Repair",),
        *("RocksDbSnapshot", "Runner", "Session", "SessionFlow", "SessionInfo", "Sink", "Source", "Stage"),
        *("StateManifest", "Step", "StepSummary", "Stores", "StreamingDataFrame", "StreamingQuery"),
        *("StreamingQueryManager", "Submitted", "TableFeed", "TaskAssignment", "TimerState", "ValueState"),
        *("VectorChanges", "VectorLayout", "Watch", "WindowedStream"),
        *("FlowRow", "NodeForm", "RemoteFlow", "RemoteOperation", "RemoteOperations", "RemoteProgress", "RemoteResult"),
        *("RemoteStream", "RemoteStreams", "SavepointForm", "ServerInfo", "Subscription"),
        *("Caller", "Coordinator", "LeaseInfo", "Outcome", "Prepared", "ServerConfig", "TokenInfo", "Tokens", "Work"),
    }
)
"""Classes whose objects users get, and do not make: their constructors take what Weirflow knows to be right.

A Session is made of ``Settings``, whose fields have a test of their own.
"""

OVERRIDDEN = frozenset({"CoProcessFunction", "KeyedJoin", "ProcessFunction", "StreamingQueryListener"})
"""Classes that users write subclasses of: Weirflow calls their methods."""

INNER_METHODS = frozenset(
    {
        *("Batch", "Caller", "Coordinator", "InMemoryStateBackend", "IvmVectorSink", "Layout", "PgVectorStore"),
        *("RemoteFlow", "RemoteOperation", "RemoteOperations", "RemoteResult", "RemoteSession", "RemoteStream"),
        *("RemoteStreams", "RocksDbSnapshot", "RocksDbStateBackend", "Source", "Subscription", "TtlStateBackend"),
    }
)
"""Classes whose methods are called by the kernel, by stores of state, for each row, or by sinks, or need a server.

The latter are tried in tests/unit/client.
"""

INNER = {
    **dict.fromkeys(("DataFrame.of_read", "DataFrame.of_result"), "how the Session makes frames"),
    **dict.fromkeys(("ProcessedStream.of_read", "ProcessedStream.of_result"), "how the Session makes frames"),
    **dict.fromkeys(("StreamingDataFrame.of_read", "StreamingDataFrame.of_result"), "how the Session makes frames"),
    **dict.fromkeys(("StreamingDataFrame.without", "ProcessedStream.without"), "how windows leave late rows out"),
    "JoinInput.rows_by": "joins call it",
    "Tokens.caller": "the doors of a server call it, with whatever was sent",
    "SequenceSource.stream": "it takes a Session, and hands its own folder to read_stream",
    "DataFrame.transform": "it calls the user's function with what it is given, as PySpark does",
    **dict.fromkeys(("ProcessedStream.transform", "StreamingDataFrame.transform"), "as of a DataFrame"),
    "DeltaBatch.of_batch": "how the kernel's batches become deltas",
    **dict.fromkeys(
        (
            "Operations.drain",
            "Operations.follow",
            "Operations.inside",
            "Operations.run",
            "Operations.run_with_timeout",
        ),
        "how a Session runs its operations",
    ),
    **dict.fromkeys(
        ("Operations.run_for_tick", "Operations.submit", "Operations.stop_all"), "how a Session runs its operations"
    ),
    "Position.repeats": "flows compare positions",
    **dict.fromkeys(("QueryProgress.from_json", "QuerySavepoint.is_at", "QuerySavepoints.create"), "of queries"),
    **dict.fromkeys(("Sink.put", "Sink.record", "Sink.require_idle"), "the flow calls them"),
    **dict.fromkeys(
        [
            f"StreamingQueryManager.{name}"
            for name in ("broadcast_hosted", "co_hosted", "frame", "hosted", "known", "outcome")
        ],
        "frames and events call them",
    ),
    "StreamingQueryManager.start": "writer.start calls it",
    **dict.fromkeys(
        ("Watch.await_room", "Watch.begin", "Watch.expect", "Watch.passed", "Watch.put"), "the flow calls them"
    ),
}

FOR_EACH_ROW = frozenset(
    {
        *("AggregatingState", "BroadcastState", "ListState", "MapState", "ReducingState", "TimerState", "ValueState"),
        "KeyedStateStore.set_key",
        "key_group",
    }
)
"""Calls made for each row: the codecs of keys and values look at what they are given, so that it is done once."""


def is_for_users(call_id: str) -> bool:
    """Whether users make this call."""
    owner, _, method = call_id.partition(".")
    if not method and owner in MADE_BY_WEIRFLOW:
        return False
    return call_id not in INNER and not (method and (owner in INNER_METHODS or owner in OVERRIDDEN))


def is_for_each_row(call_id: str) -> bool:
    """Whether a call is made for each row."""
    return call_id in FOR_EACH_ROW or call_id.partition(".")[0] in FOR_EACH_ROW
