"""``RemoteBackend``: a flow that a server runs."""

from __future__ import annotations

import logging
import threading
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from typing_extensions import override

from weirflow.client.forms import (
    gauges_of,
    info_of,
    place_of,
    plan_of,
    position_of,
    settings_of,
    source_form,
    source_of,
    summary_of,
    view_form,
    view_of,
)
from weirflow.client.watch import RemoteWatch
from weirflow.errors import ConfigError, FlowError, HistoryGone, UnsupportedError, WeirflowError
from weirflow.ivm.flow.backend import Capability, FlowBackend
from weirflow.ivm.flow.outputs.watch import OverflowPolicy, Watch, WatchTerms, no_rows
from weirflow.ivm.flow.refusals import no_source
from weirflow.ivm.flow.source import LATE
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.ivm.zset.ingest import read_table, read_weighted
from weirflow.types import ClockKind, SourceSpread
from weirflow.wire import calls, messages
from weirflow.wire.arrow import pack_rows, unpack_schema

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from datetime import datetime
    from pathlib import Path

    from weirflow.client.connection import Connection
    from weirflow.ivm.compiler.session_tables import SessionTable
    from weirflow.ivm.compiler.view import Mode, View
    from weirflow.ivm.flow.describe import FlowInfo
    from weirflow.ivm.flow.evolution.plan import EvolutionPlan
    from weirflow.ivm.flow.position import Position
    from weirflow.ivm.flow.sinks.sink import Sink, SinkTarget, SinkTerms
    from weirflow.ivm.flow.source import Source
    from weirflow.ivm.flow.summary import StepSummary
    from weirflow.ivm.kernel.deadline import Deadline
    from weirflow.observability.metrics import FlowGauges
    from weirflow.sql.settings import SqlSettings

_log = logging.getLogger(__name__)

_SMALL_BYTES = 1 << 20
"""Deltas that are larger are sent as a stream."""
_ATTEMPTS = 5


class RemoteBackend(FlowBackend):
    """Runs a flow by asking a server.

    Everything is as the server has it at the moment; nothing is remembered but the columns of sources.

    Args:
        connection: to the server.
        status: what the flow is like.
    """

    def __init__(self, connection: Connection, status: calls.FlowStatus) -> None:
        self.name = status.name
        self.identity = status.identity
        self.capabilities = frozenset(
            one for one in Capability if one.value in status.capabilities and one is not Capability.FRAMES
        )
        self._connection = connection
        self._lock = threading.Lock()
        self._declared: dict[str, Source] = {}
        self._watches: weakref.WeakSet[Watch] = weakref.WeakSet()

    def _ask(self, method: str, arguments: messages.Message | None = None, seconds: float | None = None) -> Any:
        self._require_open()
        return self._connection.call(method, arguments, flow=self.name, seconds=seconds)

    def _require_open(self) -> None:
        if self.closed:
            raise FlowError(f"The flow {self.name!r} is closed here.", hint="ask the Session for it again")

    @property
    def _status(self) -> calls.FlowStatus:
        status: calls.FlowStatus = self._ask("status")
        return status

    @property
    @override
    def settings(self) -> SqlSettings:
        return settings_of(self._ask("settings"))

    @property
    @override
    def partitions(self) -> int:
        return self._status.partitions

    @property
    @override
    def epoch(self) -> int:
        return self._status.epoch

    @override
    def exclusive(self) -> AbstractContextManager[None]:
        raise _elsewhere(
            "exclusive() can only be used there", "to tick several sources together, pass one mapping to tick()"
        )

    @override
    def require_outside(self, what: str) -> None:
        """Nothing that a tick of the server calls is here."""

    @override
    def close(self) -> None:
        with self._lock:
            self.closed = True
            watches = list(self._watches)
        for watch in watches:
            watch.close()

    # What the flow is made of

    @property
    @override
    def sources(self) -> Mapping[str, Source]:
        found = {form.name: source_of(form) for form in self._ask("sources")}
        with self._lock:
            self._declared = found
        return found

    @property
    @override
    def views(self) -> Mapping[str, View]:
        return {form.name: view_of(form) for form in self._ask("views")}

    @property
    @override
    def waiting(self) -> dict[str, str]:
        return dict(self._status.waiting)

    @override
    def source(self, name: str) -> Source:
        found = self.sources
        if name not in found:
            raise no_source(name, self.views, found)
        return found[name]

    @override
    def define_source(self, source: Source, spread: SourceSpread | None) -> None:
        self._ask("define_source", calls.DefineSource(source_form(source), spread))

    @override
    def define_view(self, name: str, view: View) -> None:
        self._ask("define_view", calls.DefineView(view_form(name, view)))

    @override
    def replace_view(self, name: str, view: View) -> EvolutionPlan:
        return plan_of(self._ask("replace_view", calls.DefineView(view_form(name, view))))

    @override
    def refresh_view(self, name: str) -> EvolutionPlan:
        return plan_of(self._ask("refresh_view", calls.OfName(name)))

    @override
    def force_diff(self, view: str | None) -> None:
        self._ask("force_diff", calls.OfView(view))

    @override
    def drop(self, name: str) -> None:
        self._ask("drop", calls.OfName(name))

    @override
    def snapshot_of(self, table: SessionTable) -> str:
        raise _elsewhere("it reads tables of the server's Session only", "name the table in the view's SQL")

    @override
    def sweep(self) -> None:
        """The server does it by itself."""

    # Ticks

    @property
    @override
    def pending(self) -> bool:
        return self._status.pending

    @override
    def tick(self, deltas: Mapping[str, Any], deadline: Deadline, *, token: str | None = None) -> StepSummary:
        return self._ticked(deltas, deadline, token or f"client-{uuid.uuid4().hex}", None)

    @override
    def feed(self, deltas: Mapping[str, Any], deadline: Deadline, position: Position) -> StepSummary:
        return self._ticked(deltas, deadline, None, place_of(position))

    def _ticked(
        self, deltas: Mapping[str, Any], deadline: Deadline, token: str | None, position: messages.Place | None
    ) -> StepSummary:
        self._require_open()
        # What can be read once only is read once, whatever happens then.
        known = {name: self._known(name) for name in deltas}
        rows = {name: _weighted(known[name], data) for name, data in deltas.items()}
        try:
            return self._send(rows, deadline.seconds, token, position)
        except ConfigError:
            again = self.sources
            if all(again.get(name) == source for name, source in known.items()):
                raise
        rows = {name: _weighted(self._known(name), one) for name, one in rows.items()}
        return self._send(rows, deadline.seconds, token, position)

    def _send(
        self, rows: Mapping[str, pa.RecordBatch], seconds: float | None, token: str | None, place: messages.Place | None
    ) -> StepSummary:
        if len(rows) == 1:
            ((name, batch),) = rows.items()
            if batch.nbytes > _SMALL_BYTES:
                put = messages.Put(self.name, name, token, seconds, place)
                return summary_of(self._connection.put(put, pa.Table.from_batches([batch])))
        packed = {name: pack_rows(batch) for name, batch in rows.items()}
        return summary_of(self._connection.tick(messages.Tick(self.name, packed, token, seconds, place)))

    def _known(self, name: str) -> Source:
        """A source as it was declared when last asked; the server looks at every delta itself."""
        with self._lock:
            found = self._declared.get(name)
        return self.source(name) if found is None else found

    @override
    def position(self, stream: str) -> Position | None:
        found: messages.Place | None = self._ask("position", calls.OfName(stream))
        return None if found is None else position_of(found)

    @override
    def epoch_of(self, token: str) -> int | None:
        found: int | None = self._ask("epoch_of", calls.OfToken(token))
        return found

    @override
    def retry(self, deadline: Deadline) -> StepSummary:
        return summary_of(self._ask("retry", calls.WithTimeout(deadline.seconds), deadline.seconds))

    @override
    def discard(self) -> None:
        self._ask("discard")

    @property
    @override
    def clock(self) -> datetime | None:
        return None if self.closed else self._status.clock

    @property
    @override
    def clock_kind(self) -> ClockKind:
        return ClockKind(self._status.clock_kind)

    @property
    @override
    def follows_clock(self) -> bool:
        return self._status.follows_clock

    @override
    def is_due(self, moment: int) -> bool:
        return bool(self._ask("is_due", calls.IsDue(moment)))

    @override
    def advance(self, to: datetime | None, deadline: Deadline, *, keep: bool) -> StepSummary:
        asked = calls.Advance(to, deadline.seconds, keep)
        return summary_of(self._ask("advance", asked, deadline.seconds))

    @override
    def too_late(self, source: str, rows: Any) -> int:
        return int(self._ask("too_late", calls.TooLate(source, pack_rows(_weighted(self._known(source), rows)))))

    # What comes out

    @property
    @override
    def readable(self) -> tuple[str, ...]:
        return tuple(self._status.readable)

    @override
    def rows(self, names: Sequence[str], epoch: int | None) -> tuple[int, dict[str, pa.Table]]:
        self._require_open()
        if not names:
            return self.epoch, {}
        first, *others = dict.fromkeys(names)
        for attempt in range(_ATTEMPTS):
            found = {first: self._connection.rows(messages.Rows(self.name, first, epoch))}
            reached = _epoch_of(found[first])
            try:
                for name in others:
                    found[name] = self._connection.rows(messages.Rows(self.name, name, reached))
                break
            except HistoryGone:  # ticks were faster
                if epoch is not None or attempt == _ATTEMPTS - 1:
                    raise
        return reached, {name: _plain(table) for name, table in found.items()}

    @override
    def stream(self, name: str) -> tuple[int, pa.RecordBatchReader]:
        self._require_open()
        reader = self._connection.batches(messages.Rows(self.name, name))
        schema = reader.schema.remove_metadata()
        batches = (batch.replace_schema_metadata(None) for batch in reader)
        return _epoch_of(reader), pa.RecordBatchReader.from_batches(schema, batches)

    @override
    def query(self, sql: str, tables: Mapping[str, Any]) -> pa.Table:
        self._require_open()
        given = {name: pack_rows(read_table(data)) for name, data in tables.items()}
        return _plain(self._connection.rows(messages.FlowQuery(self.name, sql, given)))

    @override
    def schema(self, name: str) -> pa.Schema:
        return unpack_schema(self._ask("schema", calls.OfName(name)))

    @override
    def watch(self, view: str, terms: WatchTerms) -> Watch:
        if terms.policy is OverflowPolicy.BLOCK:
            raise _elsewhere("ticks there do not wait for readers", "leave out policy=, and give it more capacity")
        self._require_open()
        ticket = messages.Watch(self.name, view, terms.from_epoch, terms.snapshot, terms.capacity)
        nothing = no_rows(self.schema(view.removesuffix(LATE))) if terms.progress else None
        watch = RemoteWatch(self._connection, ticket, detach=self._forget, progress=nothing)
        with self._lock:
            if not self.closed:
                self._watches.add(watch)
                return watch
        watch.close()
        self._require_open()
        return watch

    def _forget(self, watch: Watch) -> None:
        with self._lock:
            self._watches.discard(watch)

    @override
    def on_delta(self, view: str, callback: Callable[[int, DeltaBatch], None]) -> None:
        watch = self.watch(view, WatchTerms())
        threading.Thread(
            target=_call_back, args=(watch, callback), name=f"weirflow-on-delta-{view}", daemon=True
        ).start()

    @override
    def sink(self, view: str, to: str | Path | Callable[..., object] | SinkTarget, terms: SinkTerms) -> Sink:
        raise _elsewhere("its sinks are made there", "write what watch_output() gives, or make the sink on the server")

    @override
    def describe(self) -> FlowInfo:
        return info_of(self._ask("describe"))

    @override
    def explain(self, view: str | None) -> str:
        return str(self._ask("explain", calls.OfView(view)))

    @override
    def explain_query(self, sql: str, mode: Mode) -> str:
        return str(self._ask("explain_query", calls.ExplainQuery(sql, mode)))

    @override
    def metrics(self) -> str:
        return str(self._ask("metrics"))

    @override
    def gauges(self) -> FlowGauges | None:
        found = None if self.closed else self._ask("gauges")
        return None if found is None else gauges_of(found)

    # What a capability stands for

    @override
    def save(self, uri: str | Path | None, *, full: bool) -> str:
        return str(self._ask("save", calls.Save(None if uri is None else str(uri), full)))

    @override
    def restore(self, uri: str | Path, epoch: int | None) -> EvolutionPlan:
        return plan_of(self._ask("restore", calls.Restore(str(uri), epoch)))

    @override
    def plan(self, sources: Mapping[str, Source], views: Mapping[str, View]) -> EvolutionPlan:
        wanted = calls.Plan(
            tuple(source_form(one) for one in sources.values()),
            tuple(view_form(name, view) for name, view in views.items()),
        )
        return plan_of(self._ask("plan", wanted))

    @override
    def rescale(self, partitions: int, spread: Mapping[str, SourceSpread]) -> None:
        self._ask("rescale", calls.Rescale(partitions, {name: one.value for name, one in spread.items()}))


def _weighted(source: Source, data: Any) -> pa.RecordBatch:
    """A delta as it is sent: the columns of the source and the weights."""
    if isinstance(data, DeltaBatch):
        return data.to_arrow()
    try:
        batch = read_weighted(data, source.schema, key=source.key)
    except ConfigError as error:
        raise ConfigError(
            f"The delta does not fit the source {source.name!r}: {error.message}", hint=error.hint
        ) from error
    return DeltaBatch.of_batch(source.schema, batch).to_arrow()


def _call_back(watch: Watch, callback: Callable[[int, DeltaBatch], None]) -> None:
    try:
        for epoch, delta in watch:
            try:
                callback(epoch, delta)
            except Exception:  # noqa: BLE001 - whatever a callback raises, the tick has happened
                _log.exception("a callback for deltas of %s failed at epoch %d", watch.view, epoch)
    except WeirflowError as error:
        _log.error("deltas of %s are no longer delivered: %s", watch.view, error.message)


def _epoch_of(rows: pa.Table | pa.RecordBatchReader) -> int:
    found = (rows.schema.metadata or {}).get(messages.EPOCH)
    if found is None:
        raise ConfigError("The server has sent rows without their epoch.")
    return int(found)


def _plain(rows: pa.Table) -> pa.Table:
    return rows.replace_schema_metadata(None)


def _elsewhere(what: str, hint: str) -> UnsupportedError:
    """The error for what cannot be done from here."""
    return UnsupportedError(f"The flow runs on a server, and {what}.", hint=hint)
