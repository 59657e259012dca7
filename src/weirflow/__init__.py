"""Weirflow: batch SQL, streaming and incremental views on Apache Spark.

Importing this package starts nothing and imports neither pyspark nor pyarrow; names are loaded when first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from weirflow._version import __version__
from weirflow.errors import WeirflowError
from weirflow.types import (
    ExplainMode,
    OperationState,
    OutputMode,
    Placement,
    Profile,
    SaveMode,
    SourceSpread,
    VectorMetric,
)

if TYPE_CHECKING:
    from weirflow.checkpoint import CheckpointStorage, open_checkpoint_storage, open_checkpoint_storage_from_uri
    from weirflow.client import RemoteSession
    from weirflow.config import Settings
    from weirflow.flows.sharded import PartitionedIncrementalFlow
    from weirflow.flows.sinks.vector import IvmVectorSink, spawn_vector_view
    from weirflow.ivm.flow import (
        HnswIndex,
        IncrementalFlow,
        IvfIndex,
        Lateness,
        OverflowPolicy,
        Sink,
        StepSummary,
        VectorViewSpec,
        Watch,
    )
    from weirflow.ivm.flow.outputs.subscription import Subscription
    from weirflow.ivm.zset import DeltaBatch
    from weirflow.server.server import Server
    from weirflow.session import Operation, Session
    from weirflow.spark.frames.frame import DataFrame
    from weirflow.spark.jobs.assignments import TaskAssignment, render_assignments
    from weirflow.sql.registered import UserFunction
    from weirflow.streaming.detached.query import DetachedQuery
    from weirflow.streaming.frame import StreamingDataFrame
    from weirflow.streaming.query.handle import StreamingQuery
    from weirflow.streaming.query.listeners import StreamingQueryListener
    from weirflow.streaming.query.restart import RestartPolicy
    from weirflow.streaming.trigger import Trigger

__all__ = [
    "CheckpointStorage",
    "DataFrame",
    "DeltaBatch",
    "DetachedQuery",
    "ExplainMode",
    "HnswIndex",
    "IncrementalFlow",
    "IvfIndex",
    "IvmVectorSink",
    "Lateness",
    "Operation",
    "OperationState",
    "OutputMode",
    "OverflowPolicy",
    "PartitionedIncrementalFlow",
    "Placement",
    "Profile",
    "RemoteSession",
    "RestartPolicy",
    "SaveMode",
    "Server",
    "Session",
    "Settings",
    "Sink",
    "SourceSpread",
    "StepSummary",
    "StreamingDataFrame",
    "StreamingQuery",
    "StreamingQueryListener",
    "Subscription",
    "TaskAssignment",
    "Trigger",
    "UserFunction",
    "VectorMetric",
    "VectorViewSpec",
    "Watch",
    "WeirflowError",
    "__version__",
    "open_checkpoint_storage",
    "open_checkpoint_storage_from_uri",
    "render_assignments",
    "spawn_vector_view",
]

_LATE = {
    "CheckpointStorage": "weirflow.checkpoint",
    "DataFrame": "weirflow.spark.frames.frame",
    "DeltaBatch": "weirflow.ivm.zset",
    "DetachedQuery": "weirflow.streaming.detached.query",
    "HnswIndex": "weirflow.ivm.flow",
    "IncrementalFlow": "weirflow.ivm.flow",
    "IvfIndex": "weirflow.ivm.flow",
    "IvmVectorSink": "weirflow.flows.sinks.vector",
    "Lateness": "weirflow.ivm.flow",
    "Operation": "weirflow.session",
    "OverflowPolicy": "weirflow.ivm.flow",
    "PartitionedIncrementalFlow": "weirflow.flows.sharded",
    "RemoteSession": "weirflow.client",
    "RestartPolicy": "weirflow.streaming.query.restart",
    "Server": "weirflow.server.server",
    "Session": "weirflow.session",
    "Settings": "weirflow.config",
    "Sink": "weirflow.ivm.flow",
    "StepSummary": "weirflow.ivm.flow",
    "StreamingDataFrame": "weirflow.streaming.frame",
    "StreamingQuery": "weirflow.streaming.query.handle",
    "StreamingQueryListener": "weirflow.streaming.query.listeners",
    "Subscription": "weirflow.ivm.flow.outputs.subscription",
    "TaskAssignment": "weirflow.spark.jobs.assignments",
    "Trigger": "weirflow.streaming.trigger",
    "UserFunction": "weirflow.sql.registered",
    "VectorViewSpec": "weirflow.ivm.flow",
    "Watch": "weirflow.ivm.flow",
    "open_checkpoint_storage": "weirflow.checkpoint",
    "open_checkpoint_storage_from_uri": "weirflow.checkpoint",
    "render_assignments": "weirflow.spark.jobs.assignments",
    "spawn_vector_view": "weirflow.flows.sinks.vector",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_LATE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
