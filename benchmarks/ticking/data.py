"""The tables and their changes. Every row is a function of its number, so nothing has to be remembered but numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

FAN_OUT = 100  # facts of each key, and facts of each row of the dimension
REGIONS = 100
# Doubles are multiples of 1 / GRAIN: their sums are exact in any order, so every system has to return the same bits.
GRAIN = 1024
WEIGHT = "_weight"
FACTS = pa.schema([("uid", pa.int64()), ("k", pa.int64()), ("d", pa.int64()), ("v", pa.float64()), ("q", pa.int64())])
DIMS = pa.schema([("d", pa.int64()), ("region", pa.string())])


def mixed(numbers: Any, salt: int) -> Any:
    """A 64-bit hash of each number (splitmix64): one independent column for each salt."""
    state = numbers.astype(np.uint64) * np.uint64(8) + np.uint64(salt)
    state = (state + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def facts(uids: Any, rows: int) -> pa.RecordBatch:
    """The facts with these numbers, of a base of ``rows``."""
    groups = np.uint64(rows // FAN_OUT)
    columns = [
        uids,
        (mixed(uids, 1) % groups).astype(np.int64),
        (mixed(uids, 2) % groups).astype(np.int64),
        (mixed(uids, 3) >> np.uint64(44)) / GRAIN,
        (mixed(uids, 4) % np.uint64(1000)).astype(np.int64),
    ]
    return pa.record_batch([pa.array(column) for column in columns], schema=FACTS)


def dims(numbers: Any, versions: Any) -> pa.RecordBatch:
    """The rows of the dimension with these numbers; each version of a row lies in another region."""
    regions = (mixed(numbers, 5) + versions.astype(np.uint64)) % np.uint64(REGIONS)
    names = pa.array([f"region {region:02d}" for region in range(REGIONS)])
    return pa.record_batch([pa.array(numbers), names.take(pa.array(regions))], schema=DIMS)


@dataclass
class RowChanges:
    """Deltas of a table whose rows ``make`` makes: 70% new rows, 30% retractions of rows that exist at that time."""

    rows: int
    size: int
    make: Callable[[Any, int], pa.RecordBatch]

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.size)
        self.alive = np.arange(self.rows)
        self.next_uid = self.rows

    def tick(self) -> pa.RecordBatch:
        """The next delta, in random order."""
        removed_count = int(self.random.binomial(1, 0.3)) if self.size == 1 else round(0.3 * self.size)
        positions = self.random.choice(len(self.alive), removed_count, replace=False)
        removed = self.alive[positions]
        added = np.arange(self.next_uid, self.next_uid + self.size - removed_count)
        self.alive = np.concatenate([np.delete(self.alive, positions), added])
        self.next_uid += len(added)
        uids = np.concatenate([added, removed])
        weights = np.repeat([1, -1], [len(added), removed_count])
        order = self.random.permutation(self.size)
        return weighted(self.make(uids[order], self.rows), weights[order])

    def table(self) -> pa.RecordBatch:
        """The rows after the deltas so far."""
        return self.make(self.alive, self.rows)


@dataclass
class FactChanges(RowChanges):
    """Deltas of the facts."""

    make: Callable[[Any, int], pa.RecordBatch] = facts

    def tables(self) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Facts and dimension after the deltas so far."""
        numbers = np.arange(self.rows // FAN_OUT)
        return self.table(), dims(numbers, np.zeros_like(numbers))


@dataclass
class DimensionChanges:
    """Deltas of the dimension: half as many rows as the delta's size move to another region, each -1 and +1."""

    rows: int
    size: int

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.size)
        self.versions = np.zeros(self.rows // FAN_OUT, np.int64)

    def tick(self) -> pa.RecordBatch:
        """The next delta; at least one row moves."""
        moved = self.random.choice(len(self.versions), max(1, self.size // 2), replace=False)
        before = self.versions[moved]
        self.versions[moved] += 1
        rows = dims(np.concatenate([moved, moved]), np.concatenate([before, before + 1]))
        return weighted(rows, np.repeat([-1, 1], [len(moved), len(moved)]))

    def tables(self) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Facts and dimension after the deltas so far."""
        return facts(np.arange(self.rows), self.rows), dims(np.arange(len(self.versions)), self.versions)


Changes = FactChanges | DimensionChanges


def weighted(rows: pa.RecordBatch, weights: Any) -> pa.RecordBatch:
    """The rows with a last column of weights."""
    return pa.record_batch([*rows.columns, pa.array(weights)], names=[*rows.schema.names, WEIGHT])


def write(path: Path, batches: Sequence[pa.RecordBatch] | Iterator[pa.RecordBatch]) -> None:
    """An Arrow IPC file with one record batch for each given one."""
    iterator = iter(batches)
    first = next(iterator)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, first.schema) as writer:
        writer.write_batch(first)
        for batch in iterator:
            writer.write_batch(batch)


def read(path: Path) -> pa.ipc.RecordBatchFileReader:
    """The file that ``write`` wrote, mapped into memory."""
    return pa.ipc.open_file(pa.memory_map(str(path)))
