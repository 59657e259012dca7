"""``Declarations``: the sources and views of a flow in shards, also those that no commit has yet."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

import msgspec

from weirflow.errors import WeirflowError
from weirflow.ivm.compiler.reads import in_order, missing
from weirflow.ivm.compiler.resolve import columns_of
from weirflow.ivm.flow.evolution.plan import require_all_rows
from weirflow.ivm.flow.folder.entries import entry_view, source_entry, view_entry
from weirflow.ivm.flow.refusals import no_relation, waits
from weirflow.ivm.sharded.definition import FillGroup
from weirflow.ivm.sharded.plan.recomputing import chosen
from weirflow.types import SourceSpread

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.compiler.view import View
    from weirflow.ivm.durability.records import DefineView
    from weirflow.ivm.flow.source import Source
    from weirflow.ivm.sharded.coordinator import Coordinator
    from weirflow.ivm.sharded.executor import StageExecutor


class Declarations:
    """What is declared is compiled and filled later, as much as possible at once; a view may wait for what it reads.

    Whoever calls holds the flow's lock.
    """

    def __init__(self, coordinator: Coordinator, executor: StageExecutor) -> None:
        self._coordinator = coordinator
        self._executor = executor
        self._sources: dict[str, Source] = {}
        self._spread: dict[str, SourceSpread] = {}
        self._views: dict[str, View] = {}
        self._reasons: dict[str, WeirflowError] = {}

    @property
    def sources(self) -> dict[str, Source]:
        """All sources."""
        return {**self._coordinator.definition.sources, **self._sources}

    @property
    def views(self) -> dict[str, View]:
        """All views."""
        known = self._coordinator.definition.views
        return {**{name: entry_view(one) for name, one in known.items()}, **self._views}

    def schemas(self) -> dict[str, pa.Schema]:
        """The columns of all sources, and of all views that do not wait."""
        definition, blueprint = self._coordinator.definition, self._coordinator.blueprint
        found = {name: source.schema for name, source in self.sources.items()}
        found |= {name: blueprint.schema(name) for name in definition.views}
        declared = {name: self._views[name] for name in in_order(self._views)}
        return found | columns_of(declared, found, self._executor.engine)

    @property
    def waiting(self) -> dict[str, WeirflowError]:
        """The views that are not defined yet, and why not."""
        return {name: self._why(name) for name in self._views}

    def relation(self, name: str) -> str:
        """The name, if a source or view has it that does not wait; ``FlowError`` or ``TableNotFound`` otherwise."""
        if name in self._views:
            raise waits(name, self._why(name))
        if name in self.sources or name in self.views:
            return name
        raise no_relation(name, (*self.sources, *self.views))

    @property
    def spread(self) -> dict[str, SourceSpread]:
        """How the rows of sources are spread over the shards, where that is not by their use."""
        return {**self._coordinator.definition.spread, **self._spread}

    def spread_of(self, name: str) -> SourceSpread:
        """How the rows of a source are spread over the shards."""
        return self.spread.get(name, SourceSpread.BY_USE)

    def add_source(self, source: Source, how: SourceSpread | None) -> None:
        """Declare a source whose name is free."""
        if how in (None, SourceSpread.BY_USE):
            self._spread.pop(source.name, None)
        else:
            self._spread[source.name] = how
        self._sources[source.name] = source

    def add_view(self, name: str, view: View) -> None:
        """Declare a view whose name is free; raises what is wrong with it. It is filled at once if there are rows."""
        in_order({**self.views, name: view})
        if self._coordinator.commit.epoch:
            self.define(also={name: view})
        else:
            views = {**self._views, name: view}
            self._wrong(self._ready(views), {name})
            self._views = views

    def forget(self, name: str) -> bool:
        """Forget a source or view that is not defined yet; whether it was one."""
        return (self._sources.pop(name, None) or self._views.pop(name, None)) is not None

    def define(self, *, also: Mapping[str, View] | None = None) -> None:
        """Compile and fill what was declared; views that read what is not there wait, or what is wrong for them.

        Args:
            also: views that are declared with it, if nothing raises.
        """
        views = {**self._views, **(also or {})}
        group = self._ready(views)
        if group.sources or group.views:
            try:
                self._coordinator.define(self._chosen(group))
            except WeirflowError:
                wrong = self._wrong(group, also or {})
                if not wrong:
                    raise
                self._reasons = wrong
                group = self._ready({name: view for name, view in views.items() if name not in wrong})
                self._coordinator.define(self._chosen(group))
        defined = {view.name for view in group.views}
        # In one statement: whatever comes between is known to be defined.
        self._views = {name: view for name, view in views.items() if name not in defined}
        self.forget_defined()

    def forget_defined(self) -> None:
        """What the flow is made of is to be defined no more, though an exception may have come between."""
        definition = self._coordinator.definition
        if any(name in definition.sources for name in self._sources):
            self._spread = {name: how for name, how in self._spread.items() if name not in definition.sources}
            self._sources = {name: one for name, one in self._sources.items() if name not in definition.sources}
        if any(name in definition.views for name in self._views):
            self._views = {name: one for name, one in self._views.items() if name not in definition.views}

    def require_all_rows(self) -> None:
        """Refuse to fill views anew from a source that has let go of rows they were made of."""
        for source in self.sources.values():
            require_all_rows(source, self.views)

    def replaced(self, waiting: Mapping[str, View]) -> None:
        """What the flow is made of is defined, but for views that wait."""
        self._sources, self._spread, self._reasons = {}, {}, {}
        self._views = dict(waiting)

    def _why(self, name: str) -> WeirflowError:
        if name in self._reasons:
            return self._reasons[name]
        known = (*self.sources, *self._coordinator.definition.views)
        return no_relation(min(missing(self._views[name], known)), known)

    def _wrong(self, group: FillGroup, new: Container[str]) -> dict[str, WeirflowError]:
        """The views that cannot be compiled, and why; what is wrong with one that is ``new`` is raised."""
        fine: list[DefineView] = []
        wrong: dict[str, WeirflowError] = {}
        if self._failure(group) is None:
            return wrong
        for view in group.views:
            error = self._failure(msgspec.structs.replace(group, views=(*fine, view)))
            if error is not None:
                if view.name in new:
                    raise error
                wrong[view.name] = error
            else:
                fine.append(view)
        return wrong

    def _failure(self, group: FillGroup) -> WeirflowError | None:
        """What is wrong with a group of sources and views; None if nothing is."""
        try:
            self._coordinator.require_definable(self._chosen(group))
        except WeirflowError as error:
            return error
        return None

    def _ready(self, views: Mapping[str, View]) -> FillGroup:
        """What is declared and not compiled yet, without views that read what is not there."""
        definition = self._coordinator.definition
        known = [*definition.sources, *definition.views, *self._sources]
        ready: dict[str, View] = {}
        for name in in_order(views):
            if not missing(views[name], known):
                ready[name] = views[name]
                known.append(name)
        return FillGroup(
            tuple(source_entry(one) for one in self._sources.values()),
            tuple(view_entry(name, view) for name, view in ready.items()),
            spread=dict(self._spread),
        )

    def _chosen(self, group: FillGroup) -> FillGroup:
        """The group with what is recomputed in it; raises what is wrong with a view."""
        return chosen(self._coordinator.definition, group, self._executor)
