"""Sources: what may come in, and how it becomes a delta of weighted rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.arguments import Name, checked
from weirflow.errors import ConfigError, DataError, did_you_mean
from weirflow.ivm.durability.records import encode_rows
from weirflow.ivm.flow.schema import read_schema, require_source_names
from weirflow.ivm.flow.seen_content import SeenContent
from weirflow.ivm.zset.batch import Batch, take_columns
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.ivm.zset.ingest import read_weighted
from weirflow.ivm.zset.rows import consolidate, group_rows
from weirflow.rows.casts import is_always_valid, require_valid
from weirflow.rows.dimensions import dimensions_of, require_dimension, with_dimensions
from weirflow.sql.clock.relation import CLOCK
from weirflow.sql.snapshots import is_snapshot
from weirflow.sql.typing.durations import duration_micros

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.ivm.kernel.arrangement import Arrangement
    from weirflow.ivm.kernel.frontier import Frontier

NamedDeltas = Mapping[Name, Any]
"""Deltas, by the names of their sources; without any, a tick changes nothing but the epoch."""

LATE = ".late"
"""What the name of a source's side output of late rows ends with."""

_LAST = 1
_MANY = 1 << 16
"""So many rows that sorting them once more to find equal ones costs more than it saves those who read them."""
_DAY = 86_400_000_000
_FOREVER = 100 * 366 * _DAY


@checked
@dataclass(frozen=True)
class Lateness:
    """How late rows may come: rows older than the newest time seen minus ``delay`` go to the late side output.

    Attributes:
        column: a column of type TIMESTAMP, TIMESTAMP_NTZ or DATE.
        delay: a length of time such as ``"10 minutes"``.
        keep: whether the source keeps rows that are older than that. If not, existing views keep their results, but a
            view that is registered later does not see these rows. A source with a key always keeps its rows.
    """

    column: Name
    delay: Name
    keep: bool = True

    def __post_init__(self) -> None:
        """Refuse a delay that is none."""
        if not 0 <= duration_micros(self.delay, None) < _FOREVER:
            raise ConfigError(
                f"Lateness(): delay is {self.delay!r}; it must be a length of time.", hint="write it like '10 minutes'"
            )


@dataclass(frozen=True)
class Source:
    """A named input of a flow.

    Attributes:
        schema: its columns, of Spark's types.
        key: columns that identify a row; plain rows are upserts then. Empty for a bag of rows.
        dedup: a delta equal to one of this many before it is dropped; 0 drops none.
        lateness: which rows come too late, if any.
        dimensions: of columns of vectors, and how many numbers these have, as the schema says.
    """

    name: str
    schema: pa.Schema
    key: tuple[str, ...] = ()
    dedup: int = 0
    lateness: Lateness | None = None
    dimensions: tuple[tuple[str, int], ...] = field(init=False)

    @property
    def keeps(self) -> bool:
        """Whether its rows stay until they are retracted."""
        return self.lateness is None or self.lateness.keep

    def frontier(self, watermark: int | None) -> Frontier:
        """The time of which later deltas bring no older rows at this watermark; an upsert may still retract one."""
        if self.lateness is None or watermark is None or self.key:
            return {}
        index = self.schema.names.index(self.lateness.column)
        kind = self.schema.field(index).type
        if pa.types.is_date32(kind):
            return {index: pa.scalar(watermark // _DAY, pa.int32()).cast(kind)}
        return {index: pa.scalar(watermark, pa.int64()).cast(kind)}

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimensions", tuple(dimensions_of(self.schema).items()))
        for column in (*self.key, *([self.lateness.column] if self.lateness else ())):
            if column not in self.schema.names:
                raise ConfigError(
                    f"The source {self.name!r} has no column {column!r}.",
                    hint=did_you_mean(column, self.schema.names) or f"it has {', '.join(self.schema.names)}",
                )
        if len(set(self.key)) < len(self.key):
            raise ConfigError(f"The key of {self.name!r} names a column twice: {', '.join(self.key)}.")
        if self.lateness is not None:
            kind = self.schema.field(self.lateness.column).type
            if not (pa.types.is_timestamp(kind) or pa.types.is_date32(kind)):
                raise ConfigError(
                    f"The lateness column {self.lateness.column!r} of {self.name!r} is {kind}, not a time.",
                    hint="name a column of type TIMESTAMP, TIMESTAMP_NTZ or DATE",
                )
            duration_micros(self.lateness.delay, None)
            if self.key and not self.lateness.keep:
                raise ConfigError(
                    f"The source {self.name!r} has a key, so it must keep its rows.",
                    hint="an upsert retracts the row that its key had; leave out key= or keep=False",
                )


def declared(
    name: str,
    schema: Any,
    *,
    key: str | Sequence[str] | None,
    dedup: bool | int,
    lateness: Lateness | None,
    dimensions: Mapping[str, int] | None,
    is_case_sensitive: Callable[[], bool],
) -> Source:
    """A source as users declare it; see ``Flow.register_source``."""
    columns = () if key is None else (key,) if isinstance(key, str) else tuple(key)
    found = read_schema(schema)
    require_source_names(found, name, is_case_sensitive)
    return Source(name, with_dimensions(found, dimensions or {}, name), columns, int(dedup), lateness)


def is_declared(name: str) -> bool:
    """Whether users declare what has this name; snapshots and the clock are relations of the flow's own."""
    return name != CLOCK and not is_snapshot(name)


def deltas_of(source: str | Mapping[str, Any], delta: Any) -> dict[str, Any]:
    """What users give to ``tick``, by the names of the sources; ``ConfigError`` if the deltas are given twice."""
    if not isinstance(source, Mapping):
        return {source: delta}
    if delta is not None:
        raise ConfigError("A delta was given together with a mapping.", hint="give tick(source, delta), or one mapping")
    return dict(source)


@dataclass(frozen=True)
class SourceDelta:
    """A delta of a source, ready for the circuit.

    Attributes:
        rows_in: rows as they were given.
        rows: what changes; consolidated unless it is many rows that are all added, where nothing can cancel.
        late: rows that came too late.
        watermark: the source's watermark after it, in microseconds; None without one.
        digest: of the content, where repetitions are to be noticed; None otherwise.
        dropped: whether it repeats an earlier one, so that nothing changes.
    """

    rows_in: int
    rows: Batch
    late: Batch
    watermark: int | None = None
    digest: bytes | None = None
    dropped: bool = False


class SourceInput:
    """Reads deltas of one source. ``read`` changes nothing; ``accept`` remembers what a committed change brought.

    Args:
        source: what is read.
        rows: the source's rows; the columns by which they are arranged come first.
        positions: where each column of the schema is in it.
    """

    def __init__(self, source: Source, rows: Arrangement, positions: Sequence[int]) -> None:
        self.source = source
        self.watermark: int | None = None
        self._rows = rows
        self._positions = tuple(positions)
        self._layout = tuple(sorted(range(len(self._positions)), key=self._positions.__getitem__))
        self.digests = SeenContent(source.dedup or _LAST)
        self._delay = duration_micros(source.lateness.delay, None) if source.lateness else 0
        self._nothing = Batch.empty(source.schema.types)
        self._dimensions = [(source.schema.names.index(name), name, many) for name, many in source.dimensions]
        self._nullable = all(field.nullable for field in source.schema)
        self._validated = [
            (index, field.name) for index, field in enumerate(source.schema) if not is_always_valid(field.type)
        ]

    def over(self, rows: Arrangement, positions: Sequence[int]) -> SourceInput:
        """The same input, whose rows are kept otherwise from now on."""
        other = SourceInput(self.source, rows, positions)
        other.watermark = self.watermark
        other.digests.extend(self.digests)
        return other

    def read(self, data: Any) -> SourceDelta:
        """The change that ``data`` asks for: a ``DeltaBatch``, or plain rows that are inserted, or upserted by key.

        Raises:
            ConfigError: the data does not fit the schema.
            DataError: it retracts a row that the source does not hold, or a key is NULL.
        """
        given = self.weighted(data)
        digest = digest_of(given) if self.source.dedup else None
        if digest is not None and digest in self.digests:
            return SourceDelta(len(given), self._nothing, self._nothing, self.watermark, dropped=True)
        rows, late, watermark = self._in_time(given)
        if self.source.key:
            rows = self._upserted(rows)
        elif len(rows) < _MANY or rows.weights.min() <= 0:
            rows = consolidate(rows)
            self._require_present(rows)
        return SourceDelta(len(given), rows, late, watermark, digest)

    @property
    def frontier(self) -> Frontier:
        """See ``Source.frontier``."""
        return self.source.frontier(self.watermark)

    def release(self) -> None:
        """Let go of rows that are too old to change, if the source shall not keep them."""
        if self.source.lateness is not None and not self.source.lateness.keep:
            for index, bound in self.frontier.items():
                self._rows.release(self._positions[index], bound)

    def accept(self, change: SourceDelta) -> None:
        """Remember the watermark and content of a change that was committed. May be repeated."""
        self.watermark = change.watermark
        if change.digest is not None:
            self.digests.add(change.digest)

    def weighted(self, data: Any) -> Batch:
        """The rows of ``data`` with their weights, as they are given.

        Raises:
            ConfigError: they do not fit the schema.
            DataError: a vector that is added has not the declared dimension.
        """
        rows = self._weighted(data)
        for index, name, dimension in self._dimensions:
            require_dimension(rows.columns[index], rows.weights > 0, name, dimension, self.source.name)
        return rows

    def _weighted(self, data: Any) -> Batch:
        schema = self.source.schema
        try:
            if isinstance(data, DeltaBatch):
                if data.schema.equals(schema):
                    return data.batch
                data = data.to_arrow()
            if isinstance(data, pa.RecordBatchReader):
                data = data.read_all()
            if self._nullable and isinstance(data, (pa.Table, pa.RecordBatch)) and data.schema.equals(schema):
                for index, name in self._validated:
                    require_valid(data.column(index), name)
                return Batch.of_arrow(data)
            return read_weighted(data, schema, key=self.source.key)
        except ConfigError as error:
            raise ConfigError(
                f"The delta does not fit the source {self.source.name!r}: {error.message}", hint=error.hint
            ) from error

    # Keys

    def _upserted(self, rows: Batch) -> Batch:
        """Rows of positive weight replace what the source holds for their key, others only retract it."""
        places = [self.source.schema.names.index(column) for column in self.source.key]
        keys = tuple(rows.columns[place] for place in places)
        if any(key.null_count for key in keys):
            raise DataError(
                f"A row for {self.source.name!r} has NULL in its key ({', '.join(self.source.key)}).",
                hint="give every row a key, or register the source without one",
            )
        order, starts, _ = group_rows(keys, len(rows))
        if len(starts) == 0:
            return rows
        # Of several rows for a key the last inserted one counts.
        rank = np.where(rows.weights > 0, np.arange(len(rows)) + 1, 0)
        last = np.maximum.reduceat(rank[order], starts)
        new = rows.take(last[last > 0] - 1)
        new = Batch(new.columns, np.ones(len(new), np.int64))
        found = self._rows.probe(take_columns(keys, order[starts]), consolidated=True).batch
        old = found.select(self._positions).negate()
        return consolidate(Batch.concat([old, new]))

    def _require_present(self, rows: Batch) -> None:
        stored = rows.select(self._layout)
        short = self._rows.overdrawn(stored)
        if len(short):
            first = rows.take(short[:1])
            held = self._rows.weights_of(stored.take(short[:1]))
            row = {
                name: column[0].as_py() for name, column in zip(self.source.schema.names, first.columns, strict=True)
            }
            raise DataError(
                f"The delta retracts a row {-int(first.weights[0])} times that the source {self.source.name!r} "
                f"holds {int(held[0])} times: {row}.",
                hint="retract rows exactly as they were inserted, or register the source with a key",
            )

    # Lateness

    def too_late(self, rows: Batch) -> NDArray[np.bool_]:
        """Which rows are older than the watermark."""
        lateness = self.source.lateness
        if lateness is None or self.watermark is None:
            return np.zeros(len(rows), np.bool_)
        times = _micros(rows.columns[self.source.schema.names.index(lateness.column)])
        late: NDArray[np.bool_] = pc.fill_null(pc.less(times, self.watermark), fill_value=False).to_numpy(
            zero_copy_only=False
        )
        return late

    def _in_time(self, rows: Batch) -> tuple[Batch, Batch, int | None]:
        """The rows in time, the late ones, and the watermark after them, which is in force from the next tick on."""
        lateness = self.source.lateness
        if lateness is None or not len(rows):
            return rows, self._nothing, self.watermark
        column = rows.columns[self.source.schema.names.index(lateness.column)]
        times = _micros(column)
        newest = pc.max(times).as_py()
        late = self.too_late(rows)
        reached = [
            mark for mark in (self.watermark, None if newest is None else newest - self._delay) if mark is not None
        ]
        return rows.filter(~late), rows.filter(late), max(reached, default=None)


def _micros(column: pa.Array) -> pa.Array:
    if pa.types.is_date32(column.type):
        column = column.cast(pa.timestamp("us"))
    return column.cast(pa.int64())


def digest_of(rows: Batch) -> bytes:
    """What tells rows from others."""
    return hashlib.blake2b(encode_rows(rows), digest_size=16).digest()
