"""Views of a partitioned flow that have no delta rule, or shall not use it: recomputed as a whole and compared."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from weirflow.errors import NotIncremental
from weirflow.ivm.compiler.missing_engine import no_engine
from weirflow.ivm.compiler.program import Program, read_whole
from weirflow.ivm.compiler.settled import under
from weirflow.ivm.compiler.view import Mode
from weirflow.ivm.flow.folder.entries import entry_source, entry_view, source_entry
from weirflow.ivm.flow.schema import read_schema
from weirflow.ivm.flow.source import Source
from weirflow.ivm.sharded.commits import Commit
from weirflow.ivm.sharded.definition import Definition, FillGroup, add_input, blueprint_of
from weirflow.ivm.sharded.worker.files import flow_files
from weirflow.ivm.sharded.worker.relation_rows import relation_rows
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.rows import consolidate
from weirflow.types import SourceSpread

if TYPE_CHECKING:
    from weirflow.ivm.durability.records import DefineSource, DefineView
    from weirflow.ivm.sharded.executor import StageExecutor
    from weirflow.ivm.sharded.worker.distribution import Moved
    from weirflow.ivm.sharded.worker.reports import RowsRef

_INLINE = 1 << 16


def chosen(
    definition: Definition, group: FillGroup, executor: StageExecutor, forced: Collection[str] = ()
) -> FillGroup:
    """A group that is new to a definition, with those of its views marked that are recomputed.

    Args:
        definition: what there is already.
        group: sources and views; what is marked in it is left out of account.
        executor: what recomputes views.
        forced: views that are recomputed whatever their mode says.

    Raises:
        EngineMissing: a view is to be recomputed, and nothing can.
        NotIncremental: a view has no delta rule, and is not to be recomputed or nothing can.
        ConfigError: a view that is recomputed reads what is not kept.
    """
    program = Program()
    for one in definition.groups:
        definition.add(one, program)
    for entry in group.sources:
        everywhere = group.spread.get(entry.name) is SourceSpread.EVERYWHERE
        add_input(entry_source(entry), program, everywhere=everywhere)
    recomputed: list[DefineSource] = []
    for view in group.views:
        if not (definition.forced or view.name in forced or view.mode == Mode.DIFF):
            try:
                program.add_views({view.name: entry_view(view)})
            except NotIncremental:
                if view.mode == Mode.INCREMENTAL or executor.engine is None:
                    raise
            else:
                continue
        recomputed.append(_as_input(view, program, executor))
    return msgspec.structs.replace(group, recomputed=tuple(recomputed))


def _as_input(entry: DefineView, program: Program, executor: StageExecutor) -> DefineSource:
    """What the circuit sees of a view that is recomputed."""
    if executor.engine is None:
        raise no_engine()
    view = entry_view(entry)
    schemas = {name: program.relations[name].schema for name in read_whole(view, program.relations)}
    schema = under(executor.engine, view.settings).schema(view.query, schemas)
    source = Source(entry.name, read_schema(schema))
    add_input(source, program)
    return source_entry(source)


@dataclass(frozen=True)
class CompareRows:
    """Compares the rows that a view has on a shard with those it shall have; runs where the shard is.

    Attributes:
        rows: for each shard, where the rows are that the view shall have.
    """

    uri: str
    definition: bytes
    commit: bytes
    name: str
    rows: Mapping[int, list[RowsRef]]

    def __call__(self, shard: int) -> bytes:
        """The change, like what ``MoveRows`` returns."""
        blueprint = blueprint_of(self.definition)
        commit = msgspec.json.decode(self.commit, type=Commit)
        files = flow_files(self.uri)
        wanted = [files.read_rows([ref]) for ref in self.rows.get(shard, [])]
        there = [batch.negate() for batch in relation_rows(blueprint, self.uri, commit, self.name, shard)]
        nothing = Batch.empty(blueprint.schema(self.name).types)
        change = consolidate(Batch.concat([nothing, *wanted, *there]))
        moved: Moved = []
        if len(change):
            moved.append((self.name, shard, files.write_rows(change, commit.epoch + 1, _INLINE)))
        return msgspec.msgpack.encode(moved)


@dataclass(frozen=True)
class AddRows:
    """Adds up what several steps of a tick changed in views; runs where the shard is.

    Attributes:
        rows: for each shard and view, the rows of each step.
    """

    uri: str
    epoch: int
    rows: Mapping[int, Mapping[str, list[RowsRef]]]

    def __call__(self, shard: int) -> bytes:
        """What is left of it, like what ``MoveRows`` returns."""
        files = flow_files(self.uri)
        moved: Moved = []
        for name, refs in self.rows.get(shard, {}).items():
            change = consolidate(files.read_rows(refs))
            if len(change):
                moved.append((name, shard, files.write_rows(change, self.epoch, _INLINE)))
        return msgspec.msgpack.encode(moved)


@dataclass(frozen=True)
class SubtractRows:
    """Takes the rows that a view had on a shard from those it has; runs where the shard is.

    Attributes:
        before: what the flow was made of, and the part of its commit that is about the view.
        now: the same for what it is.
    """

    uri: str
    before: tuple[bytes, bytes]
    now: tuple[bytes, bytes]
    name: str

    def __call__(self, shard: int) -> bytes:
        """The difference, like what ``MoveRows`` returns."""
        files = flow_files(self.uri)
        rows = list(self._rows(self.now, shard))
        rows += [batch.negate() for batch in self._rows(self.before, shard)]
        change = consolidate(Batch.concat(rows)) if rows else None
        moved: Moved = []
        if change is not None and len(change):
            epoch = msgspec.json.decode(self.before[1], type=Commit).epoch + 1
            moved.append((self.name, shard, files.write_rows(change, epoch, _INLINE)))
        return msgspec.msgpack.encode(moved)

    def _rows(self, state: tuple[bytes, bytes], shard: int) -> Iterator[Batch]:
        definition, commit = state
        found = msgspec.json.decode(commit, type=Commit)
        return relation_rows(blueprint_of(definition), self.uri, found, self.name, shard)
