"""``FlowJobs``: the jobs of a partitioned flow, from one state of it to the next; nothing is published here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from weirflow.failpoints import failpoint
from weirflow.ivm.compiler.reads import reads
from weirflow.ivm.flow.folder.entries import entry_view
from weirflow.ivm.sharded.plan.moves import Arrival, is_searched, later_steps, moves_of
from weirflow.ivm.sharded.plan.recomputing import AddRows, CompareRows, SubtractRows
from weirflow.ivm.sharded.worker.distribution import MoveRows, ReadRows, SplitRows, decode_moved
from weirflow.ivm.sharded.worker.moving import FinishState, LaterSteps, MoveState, decode_moved_state
from weirflow.ivm.sharded.worker.reports import ALL, RefusedDelta, RowsRef, ShardReport, StageTask, TickTask

if TYPE_CHECKING:
    from weirflow.ivm.sharded.commits import Commit
    from weirflow.ivm.sharded.definition import Blueprint
    from weirflow.ivm.sharded.executor import StageExecutor
    from weirflow.ivm.sharded.worker.reports import MovedState, StateRefs

Deltas = dict[str, dict[int, list["RowsRef"]]]
"""For each source and shard, where its rows are."""


@dataclass
class PendingCommit:
    """How far a change of the flow is: several jobs may follow each other.

    Attributes:
        commit: what the flow would be.
        reports: of the tasks of the first job.
        ticks: for each tick, shard and view, what the jobs changed in it one after the other.
    """

    commit: Commit
    reports: Sequence[ShardReport]
    ticks: list[dict[int, dict[str, list[RowsRef]]]] = field(default_factory=lambda: [{}])

    @property
    def changed(self) -> set[str]:
        """The views that were changed."""
        return {name for shards in self.ticks for views in shards.values() for name in views}

    @property
    def outputs(self) -> list[dict[str, list[RowsRef]]]:
        """For each tick and view, what was changed on all shards."""
        found: list[dict[str, list[RowsRef]]] = [{} for _ in self.ticks]
        for tick, shards in zip(found, self.ticks, strict=True):
            for views in shards.values():
                for name, refs in views.items():
                    tick.setdefault(name, []).extend(refs)
        return found

    def add(self, blueprint: Blueprint, reports: Sequence[ShardReport]) -> None:
        """Take in what the tasks of a job report."""
        self.commit = after(blueprint, self.commit, reports)
        for report in reports:
            for tick, done in zip(self.ticks, report.ticks, strict=True):
                for name, ref in done.outputs.items():
                    tick.setdefault(report.shard, {}).setdefault(name, []).append(ref)


class FlowJobs:
    """Runs the jobs of one flow.

    Attributes:
        reports: of the tasks of the last job.
    """

    def __init__(self, uri: str, executor: StageExecutor) -> None:
        self.reports: Sequence[ShardReport] = ()
        self._uri = uri
        self._executor = executor

    def tick(
        self, blueprint: Blueprint, commit: Commit, epoch: int, deltas: Deltas, again: Collection[str] = ()
    ) -> PendingCommit:
        """Bring deltas to the circuit, and then recompute those views that have to be, each with what reads it.

        Args:
            blueprint: of the circuit.
            commit: what the flow is.
            epoch: of the tick.
            deltas: of the sources.
            again: views that are recomputed even if nothing changed that they read.
        """
        stepped = PendingCommit(commit, ())
        if deltas or not again:
            stepped.reports = self._run(blueprint, commit, epoch=epoch, deltas=[deltas])
            stepped.add(blueprint, stepped.reports)
        for name in blueprint.definition.recomputed:
            read = reads(entry_view(blueprint.definition.views[name]))
            if name in again or any(one.casefold() in read for one in (*deltas, *stepped.changed)):
                self._recompute(blueprint, stepped, name, epoch)
        self._add_up(stepped, epoch)
        return stepped

    def ticks(self, blueprint: Blueprint, commit: Commit, epoch: int, deltas: Sequence[Deltas]) -> PendingCommit:
        """Bring the deltas of several ticks to the circuit, one behind the other in one job.

        Args:
            blueprint: of the circuit; nothing is recomputed in it, and no source has a watermark.
            commit: what the flow is.
            epoch: of the first tick.
            deltas: of each tick.
        """
        stepped = PendingCommit(commit, (), [{} for _ in deltas])
        stepped.reports = self._run(blueprint, commit, epoch=epoch, deltas=deltas)
        stepped.add(blueprint, stepped.reports)
        return stepped

    def fill(self, blueprint: Blueprint, commit: Commit, group: int) -> Commit:
        """Fill a new group from the rows that are there."""
        filled = after(blueprint, commit, self._run(blueprint, commit, fill=group))
        new = [entry.name for entry in blueprint.definition.groups[group].recomputed]
        return self.tick(blueprint, filled, commit.epoch + 1, {}, new).commit if new else filled

    def move(self, old: Blueprint, new: Blueprint, commit: Commit, shards: int) -> Commit:
        """Bring the rows that come into a new circuit of one group to their new places, and fill it from them.

        Of views that are recomputed, those that were not kept are computed now.
        """
        rows = self.moved(old, new, commit, shards, names=list(new.definition.inputs))
        return self.filled(new, commit, shards, rows)

    def moved(
        self,
        old: Blueprint,
        new: Blueprint,
        commit: Commit,
        shards: int,
        *,
        names: Sequence[str],
        place: str | None = None,
    ) -> Deltas:
        """The rows that come into a new circuit, at their new places.

        Args:
            old: the circuit that has them.
            new: the circuit.
            commit: what the flow is that has them.
            shards: how many there are to be.
            names: the sources, and views that are recomputed, whose rows are wanted; those that are kept are found.
            place: the storage of the old flow; None for that of this one.
        """
        kept = {name for name in names if name in old.spread.relations and old.spread.store(name) is not None}
        work = MoveRows(
            self._uri,
            old.definition.encoded,
            new.definition.encoded,
            msgspec.json.encode(commit),
            shards,
            tuple(name for name in new.definition.inputs if name in kept),
            place or self._uri,
        )
        return _of_moved(self._executor.each(commit.shards, work))

    def filled(self, new: Blueprint, commit: Commit, shards: int, deltas: Deltas) -> Commit:
        """Fill a new circuit of one group from rows that are at their places.

        Of views that are recomputed, those without rows among them are computed now.
        """
        # Without watermarks: no row that is there is late.
        empty = msgspec.structs.replace(
            commit, shards=shards, states={}, versions={}, packs={}, released={}, watermarks={}
        )
        filled = after(new, empty, self._run(new, empty, fill=0))
        moved = after(new, filled, self._run(new, filled, epoch=commit.epoch + 1, deltas=[deltas]))
        missing = [name for name in new.definition.recomputed if name not in deltas]
        if missing:
            moved = self.tick(new, moved, commit.epoch + 1, {}, missing).commit
        return msgspec.structs.replace(moved, watermarks=commit.watermarks)

    def carried(
        self, old: Blueprint, new: Blueprint, commit: Commit, shards: int, *, place: str | None = None
    ) -> Commit:
        """What a flow is whose state goes on in other shards, as it is.

        Args:
            old: the circuit that has it.
            new: the circuit; all of its groups are ``movable``.
            commit: what the flow is that has the state.
            shards: how many there are to be.
            place: the storage of the old flow; None for that of this one.

        Raises:
            ConfigError: the state of a view cannot be moved.
        """
        added_up = {move.target for move in moves_of(old, new) if move.arrival is Arrival.ADDED_UP}
        work = MoveState(
            self._uri,
            old.definition.encoded,
            new.definition.encoded,
            msgspec.json.encode(commit),
            shards,
            place or self._uri,
        )
        moved = decode_moved_state(self._executor.each(commit.shards, work))
        return self.arrived(new, commit, shards, moved, added_up)

    def arrived(
        self,
        new: Blueprint,
        commit: Commit,
        shards: int,
        moved: Sequence[MovedState],
        added_up: Collection[int] = (),
    ) -> Commit:
        """What a flow is whose state has come to its shards.

        Args:
            new: its circuit.
            commit: what the flow was.
            shards: how many there are.
            moved: what came.
            added_up: the nodes of whose state parts came.
        """
        packs = {name: pack for one in moved for name, pack in one.packs.items()}
        states = _added_up(moved, shards)
        parts = {number: states.pop(number) for number in added_up if number in states}
        queries = {number: states.pop(number) for number in list(states) if is_searched(new, number)}
        later = later_steps(new)
        if parts or queries or later:
            epoch, encoded = commit.epoch + 1, new.definition.encoded
            # What is read where state is made of what came.
            read = {*later.values(), *(new.spread.nodes[number].inputs[1] for number in queries)} & states.keys()
            there = {number: states[number] for number in read}
            finish = FinishState(self._uri, encoded, epoch, shards, parts, queries, there, packs)
            finished = decode_moved_state(self._executor.each(shards, finish))
            rows: dict[int, dict[int, list[RowsRef]]] = {}
            for number, target, ref in (one for found in finished for one in found.passed):
                rows.setdefault(number, {}).setdefault(target, []).append(ref)
            if rows:
                steps = LaterSteps(self._uri, encoded, epoch, rows)
                finished += decode_moved_state(self._executor.each(shards, steps))
            packs |= {name: pack for one in finished for name, pack in one.packs.items()}
            states |= _added_up(finished, shards)
        named = {new.spread.key(number): states.get(number, {}) for number in new.spread.origins}
        used = {name: packs[name] for name in _packs(named)}
        return msgspec.structs.replace(commit, shards=shards, states=named, packs=used, versions={}, released={})

    def difference(self, before: tuple[Blueprint, Commit], now: tuple[Blueprint, Commit], name: str) -> list[RowsRef]:
        """How the rows of a view differ between two states of the flow; equal ones of several shards may cancel."""
        (old, was), (new, commit) = before, now
        work = SubtractRows(
            self._uri,
            (old.definition.encoded, _part(old, was, name)),
            (new.definition.encoded, _part(new, commit, name)),
            name,
        )
        moved = self._executor.each(commit.shards, work)
        return [ref for shards in _of_moved(moved).values() for refs in shards.values() for ref in refs]

    # Inner workings

    def _recompute(self, blueprint: Blueprint, stepped: PendingCommit, name: str, epoch: int) -> None:
        """Run a view's query over the flow as it would be, and let in what differs from the view's rows."""
        definition, commit = blueprint.definition, stepped.commit
        view, encoded = entry_view(definition.views[name]), definition.encoded
        known = {one.casefold(): one for one in (*definition.sources, *definition.views)}
        read = [known[one] for one in sorted(reads(view)) if one in known and known[one] != name]
        works = {one: ReadRows(self._uri, encoded, _part(blueprint, commit, one), one) for one in read}
        frame = self._executor.query(view.query, works, commit.shards, settings=view.settings)
        split = SplitRows(self._uri, encoded, name, commit.shards, epoch)
        rows = _of_moved(self._executor.over(frame, split)).get(name, {})
        compare = CompareRows(self._uri, encoded, _part(blueprint, commit, name), name, rows)
        deltas = _of_moved(self._executor.each(commit.shards, compare))
        if deltas:
            stepped.add(blueprint, self._run(blueprint, commit, epoch=epoch, deltas=[deltas]))

    def _add_up(self, stepped: PendingCommit, epoch: int) -> None:
        """What a view is told of one tick is one change, however many jobs there were."""
        (outputs,) = stepped.ticks
        several = {
            shard: {name: refs for name, refs in views.items() if len(refs) > 1} for shard, views in outputs.items()
        }
        if not any(several.values()):
            return
        added = self._executor.each(stepped.commit.shards, AddRows(self._uri, epoch, several))
        for shard, views in several.items():
            for name in views:
                del outputs[shard][name]
        for data in added:
            for name, shard, ref in decode_moved(data):
                outputs[shard][name] = [ref]

    def _run(
        self,
        blueprint: Blueprint,
        commit: Commit,
        *,
        epoch: int | None = None,
        fill: int | None = None,
        deltas: Sequence[Deltas] = ({},),
    ) -> Sequence[ShardReport]:
        """Run all stages as one job, from the states of a commit; each shard of each stage has reported then.

        Without an epoch, and for ticks behind the first, it is the next one.
        """
        spread, definition = blueprint.spread, blueprint.definition.encoded
        # Files of what is not committed yet are of a later epoch than the commit's.
        begins = commit.epoch + 1 if epoch is None else epoch
        stages = []
        for stage in range(spread.depth):
            keys = blueprint.keys_of_stage[stage]
            states = {key: shards for key, shards in commit.states.items() if key in keys}
            stages.append(
                StageTask(
                    uri=self._uri,
                    definition=definition,
                    shards=commit.shards,
                    ticks=[TickTask(at, {} if stage else _by_shard(one)) for at, one in enumerate(deltas, begins)],
                    stage=stage,
                    fill=fill,
                    versions=commit.versions.get(stage, {}),
                    states=states,
                    packs={name: commit.packs[name] for name in _packs(states)},
                    released={key: shards for key, shards in commit.released.items() if key in keys},
                    watermarks=commit.watermarks,
                )
            )
        failpoint("partitioned.before_job")
        reports = self._executor.run(stages)
        failpoint("partitioned.after_job")
        failed = [report for report in reports if report.failure is not None]
        if failed:
            refused = [report for report in failed if report.failure is not None and report.failure.refused]
            first = min(refused or failed, key=lambda report: (report.stage, report.shard))
            assert first.failure is not None
            raise RefusedDelta(first.failure.error()) if refused else first.failure.error()
        told = sorted((report.stage, report.shard) for report in reports)
        assert told == [(stage, shard) for stage in range(spread.depth) for shard in range(commit.shards)], told
        self.reports = reports
        return reports


def after(blueprint: Blueprint, before: Commit, reports: Sequence[ShardReport]) -> Commit:
    """What a flow is after what the tasks of a job report."""
    states = {key: dict(shards) for key, shards in before.states.items() if key in blueprint.keys}
    packs = dict(before.packs)
    versions = {stage: dict(shards) for stage, shards in before.versions.items()}
    released = {key: dict(shards) for key, shards in before.released.items() if key in blueprint.keys}
    watermarks = dict(before.watermarks)
    for report in reports:
        packs |= report.packs
        versions.setdefault(report.stage, {})[report.shard] = report.version
        for key, refs in report.states.items():
            states.setdefault(key, {})[report.shard] = refs
        for key, counts in report.released.items():
            released.setdefault(key, {})[report.shard] = counts
        for name, mark in report.watermarks.items():  # the farthest that any shard has come
            known = [one for one in (watermarks.get(name), mark) if one is not None]
            watermarks[name] = max(known, default=None)
    used = {name: packs[name] for name in _packs(states)}
    return msgspec.structs.replace(
        before, states=states, packs=used, versions=versions, released=released, watermarks=watermarks
    )


def _by_shard(deltas: Deltas) -> dict[int, dict[str, list[RowsRef]]]:
    found: dict[int, dict[str, list[RowsRef]]] = {}
    for source, shards in deltas.items():
        for shard, refs in shards.items():
            found.setdefault(shard, {})[source] = refs
    return found


def part_of_commit(blueprint: Blueprint, commit: Commit, name: str) -> Commit:
    """A commit, as far as it is about the rows of one source or view."""
    node = blueprint.spread.store(name)
    assert node is not None
    key = blueprint.spread.key(node)
    states = {key: commit.states[key]} if key in commit.states else {}
    packs = {pack: commit.packs[pack] for pack in _packs(states)}
    return msgspec.structs.replace(
        commit, states=states, packs=packs, versions={}, released={}, outputs={}, earlier=[], tokens={}, digests={}
    )


def _part(blueprint: Blueprint, commit: Commit, name: str) -> bytes:
    return msgspec.json.encode(part_of_commit(blueprint, commit, name))


def _of_moved(found: Iterable[bytes]) -> Deltas:
    deltas: Deltas = {}
    for data in found:
        for name, shard, ref in decode_moved(data):
            deltas.setdefault(name, {}).setdefault(shard, []).append(ref)
    return deltas


def _added_up(moved: Iterable[MovedState], shards: int) -> dict[int, dict[int, StateRefs]]:
    """For each node and shard, all runs of its states that came."""
    found: dict[int, dict[int, StateRefs]] = {}
    for number, shard, refs in (state for one in moved for state in one.states):
        node = found.setdefault(number, {})
        for target in range(shards) if shard == ALL else (shard,):
            states = node.setdefault(target, [[] for _ in refs])
            for own, new in zip(states, refs, strict=True):
                own.extend(new)
    return found


def _packs(states: Mapping[str, Mapping[int, list[list[Any]]]]) -> set[str]:
    return {ref.pack for shards in states.values() for one in shards.values() for part in one for ref in part}
