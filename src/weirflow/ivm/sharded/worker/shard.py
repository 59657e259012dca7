"""``Shard``: one stage of a circuit on one shard, with the state that it keeps there."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from weirflow.errors import DataError
from weirflow.ivm.circuit.circuit import Input, ancestors
from weirflow.ivm.circuit.slices import SlicedJoins
from weirflow.ivm.flow.source import LATE, Source, SourceInput
from weirflow.ivm.operators.arrange import Arrange
from weirflow.ivm.sharded.definition import Blueprint, decode_definition
from weirflow.ivm.sharded.plan.routes import FIRST, Everywhere, Exchange
from weirflow.ivm.sharded.worker.reports import RefusedDelta
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.ivm.zset.rows import consolidate, group_rows
from weirflow.sql.clock.relation import CLOCK

if TYPE_CHECKING:
    from weirflow.ivm.durability.manifest import Pack
    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.ivm.sharded.worker.files import FlowFiles
    from weirflow.ivm.sharded.worker.reports import StageTask, StateRefs, TickTask

_ALL = 1 << 62
_MANY = 1 << 14


@dataclass
class StageResult:
    """What a stage did on a shard.

    Attributes:
        rows: outputs of nodes that are there for this stage to read.
        sent: rows of exchanges, and the shard they go to.
        outputs: what views change, and late rows.
        watermarks: of the sources, after this shard's rows.
        rows_in: rows of the deltas.
    """

    rows: dict[int, Batch]
    sent: list[tuple[int, int, Batch]] = field(default_factory=list)
    outputs: dict[str, Batch] = field(default_factory=dict)
    watermarks: dict[str, int | None] = field(default_factory=dict)
    rows_in: int = 0


class Shard:
    """A stage on a shard. ``load``, a ``step`` for each tick with ``catch_up`` in between, and ``save`` follow.

    After an error it is of no use any more.

    Attributes:
        version: which attempt left the state that is here; empty for none.
    """

    def __init__(self, definition: bytes, stage: int, shard: int, files: FlowFiles) -> None:
        self.version = ""
        self._blueprint = Blueprint(decode_definition(definition))
        self._spread = spread = self._blueprint.spread
        self._stage = stage
        self._shard = shard
        self._files = files
        self._operators = [node.operator for node in spread.nodes]
        self._nodes = [number for number, at in enumerate(spread.stages) if at == stage]
        self._kept = spread.kept(stage)
        self._probed = spread.probed(stage)
        self._keys = {number: spread.key(number) for number, operator in enumerate(self._operators) if operator.states}
        self._last_read = [spread.last_read(number) for number in range(len(spread.nodes))]
        self._views = {
            name: number
            for name, number in spread.relations.items()
            if name in self._blueprint.definition.views and spread.available(number) == stage
        }
        # What others read is not put off: nodes of later stages, and all that is kept.
        read = {number for number in self._nodes if self._last_read[number] > stage}
        self._sliced = SlicedJoins(spread.nodes, read | set(spread.relations.values()))
        self._inputs = {name: self._input(name) for name in self._blueprint.definition.inputs} if stage == 0 else {}

    @property
    def rows(self) -> int:
        """How many rows are kept."""
        return sum(state.row_count for number in self._kept for state in self._operators[number].states)

    @property
    def released(self) -> dict[str, list[int]]:
        """How many rows the states of a node had when the last were let go, of nodes where some were."""
        counts = {self._keys[number]: [one.released for one in self._operators[number].states] for number in self._kept}
        return {key: found for key, found in counts.items() if any(found)}

    def load(self, task: StageTask) -> bool:
        """Have the state that the task begins with; says whether it was here already."""
        warm = bool(self.version) and self.version == task.versions.get(self._shard)
        wanted = [*([] if warm else self._kept), *self._probed]
        # What is to be filled begins with nothing, even if an equal operator of an older view has its state already.
        end = len(self._operators) if task.fill is None else self._blueprint.begins[task.fill]
        places = [
            task.states.get(self._keys[number], {}).get(self._shard) if number < end else None for number in wanted
        ]
        known = [refs for refs in places if refs is not None]
        runs = iter(self._files.load(known, task.packs))
        for number, refs in zip(wanted, places, strict=True):
            operator = self._operators[number]
            nothing: list[list[Run]] = [[] for _ in operator.states]
            operator.adopt(nothing if refs is None else next(runs))
            counts = task.released.get(self._keys[number], {}).get(self._shard, ())
            for state, count in zip(operator.states, counts, strict=False):
                state.released = count
        return warm

    def step(self, task: StageTask, tick: TickTask, inbox: dict[int, Batch]) -> StageResult:
        """Run the nodes of this stage for a tick and commit what they change."""
        done = StageResult(dict(inbox))
        if task.fill is None:
            self._take_in(task, tick, done)
            self._run(0, done, starting=False, shards=task.shards)
        else:
            first = self._blueprint.begins[task.fill]
            with ExitStack() as stack:
                self._bring_contents(first, done, stack)
                self._run(first, done, starting=True, shards=task.shards)
        for name, number in self._views.items():
            rows = consolidate(done.rows[number]) if number in done.rows else None
            if rows is not None and len(rows) and task.fill is None and self._spread.reports(number, self._shard):
                done.outputs[name] = rows
        for number in self._kept:
            for state in self._operators[number].states:
                state.maintain(_ALL)
        if task.fill is None:
            self._release(task)
        return done

    def catch_up(self, done: StageResult) -> None:
        """Between two ticks of a task: what an earlier stage keeps and this one probes is here as it is there now."""
        for number in self._probed:
            if number in done.rows:
                self._operators[number].step([done.rows[number]])
                self._operators[number].commit()

    def carried(self, task: StageTask, done: StageResult) -> Iterator[tuple[int, int, Batch]]:
        """What a later stage on this shard reads of what is here now."""
        for number, rows in done.rows.items():
            last = self._last_read[number]
            if task.fill is not None and last > self._stage:
                last = self._spread.last_read(number, self._blueprint.begins[task.fill])
            if last > self._stage and len(rows):
                yield self._shard, number, rows

    def save(self, task: StageTask) -> tuple[dict[str, StateRefs], dict[str, Pack]]:
        """Write what is new; returns where the state is of each node whose state is elsewhere than before."""
        runs = [[state.runs for state in self._operators[number].states] for number in self._kept]
        refs, packs = self._files.save(runs, task.epoch)
        self.version = uuid.uuid4().hex
        moved = {
            self._keys[number]: places
            for number, places in zip(self._kept, refs, strict=True)
            if places != task.states.get(self._keys[number], {}).get(self._shard)
        }
        used = {ref.pack for places in moved.values() for part in places for ref in part}
        return moved, {name: pack for name, pack in packs.items() if name in used}

    # Inner workings

    def _take_in(self, task: StageTask, tick: TickTask, done: StageResult) -> None:
        """What the deltas do to the sources' rows on this shard."""
        for name, refs in tick.deltas.get(self._shard, {}).items():
            source = self._inputs[name]
            source.watermark = task.watermarks.get(name)
            given = self._files.read_rows(refs)
            try:
                if source.source.key and not all(ref.ordered for ref in refs):
                    _require_keys_once(source.source, given)
                change = source.read(DeltaBatch.of_batch(source.source.schema, given))
            except DataError as error:
                raise RefusedDelta(error) from error
            done.watermarks[name] = change.watermark
            number = self._spread.relations[name]
            if len(change.rows):
                done.rows[number] = change.rows
            if name != CLOCK and self._spread.reports(number, self._shard):
                done.rows_in += change.rows_in
                if len(change.late):
                    done.outputs[f"{name}{LATE}"] = change.late

    def _release(self, task: StageTask) -> None:
        """Let go of state that is too old to change: what comes from now on is not before the tick's watermarks."""
        marks = {name: mark for name, mark in task.watermarks.items() if mark is not None}
        inputs = self._blueprint.definition.inputs
        self._spread.advance({name: inputs[name].frontier(mark) for name, mark in marks.items()})
        for name, source in self._inputs.items():
            source.watermark = marks.get(name)
            source.release()

    def _bring_contents(self, first: int, done: StageResult, stack: ExitStack) -> None:
        """To new nodes, all rows of the older ones that they read are a first delta, before which there were none."""
        spread = self._spread
        read = {one for node in spread.nodes[first:] for one in node.inputs if one < first}
        relations = {number: name for name, number in spread.relations.items()}
        for number in read:
            operator = self._operators[number]
            if isinstance(operator, Arrange):
                if spread.stages[number] == self._stage:
                    done.rows[number] = _all_rows(operator)
                stack.enter_context(operator.emptied())
            elif spread.available(number) == self._stage:
                done.rows[number] = self._relation_rows(relations[number])

    def _relation_rows(self, name: str) -> Batch:
        arranged = self._blueprint.program.relations[name].store
        assert arranged is not None, f"{name} is not stored"
        return _all_rows(self._blueprint.program.store(name)).select(arranged.positions)

    def _run(self, first: int, done: StageResult, *, starting: bool, shards: int) -> None:
        sliced = self._sliced.run()
        for number in self._nodes:
            if number < first:
                continue
            node = self._spread.nodes[number]
            inputs = [done.rows[one] for one in node.inputs if one in done.rows]
            if isinstance(node.operator, Exchange):
                tells = bool(inputs) and self._spread.reports(node.inputs[0], self._shard)
                parts = node.operator.split(_fewer(inputs[0]), shards) if tells else {}
                done.sent += [(shard, number, rows) for shard, rows in parts.items()]
                continue
            if isinstance(node.operator, Input):
                continue
            output = node.operator.start() if starting else node.operator.nothing
            if not self._has_start(number):
                output = node.operator.nothing
            if inputs or sliced.waits(node):
                deltas = [done.rows.get(one, self._operators[one].nothing) for one in node.inputs]
                # As in Circuit.fill: what cannot be computed while all sources are empty is not there.
                lenient = starting and first == 0 and self._reads_sources(number)
                made = sliced.step(number, deltas, lenient=lenient)
                output = Batch.concat([output, made]) if len(output) else made
            if len(output):
                done.rows[number] = output
        for number in self._nodes:
            self._operators[number].commit()

    def _reads_sources(self, number: int) -> bool:
        return any(isinstance(self._operators[one], Input) for one in ancestors(self._spread.nodes, [number]))

    def _has_start(self, number: int) -> bool:
        """Whether what a node gives over nothing is given here: it is there once, or everywhere."""
        return self._shard == FIRST or isinstance(self._spread.partitionings[number], Everywhere)

    def _input(self, name: str) -> SourceInput:
        arranged = self._blueprint.program.relations[name].store
        assert arranged is not None
        return SourceInput(
            replace(self._blueprint.definition.inputs[name], dedup=0),  # whoever splits deltas notices repetitions
            self._blueprint.program.store(name).arrangement,
            arranged.positions,
        )


def _fewer(rows: Batch) -> Batch:
    """Many rows with equal ones added up, before they travel."""
    return consolidate(rows) if len(rows) >= _MANY else rows


def _require_keys_once(source: Source, rows: Batch) -> None:
    """Of rows without an order, none is the last for its key."""
    inserted = rows.filter(rows.weights > 0)
    keys = [inserted.columns[source.schema.names.index(column)] for column in source.key]
    _, starts, _ = group_rows(keys, len(inserted))
    if len(starts) < len(inserted) or (len(inserted) and inserted.weights.max() > 1):
        raise DataError(
            f"The frame for {source.name!r} has several rows for a key ({', '.join(source.key)}).",
            hint="rows of a frame have no order: keep the one that counts, for example with max_by",
        )


def _all_rows(store: Arrange) -> Batch:
    parts = list(store.arrangement.rows())
    return Batch.concat(parts) if parts else Batch.empty(store.types)
