"""Checkpoints of flows in shards: what is saved elsewhere, and what a flow is that goes on from it.

A checkpoint holds the files of the state as they are, the commit that says where in them everything is, and the
definition. In as many shards it goes on as it was; in any other number, and in one process, the rows of the sources
come in anew and fill the views, or if they are not all kept, the state of the operators is moved.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from weirflow.errors import StorageError
from weirflow.ivm.compiler.marks import marks_of
from weirflow.ivm.compiler.reads import in_order, missing
from weirflow.ivm.durability.manifest import (
    MOVED,
    SHARDED,
    HeldState,
    Manifest,
    RunRef,
    ShardsState,
    StoredRows,
)
from weirflow.ivm.durability.packs import FOLDER as PACKS
from weirflow.ivm.flow.evolution.plan import EvolutionPlan, lets_go, plan_from_rows, restore
from weirflow.ivm.flow.folder.entries import (
    declared_sources,
    declared_views,
    source_entry,
    source_state,
    view_entry,
    view_state,
    with_plans,
)
from weirflow.ivm.sharded.commits import Commit
from weirflow.ivm.sharded.definition import Blueprint, FillGroup, decode_definition
from weirflow.ivm.sharded.plan.held import Share, are_everywhere
from weirflow.ivm.sharded.plan.recomputing import chosen
from weirflow.ivm.sharded.plan.routes import FIRST
from weirflow.ivm.sharded.worker.distribution import split
from weirflow.ivm.sharded.worker.files import flow_files
from weirflow.ivm.sharded.worker.moving import ShardedRuns
from weirflow.ivm.sharded.worker.packs import CopiedPack, CopyPacks
from weirflow.sql.clock.relation import CLOCK
from weirflow.types import SourceSpread

if TYPE_CHECKING:
    from weirflow.checkpoint import CheckpointStorage
    from weirflow.ivm.compiler.view import View
    from weirflow.ivm.durability.checkpoints import Checkpoints
    from weirflow.ivm.flow.source import Source
    from weirflow.ivm.sharded.executor import StageExecutor
    from weirflow.ivm.sharded.jobs import Deltas, FlowJobs

_UNSEEN = "choose a folder or object store that this process and all executors reach"

Declared = tuple[Mapping[str, "Source"], Mapping[str, "View"]]
"""Sources and views."""


@dataclass(frozen=True)
class RestoredShards:
    """What a flow is to be that goes on from a checkpoint; nothing of it is published.

    Attributes:
        waiting: views that read what is not there.
        plan: what became of sources and views.
    """

    blueprint: Blueprint
    commit: Commit
    waiting: Mapping[str, View]
    plan: EvolutionPlan


def absolute(uri: str | Path) -> str:
    """The place as all processes know it."""
    return str(uri) if "://" in str(uri) else str(Path(uri).expanduser().absolute())


def save(
    flow: str,
    declared: Declared,
    where: tuple[str, Blueprint, Commit],
    checkpoints: tuple[Checkpoints, CheckpointStorage, str],
    executor: StageExecutor,
    *,
    full: bool,
) -> tuple[Manifest, int]:
    """Copy what the checkpoint's place lacks, and publish the checkpoint; returns it, and how many bytes were copied.

    Args:
        flow: the flow's name.
        declared: its sources and views.
        where: the flow's storage, its circuit and its commit, which is kept meanwhile.
        checkpoints: in the place, the place and its URI.
        executor: what copies.
        full: whether to copy also what is there.

    Raises:
        StorageError: a file cannot be read or written, or executors and this process do not see the same place.
    """
    (uri, blueprint, commit), (known, storage, target) = where, checkpoints
    there = {info.name: info.size for info in storage.list(PACKS)}
    names = {
        name: f"{PACKS}{commit.epoch:020d}-{uuid.uuid4().hex}.pack" if full and name in there else name
        for name in commit.packs
    }
    packs = {names[name]: pack for name, pack in commit.packs.items()}
    wanted = [CopiedPack(name, names[name], pack.sha256) for name, pack in commit.packs.items()]
    copied = [one for one in wanted if there.get(one.new) != packs[one.new].size]
    if copied:
        executor.each(commit.shards, CopyPacks(uri, target, tuple(copied), commit.shards))
        _require_seen(storage, [one.new for one in copied])
    saved = msgspec.structs.replace(
        _moved(commit, names), packs=packs, versions={}, outputs={}, earlier=[], tokens={}, positions={}, digests={}
    )
    sources, views = declared
    manifest = Manifest(
        flow=flow,
        identity="",
        epoch=commit.epoch,
        record=known.next_number(commit.epoch),
        fence=0,
        sources={
            name: source_state(one, commit.watermarks.get(name), commit.digests.get(name, ()))
            for name, one in sources.items()
        },
        views={name: view_state(view, None) for name, view in views.items()},
        tokens=dict(commit.tokens),
        states={},
        packs=packs,
        positions=dict(commit.positions),
        forced=blueprint.definition.forced,
        format=MOVED if blueprint.definition.is_moved else SHARDED,
        shards=ShardsState(
            blueprint.definition.encoded,
            msgspec.json.encode(saved),
            _stored_rows(blueprint, saved),
            {} if blueprint.definition.keeps_all_rows else _held_states(blueprint, saved),
        ),
    )
    known.publish(manifest)
    return manifest, sum(packs[one.new].size for one in copied)


class Restoring:
    """Makes what a flow in shards is to be that goes on from a checkpoint.

    Args:
        uri: the flow's storage.
        blueprint: the flow's circuit, which has nothing in it that is not wanted.
        commit: the flow's, before its first tick.
        jobs: the flow's.
        executor: what runs them.
    """

    def __init__(self, uri: str, blueprint: Blueprint, commit: Commit, jobs: FlowJobs, executor: StageExecutor) -> None:
        self._uri = uri
        self._empty = blueprint.definition.empty
        self._own = commit
        self._jobs = jobs
        self._executor = executor

    def restored(
        self,
        manifest: Manifest,
        checkpoints: tuple[Checkpoints, str],
        wanted: Declared | None,
        spread: Mapping[str, SourceSpread],
    ) -> RestoredShards:
        """What the flow is to be.

        Args:
            manifest: of the checkpoint.
            checkpoints: those of its place, and the place.
            wanted: sources and views; None takes those of the checkpoint.
            spread: how the rows of wanted sources are spread, where that is not by their use.

        Raises:
            StorageError: a file is missing or damaged.
            ConfigError: a source has other columns than its rows, or does not keep all that is needed.
        """
        known, place = checkpoints
        old = (declared_sources(manifest), declared_views(manifest))
        sources, views = old if wanted is None else (wanted[0], with_plans(wanted[1], old[1]))
        if manifest.shards is not msgspec.UNSET:
            definition = decode_definition(manifest.shards.definition)
            commit = _remembered(msgspec.json.decode(manifest.shards.commit, type=Commit), manifest)
            before = Blueprint(definition)
            same = wanted is None or (sources, views) == old
            is_spread_alike = definition.policy == self._empty.policy and (
                wanted is None or dict(spread) == _chosen_spread(definition.spread)
            )
            waiting = {name: view for name, view in views.items() if name not in definition.views}
            if same and is_spread_alike and commit.shards == self._own.shards:
                self._copy(commit, place)
                plan = EvolutionPlan(kept=tuple(views))
                return RestoredShards(before, self._as_own(commit, before), waiting, plan)
            if same and not definition.keeps_all_rows:
                otherwise = definition.spread if wanted is None else spread
                spread_so = {name: otherwise.get(name, SourceSpread.BY_USE) for name in sources}
                blueprint = Blueprint(definition.moved(spread_so, self._empty.policy))
                carried = self._jobs.carried(before, blueprint, commit, self._own.shards, place=place)
                plan = EvolutionPlan(kept=tuple(views))
                return RestoredShards(blueprint, self._as_own(carried, blueprint), waiting, plan)
            plan = plan_from_rows(old, (sources, views))
            forced = [name for name in definition.recomputed if name in plan.kept]
            how = definition.spread if wanted is None else spread
            blueprint, waiting = self._blueprint(sources, views, how, forced, later=definition.forced)
            kept = [name for name in definition.inputs if name not in definition.recomputed or name in plan.kept]
            deltas = self._jobs.moved(before, blueprint, commit, self._own.shards, names=kept, place=place)
        else:
            moves = (sources, views) == old and any(lets_go(one, views) for one in sources.values())
            plan = EvolutionPlan(kept=tuple(views)) if moves else plan_from_rows(old, (sources, views))
            forced = [name for name, one in manifest.views.items() if one.forced and name in plan.kept]
            how = spread if CLOCK not in sources else {**spread, CLOCK: SourceSpread.EVERYWHERE}
            blueprint, waiting = self._blueprint(sources, views, how, forced, later=manifest.forced, movable=moves)
            if moves:
                arrived = self._state_of_process(manifest, known, blueprint)
                return RestoredShards(blueprint, self._as_own(arrived, blueprint), waiting, plan)
            commit, deltas = self._rows_of_process(manifest, known, blueprint)
        filled = self._jobs.filled(blueprint, commit, self._own.shards, deltas)
        return RestoredShards(blueprint, self._as_own(filled, blueprint), waiting, plan)

    def _blueprint(
        self,
        sources: Mapping[str, Source],
        views: Mapping[str, View],
        spread: Mapping[str, SourceSpread],
        forced: Sequence[str],
        *,
        later: bool,
        movable: bool = False,
    ) -> tuple[Blueprint, dict[str, View]]:
        """The circuit of sources and views, and the views that wait for what they read."""
        ready: list[str] = []
        for name in in_order(views):
            if not missing(views[name], [*sources, *ready]):
                ready.append(name)
        group = FillGroup(
            tuple(map(source_entry, sources.values())),
            tuple(view_entry(name, views[name]) for name in ready),
            spread={name: how for name, how in _chosen_spread(spread).items() if name in sources},
            movable=movable or msgspec.UNSET,
        )
        empty = msgspec.structs.replace(self._empty, forced=later)
        blueprint = Blueprint(empty.with_group(chosen(empty, group, self._executor, forced)))
        return blueprint, {name: view for name, view in views.items() if name not in ready}

    def _copy(self, commit: Commit, place: str) -> None:
        """Bring the files of the state into the flow's storage."""
        packs = tuple(CopiedPack(name, name, pack.sha256) for name, pack in commit.packs.items())
        if packs:
            self._executor.each(commit.shards, CopyPacks(place, self._uri, packs, commit.shards))
            _require_seen(flow_files(self._uri).storage, [one.new for one in packs])

    def _rows_of_process(self, manifest: Manifest, known: Checkpoints, blueprint: Blueprint) -> tuple[Commit, Deltas]:
        """What a flow in one process remembers, and the rows of its sources, each at its shard."""
        state = restore(manifest, known.load(manifest), None, self._executor.engine).state
        definition, shards, files = blueprint.definition, self._own.shards, flow_files(self._uri)
        deltas: Deltas = {}
        for name in definition.sources:
            relation = state.program.relations.get(name)
            if relation is None or relation.store is None:
                continue
            everywhere = definition.is_everywhere(name)
            for target, rows in split(state.rows(name), definition, name, 1 if everywhere else shards).items():
                ref = files.write_rows(rows, manifest.epoch + 1, 0)
                for one in range(shards) if everywhere else [target]:
                    deltas.setdefault(name, {}).setdefault(one, []).append(ref)
        return _remembered(msgspec.structs.replace(self._own, epoch=manifest.epoch), manifest), deltas

    def _state_of_process(self, manifest: Manifest, known: Checkpoints, blueprint: Blueprint) -> Commit:
        """What the flow is that has the state which it had in one process."""
        state = restore(manifest, known.load(manifest), None, self._executor.engine).state
        moving = ShardedRuns(blueprint, self._own.shards, flow_files(self._uri), manifest.epoch + 1)
        moving.add_all(state.program)
        commit = _remembered(msgspec.structs.replace(self._own, epoch=manifest.epoch), manifest)
        return self._jobs.arrived(blueprint, commit, self._own.shards, [moving.written()])

    def _as_own(self, commit: Commit, blueprint: Blueprint) -> Commit:
        """The commit as one of this flow's."""
        sources = blueprint.definition.sources
        return msgspec.structs.replace(
            commit,
            identity=self._own.identity,
            watermarks={name: mark for name, mark in commit.watermarks.items() if name in sources},
            digests={name: seen for name, seen in commit.digests.items() if name in sources},
        )


def _remembered(commit: Commit, manifest: Manifest) -> Commit:
    """The commit, with what a checkpoint has of tokens, streams and sources."""
    return msgspec.structs.replace(
        commit,
        tokens=dict(manifest.tokens),
        positions=dict(manifest.positions),
        watermarks={name: one.watermark for name, one in manifest.sources.items()},
        digests={name: list(one.digests) for name, one in manifest.sources.items() if one.digests},
    )


def _chosen_spread(spread: Mapping[str, SourceSpread]) -> dict[str, SourceSpread]:
    return {name: how for name, how in spread.items() if how is not SourceSpread.BY_USE}


def _moved(commit: Commit, names: Mapping[str, str]) -> Commit:
    """The commit, its files under other names."""
    states = {
        key: {
            shard: [[msgspec.structs.replace(ref, pack=names[ref.pack]) for ref in part] for part in parts]
            for shard, parts in shards.items()
        }
        for key, shards in commit.states.items()
    }
    return msgspec.structs.replace(commit, states=states)


def _stored_rows(blueprint: Blueprint, commit: Commit) -> dict[str, StoredRows]:
    """Where the rows of sources and views are that keep theirs; those that are everywhere are there once."""
    spread, program = blueprint.spread, blueprint.program
    found = {}
    for name, relation in program.relations.items():
        node = spread.store(name)
        if node is None or relation.store is None:
            continue
        shards: dict[int, list[list[RunRef]]] = commit.states.get(spread.key(node), {})
        runs = [ref for shard, parts in shards.items() if spread.reports(node, shard) for ref in parts[0]]
        found[name] = StoredRows(list(relation.store.positions), program.store(name).key_count, runs)
    return found


def _held_states(blueprint: Blueprint, commit: Commit) -> dict[str, HeldState]:
    """The state of operators, by their marks; what is everywhere is there once."""
    spread, marks = blueprint.spread, marks_of(blueprint.program)
    found: dict[str, HeldState] = {}
    for number, origin in spread.origins.items():
        mark, are_parts = marks[origin.number], origin.share is Share.PARTS
        if origin.share not in (Share.OWN, Share.PARTS):
            continue
        if mark in found and are_parts:
            continue
        shards = commit.states.get(spread.key(number), {})
        states = [
            [ref for shard, parts in shards.items() if shard == FIRST or not again for ref in parts[at]]
            for at, again in enumerate(are_everywhere(spread, number))
        ]
        found[mark] = HeldState(states, are_parts)
    return found


def _require_seen(storage: CheckpointStorage, names: Sequence[str]) -> None:
    """``StorageError`` if what executors have written is not what this process sees."""
    there = {info.name for info in storage.list(PACKS)}
    lost = [name for name in names if name not in there]
    if lost:
        raise StorageError(
            f"Executors have written {len(lost)} files to {storage.uri}, and this process does not see them.",
            uri=storage.uri,
            hint=_UNSEEN,
        )
