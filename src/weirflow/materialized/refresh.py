"""``Refresh``: one refresh of one materialized view, step by step; see docs/decisions/0018-materialized-views.md."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from weirflow.errors import LeaseLost, NotIncremental, StorageError
from weirflow.failpoints import failpoint
from weirflow.flows.sinks.whole_rows import RowsMissing
from weirflow.flows.small_stages import FEW_ROWS
from weirflow.flows.table_flow import TableFlow
from weirflow.ivm.sharded.backend import DeltaTooLarge
from weirflow.materialized.definition import RefreshPolicy
from weirflow.materialized.history import LOOKED_AT, Cost, RefreshRecord, most_rows_worth_it
from weirflow.materialized.note import Note, StateName
from weirflow.materialized.pins import Pins
from weirflow.materialized.planner import RefreshMode, RefreshPlan, choose, large_change, require_allowed
from weirflow.materialized.reasons import FullReason, Obstacle
from weirflow.materialized.sources import SourceTables
from weirflow.materialized.target import Target, unmatched

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.flows.host import FlowSession
    from weirflow.ivm.flow.summary import StepSummary
    from weirflow.materialized.note import Marks
    from weirflow.materialized.opened import OpenedView

T = TypeVar("T")

_FEW = 20_000
"""Up to so many rows that go or come are read by this process."""


class _NoIncrement(Exception):
    """An increment was begun and is not possible."""

    def __init__(self, obstacle: Obstacle, *, keeps_state: bool = False) -> None:
        super().__init__(obstacle.why)
        self.obstacle = obstacle
        self.keeps_state = keeps_state


class Refresh:
    """Brings a view up to date with its sources as they are when this is made.

    Args:
        session: whose Spark does it.
        view: which one.
        full: whether everything is to be computed.
        pins: versions of tables that are to be read, whatever they have by now; others are pinned now, and put there.

    Attributes:
        plan: how it will be done.
        now: the versions of the sources.

    Raises:
        RefreshRefused: the view's policy does not allow what would have to be done.
    """

    def __init__(self, session: FlowSession, view: OpenedView, *, full: bool = False, pins: Pins | None = None) -> None:
        self._session = session
        self._view = view
        self._begun = time.perf_counter()
        self._state_seconds = 0.0
        self._changed_rows: int | None = None
        main = session.spark
        self._sources = self._run("look at the sources of", lambda: SourceTables(main, view.definition))
        native, definition = self._sources.native, view.definition
        self._target = Target(native, view.table, view.kind, definition.id, view.place)
        self.holding = self._run("look at", self._target.holding)
        self._pins = pins or Pins()
        self.now: Marks = self._run("look at the sources of", self._pin)
        self.plan: RefreshPlan = self._run(
            "plan a refresh of",
            lambda: choose(
                definition, self.holding, self._sources, self.now, lambda: view.place.records(LOOKED_AT), full=full
            ),
        )

    def _pin(self) -> Marks:
        return self._pins.pin(self._sources.pin())

    def run(self) -> RefreshRecord:
        """Do it; returns what was done.

        Raises:
            RefreshRefused: it turned out to need a full refresh, which the view's policy does not allow.
            SinkConflict: somebody else has written to the table meanwhile, or the query has other columns now.
            ColumnNotFound: a table has lost a column that the query reads.
        """
        try:
            done = self._done()
        except (LeaseLost, StorageError) as error:
            if isinstance(error, LeaseLost) or not self._run(
                "look at", lambda: self._target.is_at(self.holding.version)
            ):
                raise self._target.conflict() from error
            raise
        finally:
            self._run("let go of the sources of", self._sources.release)
        self.give_back()
        return done

    def give_back(self) -> None:
        """Leave its native session to others, where it is not to be run, or has been."""
        self._run("let go of the sources of", self._sources.give_back)

    def _done(self) -> RefreshRecord:
        query = self._run("read", self._sources.query)  # which tells, also where no row has changed
        failpoint("refresh.before_state")
        if self.plan.mode is RefreshMode.NONE:
            return self._record(RefreshMode.NONE, None, self.holding.note, self.holding.version, None)
        if self.plan.mode is RefreshMode.INCREMENTAL:
            self._run("look at", lambda: self._target.require_columns(query))
            try:
                return self._increment()
            except _NoIncrement as found:
                self._require_allowed(found.obstacle)
                self._changed_rows = None
                self.plan = RefreshPlan(RefreshMode.FULL, found.obstacle, self.plan.estimate, found.keeps_state)
        return self._full()

    # An increment

    def _increment(self) -> RefreshRecord:
        before = self.holding.note
        assert before is not None
        assert before.state is not None
        with self._opened(before.state) as flow:
            moved = self._move(flow, before, before.state)
            self._changed_rows = moved.rows_in
            state = StateName(before.state.generation, flow.commit_number, self.now)
            failpoint("refresh.after_state")
            note = self._note(RefreshMode.INCREMENTAL, None, state)
            try:
                return self._commit(note, lambda: self._bring_in(flow, moved.rows_out, note), None, moved.rows_out)
            except RowsMissing as found:
                why = f"{self._view.name} does not have the rows that its state says it has."
                raise _NoIncrement(Obstacle(FullReason.STATE_LOST, why)) from found

    def _bring_in(self, flow: TableFlow, rows: int, note: Note) -> str:
        if rows > _FEW:
            return self._target.merge(flow.changed(self._sources.native), note)
        assert note.base is not None  # the version that an increment stands on
        changed = flow.changed_here() if rows else flow.no_change()
        known, table, origin = self._sources.known_rows, self._view.table, self._target.origin
        before = known(table, origin, note.base, changed.schema)
        if rows:
            version, now = self._target.merge_few(changed, before, note)
        else:
            version, now = self._target.advance(note), before
        self._sources.remember(table, origin, note.base, version, changed)
        if now is not None:
            self._sources.remember(table, origin, None, version, now)
        return version

    def _opened(self, state: StateName) -> TableFlow:
        try:
            return TableFlow(self._session, self._view.place.state(state.generation), at=state.commit)
        except StorageError as error:
            raise _NoIncrement(_lost(error)) from error

    def _move(self, flow: TableFlow, before: Note, state: StateName) -> StepSummary:
        """Bring the state from where it is to the table's versions, if it was left behind, and then to the new ones."""
        known: dict[str, pa.Schema] = {one.name: flow.columns(one.parts) for one in self._sources.tables.values()}
        obstacle = self._sources.columns_obstacle(known)
        if obstacle is not None:
            raise _NoIncrement(obstacle)
        here = flow.here if self._is_few() else None
        try:
            if state.sources != before.sources:
                with_lag = time.perf_counter()
                flow.move(self._deltas(known, state.sources, before.sources, here))
                self._state_seconds = time.perf_counter() - with_lag
            return flow.move(self._deltas(known, before.sources, self.now, here), most=self._most_rows())
        except StorageError as error:
            raise _NoIncrement(_lost(error)) from error
        except DeltaTooLarge as found:
            raise _NoIncrement(large_change(found.rows), keeps_state=True) from found

    def _most_rows(self) -> int | None:
        """How many rows may have changed, where that could not be known before: if it is more, it is left at that."""
        estimate = self.plan.estimate
        if estimate is None or not estimate.uncounted_rows or self._view.definition.policy is not RefreshPolicy.AUTO:
            return None
        return most_rows_worth_it(estimate)

    def _is_few(self) -> bool:
        """Whether the tables themselves say that few rows have changed, those that the state is behind included."""
        estimate = self.plan.estimate
        return estimate is not None and max(estimate.changed_rows, estimate.uncounted_rows) <= FEW_ROWS

    def _deltas(
        self,
        known: dict[str, pa.Schema],
        before: Marks | None,
        now: Marks,
        here: Callable[[Any], pa.Table] | None = None,
    ) -> dict[tuple[str, ...], Any]:
        return self._run("read the changes for", lambda: self._sources.deltas(known, before, now, here))

    # Everything

    def _full(self) -> RefreshRecord:
        obstacle = self.plan.obstacle
        assert obstacle is not None
        query = self._run("plan", self._pinned_query)
        self._run("look at", lambda: self._target.require_columns(query))
        state, lasting = self._kept_state() if self.plan.keeps_state else self._built_state(query)
        if lasting is not None:
            obstacle = lasting
            self._require_allowed(obstacle)
        failpoint("refresh.after_state")
        note = self._note(RefreshMode.FULL, obstacle.code, state)
        return self._commit(note, lambda: self._target.replace(query, note), obstacle, None)

    def _pinned_query(self) -> Any:
        """The query over the pinned versions; tables that have none are pinned again should they have one by then."""
        while True:
            query = self._sources.query(self.now)
            without = [name for name, mark in self.now.items() if mark.version is None]
            if not without:
                return query
            found = self._pin()
            if all(found[name] == self.now[name] for name in without):
                return query
            self.now = found

    def _kept_state(self) -> tuple[StateName | None, None]:
        return (None if self.holding.note is None else self.holding.note.state), None

    def _built_state(self, query: Any) -> tuple[StateName | None, Obstacle | None]:
        """A new state at the pinned versions; or none, and why there will never be one."""
        lasting = self._sources.lasting_obstacle() or unmatched(query)
        if lasting is not None or self._view.definition.policy is RefreshPolicy.FULL:
            return None, lasting
        begun = time.perf_counter()
        generation = self._view.place.new_generation()
        tables = self._sources.schemas()
        with TableFlow(self._session, self._view.place.state(generation)) as flow:
            try:
                flow.define(self._run("read", self._sources.query), tables)
            except NotIncremental as refused:
                return None, Obstacle(refused.reason, refused.message, is_lasting=True)
            known = {table.name: flow.columns(table.parts) for table in self._sources.tables.values()}
            flow.move(self._deltas(known, None, self.now))
            found = StateName(generation, flow.commit_number, self.now)
        self._state_seconds += time.perf_counter() - begun
        return found, None

    # The commit

    def _note(self, mode: RefreshMode, code: str | None, state: StateName | None) -> Note:
        epoch = self._run("look at", lambda: self._target.next_epoch(self.holding.note))
        definition, base = self._view.definition, self.holding.version
        attempt, revision = uuid.uuid4().hex, definition.revision
        return Note(definition.id, epoch, attempt, base, self.now, state, mode, code, revision=revision)

    def _commit(
        self, note: Note, commit: Callable[[], str], obstacle: Obstacle | None, rows: int | None
    ) -> RefreshRecord:
        begun = time.perf_counter()
        failpoint("refresh.before_commit")
        version = self._run("refresh", commit)
        failpoint("refresh.after_commit")
        main, table = self._session.spark, self._view.table
        self._run("refresh", lambda: main.catalog.refreshTable(table))  # which may hold on to what was there before
        place = self._view.place
        place.put_landmark(version, note)
        failpoint("refresh.after_landmark")
        took = time.perf_counter() - begun
        record = self._record(RefreshMode(note.mode), obstacle, note, version, rows, commit_seconds=took)
        place.put_record(record)
        place.forget_other_states(None if note.state is None else note.state.generation)
        return record

    def _record(
        self,
        mode: RefreshMode,
        obstacle: Obstacle | None,
        note: Note | None,
        version: str | None,
        rows: int | None,
        *,
        commit_seconds: float = 0.0,
    ) -> RefreshRecord:
        assert note is not None
        seconds = time.perf_counter() - self._begun - self._state_seconds
        return RefreshRecord(
            epoch=note.epoch,
            attempt=note.attempt,
            finished_at=datetime.now(UTC),
            mode=mode,
            code=None if obstacle is None else str(obstacle.code),
            why=None if obstacle is None else obstacle.why,
            version=version,
            sources=note.sources,
            source_rows=self._run("look at the sources of", lambda: self._sources.rows(note.sources)),
            rows=rows,
            estimate=self.plan.estimate,
            cost=Cost(round(seconds, 3), round(self._state_seconds, 3), round(commit_seconds, 3)),
            changed_rows=self._changed_rows,
        )

    def _require_allowed(self, obstacle: Obstacle) -> None:
        if self._view.definition.policy is RefreshPolicy.STRICT:
            require_allowed(obstacle)

    def _run(self, what: str, call: Callable[[], T]) -> T:
        return self._session.operations.run(f"{what} {self._view.name}", call)


def _lost(error: StorageError) -> Obstacle:
    return Obstacle(FullReason.STATE_LOST, f"The state that the table names cannot be used: {error.message}")
