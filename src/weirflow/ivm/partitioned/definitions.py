"""``PartitionedDefinitions``: what a partitioned flow is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirflow.arguments import Count, Name, Sql, checked
from weirflow.errors import ConfigError
from weirflow.ivm.compiler.program import Mode, View, no_engine
from weirflow.ivm.compiler.reads import in_order, readers_of, with_read, with_readers
from weirflow.ivm.flow.evolution import EvolutionPlan
from weirflow.ivm.flow.persist import view_entry
from weirflow.ivm.flow.refusals import no_source, not_refreshed, require_free_name, require_unread, require_unsunk
from weirflow.ivm.flow.source import declared
from weirflow.ivm.partitioned.core import PartitionedCore, Shards
from weirflow.types import SourceSpread, one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from weirflow.ivm.flow.source import Lateness, Source


@checked
class PartitionedDefinitions(PartitionedCore):
    """What a partitioned flow is made of."""

    def register_source(
        self,
        name: Name,
        schema: Any,
        *,
        key: str | Sequence[str] | None = None,
        dedup: bool | Count = False,
        lateness: Lateness | None = None,
        spread: SourceSpread | str | None = None,
    ) -> None:
        """Declare an input; see ``IncrementalFlow.register_source``.

        Its rows may be spread over the shards by their use, ``"evenly"`` for rows of which most have the same key, or
        ``"everywhere"`` for small tables; see ``SourceSpread``. ``rescale`` changes it.
        """
        source = declared(name, schema, key=key, dedup=dedup, lateness=lateness)
        how = None if spread is None else _spread(spread)
        with self._ticks, self._lock:
            self._require_open()
            if self._known_sources().get(name) == source:
                self._require_spread(name, how)
                return
            require_free_name(name, (*self.sources, *self.views))
            if how not in (None, SourceSpread.BY_USE):
                self._spread[name] = how
            else:
                self._spread.pop(name, None)
            self._sources[name] = source

    def source(self, name: Name) -> Source:
        """How a source was declared; ``ConfigError`` if there is none of this name."""
        found = self._known_sources().get(name)
        if found is None:
            raise no_source(name, self.views, self.sources)
        return found

    def register_view(self, name: Name, sql: Sql, *, mode: Mode | str = Mode.AUTO, materialized: bool = True) -> None:
        """Declare a query over sources and other views; see ``IncrementalFlow.register_view``.

        A view that has no delta rule is recomputed by Spark and compared, shard by shard.
        """
        view = View(sql, one_of(Mode, mode, "No mode of a view is called"), stored=materialized)
        with self._ticks, self._lock:
            self._require_open()
            if self._known_views().get(name) == view:
                return
            require_free_name(name, (*self.sources, *self.views))
            in_order({one: other.sql for one, other in (*self._known_views().items(), (name, view))})
            if self.epoch:
                self._define(also={name: view})
            else:
                views = {**self._views, name: view}
                self._wrong(self._ready(views), {name})
                self._views = views

    def replace_view(
        self, name: Name, sql: Sql, *, mode: Mode | str = Mode.AUTO, materialized: bool = True
    ) -> EvolutionPlan:
        """Let a view compute something else, and rebuild the views that read it, as one epoch.

        They are filled anew from the rows that are there; see ``IncrementalFlow.replace_view`` for what watches get.
        """
        view = View(sql, one_of(Mode, mode, "No mode of a view is called"), stored=materialized)
        with self._ticks, self._lock:
            if self._view(name) == view:
                return EvolutionPlan(kept=self.views)
            rebuilt = with_readers(name, self._known_views())
            require_unsunk(self._sinks.views & rebuilt)
            return self._rebuild(name, view, rebuilt)

    def refresh_view(self, name: Name) -> EvolutionPlan:
        """Compute a view, and what it reads and what reads it, afresh; see ``IncrementalFlow.refresh_view``."""
        with self._ticks, self._lock:
            view = self._view(name)
            if not view.stored:
                raise not_refreshed(name)
            views = self._known_views()
            return self._rebuild(name, view, with_readers(name, views) | with_read(name, views))

    def force_diff_based(self, view: Name | None = None) -> None:
        """Have a view recomputed by Spark and compared, whatever its mode; without a name all views, later ones too.

        Its deltas stay the same; see ``IncrementalFlow.force_diff_based``.
        """
        with self._ticks, self._lock:
            self._require_settled()
            if not self._executor.recomputes:
                raise no_engine()
            self._define()
            definition = self._coordinator.definition
            if view is not None and self._relation(view) in definition.sources:
                raise ConfigError(f"{view!r} is a source, not a view.")
            wanted = definition.views if view is None else (view,)
            new = [name for name in wanted if name not in definition.recomputed]
            if new or (view is None and not definition.forced):
                self._require_all_rows()
                self._change(lambda: self._coordinator.force(new, later=view is None))

    def view(self, function: Callable[[], str]) -> Callable[[], str]:
        """Register the SQL that a function returns as a view of the function's name; use it as a decorator."""
        self.register_view(getattr(function, "__name__", ""), function())
        return function

    def drop(self, name: Name) -> None:
        """Remove a source or view that no view reads, with its state; its watches end."""
        with self._ticks, self._lock:
            self._require_settled()
            require_unread(name, readers_of(name, self._known_views()))
            if name in self._sources or name in self._views:
                self._sources.pop(name, None)
                self._views.pop(name, None)
                return
            self._relation(name)
            self._sinks.close(lambda view: view == name)
            self._change(lambda: self._coordinator.drop(name))

    def _view(self, name: str) -> View:
        self._require_settled()
        self._define()
        if self._relation(name) in self._known_sources():
            raise ConfigError(f"{name!r} is a source, not a view.")
        return self._known_views()[name]

    def _rebuild(self, name: str, view: View, rebuilt: set[str]) -> EvolutionPlan:
        self._sinks.before_tick()
        self._outputs.await_room(dict.fromkeys(self._outputs.watched & rebuilt))
        views = {**self._known_views(), name: view}
        order = [one for one in in_order({key: value.sql for key, value in views.items()}) if one in rebuilt]
        self._change(lambda: self._coordinator.replace(view_entry(name, view), order))
        kept = tuple(one for one in self.views if one not in rebuilt)
        return EvolutionPlan(kept=kept, rebuilt=tuple(order))

    def rescale(self, partitions: Shards, *, spread: Mapping[Name, SourceSpread | str] | None = None) -> None:
        """Spread the flow over another number of shards, at the epoch it is at; results stay the same.

        All views are filled anew from the rows of the sources.

        Args:
            partitions: how many shards there are from now on.
            spread: how the rows of some sources are spread over them from now on; others stay as they are.

        Raises:
            ConfigError: a source does not keep its rows, or there is none of a name.
        """
        with self._ticks, self._lock:
            self._require_settled()
            self._define()
            wanted = {self.source(name).name: _spread(how) for name, how in (spread or {}).items()}
            moved = {name: how for name, how in wanted.items() if how is not self._spread_of(name)}
            if moved or partitions != self.partitions:
                self._require_all_rows()
                self._coordinator.rescale(partitions, moved)

    def _require_spread(self, name: str, wanted: SourceSpread | None) -> None:
        now = self._spread_of(name)
        if wanted not in (None, now):
            raise ConfigError(
                f"The rows of {name!r} are spread {str(now)!r}, not {str(wanted)!r}.",
                hint=f'use flow.rescale({self.partitions}, spread={{"{name}": "{wanted}"}})',
            )

    def _spread_of(self, name: str) -> SourceSpread:
        known = {**self._coordinator.definition.spread, **self._spread}
        return known.get(name, SourceSpread.BY_USE)

    def _require_all_rows(self) -> None:
        """Refuse to fill views anew from a source that has let go of rows they were made of."""
        for name, source in self._known_sources().items():
            if not source.keeps and readers_of(name, self._known_views()):
                raise ConfigError(
                    f"All views would be filled anew, and {name!r} does not keep rows that are too old to change.",
                    hint="register that source with Lateness(..., keep=True)",
                )


def _spread(wanted: SourceSpread | str) -> SourceSpread:
    return one_of(SourceSpread, wanted, "Rows cannot be spread")
