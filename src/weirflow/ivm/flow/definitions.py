"""``Definitions``: what a flow is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirflow.arguments import Count, Name, Sql, checked
from weirflow.errors import ConfigError, TickPending
from weirflow.failpoints import failpoint
from weirflow.ivm.compiler.program import Mode, View
from weirflow.ivm.durability.records import DropRelation, ForceDiff
from weirflow.ivm.flow.core import FlowCore
from weirflow.ivm.flow.evolution import EvolutionPlan
from weirflow.ivm.flow.force import force_diff, is_forced
from weirflow.ivm.flow.persist import replace_entry, source_entry, view_entry
from weirflow.ivm.flow.rebuild import Rebuilt, rebuild
from weirflow.ivm.flow.refusals import not_refreshed, require_unsunk
from weirflow.ivm.flow.source import LATE, declared
from weirflow.ivm.flow.unfinished import Committed
from weirflow.types import one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weirflow.ivm.durability.records import Entry
    from weirflow.ivm.flow.source import Lateness, Source


@checked
class Definitions(FlowCore):
    """What a flow is made of."""

    def register_source(
        self,
        name: Name,
        schema: Any,
        *,
        key: str | Sequence[str] | None = None,
        dedup: bool | Count = False,
        lateness: Lateness | None = None,
    ) -> None:
        """Declare an input. Registering the same source again does nothing.

        Args:
            name: what views and ticks call it.
            schema: an Arrow schema, a DDL string such as ``"id BIGINT, name STRING"``, or data of that schema.
            key: columns that identify a row; rows given to ``tick`` are upserts then, and retractions delete by key.
                None, or no columns, if nothing does.
            dedup: drop a delta that equals the source's last one, or one of this many before it.
            lateness: send rows that come too late to the side output ``"<name>.late"``.
        """
        source = declared(name, schema, key=key, dedup=dedup, lateness=lateness)
        with self._ticks, self._lock:
            self._require_open()
            if not self._state.has_source(source):
                self._define(lambda: self._state.add_source(source), source_entry(source))

    def register_view(self, name: Name, sql: Sql, *, mode: Mode | str = Mode.AUTO, materialized: bool = True) -> None:
        """Declare a query over sources and other views, in any order; it is filled at once if there are rows.

        Registering the same view again does nothing.

        Args:
            name: what ``snapshot``, ``watch_output`` and other views call it.
            sql: one query, in Spark's SQL.
            mode: ``incremental`` refuses what has no delta rule, ``diff`` recomputes on Spark and compares, ``auto``
                chooses.
            materialized: keep its rows, so that it can be read at any time; deltas are emitted either way.
        """
        view = View(sql, one_of(Mode, mode, "No mode of a view is called"), stored=materialized)
        with self._ticks, self._lock:
            self._require_open()
            if not self._state.has_view(name, view):
                self._define(lambda: self._state.add_view(name, view), view_entry(name, view))

    def replace_view(
        self, name: Name, sql: Sql, *, mode: Mode | str = Mode.AUTO, materialized: bool = True
    ) -> EvolutionPlan:
        """Let a view compute something else, and rebuild the views that read it, as one epoch; see ``register_view``.

        Watches get the difference; those of views that have other columns now, or whose rows are not kept, end. On an
        error nothing has changed.
        """
        with self._ticks:
            view = View(sql, one_of(Mode, mode, "No mode of a view is called"), stored=materialized)
            if self._view(name) == view:
                return EvolutionPlan(kept=self.views)
            return self._rebuild(name, view)

    def refresh_view(self, name: Name) -> EvolutionPlan:
        """Compute a view, and what it reads and what reads it, afresh from the sources' rows, as one epoch.

        Watches get the difference: there is one where a view depends on more than the sources, as on a function.
        """
        with self._ticks:
            view = self._view(name)
            if not view.stored:
                raise not_refreshed(name)
            return self._rebuild(name, view)

    def force_diff_based(self, view: Name | None = None) -> None:
        """Have a view recomputed by Spark and compared, whatever its mode; without a name all views, later ones too.

        Its deltas stay the same. Should the rows differ from those that were maintained, watches get the difference,
        as one epoch. It stays so when a durable flow is reopened; doing it again does nothing.

        Raises:
            EngineMissing: the flow has no Session.
            ConfigError: a view reads another one whose rows are not kept.
        """
        with self._ticks:
            with self._lock:
                self._require_open()
                done = is_forced(self._state, view)
            if not done:
                self._take_over(lambda: force_diff(self._state, view), lambda epoch: ForceDiff(epoch, view))

    def view(self, function: Callable[[], str]) -> Callable[[], str]:
        """Register the SQL that a function returns as a view of the function's name; use it as a decorator."""
        self.register_view(getattr(function, "__name__", ""), function())
        return function

    def drop(self, name: Name) -> None:
        """Remove a source or view that no view reads, with its state; its watches end."""
        with self._ticks, self._lock:
            self._require_open()
            if self._pending is not None and name in self._pending.changes:
                raise TickPending(f"A tick that failed waits to change {name!r}.", hint="discard() it first")
            self._state.check_drop(name)
            self._sinks.close(lambda view: view == name)
            self._define(lambda: self._state.drop(name), DropRelation(name))
            self._outputs.close(lambda view: view.removesuffix(LATE) == name)

    def source(self, name: Name) -> Source:
        """How a source was declared; ``ConfigError`` if there is none of this name."""
        with self._lock:
            self._require_open()
            return self._state.input(name).source

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources."""
        return tuple(self._state.inputs)

    @property
    def views(self) -> tuple[str, ...]:
        """The names of the views, also of those that wait for something they read."""
        return (*self._state.views, *self._state.waiting)

    @property
    def waiting(self) -> dict[str, str]:
        """The views that cannot be computed yet, each with what it waits for; all others tick."""
        with self._lock:
            self._settle()
            return {name: self._state.reasons[name].message for name in self._state.waiting}

    def _view(self, name: str) -> View:
        with self._lock:
            self._require_open()
            self._ready()
            if self._state.relation(name) in self._state.inputs:
                raise ConfigError(f"{name!r} is a source, not a view.")
            return self._state.views[name]

    def _rebuild(self, name: str, view: View) -> EvolutionPlan:
        def build() -> Rebuilt:
            rebuilt = rebuild(self._state, name, view)
            sunk = self._sinks.views & set(rebuilt.plan.rebuilt) if view != self._state.views[name] else set[str]()
            require_unsunk(sunk)
            return rebuilt

        return self._take_over(build, lambda epoch: replace_entry(epoch, name, view))

    def _define(self, define: Callable[[], None], entry: Entry) -> None:
        """Change what the flow is made of, and log it."""

        def apply() -> Committed:
            define()
            failpoint("define.before_log")
            return Committed([lambda: failpoint("define.after_log")])

        self._change(apply, lambda: entry, self._state.keep())
