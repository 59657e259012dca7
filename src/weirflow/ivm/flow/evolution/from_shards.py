"""A checkpoint of a flow in shards as the state of one in this process.

The rows of its sources come in and fill the views. Where sources have let go of rows, the state of the operators goes
on as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from weirflow.ivm.compiler.marks import marks_of
from weirflow.ivm.compiler.reads import in_order
from weirflow.ivm.flow.evolution.plan import EvolutionPlan, RestoredState, not_moved, plan_from_rows
from weirflow.ivm.flow.folder.entries import declared_positions, declared_sources, declared_views
from weirflow.ivm.flow.source import Source, SourceDelta
from weirflow.ivm.flow.state import FlowState
from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.operators.aggregate.two_steps import of_parts
from weirflow.ivm.operators.nearest.operator import Nearest
from weirflow.ivm.operators.nearest.refilled import search
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    from weirflow.ivm.compiler.view import RecomputeEngine, View
    from weirflow.ivm.durability.checkpoints import Checkpoints
    from weirflow.ivm.durability.manifest import Manifest
    from weirflow.ivm.kernel.runs.run import Run


def restore_from_shards(
    manifest: Manifest,
    checkpoints: Checkpoints,
    wanted: tuple[Mapping[str, Source], Mapping[str, View]] | None,
    engine: RecomputeEngine | None,
) -> RestoredState:
    """As ``restore``, of a checkpoint of a flow in shards; fails like it."""
    old = (declared_sources(manifest), declared_views(manifest))
    sources, views = wanted or old
    assert manifest.shards is not msgspec.UNSET
    if manifest.shards.held and (sources, views) == old:
        state = _declared(sources, views, engine, rearranges=False)
        state.program.adopt(_states(manifest, checkpoints, state))
        state.rearranges = True
        _remember(manifest, state)
        return RestoredState(state, EvolutionPlan(kept=tuple(views)), {}, ())
    plan = plan_from_rows(old, (sources, views))
    stored = checkpoints.load_rows(manifest)
    state = _declared(sources, views, engine)
    state.fill()
    changes = {}
    for name, source in sources.items():
        if name in old[0] and name in stored:
            rows = _rows(manifest, name, stored[name], Batch.empty(source.schema.types))
            changes[name] = SourceDelta(len(rows), rows, Batch.empty(rows.types), None, None)
    state.step(changes)
    state.commit([])
    state.maintain(sum(one.rows_in for one in changes.values()))
    _remember(manifest, state)
    differences, reshaped = _differences(plan, manifest, stored, state)
    return RestoredState(state, plan, differences, reshaped)


def _declared(
    sources: Mapping[str, Source],
    views: Mapping[str, View],
    engine: RecomputeEngine | None,
    *,
    rearranges: bool = True,
) -> FlowState:
    """A state of these sources and views, before any row; nothing is filled."""
    state = FlowState(engine)
    state.rearranges = rearranges
    for source in sources.values():
        state.add_source(source)
    for name in in_order(views):
        state.add_view(name, views[name])
    return state


def _states(manifest: Manifest, checkpoints: Checkpoints, state: FlowState) -> dict[str, Sequence[Sequence[Run]]]:
    """The state of each operator, by its fingerprint.

    Raises:
        ConfigError: a view has state that cannot be moved.
    """
    assert manifest.shards is not msgspec.UNSET
    held = checkpoints.load_held(manifest)
    found: dict[str, Sequence[Sequence[Run]]] = {}
    program = state.program
    for mark, node in zip(marks_of(program), program.circuit.nodes, strict=True):
        if not node.operator.states:
            continue
        if mark not in held:
            name = next(name for name in program.relations if node.fingerprint in program.needs(name))
            raise not_moved(name)
        operator = node.operator
        runs: Sequence[Sequence[Run]] = held[mark]
        if isinstance(operator, Nearest):
            documents = program.circuit.nodes[node.inputs[1]].operator
            search(operator, documents, runs[0])
            runs = [state.runs for state in operator.states]
        elif manifest.shards.held[mark].are_parts:
            runs = of_parts(operator, runs)
        else:
            operator.adopt(runs)  # for those behind it that are to be made of it
        found[node.fingerprint] = runs
    return found


def _remember(manifest: Manifest, state: FlowState) -> None:
    """What a flow knows besides rows."""
    state.forced = manifest.forced
    state.epoch = manifest.epoch
    state.tokens.update(manifest.tokens)
    state.positions.update(declared_positions(manifest))
    for name, one in manifest.sources.items():
        if name in state.inputs:
            state.inputs[name].watermark = one.watermark
            state.inputs[name].digests.extend(one.digests)


def _differences(
    plan: EvolutionPlan, manifest: Manifest, stored: Mapping[str, list[Run]], state: FlowState
) -> tuple[dict[str, Batch], tuple[str, ...]]:
    """How views that compute something else differ from what they were, and those whose columns are others."""
    differences, reshaped = {}, []
    for name in plan.rebuilt:
        relation = state.program.relations.get(name)
        if name not in stored or relation is None or relation.store is None:
            continue
        before = _rows(manifest, name, stored[name], Batch.empty(relation.types))
        if before.types != relation.types:
            reshaped.append(name)
            continue
        change = consolidate(Batch.concat([state.rows(name), before.negate()]))
        if len(change):
            differences[name] = change
    return differences, tuple(reshaped)


def _rows(manifest: Manifest, name: str, runs: list[Run], empty: Batch) -> Batch:
    """The rows of a source or view, columns in its order; those given if there are none."""
    assert manifest.shards is not msgspec.UNSET
    where = manifest.shards.rows[name]
    if not runs:
        return empty
    types = tuple(column.type for column in runs[0].columns)
    arranged = Arrangement(types, where.keys, runs=runs)
    return Batch.concat([batch.select(where.positions) for batch in arranged.rows()] or [empty])
