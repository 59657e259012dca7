"""State to the shards that it belongs to: what tasks do when a flow whose rows are not all kept changes its shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from weirflow.failpoints import failpoint
from weirflow.ivm.compiler.marks import marks_of
from weirflow.ivm.compiler.row_by_row import rows_at
from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.runs.run import kept_rows
from weirflow.ivm.operators.aggregate.two_steps import of_parts
from weirflow.ivm.operators.arrange import Arrange
from weirflow.ivm.operators.nearest.refilled import search
from weirflow.ivm.operators.topk import TopK
from weirflow.ivm.sharded.commits import Commit
from weirflow.ivm.sharded.definition import Blueprint, blueprint_of, decode_definition
from weirflow.ivm.sharded.plan.held import are_everywhere, where_held
from weirflow.ivm.sharded.plan.moves import Arrival, is_searched, later_steps, moves_of, not_found, wanted
from weirflow.ivm.sharded.plan.routes import FIRST, ByColumns, Everywhere, Exchange
from weirflow.ivm.sharded.worker.files import flow_files
from weirflow.ivm.sharded.worker.reports import ALL, MovedState
from weirflow.ivm.zset.hashing import Equality, hash_rows

if TYPE_CHECKING:
    from weirflow.ivm.compiler.program import Program
    from weirflow.ivm.durability.manifest import Pack
    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.sharded.plan.policies import SpreadPolicy
    from weirflow.ivm.sharded.plan.routes import Partitioning
    from weirflow.ivm.sharded.worker.files import FlowFiles
    from weirflow.ivm.sharded.worker.reports import RowsRef, StateRefs
    from weirflow.ivm.zset.batch import Batch

_INLINE = 1 << 16
_AT_ONCE = 1 << 28
"""More bytes than that do not wait for others to be written with."""

NodeRuns = Sequence[Sequence["Run"]]
"""For each state of a node, runs of it."""


@dataclass
class ShardedRuns:
    """Runs that are on their way to the shards of a circuit whose groups are all ``movable``.

    Attributes:
        files: where they go, those of each shard into files of its own, whenever there are many.
        epoch: under which files are written.
    """

    blueprint: Blueprint
    shards: int
    files: FlowFiles
    epoch: int
    _moved: MovedState = field(default_factory=MovedState, init=False)
    _bytes: int = field(default=0, init=False)
    _found: dict[int, dict[int, list[list[Run]]]] = field(default_factory=dict, init=False)

    def add(self, number: int, runs: NodeRuns) -> None:
        """Bring runs of a node's states, or of parts of them, each to its shard."""
        wheres = where_held(self.blueprint.spread, number)
        policy = self.blueprint.definition.spread_policy
        for state, (own, where) in enumerate(zip(runs, wheres, strict=True)):
            for run in own:
                for shard, part in _split(run, where, self.shards, policy):
                    node = self._found.setdefault(shard, {}).setdefault(number, [[] for _ in runs])
                    node[state].append(part)
                    self._bytes += part.nbytes
        if self._bytes > _AT_ONCE:
            self._write()

    def add_all(self, program: Program) -> None:
        """Bring all that is needed of the state of a flow in one process.

        Raises:
            ConfigError: the state of a view cannot be moved, or is not there.
        """
        marked = zip(marks_of(program), program.circuit.nodes, strict=True)
        held = {mark: node.operator.states for mark, node in marked if node.operator.states}
        for number, mark in wanted(self.blueprint):
            if mark in held:
                runs = [state.runs for state in held[mark]]
                self.add(number, [runs[0], ()] if is_searched(self.blueprint, number) else runs)
                continue
            # Sources may keep their rows in another order in one process, where joins read them as they are kept.
            operator = self.blueprint.spread.nodes[number].operator
            origin = self.blueprint.spread.origins[number].number
            rows = rows_at(self.blueprint.program, origin, lambda name: kept_whole(program, name))
            if not isinstance(operator, Arrange) or rows is None:
                raise not_found(self.blueprint, number)
            arranged = Arrangement(operator.types, operator.key_count)
            arranged.insert(rows)
            self.add(number, [arranged.runs])

    def written(self) -> MovedState:
        """Where all that came is, once it is in files."""
        self._write()
        return self._moved

    def _write(self) -> None:
        found, self._found, self._bytes = self._found, {}, 0
        for shard, nodes in found.items():
            failpoint("moved.before_pack")
            places, packs = self.files.save(list(nodes.values()), self.epoch)
            failpoint("moved.after_pack")
            self._moved.states += [(number, shard, refs) for number, refs in zip(nodes, places, strict=True)]
            self._moved.packs |= packs


def kept_whole(program: Program, name: str) -> Batch | None:
    """All rows of a source or view; None if it does not keep all of them."""
    relation = program.relations.get(name)
    return program.rows(name) if relation is not None and relation.store is not None and relation.keeps else None


def _split(run: Run, where: Partitioning, shards: int, policy: SpreadPolicy) -> Iterator[tuple[int, Run]]:
    """The rows of a run for each shard that gets some, in the run's order."""
    if not len(run):
        return
    if isinstance(where, Everywhere):
        yield ALL, run
    elif isinstance(where, ByColumns) and shards > 1:
        keys = [run.columns[column] for column in where.columns]
        shard = policy(hash_rows(keys, len(run), Equality.GROUPING), shards)
        for one in np.unique(shard).tolist():
            yield one, kept_rows(run, shard == one)
    else:
        yield FIRST, run


@dataclass(frozen=True)
class MoveState:
    """Brings the state of an old shard to the new ones; runs where the old shard is.

    Attributes:
        uri: the storage of the flow as it is to be.
        old, new: what the flow was made of, and is to be.
        commit: what the flow was.
        shards: how many there are to be.
        place: the storage that has the old shards.
    """

    uri: str
    old: bytes
    new: bytes
    commit: bytes
    shards: int
    place: str

    def __call__(self, shard: int) -> bytes:
        """Where it is then: a ``MovedState``, in which states that are parts are still to be made one."""
        old, new = blueprint_of(self.old), blueprint_of(self.new)
        commit = msgspec.json.decode(self.commit, type=Commit)
        moves = [(move, commit.states.get(old.spread.key(move.source), {}).get(shard)) for move in moves_of(old, new)]
        there = [(move, refs) for move, refs in moves if refs is not None]
        runs = flow_files(self.place).load([refs for _, refs in there], commit.packs)
        moving = ShardedRuns(new, self.shards, flow_files(self.uri), commit.epoch + 1)
        for (move, _), own in zip(there, runs, strict=True):
            repeated = are_everywhere(old.spread, move.source)
            told = [() if shard != FIRST and again else part for part, again in zip(own, repeated, strict=True)]
            moving.add(move.target, [told[0], ()] if move.arrival is Arrival.SEARCHED else told)
        return msgspec.msgpack.encode(moving.written())


@dataclass(frozen=True)
class FinishState:
    """Makes the state of a new shard of what came there; runs where the shard is.

    Attributes:
        uri: the flow's storage.
        new: what the flow is to be made of.
        epoch: under which files are written.
        shards: how many there are.
        parts: for each node and shard, the parts of its state.
        queries: the same for nodes that list the nearest rows, the queries.
        states: for each node and shard, state that goes on as it is, of nodes that are read here.
        packs: the files that hold all of it.
    """

    uri: str
    new: bytes
    epoch: int
    shards: int
    parts: Mapping[int, Mapping[int, StateRefs]]
    queries: Mapping[int, Mapping[int, StateRefs]]
    states: Mapping[int, Mapping[int, StateRefs]]
    packs: Mapping[str, Pack]

    def __call__(self, shard: int) -> bytes:
        """Where what was made is: a ``MovedState``, with what later steps are made of."""
        blueprint = Blueprint(decode_definition(self.new))
        nodes, files = blueprint.spread.nodes, flow_files(self.uri)
        parts, queries, states = (_of_shard(one, shard) for one in (self.parts, self.queries, self.states))
        runs = iter(files.load([*parts.values(), *queries.values(), *states.values()], self.packs))
        made = {number: of_parts(nodes[number].operator, next(runs)) for number in parts}
        asked = {number: next(runs) for number in queries}
        for number in states:
            nodes[number].operator.adopt(next(runs))
        shown: dict[int, Batch] = {}
        for number, (asking, _) in asked.items():
            operator, documents = nodes[number].operator, nodes[nodes[number].inputs[1]].operator
            shown[number] = search(operator, documents, asking)
            made[number] = [state.runs for state in operator.states]
        places, packs = files.save(list(made.values()), self.epoch)
        moved = MovedState([(number, shard, refs) for number, refs in zip(made, places, strict=True)], packs)
        for number, earlier in later_steps(blueprint).items():
            first = nodes[earlier].operator
            rows_there = first.shown if isinstance(first, TopK) else shown.get(earlier, first.nothing)
            exchange = nodes[nodes[number].inputs[0]].operator
            assert isinstance(exchange, Exchange)
            for target, rows in exchange.split(rows_there, self.shards).items():
                moved.passed.append((number, target, files.write_rows(rows, self.epoch, _INLINE)))
        return msgspec.msgpack.encode(moved)


def _of_shard(found: Mapping[int, Mapping[int, StateRefs]], shard: int) -> dict[int, StateRefs]:
    return {number: shards[shard] for number, shards in found.items() if shard in shards}


@dataclass(frozen=True)
class LaterSteps:
    """Makes the state of later steps of what earlier ones let through; runs where the shard is.

    Attributes:
        uri: the flow's storage.
        new: what the flow is to be made of.
        epoch: under which files are written.
        rows: for each node and shard, what comes in.
    """

    uri: str
    new: bytes
    epoch: int
    rows: Mapping[int, Mapping[int, Sequence[RowsRef]]]

    def __call__(self, shard: int) -> bytes:
        """Where it is: a ``MovedState``."""
        nodes, files = Blueprint(decode_definition(self.new)).spread.nodes, flow_files(self.uri)
        made = {}
        for number, shards in self.rows.items():
            if shard in shards:
                operator = nodes[number].operator
                operator.step([files.read_rows(shards[shard])])
                operator.commit()
                made[number] = [state.runs for state in operator.states]
        places, packs = files.save(list(made.values()), self.epoch)
        return msgspec.msgpack.encode(
            MovedState([(number, shard, refs) for number, refs in zip(made, places, strict=True)], packs)
        )


def decode_moved_state(found: Iterable[bytes]) -> list[MovedState]:
    """What tasks of ``MoveState``, ``FinishState`` and ``LaterSteps`` return."""
    return [msgspec.msgpack.decode(one, type=MovedState) for one in found]
