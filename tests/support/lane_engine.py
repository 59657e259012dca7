"""Spark's side of ``transformWithState``, without Spark: partitions of state in which tasks run a ``LaneProcessor``."""

# ruff: noqa: N802 - Spark's names

from __future__ import annotations

import copy
import io
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from weirflow.process.hosted.broadcast import HostedBroadcastFunction
from weirflow.spark.process.lanes import LANES, copy_key, copy_lane
from weirflow.spark.process.stream import LaneProcessor

Key = tuple[Any, ...]


class Partition:
    """The state of some keys: variables, and timers; a ``StatefulProcessorHandle`` for the current key."""

    def __init__(self) -> None:
        self.variables: dict[str, dict[Key, Any]] = {}
        self.kept: dict[Key, set[int]] = {}
        self.current: Key = ()
        self.reads = 0
        self._statefulProcessorApiClient = SimpleNamespace(set_implicit_key=self.switch)

    def switch(self, key: Key) -> None:
        self.current = tuple(key)

    def getValueState(self, name: str, *_: Any) -> _Value:
        return _Value(self, name)

    def getListState(self, name: str, *_: Any) -> _List:
        return _List(self, name)

    def listTimers(self) -> Iterator[int]:
        return iter(sorted(self.kept.get(self.current, ())))

    def registerTimer(self, at: int) -> None:
        self.kept.setdefault(self.current, set()).add(at)

    def deleteTimer(self, at: int) -> None:
        self.kept.get(self.current, set()).discard(at)


class _Variable:
    def __init__(self, partition: Partition, name: str) -> None:
        self._partition = partition
        self._name = name

    @property
    def _all(self) -> dict[Key, Any]:
        return self._partition.variables.setdefault(self._name, {})


class _Value(_Variable):
    def get(self) -> Any:
        return self._all.get(self._partition.current)

    def update(self, value: Any) -> None:
        self._all[self._partition.current] = value

    def clear(self) -> None:
        self._all.pop(self._partition.current, None)


class _List(_Variable):
    def get(self) -> Iterator[Any]:
        self._partition.reads += 1
        return iter(self._all.get(self._partition.current, []))

    def appendList(self, elements: list[Any]) -> None:
        self._all[self._partition.current] = self._all.get(self._partition.current, []) + elements

    def put(self, elements: list[Any]) -> None:
        assert elements, "Spark puts no empty list"
        self._all[self._partition.current] = elements

    def clear(self) -> None:
        self._all.pop(self._partition.current, None)


class LaneEngine:
    """Runs batches as Spark does: in each partition first the copies, then the keys, then the timers that are due.

    Args:
        function: a ``ProcessFunction`` whose keys are of one column.
        columns: of its rows.
        event_time: the column with the time.
        partitions: of the state.
    """

    def __init__(self, function: Any, columns: list[str], event_time: str | None, partitions: int) -> None:
        self._function = function
        self._columns = columns
        self._event_time = event_time
        self.partitions = [Partition() for _ in range(partitions)]
        self._watermark = 0
        self._latest = 0
        self.tags = HostedBroadcastFunction(function, columns, event_time).tags

    def batch(self, rows: Iterable[Any], told: list[Any], key: str, now: int = 0) -> dict[str, list[Any]]:
        """What each output gets of a batch."""
        given: list[tuple[Key, Any, Any]] = []
        given += [(copy_key(lane, 1), None, pack) for lane in range(LANES) for pack in packed(told, now)]
        given += [(lane_key(row[key]), row, None) for row in rows]
        found: dict[str, list[Any]] = {tag: [] for tag in ("output", *self.tags)}
        for number, partition in enumerate(self.partitions):
            own = [one for one in given if lane_of(one[0]) % len(self.partitions) == number]
            for at, row in self._task(partition, sorted(own, key=lambda one: one[0][0]), now):
                found[("output", *self.tags)[at]].append(row)
        times = [int(row[self._event_time].timestamp() * 1000) for row in rows] if self._event_time else []
        self._latest = max([self._latest, *times])
        self._watermark = max(self._watermark, self._latest)
        return found

    def repartition(self, partitions: int) -> None:
        """Move all keys to where they are in another number of partitions."""
        old, self.partitions = self.partitions, [Partition() for _ in range(partitions)]
        for one in old:
            for name, keys in one.variables.items():
                for key, value in keys.items():
                    self.partitions[lane_of(key) % partitions].variables.setdefault(name, {})[key] = value
            for key, times in one.kept.items():
                self.partitions[lane_of(key) % partitions].kept[key] = times

    def _task(self, partition: Partition, given: list[Any], now: int) -> list[tuple[int, Any]]:
        hosted = HostedBroadcastFunction(copy.deepcopy(self._function), self._columns, self._event_time)
        hosted.time = "event" if self._event_time else "processing"
        processor = LaneProcessor(hosted, 1)
        processor.init(partition)  # type: ignore[arg-type]
        times = SimpleNamespace(
            getCurrentProcessingTimeInMs=lambda: now, getCurrentWatermarkInMs=lambda: self._watermark
        )
        found: list[Any] = []
        for key in dict.fromkeys(one[0] for one in given):
            partition.switch(key)
            rows = iter([(*key, row, told) for place, row, told in given if place == key])
            found += processor.handleInputRows(key, rows, times)
            assert partition.current == key, "Spark goes on with the key that it made current"
        until = self._watermark if self._event_time else now
        for key, kept in list(partition.kept.items()):
            for at in sorted(one for one in kept if one <= until):
                partition.switch(key)
                found += processor.handleExpiredTimer(key, times, None)
                assert partition.current == key, "Spark removes the timer of the key that it made current"
                partition.deleteTimer(at)
        processor.close()
        if not self.tags:
            return [(0, row) for row in found]
        return [(int(name[1:]), value) for row in found for name, value in row.items()]


def lane_key(key: Any) -> Key:
    """A key in a lane, which is not the one that Spark would give it."""
    return (hash(str(key)) % LANES, key, 0)


def lane_of(key: Key) -> int:
    """The lane of a key, or of a copy."""
    return key[0] if key[0] >= 0 else copy_lane(key[0])


def packed(rows: list[Any], now: int) -> list[Any]:
    """What is broadcast, in packs of two rows, the last ones first."""
    packs = []
    for number in range(0, len(rows), 2):
        table = pa.Table.from_pylist(rows[number : number + 2])
        written = io.BytesIO()
        with pa.ipc.new_stream(written, table.schema) as stream:
            stream.write_table(table)
        packs.append({"now": now, "partition": number // 4, "number": number, "rows": written.getvalue()})
    return packs[::-1]
