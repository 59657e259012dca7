"""What extensions implement, and what they may call; see docs/extending.md."""

from weirflow.checkpoint import CheckpointStorage, ObjectInfo
from weirflow.extensions import EXTENSION_POINTS, ExtensionPoint
from weirflow.ivm.flow.sinks.sink import Guarantee, SinkTarget
from weirflow.ivm.sharded.executor import DelegatedStages, StageExecutor
from weirflow.ivm.sharded.plan.policies import SpreadPolicy
from weirflow.ivm.sharded.worker.reports import Parcel, ShardReport, StageTask
from weirflow.ivm.sharded.worker.stage import run_stage
from weirflow.metadata.database import Database
from weirflow.state import KeyGroupRange, StateBackend, StateSnapshot

__all__ = [
    "EXTENSION_POINTS",
    "CheckpointStorage",
    "Database",
    "DelegatedStages",
    "ExtensionPoint",
    "Guarantee",
    "KeyGroupRange",
    "ObjectInfo",
    "Parcel",
    "ShardReport",
    "SinkTarget",
    "SpreadPolicy",
    "StageExecutor",
    "StageTask",
    "StateBackend",
    "StateSnapshot",
    "run_stage",
]
