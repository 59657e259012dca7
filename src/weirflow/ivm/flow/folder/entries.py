"""A flow's state to and from checkpoints and logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from weirflow.ivm.compiler.program import Mode, View
from weirflow.ivm.durability.manifest import Manifest, SourceState, ViewState
from weirflow.ivm.durability.records import (
    DefineSource,
    DefineView,
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

if TYPE_CHECKING:
    from weirflow.ivm.flow.state import FlowState


def manifest_of(state: FlowState, *, flow: str, identity: str, record: int, fence: int) -> Manifest:
    """The state's manifest, still without the places of its runs."""
    stores = {
        name: state.program.circuit.nodes[relation.store.node].fingerprint
        for name, relation in state.program.relations.items()
        if relation.store is not None
    }
    views = {**state.views, **state.waiting}
    return Manifest(
        flow=flow,
        identity=identity,
        epoch=state.epoch,
        record=record,
        fence=fence,
        sources={
            name: SourceState(
                schema=encode_schema(one.source.schema),
                key=list(one.source.key),
                dedup=one.source.dedup,
                lateness=_lateness(one.source),
                watermark=one.watermark,
                digests=list(one.digests),
                keep=one.source.keeps,
            )
            for name, one in state.inputs.items()
        },
        views={
            name: ViewState(view.sql, view.mode, view.stored, stores.get(name), view.forced)
            for name, view in views.items()
        },
        tokens=dict(state.tokens),
        positions={name: (one.origin, one.at, epoch) for name, (one, epoch) in state.positions.items()},
        states={},
        packs={},
        forced=state.forced,
    )


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


def declared_views(manifest: Manifest) -> dict[str, View]:
    """The views as a checkpoint has them."""
    return {
        name: View(one.sql, Mode(one.mode), stored=one.stored, forced=one.forced)
        for name, one in manifest.views.items()
    }


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
    return DefineView(name, view.sql, view.mode, view.stored)


def replace_entry(epoch: int, name: str, view: View) -> ReplaceView:
    """The log's entry for a view that was rebuilt."""
    return ReplaceView(epoch, name, view.sql, view.mode, view.stored)


def entry_view(entry: DefineView | ReplaceView) -> View:
    """The view of a log's entry."""
    return View(entry.sql, Mode(entry.mode), stored=entry.stored)


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
