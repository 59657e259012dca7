"""Rows to the shards they belong to: those of a frame, and those of all sources when the number of shards changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from weirflow.errors import ConfigError
from weirflow.ivm import compiled
from weirflow.ivm.flow.source import Source, SourceInput, digest_of
from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.sharded.commits import Commit
from weirflow.ivm.sharded.definition import Definition, blueprint_of, decode_definition
from weirflow.ivm.sharded.plan.routes import split_by
from weirflow.ivm.sharded.worker.files import flow_files
from weirflow.ivm.sharded.worker.relation_rows import relation_rows
from weirflow.ivm.sharded.worker.reports import RowsRef
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.delta import WEIGHT, DeltaBatch

if TYPE_CHECKING:
    from weirflow.ivm.sharded.coordinator import Coordinator
    from weirflow.ivm.sharded.executor import StageExecutor
    from weirflow.ivm.sharded.jobs import Deltas

Moved = list[tuple[str, int, RowsRef]]
"""Sources, shards, and where the rows are."""

_INLINE = 1 << 20
_ROWS_IN_FILE = 1 << 19
_ROWS_AT_ONCE = 1 << 16
"""Rows that are brought to their shards together: they stay in the processor's cache."""

_decoder = msgspec.msgpack.Decoder(list[tuple[str, int, RowsRef]])


def reader(source: Source) -> SourceInput:
    """What reads rows that are given for a source, wherever the source's own rows are."""
    return SourceInput(source, Arrangement(source.schema.types, len(source.key)), range(len(source.schema)))


def split(rows: Batch, definition: Definition, source: str, shards: int) -> dict[int, Batch]:
    """The rows of a source for each shard."""
    keys = [rows.columns[column] for column in definition.columns[source]]
    return split_by(keys, rows, shards, definition.spread_policy)


@dataclass(frozen=True)
class SplitRows:
    """Writes rows that come in for a source to files for the shards they go to; runs where the rows are."""

    uri: str
    definition: bytes
    source: str
    shards: int
    epoch: int

    def __call__(self, batches: Iterable[Any]) -> Iterator[bytes]:
        """The files for the rows of some Arrow batches."""
        definition = decode_definition(self.definition)
        source = reader(definition.inputs[self.source])
        files = flow_files(self.uri)
        everywhere = definition.is_everywhere(self.source)
        waiting: dict[int, _Waiting] = {}
        total = 0

        def written(shard: int) -> bytes:
            ref = msgspec.structs.replace(files.write_file(waiting.pop(shard).parts, self.epoch), ordered=False)
            targets = range(self.shards) if everywhere else [shard]
            return msgspec.msgpack.encode([(self.source, target, ref) for target in targets])

        for given in _in_blocks(map(source.weighted, batches)):
            total += len(given)
            if not compiled.decided:
                compiled.offer(1, total)  # for the stages, which run in these processes next
            for shard, rows in split(given, definition, self.source, 1 if everywhere else self.shards).items():
                if waiting.setdefault(shard, _Waiting()).add(rows) >= _ROWS_IN_FILE:
                    yield written(shard)
        for shard in list(waiting):
            yield written(shard)


@dataclass
class _Waiting:
    """Rows for a file, as long as they are few."""

    parts: list[Batch] = field(default_factory=list)
    rows: int = 0

    def add(self, rows: Batch) -> int:
        """How many there are then."""
        self.parts.append(rows)
        self.rows += len(rows)
        return self.rows


def _in_blocks(batches: Iterable[Batch]) -> Iterator[Batch]:
    """The same rows, some more at a time: what is done with them costs less than it does for each small batch."""
    block = _Waiting()
    for batch in batches:
        if block.add(batch) >= _ROWS_AT_ONCE:
            yield Batch.concat(block.parts)
            block = _Waiting()
    if block.rows:
        yield Batch.concat(block.parts)


@dataclass(frozen=True)
class MoveRows:
    """Writes rows that come into a new circuit, as an old shard keeps them, to files for new shards.

    Attributes:
        names: the sources, and the views that are recomputed, whose rows go on.
        place: the storage that has the old shards.
    """

    uri: str
    old: bytes
    new: bytes
    commit: bytes
    shards: int
    names: tuple[str, ...]
    place: str

    def __call__(self, shard: int) -> bytes:
        """The files of one old shard."""
        blueprint = blueprint_of(self.old)
        new = decode_definition(self.new)
        commit = msgspec.json.decode(self.commit, type=Commit)
        files = flow_files(self.uri)
        moved: Moved = []
        for name in self.names:
            everywhere = new.is_everywhere(name)
            for batch in relation_rows(blueprint, self.place, commit, name, shard):
                for target, rows in split(batch, new, name, 1 if everywhere else self.shards).items():
                    ref = files.write_rows(rows, commit.epoch + 1, 0)
                    moved += [(name, one, ref) for one in (range(self.shards) if everywhere else [target])]
        return msgspec.msgpack.encode(moved)


@dataclass(frozen=True)
class ReadRows:
    """Reads the rows of a source or view on a shard; runs where somebody wants them."""

    uri: str
    definition: bytes
    commit: bytes
    name: str

    def __call__(self, shard: int) -> Iterator[pa.RecordBatch]:
        """The rows, as often as each is there."""
        for batch in self.weighted(shard):
            yield from DeltaBatch.of_batch(self.schema, batch).inserts().to_batches()

    def weighted(self, shard: int) -> Iterator[Batch]:
        """The rows, each with its weight."""
        commit = msgspec.json.decode(self.commit, type=Commit)
        return relation_rows(blueprint_of(self.definition), self.uri, commit, self.name, shard)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return blueprint_of(self.definition).schema(self.name)


@dataclass(frozen=True)
class ChangedRows:
    """Reads what a tick changed in a view, with weights; runs where somebody wants it, on as many tasks as shards.

    Attributes:
        refs: where the rows are.
        columns: of the view.
    """

    uri: str
    refs: bytes
    columns: pa.Schema
    shards: int

    def __call__(self, shard: int) -> Iterator[pa.RecordBatch]:
        """The share of one task."""
        refs = msgspec.msgpack.decode(self.refs, type=list[RowsRef])[shard :: self.shards]
        if refs:
            yield DeltaBatch.of_batch(self.columns, flow_files(self.uri).read_rows(refs)).to_arrow()

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows, and their weight."""
        return self.columns.append(pa.field(WEIGHT, pa.int64(), nullable=False))


@dataclass(frozen=True)
class CountRows:
    """Counts the rows of sources and views on a shard; runs where somebody reads them."""

    relations: tuple[ReadRows, ...]

    def __call__(self, shard: int) -> bytes:
        """How many rows each has."""
        counts = {one.name: sum(int(rows.weights.sum()) for rows in one.weighted(shard)) for one in self.relations}
        return msgspec.msgpack.encode(counts)


@dataclass(frozen=True)
class CountLate:
    """Counts the rows of some Arrow batches that are older than a watermark; runs where they are."""

    source: Source
    watermark: int | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
        """The number, as text."""
        source = reader(self.source)
        source.watermark = self.watermark
        yield str(sum(int(source.too_late(source.weighted(batch)).sum()) for batch in batches)).encode()


def decode_moved(data: bytes) -> Moved:
    """What ``SplitRows`` and ``MoveRows`` return."""
    return _decoder.decode(data)


def is_frame(data: Any) -> bool:
    """Whether it is a Spark frame, of whichever kind."""
    return hasattr(data, "mapInArrow")


@dataclass
class TickInput:
    """The deltas of one tick.

    Attributes:
        rows: for each source and shard, where the rows are.
        digests: of deltas of which repetitions are to be noticed, by their sources.
        dropped: how many rows are not there because a delta repeats an earlier one.
        count: how many rows of frames there are.
    """

    rows: Deltas = field(default_factory=dict)
    digests: dict[str, bytes] = field(default_factory=dict)
    dropped: int = 0
    count: int = 0

    def add_frames(self, frames: Mapping[str, Any], coordinator: Coordinator, executor: StageExecutor) -> None:
        """As ``add`` for frames, by the names of their sources: their rows stay on the executors."""
        definition, shards = coordinator.definition, coordinator.commit.shards
        works = []
        for name, frame in frames.items():
            if definition.sources[name].dedup:
                raise ConfigError(
                    f"The source {name!r} drops repeated deltas, which does not work for frames.",
                    hint="give the tick a token=, or register the source without dedup=",
                )
            epoch = coordinator.commit.epoch + 1
            works.append((frame, SplitRows(coordinator.uri, definition.encoded, name, shards, epoch)))
        for part in executor.over_all(works) if works else ():
            moved = decode_moved(part)
            self.count += moved[0][2].count  # the same for all shards, if several get it
            for name, shard, ref in moved:
                self._put(name, shard, ref)

    def add(self, name: str, data: Any, coordinator: Coordinator) -> None:
        """Put the rows of a delta that is here where their shards find them; the source is defined."""
        definition, shards = coordinator.definition, coordinator.commit.shards
        source, epoch = definition.sources[name], coordinator.commit.epoch + 1
        given = reader(source).weighted(data)
        if source.dedup:
            digest = digest_of(given)
            if digest in coordinator.commit.digests.get(name, ()):
                self.dropped += len(given)
                return
            self.digests[name] = digest
        everywhere = definition.is_everywhere(name)
        for shard, own in split(given, definition, name, 1 if everywhere else shards).items():
            ref = coordinator.files.write_rows(own, epoch, _INLINE)
            for target in range(shards) if everywhere else [shard]:
                self._put(name, target, ref)

    def _put(self, name: str, shard: int, ref: RowsRef) -> None:
        self.rows.setdefault(name, {}).setdefault(shard, []).append(ref)
