"""Keyed state: typed slots for each key of an operator, in memory or in RocksDB."""

from weirflow.state.aggregating_state import Aggregate, AggregatingState
from weirflow.state.backend import StateBackend, StateSnapshot
from weirflow.state.broadcast_state import BroadcastState
from weirflow.state.descriptors import StateDescriptor, Ttl
from weirflow.state.dry_run import MigrationReport, dry_run
from weirflow.state.groups import KeyGroupRange, group_ranges, key_group
from weirflow.state.list_state import ListState
from weirflow.state.map_state import MapState
from weirflow.state.memory import InMemoryStateBackend
from weirflow.state.migrations import Migrations, state_migration
from weirflow.state.reducing_state import ReducingState
from weirflow.state.rocksdb import RocksDbStateBackend
from weirflow.state.store import KeyedStateStore
from weirflow.state.timer_state import TimerState
from weirflow.state.ttl import TtlStateBackend
from weirflow.state.value_state import ValueState

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
    "dry_run",
    "group_ranges",
    "key_group",
    "state_migration",
]
