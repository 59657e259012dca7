"""Restoring a checkpoint into a flow that has changed: what is kept, what is built anew, what differs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weirflow.errors import ConfigError
from weirflow.ivm.compiler.reads import readers_of
from weirflow.ivm.flow.folder.entries import (
    declared_orders,
    declared_positions,
    declared_sources,
    declared_views,
)
from weirflow.ivm.flow.state import FlowState
from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.rows import consolidate
from weirflow.sql.types import type_name

if TYPE_CHECKING:
    from weirflow.ivm.compiler.view import RecomputeEngine, View
    from weirflow.ivm.durability.manifest import Manifest
    from weirflow.ivm.flow.source import Source
    from weirflow.ivm.kernel.runs.run import Run


@dataclass(frozen=True)
class EvolutionPlan:
    """What becomes of sources and views; nothing is done yet.

    Attributes:
        kept: views whose state goes on as it is.
        rebuilt: views that compute something else now; they are filled from the sources' rows.
        added: new sources and views.
        dropped: sources and views that are gone, with their state.
    """

    kept: tuple[str, ...] = ()
    rebuilt: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"{what:8} {', '.join(names)}"
            for what, names in (
                ("keep", self.kept),
                ("rebuild", self.rebuilt),
                ("add", self.added),
                ("drop", self.dropped),
            )
            if names
        ]
        return "\n".join(lines) or "nothing to do"


@dataclass(frozen=True)
class RestoredState:
    """A restored state, and how its rebuilt views differ from what the checkpoint held.

    Attributes:
        differences: for each rebuilt view with the same columns as before, what its readers have to apply.
        reshaped: rebuilt views whose columns are others now.
    """

    state: FlowState
    plan: EvolutionPlan
    differences: Mapping[str, Batch]
    reshaped: tuple[str, ...]


def plan_evolution(
    old: tuple[Mapping[str, Source], Mapping[str, View]],
    new: tuple[Mapping[str, Source], Mapping[str, View]],
    kept_state: set[str],
    engine: RecomputeEngine | None,
    *,
    orders: Mapping[str, tuple[str, ...]],
    stale: Collection[str] = (),
) -> EvolutionPlan:
    """What has to be done to get from the old sources and views to the new ones.

    Args:
        old: those of a checkpoint or flow.
        new: those that are wanted.
        kept_state: the fingerprints of the operators whose state is there.
        engine: what runs views that are not incremental.
        orders: by which columns old sources keep their rows.
        stale: views that are built anew even if they are unchanged, from the sources' rows.

    Raises:
        ConfigError: a source has other columns than its rows.
    """
    (old_sources, old_views), (sources, views) = old, new
    for name in sources.keys() & old_sources.keys():
        _require_same_source(old_sources[name], sources[name])
    wanted = declared(sources, views, engine, orders)
    of_sources = {one for name in sources for one in wanted.program.needs(name)}
    distrusted = {one for name in stale for one in wanted.program.needs(name)} - of_sources
    kept_state = kept_state - distrusted
    common = [name for name in views if name in old_views]
    kept = [
        name
        for name in common
        if _is_same(views[name], old_views[name])
        and (name in wanted.waiting or wanted.program.needs(name) <= kept_state)
    ]
    return EvolutionPlan(
        kept=tuple(kept),
        rebuilt=tuple(name for name in common if name not in kept),
        added=tuple(name for name in (*sources, *views) if name not in old_sources and name not in old_views),
        dropped=tuple(name for name in (*old_sources, *old_views) if name not in sources and name not in views),
    )


def plan_from_rows(
    old: tuple[Mapping[str, Source], Mapping[str, View]], new: tuple[Mapping[str, Source], Mapping[str, View]]
) -> EvolutionPlan:
    """As ``plan_evolution``, where views are filled from the rows of the sources: what is unchanged counts as kept.

    Raises:
        ConfigError: a source has other columns than its rows, or views are to be filled from one without all its rows.
    """
    (old_sources, old_views), (sources, views) = old, new
    for name in sources.keys() & old_sources.keys():
        _require_same_source(old_sources[name], sources[name])
        require_all_rows(old_sources[name], views)
    common = [name for name in views if name in old_views]
    kept = [name for name in common if views[name] == old_views[name] or views[name].is_declared_as(old_views[name])]
    return EvolutionPlan(
        kept=tuple(kept),
        rebuilt=tuple(name for name in common if name not in kept),
        added=tuple(name for name in (*sources, *views) if name not in old_sources and name not in old_views),
        dropped=tuple(name for name in (*old_sources, *old_views) if name not in sources and name not in views),
    )


def lets_go(source: Source, views: Mapping[str, View]) -> bool:
    """Whether a source has let go of rows that views were made of."""
    return not source.keeps and bool(readers_of(source.name, views))


def require_all_rows(source: Source, views: Mapping[str, View]) -> None:
    """Refuse to fill views anew from a source that has let go of rows they were made of."""
    if lets_go(source, views):
        raise ConfigError(
            f"All views must be filled again, but {source.name!r} does not keep rows that are too old to change.",
            hint="register that source with Lateness(..., keep=True); or declare the same as the checkpoint or "
            "nothing, restore, and change views afterwards",
        )


def not_moved(view: str) -> ConfigError:
    """For a view whose state is nowhere in a checkpoint of another kind, or of other shards."""
    return ConfigError(
        f"The view {view!r} would be filled anew, and not all rows that it was made of are kept.",
        hint="restore into as many shards as the checkpoint has, or keep the rows of all sources",
    )


def declared(
    sources: Mapping[str, Source],
    views: Mapping[str, View],
    engine: RecomputeEngine | None,
    orders: Mapping[str, tuple[str, ...]],
) -> FlowState:
    """A state of these sources and views, before any row; sources keep rows in these orders, whatever views read."""
    state = FlowState(engine)
    state.orders, state.rearranges = {name: order for name, order in orders.items() if name in sources}, False
    for source in sources.values():
        state.add_source(source)
    for name, view in views.items():
        state.add_view(name, view)
    return state


def restore(
    manifest: Manifest,
    states: Mapping[str, Sequence[Sequence[Run]]],
    wanted: tuple[Mapping[str, Source], Mapping[str, View]] | None,
    engine: RecomputeEngine | None,
    stale: Collection[str] = (),
) -> RestoredState:
    """The state of a checkpoint, with the sources and views that are wanted; None for those it has.

    Views that are ``stale`` are built anew from the sources' rows, whatever the checkpoint holds.
    """
    old, orders = (declared_sources(manifest), declared_views(manifest)), declared_orders(manifest)
    sources, views = wanted or old
    plan = plan_evolution(old, (sources, views), set(states), engine, orders=orders, stale=stale)
    state = FlowState(engine)
    state.orders, state.rearranges = {name: order for name, order in orders.items() if name in sources}, False
    for name, source in sources.items():
        if name in old[0]:
            state.add_source(source)
    state.program.adopt(states)
    for name, source in sources.items():
        if name not in old[0]:
            state.add_source(source)
    state.fill()
    for name in plan.kept:
        state.add_view(name, views[name])
    state.program.adopt(states)
    state.rearranges = True
    for name, view in views.items():
        if name not in plan.kept:
            state.add_view(name, view)
    state.fill()
    state.forced = manifest.forced
    state.epoch = manifest.epoch
    state.tokens.update(manifest.tokens)
    state.positions.update(declared_positions(manifest))
    for name, one in manifest.sources.items():
        if name in state.inputs:
            state.inputs[name].watermark = one.watermark
            state.inputs[name].digests.extend(one.digests)
    differences, reshaped = _differences(plan, manifest, states, state)
    return RestoredState(state, plan, differences, reshaped)


def _differences(
    plan: EvolutionPlan, manifest: Manifest, states: Mapping[str, Sequence[Sequence[Run]]], state: FlowState
) -> tuple[dict[str, Batch], tuple[str, ...]]:
    differences, reshaped = {}, []
    for name in plan.rebuilt:
        store = manifest.views[name].store
        relation = state.program.relations.get(name)
        if store is None or relation is None or relation.store is None:
            continue
        (runs,) = states[store]
        if runs and tuple(column.type for column in runs[0].columns) != relation.types:
            reshaped.append(name)
            continue
        old = [batch.negate() for batch in Arrangement(relation.types, 0, runs=runs).rows()]
        change = consolidate(Batch.concat([state.rows(name), *old]))
        if len(change):
            differences[name] = change
    return differences, tuple(reshaped)


def _is_same(new: View, old: View) -> bool:
    """Whether a view is as it was, if the state that it needs is there: stored rows are those of one plan alone."""
    return new == old or (new.stored and new.is_declared_as(old))


def _require_same_source(old: Source, new: Source) -> None:
    if old.schema.equals(new.schema) and old.key == new.key:
        return
    before = {field.name: type_name(field.type) for field in old.schema}
    after = {field.name: type_name(field.type) for field in new.schema}
    changes = [
        f"{name} was {kind}, is {after.get(name, 'gone')}" for name, kind in before.items() if after.get(name) != kind
    ]
    changes += [f"{name} is new" for name in after if name not in before]
    if not changes:
        changes = [f"its key was {', '.join(old.key) or 'none'}, is {', '.join(new.key) or 'none'}"]
    raise ConfigError(
        f"The source {new.name!r} no longer fits its stored rows: {'; '.join(changes)}.",
        hint="declare it as it was, register the new shape under another name, or drop the source and load it again",
    )
