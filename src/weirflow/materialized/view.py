"""``MaterializedView``: an Iceberg or Delta table that holds the rows of a query, and its refreshes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from weirflow.arguments import Sql, checked
from weirflow.materialized.alteration import alter_view
from weirflow.materialized.opened import open_view
from weirflow.materialized.refresh import Refresh
from weirflow.materialized.together import refresh_together

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession
    from weirflow.materialized.history import RefreshRecord
    from weirflow.materialized.note import Marks
    from weirflow.materialized.opened import OpenedView
    from weirflow.materialized.planner import RefreshPlan


@dataclass(frozen=True)
class MaterializedInfo:
    """What a materialized view is and how fresh.

    Attributes:
        name: its whole name.
        kind: ``iceberg`` or ``delta``.
        sql: its query.
        policy: how it may be refreshed.
        epoch: the number of its last refresh; 0 before the first.
        holds: the versions of the tables that its rows are made of.
        current: the versions that the tables have now.
        changed_rows: how many rows have changed since, roughly; None if nobody knows.
        plan: how the next refresh would go.
        last: how the last refresh went; None if nobody remembers.
    """

    name: str
    kind: str
    sql: str
    policy: str
    epoch: int
    holds: Marks
    current: Marks
    changed_rows: int | None
    plan: RefreshPlan
    last: RefreshRecord | None

    @property
    def is_fresh(self) -> bool:
        """Whether the rows are those of the tables as they are now, as far as anyone can tell."""
        return self.plan.mode == "none"


@checked
class MaterializedView:
    """A view that there is; ``session.materialized(name)`` finds it. It holds nothing open."""

    def __init__(self, session: FlowSession, view: OpenedView) -> None:
        self._session = session
        self._view = view

    @property
    def name(self) -> str:
        """Its whole name."""
        return self._view.name

    @property
    def sql(self) -> str:
        """Its query."""
        return self._view.definition.sql

    def refresh(self, *, full: bool = False, cascade: bool = False) -> RefreshRecord:
        """Bring it up to date with the tables that it reads, as they are now, in one commit of its table.

        Args:
            full: compute everything, and build the state anew.
            cascade: refresh the materialized views that it reads first, all from the same versions of other tables.

        Raises:
            RefreshRefused: its policy allows increments only, and this cannot be one.
            SinkConflict: somebody else has written to the table meanwhile, or the query has other columns now.
        """
        return self.refresh_all(full=full, cascade=cascade)[-1][1]

    def refresh_all(self, *, full: bool = False, cascade: bool = False) -> list[tuple[str, RefreshRecord]]:
        """As ``refresh``; returns the names of all views that were refreshed, it the last, and what was done."""
        if not cascade:
            return [(self.name, Refresh(self._session, self._view, full=full).run())]
        outcomes = refresh_together(self._session, [self._view], full=full, cascade=True)
        failed = next((one.error for one in outcomes if one.error is not None), None)
        if failed is not None:
            raise failed
        return [(one.view, one.record) for one in outcomes if one.record is not None]

    def describe(self) -> MaterializedInfo:
        """What it is, how fresh, and how the next refresh would go; reads no rows."""
        refresh = Refresh(self._session, self._view)
        refresh.give_back()
        note, records = refresh.holding.note, self.history()
        definition = self._view.definition
        estimate = refresh.plan.estimate
        return MaterializedInfo(
            name=self._view.name,
            kind=self._view.kind,
            sql=definition.sql,
            policy=definition.policy,
            epoch=0 if note is None else note.epoch,
            holds={} if note is None else note.sources,
            current=refresh.now,
            changed_rows=None if estimate is None else estimate.changed_rows,
            plan=refresh.plan,
            last=records[-1] if records else None,
        )

    def explain_refresh(self) -> str:
        """How the next refresh would go, and why, for people."""
        found = self.describe()
        lines = [f"{found.name}: {found.plan.mode}"]
        if found.plan.obstacle is not None:
            lines.append(f"  {found.plan.obstacle.code}: {found.plan.obstacle.why}")
        for name, now in found.current.items():
            before = found.holds.get(name)
            lines.append(f"  {name}: from {None if before is None else before.version} to {now.version}")
        if found.plan.estimate is not None:
            one = found.plan.estimate
            lines.append(
                f"  about {one.changed_rows} rows changed: {one.incremental_seconds:g} s by an increment, "
                f"{one.full_seconds:g} s in full"
            )
        return "\n".join(lines)

    def history(self) -> list[RefreshRecord]:
        """How its refreshes went, oldest first, as far as they are remembered."""
        return self._view.place.records()

    def alter(self, sql: Sql) -> None:
        """Let it compute another query from its next refresh on, under the settings that the Session has now.

        The table stays, with its snapshots, properties and history. The next refresh is a full one and builds the state
        anew, unless the query computes what the one before did. Columns that the query has and the table has not are
        added to the table, and are NULL until the refresh; those that the query has no longer are dropped.

        Raises:
            ConfigError: the query reads the view itself.
            SinkConflict: the table cannot have the columns of the query.
        """
        self._view = replace(self._view, definition=alter_view(self._session, self._view, sql))

    def drop(self) -> None:
        """Drop the table, and delete state and history."""
        native, view = self._session.spark, self._view
        self._session.operations.run(f"drop {view.name}", lambda: native.sql(f"DROP TABLE {view.table}"))
        view.place.forget()

    def __repr__(self) -> str:
        return f"<MaterializedView {self.name}>"


def materialized_view(session: FlowSession, name: str) -> MaterializedView:
    """The view of this name; see ``Session.materialized``."""
    return MaterializedView(session, open_view(session, name))
