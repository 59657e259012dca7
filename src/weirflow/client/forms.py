"""What a flow is made of, as messages have it and as flows have it."""

from __future__ import annotations

from weirflow.errors import ConfigError
from weirflow.ivm.compiler.view import Mode, View
from weirflow.ivm.flow.describe import FlowInfo, RelationInfo
from weirflow.ivm.flow.evolution.plan import EvolutionPlan
from weirflow.ivm.flow.position import Position
from weirflow.ivm.flow.source import Lateness, Source
from weirflow.ivm.flow.summary import StepSummary
from weirflow.observability.metrics import FlowGauges
from weirflow.sql.settings import SqlSettings
from weirflow.wire.arrow import pack_schema, unpack_schema
from weirflow.wire.calls import (
    FlowInfoForm,
    GaugesForm,
    LatenessForm,
    PlanForm,
    SettingsForm,
    SourceForm,
    ViewForm,
)
from weirflow.wire.messages import Place, Summary


def source_form(source: Source) -> SourceForm:
    """A source as it is sent."""
    late = source.lateness
    lateness = None if late is None else LatenessForm(late.column, late.delay, late.keep)
    return SourceForm(source.name, pack_schema(source.schema), source.key, source.dedup, lateness)


def source_of(form: SourceForm) -> Source:
    """The source that was sent."""
    late = form.lateness
    lateness = None if late is None else Lateness(late.column, late.delay, late.keep)
    return Source(form.name, unpack_schema(form.schema), tuple(form.key), form.dedup, lateness)


def view_form(name: str, view: View) -> ViewForm:
    """A view as it is sent; ``ConfigError`` for one that was made of a frame."""
    if view.is_frame:
        raise ConfigError(
            f"The view {name!r} was made from a frame, which belongs to the Session that made it.",
            hint="send its query in SQL",
        )
    return ViewForm(name, view.sql, view.mode, view.stored, view.forced)


def view_of(form: ViewForm) -> View:
    """The view that was sent."""
    return View(form.sql, Mode(form.mode), form.stored, form.forced)


def settings_of(form: SettingsForm) -> SqlSettings:
    """The settings that were sent."""
    return SqlSettings(form.time_zone, form.ansi, form.case_sensitive, form.timestamp_ntz)


def summary_of(form: Summary) -> StepSummary:
    """What a tick did."""
    return StepSummary(
        form.epoch, form.rows_in, form.rows_out, form.duration_ms, form.views, form.late, form.dropped, form.replayed
    )


def plan_of(form: PlanForm) -> EvolutionPlan:
    """What becomes of sources and views."""
    return EvolutionPlan(form.kept, form.rebuilt, form.added, form.dropped)


def info_of(form: FlowInfoForm) -> FlowInfo:
    """What a flow is."""
    relations = tuple(
        RelationInfo(
            one.name, one.kind, one.rows, one.reads, None if one.settings is None else settings_of(one.settings)
        )
        for one in form.relations
    )
    return FlowInfo(form.name, form.runs, form.kept, form.epoch, form.nbytes, relations, form.clock)


def gauges_of(form: GaugesForm) -> FlowGauges:
    """What a flow holds."""
    return FlowGauges(
        epoch=form.epoch,
        state_bytes=form.state_bytes,
        view_bytes=form.view_bytes,
        recall=form.recall,
        waiting=form.waiting,
        log_bytes=form.log_bytes,
        shards={(stage, shard): (rows, seconds) for stage, shard, rows, seconds in form.shards},
    )


def place_of(position: Position) -> Place:
    """A place in a stream, as it is sent."""
    return Place(position.stream, position.origin, position.at, position.after)


def position_of(place: Place) -> Position:
    """A place in a stream."""
    return Position(place.stream, place.origin, place.at, place.after)
