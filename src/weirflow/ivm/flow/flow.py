"""``IncrementalFlow``: views over changing sources, kept up to date tick by tick."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.errors import ConfigError, TableNotFound, TickPending, did_you_mean
from weirflow.ivm.compiler.program import Engine, Mode, Program, View, in_order
from weirflow.ivm.flow.history import History
from weirflow.ivm.flow.schema import read_schema
from weirflow.ivm.flow.source import Change, Lateness, Source, SourceInput
from weirflow.ivm.flow.summary import StepSummary
from weirflow.ivm.flow.watch import OverflowPolicy, Watch
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.ivm.zset.rows import consolidate

if TYPE_CHECKING:
    from collections.abc import Sequence

_log = logging.getLogger(__name__)

_TOKENS = 100_000
_HISTORY_BYTES = 64 << 20
_LATE = ".late"


@dataclass(frozen=True)
class _Pending:
    """A tick on its way: what it was given is kept until it succeeds or is discarded."""

    changes: Mapping[str, Change]
    token: str | None


class IncrementalFlow:
    """Sources, SQL views over them, and ticks that bring deltas.

    Needs no Spark and no Session for views that are maintained by deltas; ``session.flow(name)`` makes one that also
    runs others on Spark. Methods may be called from several threads; ticks run one after the other.

    >>> flow = IncrementalFlow()
    >>> flow.register_source("orders", "customer STRING, amount BIGINT")
    >>> flow.register_view("totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer")
    >>> flow.tick("orders", [{"customer": "ann", "amount": 5}]).rows_out
    1
    >>> flow.snapshot("totals").to_pylist()
    [{'customer': 'ann', 'total': 5}]

    Args:
        name: what errors, metrics and stores call the flow.
        history: of how many epochs deltas are kept for ``watch_output(from_epoch=...)`` and ``snapshot(epoch=...)``.
        engine: what runs views that are not incremental.
    """

    def __init__(self, name: str = "flow", *, history: int = 1000, engine: Engine | None = None) -> None:
        self.name = name
        self._lock = threading.RLock()
        self._program = Program(engine)
        self._sources: dict[str, SourceInput] = {}
        self._views: dict[str, View] = {}
        self._waiting: dict[str, View] = {}
        self._epoch = 0
        self._tokens: OrderedDict[str, int] = OrderedDict()
        self._history = History(epochs=history, nbytes=_HISTORY_BYTES)
        self._watches: list[Watch] = []
        self._callbacks: dict[str, list[Callable[[int, DeltaBatch], None]]] = {}
        self._pending: _Pending | None = None

    # What the flow is made of

    def register_source(
        self,
        name: str,
        schema: Any,
        *,
        key: str | Sequence[str] | None = None,
        dedup: bool | int = False,
        lateness: Lateness | None = None,
    ) -> None:
        """Declare an input.

        Registering the same source again does nothing.

        Args:
            name: what views and ticks call it.
            schema: an Arrow schema, a DDL string such as ``"id BIGINT, name STRING"``, or data of that schema.
            key: columns that identify a row; rows given to ``tick`` are upserts then, and retractions delete by key.
            dedup: drop a delta that equals the source's last one, or one of this many before it.
            lateness: send rows that come too late to the side output ``"<name>.late"``.
        """
        columns = () if key is None else (key,) if isinstance(key, str) else tuple(key)
        source = Source(name, read_schema(schema), columns, int(dedup), lateness)
        with self._lock:
            if name in self._sources and self._sources[name].source == source:
                return
            self._refuse_taken(name)
            self._program.add_source(name, source.schema, key=columns)
            store = self._program.relations[name].store
            assert store is not None
            self._sources[name] = SourceInput(source, self._program.store(name).arrangement, store.positions)
            self._build_waiting()

    def register_view(self, name: str, sql: str, *, mode: Mode | str = Mode.AUTO, materialized: bool = True) -> None:
        """Declare a query over sources and other views, in any order; it is filled at once if there are rows.

        Registering the same view again does nothing.

        Args:
            name: what ``snapshot``, ``watch_output`` and other views call it.
            sql: one query, in Spark's SQL.
            mode: ``incremental`` refuses what has no delta rule, ``diff`` recomputes on Spark and compares, ``auto``
                chooses.
            materialized: keep its rows, so that it can be read at any time; deltas are emitted either way.
        """
        view = View(sql, Mode(mode), stored=materialized)
        with self._lock:
            if self._views.get(name) == view or self._waiting.get(name) == view:
                return
            self._refuse_taken(name)
            in_order({one: other.sql for one, other in (*self._waiting.items(), (name, view))})
            self._waiting[name] = view
            try:
                self._build_waiting()
            except BaseException:
                self._waiting.pop(name, None)
                raise

    def view(self, function: Callable[[], str]) -> Callable[[], str]:
        """Register the SQL that a function returns as a view of the function's name; use it as a decorator."""
        self.register_view(function.__name__, function())
        return function

    # Ticks

    @property
    def epoch(self) -> int:
        """The number of the last tick."""
        return self._epoch

    def tick(self, source: str | Mapping[str, Any], delta: Any = None, *, token: str | None = None) -> StepSummary:
        """Apply a delta to a source, or to several at once, and bring every view that reads it to the new epoch.

        A delta is a ``DeltaBatch``, or rows (Arrow, pandas, Polars, dicts) that are inserted, or upserted where the
        source has a key. Either everything happens or nothing: when a view fails (an overflow, say) the delta is kept,
        and ``retry()`` or ``discard()`` decides about it.

        Args:
            source: the source's name, or a mapping of names to deltas.
            delta: the delta, unless ``source`` is a mapping.
            token: names the tick; a tick whose token was seen before does nothing.

        Raises:
            DataError: a row breaks a rule of a view, or a retracted row is not there.
            ConfigError: the delta does not fit the source's schema.
            TickPending: an earlier tick failed and waits.
        """
        deltas = dict(source) if isinstance(source, Mapping) else {source: delta}
        with self._lock:
            self._refuse_pending()
            if token is not None and token in self._tokens:
                return StepSummary(self._tokens[token], 0, 0, 0.0, replayed=True)
            self._ready()
            changes = {name: self._input(name).read(data) for name, data in deltas.items()}
            return self._run(_Pending(changes, token))

    def load(self, source: str, data: Any, *, token: str | None = None) -> StepSummary:
        """Insert (or upsert) a table of rows as one tick; made for millions of them."""
        return self.tick(source, data, token=token)

    def retry(self) -> StepSummary:
        """Run the tick that failed again."""
        with self._lock:
            if self._pending is None:
                raise ConfigError("No tick is pending.")
            return self._run(self._pending)

    def discard(self) -> None:
        """Give up the tick that failed: its delta never happened. Does nothing without one."""
        with self._lock:
            self._pending = None

    @property
    def pending(self) -> bool:
        """Whether a tick failed and waits for ``retry`` or ``discard``."""
        return self._pending is not None

    # What the views hold

    def snapshot(self, view: str, *, epoch: int | None = None) -> pa.Table:
        """All rows of a view or source, now or after an earlier epoch whose deltas are still kept."""
        with self._lock:
            self._ready()
            name = self._relation(view)
            relation = self._program.relations[name]
            if relation.store is None:
                raise ConfigError(
                    f"The rows of {name!r} are not kept.", hint="register the view with materialized=True"
                )
            rows = self._program.rows(name)
            if epoch is not None:
                if epoch > self._epoch:
                    raise ConfigError(f"The flow is at epoch {self._epoch}; {epoch} is yet to come.")
                undone = [delta.negate() for _, delta in self._history.since(epoch, name)]
                rows = consolidate(Batch.concat([rows, *undone]))
            return DeltaBatch.of_batch(self._schema(name), rows).inserts()

    def watch_output(
        self,
        view: str,
        *,
        snapshot: bool = False,
        from_epoch: int | None = None,
        capacity: int = 1024,
        policy: OverflowPolicy | str = OverflowPolicy.FAIL,
    ) -> Watch:
        """The deltas of a view from now on, as an iterator of ``(epoch, DeltaBatch)``; nothing is ever left out.

        Args:
            view: the view, or ``"<source>.late"`` for rows that came too late.
            snapshot: begin with all rows of now.
            from_epoch: begin with the deltas after this epoch, where they are still kept.
            capacity: how many deltas may wait for the reader.
            policy: what happens beyond that: ``fail`` the reader, or ``block`` the ticks.
        """
        if snapshot and from_epoch is not None:
            raise ConfigError("A watch begins with a snapshot or after an epoch, not both.")
        if capacity < 1:
            raise ConfigError("The capacity of a watch is at least 1.")
        with self._lock:
            self._ready()
            name = self._output(view)
            watch = Watch(name, capacity=capacity, policy=OverflowPolicy(policy), detach=self._detach)
            if snapshot:
                watch.begin(self._epoch, [(self._epoch, DeltaBatch.from_inserts(self.snapshot(name)))])
            elif from_epoch is not None:
                kept = self._history.since(from_epoch, name)
                watch.begin(self._epoch, [(number, self._delta(name, delta)) for number, delta in kept])
            else:
                watch.begin(self._epoch, ())
            self._watches.append(watch)
            return watch

    def on_delta(self, view: str, callback: Callable[[int, DeltaBatch], None]) -> None:
        """Call a function with ``(epoch, delta)`` after each tick that changes the view, in the tick's thread.

        What it raises is logged; it cannot undo the tick.
        """
        with self._lock:
            self._callbacks.setdefault(self._output(view), []).append(callback)

    # Inner workings

    def _run(self, pending: _Pending) -> StepSummary:
        """Step, then commit; whatever raises before the commit leaves everything as it was and the tick pending."""
        started = time.perf_counter()
        self._pending = pending
        circuit = self._program.circuit
        rows = {name: change.rows for name, change in pending.changes.items() if len(change.rows)}
        try:
            outputs = circuit.step(rows)
            outputs |= {f"{name}{_LATE}": change.late for name, change in pending.changes.items() if len(change.late)}
            self._await_room(outputs)
        except BaseException:
            circuit.discard()
            raise
        circuit.commit(sum(len(batch) for batch in rows.values()))
        self._pending = None
        self._epoch += 1
        for name, change in pending.changes.items():
            self._sources[name].accept(change)
        if pending.token is not None:
            self._remember(pending.token)
        self._history.append(self._epoch, outputs | rows)
        self._publish(outputs)
        views = {name: len(delta) for name, delta in outputs.items() if not name.endswith(_LATE)}
        return StepSummary(
            epoch=self._epoch,
            rows_in=sum(change.rows_in for change in pending.changes.values()),
            rows_out=sum(views.values()),
            duration_ms=(time.perf_counter() - started) * 1000,
            views=views,
            late=sum(len(change.late) for change in pending.changes.values()),
            dropped=sum(change.rows_in for change in pending.changes.values() if change.dropped),
        )

    def _ready(self) -> None:
        """All views compiled and filled; a view that reads what is not there is an error by now."""
        self._build_waiting()
        if self._waiting:
            name, view = next(iter(self._waiting.items()))
            self._program.add_views({name: view})  # raises what keeps it waiting
        self._fill()

    def _build_waiting(self) -> None:
        """Compile the views whose inputs are all known."""
        for name in in_order({name: view.sql for name, view in self._waiting.items()}):
            try:
                self._program.add_views({name: self._waiting[name]})
            except TableNotFound:
                continue
            self._views[name] = self._waiting.pop(name)
        if self._epoch:
            self._fill()

    def _fill(self) -> None:
        before = set(self._program.relations)
        try:
            self._program.fill()
        except BaseException:
            for name in before - self._program.relations.keys():
                del self._views[name]
            raise

    def _await_room(self, outputs: Mapping[str, Batch]) -> None:
        deadline = time.monotonic() + 30.0
        for watch in self._watches:
            if watch.view in outputs:
                watch.await_room(deadline)

    def _publish(self, outputs: Mapping[str, Batch]) -> None:
        deltas: dict[str, DeltaBatch] = {}
        for watch in self._watches:
            if watch.view in outputs:
                delta = deltas.setdefault(watch.view, self._delta(watch.view, outputs[watch.view]))
                watch.put(self._epoch, delta)
        for name, callbacks in self._callbacks.items():
            if name in outputs:
                delta = deltas.setdefault(name, self._delta(name, outputs[name]))
                for callback in callbacks:
                    self._call(callback, name, delta)

    def _call(self, callback: Callable[[int, DeltaBatch], None], name: str, delta: DeltaBatch) -> None:
        try:
            callback(self._epoch, delta)
        except Exception:  # noqa: BLE001 - whatever a callback raises, the tick has happened
            _log.exception("a callback for deltas of %s failed at epoch %d", name, self._epoch)

    def _remember(self, token: str) -> None:
        self._tokens[token] = self._epoch
        if len(self._tokens) > _TOKENS:
            self._tokens.popitem(last=False)

    def _detach(self, watch: Watch) -> None:
        with self._lock:
            if watch in self._watches:
                self._watches.remove(watch)

    def _delta(self, name: str, rows: Batch) -> DeltaBatch:
        return DeltaBatch.of_batch(self._schema(name.removesuffix(_LATE)), rows)

    def _schema(self, name: str) -> pa.Schema:
        return pa.schema([(field.name, field.type) for field in self._program.relations[name].fields])

    def _input(self, name: str) -> SourceInput:
        if name not in self._sources:
            found = "is a view" if name in self._views else "is not registered"
            raise ConfigError(
                f"{name!r} {found}; deltas go to sources.",
                hint=did_you_mean(name, self._sources) or _listed(self._sources),
            )
        return self._sources[name]

    def _relation(self, name: str) -> str:
        if name not in self._program.relations:
            known = self._program.relations
            raise TableNotFound(
                f"The flow has no source or view {name!r}.", hint=did_you_mean(name, known) or _listed(known)
            )
        return name

    def _output(self, name: str) -> str:
        """A view, or the late rows of a source."""
        if name.endswith(_LATE) and name.removesuffix(_LATE) in self._sources:
            return name
        if name in self._sources:
            raise ConfigError(f"{name!r} is a source; its deltas are those you give it.", hint="watch a view")
        return self._relation(name) if name not in self._waiting else name

    def _refuse_taken(self, name: str) -> None:
        if not name.isidentifier():
            raise ConfigError(f"{name!r} is no name for a source or view.", hint="use letters, digits and underscores")
        taken = {one.casefold() for one in (*self._sources, *self._views, *self._waiting)}
        if name.casefold() in taken:
            raise ConfigError(
                f"The flow already has a source or view {name!r}, and it is another one.",
                hint="choose another name, or drop the old one first",
            )

    def _refuse_pending(self) -> None:
        if self._pending is not None:
            raise TickPending(
                "The last tick failed and its delta is kept.", hint="call retry() or discard() before the next tick"
            )


def _listed(names: Mapping[str, object]) -> str | None:
    return f"there is {', '.join(sorted(names))}" if names else None
