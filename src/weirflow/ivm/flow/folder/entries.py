"""A flow's state to and from checkpoints and logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from weirflow.checkpoint.sealed import FORMAT
from weirflow.ivm.compiler.view import Mode, View
from weirflow.ivm.durability.manifest import ORDERED, PLANNED, Manifest, SourceState, ViewState
from weirflow.ivm.durability.records import (
    DefinePlannedView,
    DefineSource,
    DefineView,
    ReplacePlannedView,
    ReplaceView,
    SourceChange,
    Tick,
    decode_rows,
    decode_schema,
    encode_rows,
    encode_schema,
)
from weirflow.ivm.flow.position import Position
from weirflow.ivm.flow.source import Lateness, Source, SourceDelta
from weirflow.ivm.zset.batch import Batch
from weirflow.sql.settings import USUAL, SqlSettings

if TYPE_CHECKING:
    from weirflow.ivm.flow.state import FlowState


def manifest_of(state: FlowState, *, flow: str, identity: str, record: int, fence: int) -> Manifest:
    """The state's manifest, still without the places of its runs."""
    stores = {
        name: state.program.circuit.nodes[relation.store.node].fingerprint
        for name, relation in state.program.relations.items()
        if relation.store is not None
    }
    views = state.declared
    return Manifest(
        flow=flow,
        identity=identity,
        epoch=state.epoch,
        record=record,
        fence=fence,
        sources={
            name: source_state(one.source, one.watermark, one.digests, state.orders.get(name))
            for name, one in state.inputs.items()
        },
        views={name: view_state(view, stores.get(name)) for name, view in views.items()},
        tokens=dict(state.tokens),
        positions={name: (one.origin, one.at, epoch) for name, (one, epoch) in state.positions.items()},
        states={},
        packs={},
        forced=state.forced,
        format=_format(state),
    )


def source_state(
    source: Source, watermark: int | None, digests: Iterable[bytes], order: Sequence[str] | None = None
) -> SourceState:
    """A source in a checkpoint."""
    return SourceState(
        schema=encode_schema(source.schema),
        key=list(source.key),
        dedup=source.dedup,
        lateness=_lateness(source),
        watermark=watermark,
        digests=list(digests),
        keep=source.keeps,
        order=UNSET if order is None else list(order),
    )


def view_state(view: View, store: str | None) -> ViewState:
    """A view in a checkpoint."""
    return ViewState(
        view.sql,
        view.mode,
        view.stored,
        store,
        view.forced,
        UNSET if view.plan is None else view.plan,
        UNSET if view.settings is None or _is_plain(view) else view.settings,
    )


def _format(state: FlowState) -> int:
    """The format of a state's manifest: the oldest whose readers understand all of it."""
    if state.orders:
        return ORDERED
    return FORMAT if all(_is_plain(view) for view in state.declared.values()) else PLANNED


def declared_sources(manifest: Manifest) -> dict[str, Source]:
    """The sources as a checkpoint has them."""
    return {
        name: Source(
            name,
            decode_schema(one.schema),
            tuple(one.key),
            one.dedup,
            Lateness(*one.lateness, keep=one.keep) if one.lateness else None,
        )
        for name, one in manifest.sources.items()
    }


def declared_orders(manifest: Manifest) -> dict[str, tuple[str, ...]]:
    """By which columns the sources of a checkpoint keep their rows, those of which views probe them there."""
    return {name: tuple(one.order) for name, one in manifest.sources.items() if one.order is not UNSET}


def declared_views(manifest: Manifest) -> dict[str, View]:
    """The views as a checkpoint has them."""
    return {
        name: View(
            one.sql,
            Mode(one.mode),
            stored=one.stored,
            forced=one.forced,
            plan=None if one.plan is UNSET else one.plan,
            settings=_settings(one.plan, one.settings),
        )
        for name, one in manifest.views.items()
    }


def with_plans(views: Mapping[str, View], known: Mapping[str, View]) -> dict[str, View]:
    """The views, those without a plan with that of the known one that is declared alike, with the same settings."""

    def planned(name: str, view: View) -> View:
        alike = view.plan is None and name in known and known[name].is_declared_as(view)
        if not alike or known[name].settings not in (None, view.settings):
            return view
        return replace(view, plan=known[name].plan, settings=known[name].settings)

    return {name: planned(name, view) for name, view in views.items()}


def source_entry(source: Source) -> DefineSource:
    """The log's entry for a new source."""
    schema = encode_schema(source.schema)
    return DefineSource(source.name, schema, list(source.key), source.dedup, _lateness(source), source.keeps)


def entry_source(entry: DefineSource) -> Source:
    """The source of a log's entry."""
    lateness = Lateness(*entry.lateness, keep=entry.keep) if entry.lateness else None
    return Source(entry.name, decode_schema(entry.schema), tuple(entry.key), entry.dedup, lateness)


def view_entry(name: str, view: View) -> DefineView:
    """The log's entry for a new view."""
    if _is_plain(view):
        return DefineView(name, view.sql, view.mode, view.stored)
    return DefinePlannedView(name, view.sql, view.mode, view.stored, view.plan, view.settings)


def replace_entry(epoch: int, name: str, view: View, others: Mapping[str, View]) -> ReplaceView:
    """The log's entry for a view that was rebuilt, with others that were read anew."""
    if _is_plain(view) and not others:
        return ReplaceView(epoch, name, view.sql, view.mode, view.stored)
    plans = {one: other.plan for one, other in others.items()}
    settings = {one: other.settings for one, other in others.items()}
    return ReplacePlannedView(epoch, name, view.sql, view.mode, view.stored, view.plan, plans, view.settings, settings)


def entry_view(entry: DefineView | ReplaceView) -> View:
    """The view of a log's entry."""
    plan: str | None = None
    settings: SqlSettings | None = USUAL
    if isinstance(entry, DefinePlannedView | ReplacePlannedView):
        plan, settings = entry.plan, entry.settings
    return View(entry.sql, Mode(entry.mode), stored=entry.stored, plan=plan, settings=settings)


def entry_others(entry: ReplaceView, views: Mapping[str, View]) -> dict[str, View]:
    """Those of these views that were read anew, as the log's entry has it."""
    if not isinstance(entry, ReplacePlannedView):
        return {}
    settings = entry.settings_of_others
    return {
        name: replace(views[name], plan=plan, settings=settings.get(name, views[name].settings))
        for name, plan in entry.others.items()
    }


def _is_plain(view: View) -> bool:
    """Whether it is what versions before plans and settings would take it for."""
    return view.plan is None and view.read_with == USUAL


def _settings(plan: str | UnsetType, settings: SqlSettings | UnsetType) -> SqlSettings | None:
    """The settings of a view in a checkpoint; where there were none, the binder read it with the usual ones."""
    if settings is not UNSET:
        return settings
    return USUAL if plan is UNSET else None


def declared_positions(manifest: Manifest) -> dict[str, tuple[Position, int]]:
    """Where streams are, as a checkpoint has it."""
    return {name: (Position(name, origin, at), epoch) for name, (origin, at, epoch) in manifest.positions.items()}


def tick_entry(epoch: int, token: str | None, position: Position | None, changes: Mapping[str, SourceDelta]) -> Tick:
    """The log's entry for a tick."""
    return Tick(
        epoch,
        token,
        {
            name: SourceChange(encode_rows(change.rows), change.watermark, change.digest)
            for name, change in changes.items()
        },
        None if position is None else (position.stream, position.origin, position.at),
    )


def entry_position(entry: Tick) -> Position | None:
    """Where the stream is that brought a log's tick; None if it came from none."""
    return None if entry.position is None else Position(*entry.position)


def entry_changes(entry: Tick) -> dict[str, SourceDelta]:
    """The changes of a log's tick."""
    changes = {}
    for name, one in entry.changes.items():
        rows = decode_rows(one.rows)
        changes[name] = SourceDelta(len(rows), rows, Batch.empty(rows.types), one.watermark, one.digest)
    return changes


def _lateness(source: Source) -> tuple[str, str] | None:
    return (source.lateness.column, source.lateness.delay) if source.lateness else None
