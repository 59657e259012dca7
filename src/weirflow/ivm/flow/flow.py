"""``Flow``: views over changing sources, kept up to date tick by tick, wherever that is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, Self

from weirflow.arguments import Count, Lifetime, Name, Positive, Shards, Sql, Token, Uri, checked, require
from weirflow.arguments.in_errors import kind_of, shown
from weirflow.errors import ConfigError
from weirflow.ivm.compiler.view import Mode, View, frame_recomputed
from weirflow.ivm.flow.backend import Capability, FlowBackend, refused
from weirflow.ivm.flow.graph import FlowGraph
from weirflow.ivm.flow.outputs.watch import OverflowPolicy, Watch, WatchTerms
from weirflow.ivm.flow.refusals import require_declared
from weirflow.ivm.flow.seen_content import HISTORY, HISTORY_IN_SHARDS
from weirflow.ivm.flow.sinks.sink import Sink, SinkTarget, sink_terms
from weirflow.ivm.flow.source import Lateness, NamedDeltas, Source, declared, deltas_of, is_declared
from weirflow.ivm.flow.vector_view import VectorViewSpec, vector_view
from weirflow.ivm.kernel.deadline import Deadline
from weirflow.types import SinkMode, SourceSpread, one_of

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    import pyarrow as pa

    from weirflow.ivm.flow.describe import FlowInfo
    from weirflow.ivm.flow.evolution.plan import EvolutionPlan
    from weirflow.ivm.flow.position import Position
    from weirflow.ivm.flow.summary import StepSummary
    from weirflow.ivm.flow.view_query import ViewQuery
    from weirflow.ivm.zset.delta import DeltaBatch
    from weirflow.observability.metrics import FlowGauges
    from weirflow.sql.settings import SqlSettings


@checked
class Flow:
    """Sources, SQL views over them, and ticks that bring deltas.

    Methods may be called from several threads; ticks run one after the other. What a flow cannot do where it runs is
    refused with ``ConfigError``; ``capabilities`` says it beforehand.

    Args:
        backend: what runs it.
    """

    def __init__(self, backend: FlowBackend) -> None:
        self._backend = backend

    @property
    def name(self) -> str:
        """What errors, metrics and stores call the flow."""
        return self._backend.name

    @property
    def identity(self) -> str:
        """Different for every flow, even of the same name; kept over a restart if the flow survives one."""
        return self._backend.identity

    @property
    def path(self) -> Path | None:
        """The folder that keeps the flow; None if it is in memory, or in a storage that is not a folder."""
        return self._backend.path

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the flow can do that others cannot."""
        return self._backend.capabilities

    @property
    def takes_frames(self) -> bool:
        """Whether deltas may be Spark frames whose rows stay where they are."""
        return Capability.FRAMES in self._backend.capabilities

    @property
    def partitions(self) -> int:
        """How many shards there are; 1 for a flow that is not in shards."""
        return self._backend.partitions

    @property
    def epoch(self) -> int:
        """The number of the last tick."""
        return self._backend.epoch

    @property
    def closed(self) -> bool:
        """Whether the flow was closed."""
        return self._backend.closed

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep other threads from ticking or changing the flow in the block, so that what it reads stays true."""
        return self._backend.exclusive()

    def close(self) -> None:
        """End all watches and sinks and free what the flow holds. Committed ticks stay; a tick that is waiting fails.

        Closing twice does nothing; after an interruption, calling it again continues.

        Raises:
            SinkFailed: a sink could not write what it still had; the flow is closed nevertheless.
            StorageError: the last writes could not be synced; the flow is closed nevertheless.
        """
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        shards = f"{self.partitions} shards, " if Capability.SHARDS in self.capabilities else ""
        made_of = f"{shards}{len(self.sources)} sources, {len(self.views)} views"
        return f"<{type(self).__name__} {self.name} epoch {self.epoch}: {made_of}>"

    # What it is made of

    def register_source(
        self,
        name: Name,
        schema: Any,
        *,
        key: str | Sequence[str] | None = None,
        dedup: bool | Count | Literal["content"] = False,
        lateness: Lateness | None = None,
        dimensions: Mapping[Name, Positive] | None = None,
        spread: SourceSpread | str | None = None,
    ) -> None:
        """Declare an input. Registering the same source again does nothing.

        Args:
            name: its name in views and ticks.
            schema: an Arrow schema, a DDL string such as ``"id BIGINT, name STRING"``, or data of that schema.
            key: columns that identify a row; rows given to ``tick`` are then upserts, and retractions delete by key.
                None, or no columns, if there is no key.
            dedup: drop a delta that equals the source's last one, or with a number any of this many last ones;
                ``"content"`` for any of the last 10,000,000 (in shards, 10,000). Forgotten deltas are counted by the
                metric ``weirflow_dedup_evicted_total``.
            lateness: send rows that come too late to the side output ``"<name>.late"``.
            dimensions: for columns of vectors, how many numbers each vector has: ``{"v": 384}``. A tick with a vector
                of another length fails, and changes nothing; NULL is allowed.
            spread: for a flow in shards, how the source's rows are spread over the shards: by their use, ``"evenly"``
                if most rows have the same key, or ``"everywhere"`` for small tables; see ``SourceSpread``. ``rescale``
                changes it.
        """
        source = declared(
            name,
            schema,
            key=key,
            dedup=self._history() if dedup == "content" else dedup,
            lateness=lateness,
            dimensions=dimensions,
            is_case_sensitive=lambda: self._backend.settings.case_sensitive,
        )
        how = None if spread is None else _spread(spread)
        if how is not None and Capability.SHARDS not in self.capabilities:
            raise refused(Capability.SHARDS, self.name)
        self._backend.define_source(source, how)
        self._defined()

    def _history(self) -> int:
        """How many deltas a source remembers that is to notice any that it had."""
        return HISTORY_IN_SHARDS if Capability.SHARDS in self.capabilities else HISTORY

    def register_view(
        self, name: Name, sql: ViewQuery, *, mode: Mode | str = Mode.AUTO, materialized: bool = True
    ) -> None:
        """Declare a query over sources and other views, in any order. If there are rows, the view is filled at once.

        Registering the same view again does nothing.

        Args:
            name: its name in ``snapshot``, ``watch_output`` and other views.
            sql: one query in Spark's SQL. For a Session's flow also a frame that is made from what ``table`` returns.
            mode: ``incremental`` refuses SQL without a rule for deltas, ``diff`` recomputes on Spark and compares,
                ``auto`` chooses.
            materialized: keep its rows, so that it can be read at any time; deltas are emitted either way.
        """
        with self._kept_still(sql):
            self._backend.define_view(name, self._declared_view(sql, _mode(mode), stored=materialized))
        self._defined()

    def replace_view(
        self, name: Name, sql: ViewQuery, *, mode: Mode | str = Mode.AUTO, materialized: bool = True
    ) -> EvolutionPlan:
        """Give a view another query, and rebuild the views that read it, as one epoch; see ``register_view``.

        Watches get the difference. A watch ends if its view now has other columns, or if the view's rows are not kept.
        On an error nothing has changed.
        """
        with self._kept_still(sql):
            plan = self._backend.replace_view(name, self._declared_view(sql, _mode(mode), stored=materialized))
        self._defined()
        return plan

    def register_vector_view(self, name: Name, spec: VectorViewSpec, *, materialized: bool = True) -> None:
        """Declare a view of the documents nearest to each standing query. If there are rows, it is filled at once.

        Queries and documents are rows of existing sources or views. Both may come, change and go. After every tick, the
        view equals brute force, or comes close to it if the spec has an index.

        Args:
            name: its name in ``snapshot``, ``watch_output`` and other views.
            spec: what it computes.
            materialized: as of ``register_view``.

        Raises:
            DependencyMissing: the spec has an index, but the package for it is not installed.
        """
        self._backend.define_view(name, self._vector_view(spec, stored=materialized))
        self._defined()

    def replace_vector_view(self, name: Name, spec: VectorViewSpec, *, materialized: bool = True) -> EvolutionPlan:
        """Give a vector view another spec: another ``k``, metric or filter; see ``replace_view``."""
        plan = self._backend.replace_view(name, self._vector_view(spec, stored=materialized))
        self._defined()
        return plan

    def _vector_view(self, spec: VectorViewSpec, *, stored: bool) -> View:
        if spec.index is not None and Capability.SHARDS in self.capabilities:
            raise ConfigError(
                "A flow in shards has no approximate vector views.",
                hint="leave out index=: each shard searches its own documents, exactly",
            )
        keys = {name: source.key for name, source in self._backend.sources.items()}
        return vector_view(spec, self.schema, keys, self._backend.settings, stored=stored)

    def _defined(self) -> None:
        """Called when sources or views have been defined: others may run now than before."""

    def refresh_view(self, name: Name) -> EvolutionPlan:
        """Compute a view again from the sources' rows, with the views that it reads and that read it, as one epoch.

        Tables of the Session that it reads are read again, and the difference is ticked for all views that read them.
        Watches get the difference. There is one if a table has other rows, or if a view depends on more than the
        sources, for example on a function.

        Raises:
            TableNotFound: a table that it reads is gone; nothing has changed.
            ConfigError: a table that it reads has other columns; nothing has changed.
        """
        return self._backend.refresh_view(name)

    def force_diff_based(self, view: Name | None = None) -> None:
        """Make Spark recompute and compare a view, whatever its mode; without a name, all views, including later ones.

        Its deltas stay the same. If the rows differ from those that were maintained, watches get the difference, as one
        epoch. The setting is kept when a durable flow is reopened; doing it again does nothing.

        Raises:
            EngineMissing: the flow has no Session.
            ConfigError: a view reads another one whose rows are not kept.
        """
        self._backend.force_diff(view)

    def view(self, function: Callable[[], str]) -> Callable[[], str]:
        """Register the SQL that a function returns as a view with the function's name; use it as a decorator."""
        self.register_view(getattr(function, "__name__", ""), function())
        return function

    def drop(self, name: Name) -> None:
        """Remove a source or view that no view reads, with its state; its watches end."""
        require_declared([name])
        self._backend.drop(name)

    def source(self, name: Name) -> Source:
        """How a source was declared; ``ConfigError`` if there is none of this name."""
        return self._backend.source(name)

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources."""
        return tuple(name for name in self._backend.sources if is_declared(name))

    @property
    def views(self) -> tuple[str, ...]:
        """The names of the views, including those that wait for something that they read."""
        return tuple(self._backend.views)

    @property
    def waiting(self) -> dict[str, str]:
        """The views that cannot be computed yet, each with what it waits for; all others tick."""
        return self._backend.waiting

    def rescale(self, partitions: Shards, *, spread: Mapping[Name, SourceSpread | str] | None = None) -> None:
        """Spread the flow over another number of shards at its current epoch; results stay the same.

        All views are filled again from the rows of the sources; if a source does not keep them, their state is moved.

        Args:
            partitions: how many shards there are from now on.
            spread: how the rows of some sources are spread over the shards from now on; others stay as they are.

        Raises:
            ConfigError: the flow has no shards, or a named source does not exist.
        """
        wanted = {name: _spread(how) for name, how in (spread or {}).items()}
        require_declared(wanted)
        self._backend.rescale(partitions, wanted)

    # How deltas come in

    def tick(
        self,
        source: Name | NamedDeltas,
        delta: Any = None,
        *,
        token: Token | None = None,
        timeout: Lifetime | None = None,
    ) -> StepSummary:
        """Apply a delta to a source, or to several at once, and bring every view that reads it to the new epoch.

        A delta is a ``DeltaBatch``, or rows (Arrow, pandas, Polars, dicts) that are inserted, or upserted where the
        source has a key. Either everything happens or nothing. If a view fails (because of an overflow, say), the delta
        is kept until you call ``retry()`` or ``discard()``.

        For a flow in shards, it may be a Spark frame of any size: its rows go from executor to executor. The rows of a
        frame have no order, so for a source with a key it may contain each key only once.

        Args:
            source: the source's name, or a mapping of names to deltas; an empty one makes an epoch without changes.
            delta: the delta, unless ``source`` is a mapping.
            token: a name for the tick, of at most 256 characters. The call does nothing if one of the last 100,000
                ticks (in shards, 1,000) had this token.
            timeout: how many seconds it may take until its changes are known; None for any time. Reading a frame
                counts, too, but is not cut short.

        Raises:
            DataError: a row breaks a rule of a view, or a retracted row does not exist.
            TickTimeout: the time is over.
            ConfigError: the delta does not fit the source's schema.
            TickPending: an earlier tick failed and waits.
            LeaseLost: another process coordinates the flow in shards now.
        """
        deltas = deltas_of(source, delta)
        require_declared(deltas)
        return self._backend.tick(deltas, Deadline(timeout), token=token)

    def feed(
        self,
        source: Name | NamedDeltas,
        delta: Any = None,
        *,
        position: Position,
        timeout: Lifetime | None = None,
    ) -> StepSummary:
        """A tick from a stream that can send its deltas again; the flow remembers the stream's position.

        A delta from a position that the stream has already reached does nothing. A delta that fails is not kept.

        Raises:
            StreamConflict: another stream was attached under this name before.
        """
        deltas = deltas_of(source, delta)
        require_declared(deltas)
        return self._backend.feed(deltas, Deadline(timeout), position)

    def position(self, stream: Name) -> Position | None:
        """How far the flow has read what is attached under a name; None if nothing ever was attached."""
        return self._backend.position(stream)

    def epoch_of(self, token: Token) -> int | None:
        """The epoch of the tick with this token, if it is still remembered; None otherwise."""
        return self._backend.epoch_of(token)

    def load(
        self, source: Name, data: Any, *, token: Token | None = None, timeout: Lifetime | None = None
    ) -> StepSummary:
        """Insert (or upsert) a table of rows as one tick; made for millions of rows."""
        return self.tick(source, data, token=token, timeout=timeout)

    @property
    def clock(self) -> datetime | None:
        """The value of ``now()`` in views, in UTC: the clock's last reading. None before the first, or when closed."""
        return self._backend.clock

    def advance(self, to: datetime | None = None, *, timeout: Lifetime | None = None) -> StepSummary:
        """Let time pass: a tick without rows, which moves the clock.

        Rows enter and leave views that compare them with ``now()``, ``current_date()`` and the like; other views do not
        change. The cost is that of these rows.

        Args:
            to: the new time, with a time zone; None for the system's. The clock never goes back; the same time again
                makes an epoch without changes.
            timeout: as ``tick``'s.

        Raises:
            ConfigError: the time is before the clock's reading.
            TickTimeout: the time is over.
            TickPending: an earlier tick failed and waits.
        """
        return self._backend.advance(to, Deadline(timeout), keep=True)

    def retry(self, *, timeout: Lifetime | None = None) -> StepSummary:
        """Run the failed tick again, within the timeout if one is given."""
        return self._backend.retry(Deadline(timeout))

    def discard(self) -> None:
        """Drop the failed tick: its delta never happened. Does nothing if no tick has failed."""
        self._backend.discard()

    @property
    def pending(self) -> bool:
        """Whether a tick failed and waits for ``retry`` or ``discard``."""
        return self._backend.pending

    def too_late(self, source: Name, rows: Any) -> int:
        """How many of these rows, which have the source's schema, would go to the late side output.

        For a flow in shards, the rows may also be a Spark frame; they are counted where they are.
        """
        return self._backend.too_late(source, rows)

    # What comes out

    def snapshot(self, view: Name, *, epoch: Count | None = None) -> pa.Table:
        """All rows of a view or source, now or after an earlier epoch whose deltas are still kept."""
        return self._backend.rows([view], epoch)[1][view]

    def snapshots(self, names: Sequence[Name]) -> tuple[int, dict[str, pa.Table]]:
        """All rows of several views or sources, at the same epoch."""
        return self._backend.rows(names, None)

    def stream(self, view: Name) -> pa.RecordBatchReader:
        """All rows of a view or source as they are now, in batches; for a flow in shards, shard by shard."""
        return self._backend.stream(view)[1]

    @property
    def readable(self) -> tuple[str, ...]:
        """The sources and views whose rows are kept."""
        return tuple(name for name in self._backend.readable if is_declared(name))

    def sql(self, query: Sql, *, tables: Mapping[Name, Any] | None = None) -> pa.Table:
        """The rows that a query returns for the sources and views as they are now, computed where the flow runs.

        It may also read ``tables`` by their names, which take precedence over those of sources and views.
        """
        return self._backend.query(query, tables or {})

    def schema(self, name: Name) -> pa.Schema:
        """The columns of a source or view."""
        return self._backend.schema(name)

    def watch_output(
        self,
        view: Name,
        *,
        snapshot: bool = False,
        from_epoch: Count | None = None,
        capacity: Positive = 1024,
        policy: OverflowPolicy | str = OverflowPolicy.FAIL,
        progress: bool = False,
    ) -> Watch:
        """The deltas of a view from now on, as an iterator of ``(epoch, DeltaBatch)``, without gaps.

        Args:
            view: the view, or ``"<source>.late"`` for rows that came too late.
            snapshot: begin with all current rows.
            from_epoch: begin with the deltas after this epoch, if they are still kept.
            capacity: how many deltas may wait for the reader.
            policy: what happens beyond that: ``fail`` the reader, or ``block`` the ticks.
            progress: also deliver a delta without rows for an epoch that does not change the view; of several that the
                reader has not taken, only the last.
        """
        if snapshot and from_epoch is not None:
            raise ConfigError("A watch begins with a snapshot or after an epoch, not both.")
        chosen = one_of(OverflowPolicy, policy, "No policy for full watches is called")
        return self._backend.watch(view, WatchTerms(snapshot, from_epoch, capacity, chosen, progress))

    def on_delta(self, view: Name, callback: Callable[[int, DeltaBatch], None]) -> None:
        """Call a function with ``(epoch, delta)`` after each tick that changes the view, in the tick's thread.

        What it raises is logged; it cannot undo the tick.
        """
        self._backend.on_delta(view, callback)

    def sink(
        self,
        view: Name,
        to: Uri | Callable[[int, DeltaBatch], object] | SinkTarget | None = None,
        *,
        table: Name | None = None,
        mode: str = SinkMode.CHANGELOG,
        key: str | Sequence[str] | None = None,
        name: Name | None = None,
        every: Positive | str = 1,
        on_failure: str = "raise",
        resync: bool = False,
    ) -> Sink:
        """Write the deltas of a view as ticks happen, starting with its current rows, or from the target's position.

        With a durable flow, a folder gets every delta exactly once, even if the process is killed.

        Args:
            view: whose deltas.
            to: a folder or storage URI for Parquet files, which have the view's columns, ``_weight`` and ``_epoch``; or
                a function that is called with ``(epoch, delta)``, after a crash with the last ones again; or another
                target, such as an ``IvmVectorSink``.
            table: instead of ``to``, an existing table of the flow's Session, by its name in SQL. Delta and Iceberg
                tables get every delta exactly once.
            mode: ``changelog``; or, for a table, ``upsert`` by ``key``, so that the table equals the view; Delta and
                Iceberg.
            key: columns that identify the view's rows in a table.
            name: what errors call it; the view's name if None.
            every: write once in this many epochs, or within a time such as ``"5 seconds"``.
            on_failure: what ticks do while the target cannot be written: ``raise`` an error, or continue and ``keep``
                the deltas as long as they are few.
            resync: replace what is there with the view's current rows.

        Raises:
            SinkConflict: this view of this flow cannot continue with the target.
            SinkFailed: the target cannot be written.
        """
        if (to is None) == (table is None):
            raise ConfigError(
                "A sink writes to one place.", hint="pass to= for files, a function or a target, or table="
            )
        if table is None and (mode != SinkMode.CHANGELOG or key is not None):
            raise ConfigError(
                "Files and functions take a changelog; only tables can be merged into by a key.",
                hint="use a flow of a Session and sink(view, table=..., mode='upsert', key=...)",
            )
        target = self._table_target(table, mode, key) if table is not None else to
        assert target is not None
        return self._backend.sink(view, target, sink_terms(name or view, every, on_failure, resync=resync))

    def describe(self) -> FlowInfo:
        """Where the flow runs, where it is kept, and what it consists of."""
        return self._backend.describe()

    def graph(self) -> FlowGraph:
        """The flow as a graph, for a notebook or as Mermaid and SVG text."""
        return FlowGraph(self.describe().relations)

    def explain(self, view: Name | None = None) -> str:
        """How a view or source is maintained, or all of them: mode and reason, operators and what they keep.

        For a flow in shards: its stages, their operators, how rows are partitioned, and what the last job did where.
        """
        return self._backend.explain(view)

    def explain_query(self, query: Sql, *, mode: Mode | str = Mode.AUTO) -> str:
        """How a query would be maintained if it were a view; raises what ``register_view`` would."""
        return self._backend.explain_query(query, _mode(mode))

    def metrics(self) -> str:
        """What the flow has done and holds, in Prometheus' text format; in shards, for each shard."""
        return self._backend.metrics()

    def gauges(self) -> FlowGauges | None:
        """What the flow holds now; while a long tick runs, what it held when last asked. None when closed."""
        return self._backend.gauges()

    # Checkpoints

    def checkpoint(self, uri: Uri | None = None) -> str:
        """Save the flow, writing only what the last checkpoint there lacks; returns the checkpoint's name.

        Args:
            uri: where: a folder or a URI such as ``s3://bucket/flows/shop``; None for the flow's own path.
        """
        return self._backend.save(uri, full=False)

    def checkpoint_full(self, uri: Uri) -> str:
        """Save the whole flow, so that the checkpoint needs no file of earlier ones."""
        return self._backend.save(uri, full=True)

    def restore(self, uri: Uri, *, epoch: Count | None = None) -> EvolutionPlan:
        """Continue from a checkpoint: the newest, or the one of an epoch.

        A flow without sources takes the sources and views of the checkpoint. A flow with its own keeps the state of
        unchanged views, builds changed and new ones from the sources' rows, and gives their watches the difference. On
        an error nothing has changed.

        Raises:
            ObjectNotFound: there is no such checkpoint.
            StorageError: a file of it is damaged or missing.
            ConfigError: a source has other columns than its rows in the checkpoint.
        """
        return self._backend.restore(uri, epoch)

    def plan(self, other: Flow) -> EvolutionPlan:
        """What would be kept, built again and dropped if a checkpoint of this flow were restored into ``other``."""
        wanted = other._backend
        return self._backend.plan(wanted.sources, wanted.views)

    def _declared_view(self, query: Any, mode: Mode, *, stored: bool) -> View:
        if isinstance(query, str):
            try:
                return View(require(Sql, query), mode, stored=stored)
            except ValueError as wrong:
                raise ConfigError(f"The SQL of a view is {shown(query)}; {wrong}.") from None
        text, plan, settings = self._frame_view(query)
        if mode is Mode.DIFF:
            raise frame_recomputed()
        return View(text, Mode.INCREMENTAL, stored=stored, plan=plan, settings=settings)

    def _kept_still(self, query: Any) -> AbstractContextManager[None]:  # noqa: ARG002 - frames are a Session's
        """Around the reading of a view's query and its registration."""
        return nullcontext()

    def _frame_view(self, frame: Any) -> tuple[str, str, SqlSettings]:
        """The text, plan and settings of a view that is made of a frame; a Session's flow has it."""
        raise ConfigError(
            f"A view is one query in SQL, not {kind_of(frame)}.",
            hint="a flow of a Session also takes frames that are made of flow.table(name)",
        )

    def _table_target(self, table: str, mode: str, key: str | Sequence[str] | None) -> SinkTarget:  # noqa: ARG002 - see below
        """What writes to a table; a Session's flow has it."""
        raise ConfigError(
            f"{table!r} cannot be a sink: this flow has no Session that could hold the table.",
            hint="make the flow with session.flow(name)",
        )


def _mode(mode: Mode | str) -> Mode:
    return one_of(Mode, mode, "No mode of a view is called")


def _spread(wanted: SourceSpread | str) -> SourceSpread:
    return one_of(SourceSpread, wanted, "Rows cannot be spread")
