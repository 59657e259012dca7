"""Reads the state of jobs from where they save it: what one key has, or a slot as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.checkpoint.keyed_state.checkpoints import KeyedStateCheckpoints
from weirflow.checkpoint.keyed_state.savepoints import Savepoints
from weirflow.errors import ConfigError, DataError, StateError
from weirflow.state.backends.ttl import TtlStateBackend
from weirflow.state.encoding.groups import KeyGroupRange, group_of
from weirflow.state.stored_entries import StoredEntry, find_slot, gathered, key_bytes, read_entries, slot_name

if TYPE_CHECKING:
    import os

    from weirflow.checkpoint.keyed_state.manifest import StatePart
    from weirflow.state import StateBackend, StateDescriptor

_OF_SPARK = "offsets/"
_ARROWS = (bytes, datetime, date, time, timedelta, Decimal)


class StateQueries:
    """The state of a job at a place.

    Args:
        job: the folder or URI where it saves checkpoints or savepoints, or the checkpoint of a Spark query.
        at: an epoch, the name of a savepoint, or the batch of a Spark query; the newest without it.
        run: runs a call with the native Spark session.
    """

    def __init__(
        self, job: str | os.PathLike[str], at: int | str | None, run: Callable[[str, Callable[[Any], Any]], Any]
    ) -> None:
        self._location = str(job)
        self._at = at
        self._run = run
        uri = self._location
        self._storage = open_checkpoint_storage(f"s3://{uri.removeprefix('s3a://')}" if uri.startswith("s3a:") else uri)
        self._of_spark = next(iter(self._storage.list(_OF_SPARK)), None) is not None

    def value(self, operator: str | int, slot: str | StateDescriptor, key: Any) -> Any:
        """What a key has."""
        if self._of_spark:
            found: tuple[str, list[StoredEntry]] = self._run(
                "query state", lambda spark: self._from_spark(spark, operator, slot, key)[:2]
            )
            return gathered(*found)
        return gathered(*self._from_own(str(operator), slot, key))

    def table(self, operator: str | int, slot: str | StateDescriptor) -> pa.Table:
        """All entries: the columns of the key, ``entry`` or ``position`` for maps and lists, ``value``."""
        if self._of_spark:
            kind, entries, names = self._run("state table", lambda spark: self._from_spark(spark, operator, slot, None))
            return _table(kind, entries, names, slot_name(slot))
        kind, entries = self._from_own(str(operator), slot, None)
        return _table(kind, entries, None, slot_name(slot))

    def _from_spark(
        self, spark: Any, operator: str | int, slot: str | StateDescriptor, key: Any
    ) -> tuple[str, list[StoredEntry], list[str]]:
        from weirflow.spark.process.state_reader import SparkSlot  # noqa: PLC0415 - imports pyspark

        if not isinstance(operator, int) or isinstance(self._at, str):
            raise ConfigError(
                f"{self._location} is the checkpoint of a Spark query, whose operators and batches have numbers.",
                hint="give the operator as a number, 0 for the first, and at= as the number of a batch",
            )
        found = SparkSlot(spark, self._location, operator, slot, self._at)
        return found.kind, list(found.entries(key)), found.keys

    def _from_own(self, operator: str, slot: str | StateDescriptor, key: Any) -> tuple[str, list[StoredEntry]]:
        parts, restore = self._saved()
        slots = {info.name: info for part in parts for info in part.slots.get(operator, [])}
        if not slots:
            known = sorted({name for part in parts for name in part.slots})
            raise StateError(
                f"There is no operator {operator!r} in {self._location}.", hint=f"there are {', '.join(known)}"
            )
        info = find_slot(slots, slot_name(slot), operator)
        data = None if key is None else key_bytes(key, info, slot)
        first = 0 if data is None else group_of(data, info.groups)
        groups = KeyGroupRange(first, info.groups if data is None else first + 1)
        with closing(TtlStateBackend(restore(groups))) as state:
            return info.kind, list(read_entries(state, operator, slot, data))

    def _saved(self) -> tuple[list[StatePart], Callable[[KeyGroupRange], StateBackend]]:
        """What was saved, and what restores some key groups of it."""
        at = self._at
        if isinstance(at, str):
            savepoints = Savepoints(self._storage)
            return savepoints.get(at).parts, lambda groups: savepoints.restore(at, groups)
        checkpoints = KeyedStateCheckpoints(self._storage)
        found = checkpoints.find(at)
        return found.parts, lambda groups: checkpoints.restore(groups, epoch=found.epoch)


def _table(kind: str, entries: Iterable[StoredEntry], names: list[str] | None, slot: str) -> pa.Table:
    found = list(entries)
    width = len(found[0].key) if found and isinstance(found[0].key, tuple) else 1
    columns = names or (["key"] if width == 1 else [f"key_{at + 1}" for at in range(width)])
    keys = [one.key if isinstance(one.key, tuple) else (one.key,) for one in found]
    data: dict[str, list[Any]] = {name: [key[at] for key in keys] for at, name in enumerate(columns)}
    if kind in ("list", "map"):
        data["position" if kind == "list" else "entry"] = [one.entry for one in found]
    data["value"] = [_plain(one.value) for one in found]
    try:
        return pa.table(data)
    except (pa.ArrowException, TypeError) as error:
        raise DataError(
            f"The values of {slot!r} are of no one type of a column: {error}.", hint="query them key by key"
        ) from error


def _plain(value: Any) -> Any:
    """A value as Arrow takes it: records of a declared type as dicts."""
    return msgspec.to_builtins(value, builtin_types=_ARROWS)
