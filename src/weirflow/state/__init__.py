"""Keyed state: typed slots for each key of an operator, in memory or in RocksDB."""

from weirflow.state.backends.contract import StateBackend, StateSnapshot
from weirflow.state.backends.memory import InMemoryStateBackend
from weirflow.state.backends.rocksdb import RocksDbStateBackend
from weirflow.state.backends.ttl import TtlStateBackend
from weirflow.state.descriptors import StateDescriptor, Ttl
from weirflow.state.dry_run import MigrationReport, dry_run
from weirflow.state.encoding.groups import KeyGroupRange, group_ranges, key_group
from weirflow.state.kinds.aggregating import Aggregate, AggregatingState
from weirflow.state.kinds.broadcast import BroadcastState
from weirflow.state.kinds.list import ListState
from weirflow.state.kinds.map import MapState
from weirflow.state.kinds.reducing import ReducingState
from weirflow.state.kinds.timer import TimerState
from weirflow.state.kinds.value import ValueState
from weirflow.state.migrations import (
    Migrations,
    apply_state_migration,
    register_state_migration,
    state_migration,
)
from weirflow.state.open import open_state_backend
from weirflow.state.store import KeyedStateStore

__all__ = [
    "Aggregate",
    "AggregatingState",
    "BroadcastState",
    "InMemoryStateBackend",
    "KeyGroupRange",
    "KeyedStateStore",
    "ListState",
    "MapState",
    "MigrationReport",
    "Migrations",
    "ReducingState",
    "RocksDbStateBackend",
    "StateBackend",
    "StateDescriptor",
    "StateSnapshot",
    "TimerState",
    "Ttl",
    "TtlStateBackend",
    "ValueState",
    "apply_state_migration",
    "dry_run",
    "group_ranges",
    "key_group",
    "open_state_backend",
    "register_state_migration",
    "state_migration",
]
