"""``FlowState``: all that a flow is at an epoch; what is kept, restored and compared."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from weirflow.errors import TableNotFound, WeirflowError
from weirflow.ivm.compiler.program import Program
from weirflow.ivm.compiler.reads import in_order, readers_of
from weirflow.ivm.flow.describe import RelationInfo, relation_infos
from weirflow.ivm.flow.refusals import (
    no_relation,
    no_source,
    not_kept,
    require_unread,
    waits,
)
from weirflow.ivm.flow.source import Source, SourceDelta, SourceInput

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.circuit.circuit import Marks
    from weirflow.ivm.compiler.view import RecomputeEngine, View
    from weirflow.ivm.flow.position import Position
    from weirflow.ivm.kernel.arrangement import Arrangement
    from weirflow.ivm.zset.batch import Batch

_TOKENS = 100_000
_ROWS_BEFORE_RELEASE = 1000
"""How many rows come in before it is worth looking for state that is too old to change."""


class FlowState:
    """Sources, views, their rows, the epoch, recent tokens, where streams are. Not for several threads at once.

    Views may be declared before what they read; they wait until it is there. What raises may have left a change half
    done: ``keep`` and ``keep_unfilled`` bring back what was before.
    """

    def __init__(self, engine: RecomputeEngine | None = None) -> None:
        self.engine = engine
        self.program = Program(engine)
        self.inputs: dict[str, SourceInput] = {}
        self.views: dict[str, View] = {}
        self.waiting: dict[str, View] = {}
        self.reasons: dict[str, WeirflowError] = {}
        """Why views wait."""
        self.orders: dict[str, tuple[str, ...]] = {}
        """By which columns sources keep their rows, where views probe them there."""
        self.rearranges = True
        """Whether a new view may have sources keep their rows otherwise."""
        self.forced = False
        """Whether every view is recomputed, those to come too."""
        self.epoch = 0
        self.tokens: OrderedDict[str, int] = OrderedDict()
        self.positions: dict[str, tuple[Position, int]] = {}
        self._unreleased = 0

    def become(self, other: FlowState) -> None:
        """Take over all that another state is, which must not be used any more."""
        self.__dict__.update(other.__dict__)

    # What the flow is made of

    @property
    def sources(self) -> dict[str, Source]:
        """The sources by name."""
        return {name: one.source for name, one in self.inputs.items()}

    @property
    def declared(self) -> dict[str, View]:
        """All views, also those that wait."""
        return {**self.views, **self.waiting}

    def add_source(self, source: Source) -> None:
        """Declare an input."""
        self._add_input(source)
        self._build_waiting(None)

    def add_view(self, name: str, view: View) -> None:
        """Declare a view; it is filled at once if there have been ticks. It waits if what it reads is not there."""
        view = self.effective(name, view)
        in_order({**self.waiting, name: view})
        self.waiting[name] = view
        self._build_waiting(name)

    def effective(self, name: str, view: View) -> View:
        """The view as it is maintained under this name: recomputed if all are, or the one that has the name now is."""
        known = self.views.get(name) or self.waiting.get(name)
        return replace(view, forced=True) if self.forced or (known is not None and known.forced) else view

    def check_drop(self, name: str) -> None:
        """``ConfigError`` if a view reads the source or view, ``TableNotFound`` if there is none of this name."""
        if name in self.waiting:
            return
        self.relation(name)
        readers = self.readers(name)
        require_unread(name, readers)

    def drop(self, name: str) -> None:
        """Remove a source or view that nothing reads."""
        self.check_drop(name)
        if self.waiting.pop(name, None) is not None:
            self.reasons.pop(name, None)
            return
        unfilled = self.program.unfilled
        self.program.cut_unfilled()
        if name not in unfilled:
            self.program.drop(name)
        self.inputs.pop(name, None)
        self.orders = {one: order for one, order in self.orders.items() if one != name}
        self.views.pop(name, None)
        self._add_again(unfilled)

    @property
    def is_filled(self) -> bool:
        """Whether all views but those that wait hold what they compute."""
        return self.program.is_filled

    def fill(self) -> None:
        """Bring new views to the rows that are there."""
        if not self.program.is_filled:
            self.program.fill()

    def keep(self) -> Callable[[], None]:
        """A function that brings back the current sources and views, and their rows; it may be called repeatedly."""
        program = self.program.keep()
        before = dict(self.__dict__)
        inputs, views, waiting = dict(self.inputs), dict(self.views), dict(self.waiting)
        reasons = dict(self.reasons)

        def restore() -> None:
            self.__dict__.update(before)
            self.inputs, self.views, self.waiting = dict(inputs), dict(views), dict(waiting)
            self.reasons = dict(reasons)
            program()

        return restore

    def keep_unfilled(self) -> Callable[[], None]:
        """As ``keep``, for ``fill``: what was to be filled is as if it had just been declared."""
        restore = self.keep()
        unfilled = self.program.unfilled

        def restore_unfilled() -> None:
            restore()
            self.program.cut_unfilled()
            self._add_again(unfilled)

        return restore_unfilled

    # Ticks

    def step(self, changes: Mapping[str, SourceDelta]) -> dict[str, Batch]:
        """What the changes do to the views. Nothing has changed yet when it returns or raises."""
        try:
            return self.program.circuit.step({name: one.rows for name, one in changes.items() if len(one.rows)})
        except BaseException:
            self.discard()
            raise

    def commit(self, marks: Marks) -> None:
        """Let the views' rows be what was stepped. What raises is taken back by ``rewind`` with the same marks."""
        self.program.circuit.commit(marks)

    def rewind(self, marks: Marks) -> None:
        """Take back a commit that was interrupted. May be repeated."""
        self.program.circuit.rewind(marks)

    def accept(
        self, epoch: int, changes: Mapping[str, SourceDelta], token: str | None, position: Position | None
    ) -> None:
        """Remember of a tick that was committed what later ones go by. May be repeated."""
        self.epoch = epoch
        for name, change in changes.items():
            self.inputs[name].accept(change)
        if token is not None:
            self.tokens[token] = epoch
            if len(self.tokens) > _TOKENS:
                self.tokens.popitem(last=False)
        if position is not None:
            self.positions[position.stream] = (position, epoch)

    def maintain(self, rows: int) -> None:
        """Between ticks: tidy up in proportion to the rows that came, and let go of what is too old to change."""
        self.program.circuit.maintain(rows)
        self._unreleased += rows
        if self._unreleased > _ROWS_BEFORE_RELEASE:
            self._release()

    def _release(self) -> None:
        self._unreleased = 0
        self.program.circuit.advance({name: one.frontier for name, one in self.inputs.items()})
        for one in self.inputs.values():
            one.release()

    def discard(self) -> None:
        """Forget what was stepped."""
        self.program.circuit.discard()

    # What it holds

    def relation(self, name: str) -> str:
        """The name, if a source or view has it; ``TableNotFound`` otherwise."""
        known = self.program.relations
        if name in self.waiting:
            raise waits(name, self.reasons.get(name))
        if name not in known:
            raise no_relation(name, known)
        return name

    def input(self, name: str) -> SourceInput:
        """The input of a source; ``ConfigError`` if there is none of this name."""
        if name not in self.inputs:
            raise no_source(name, self.views, self.inputs)
        return self.inputs[name]

    def schema(self, name: str) -> pa.Schema:
        """The columns of a source or view."""
        return self.program.relations[name].schema

    def rows(self, name: str) -> Batch:
        """All rows of a source or view, each once with its weight; ``ConfigError`` if they are not kept."""
        if self.program.relations[self.relation(name)].store is None:
            raise not_kept(name)
        return self.program.rows(name)

    @property
    def nbytes(self) -> int:
        """Bytes of all state."""
        return sum(state.nbytes for node in self.program.circuit.nodes for state in node.operator.states)

    def relations(self) -> tuple[RelationInfo, ...]:
        """All sources and views, those that are read before those that read them."""
        known = self.program.relations

        def kind(name: str) -> str:
            return known[name].kind if name in known else "waiting"

        def rows(name: str) -> int | None:
            if name not in known or known[name].store is None:
                return None
            return sum(int(run.values[:, 0].sum()) for run in self.program.store(name).arrangement.runs)

        return relation_infos(self.inputs, self.declared, kind, rows)

    def readers(self, name: str) -> list[str]:
        """The views that read a source or view directly."""
        return readers_of(name, self.declared)

    # Inner workings

    def _build_waiting(self, new: str | None) -> None:
        """Compile the views that can be, and fill them if there have been ticks.

        What is wrong with others keeps them waiting; for one that is ``new`` it is raised, unless something is missing
        that may still come.
        """
        if self.epoch:
            self.fill()
        for name in in_order(self.waiting):
            restore = self.keep()
            try:
                self._arrange_sources(self.waiting[name])
                self.program.add_views({name: self.waiting[name]})
                if self.epoch:
                    self.fill()
            except WeirflowError as error:
                if name == new and not isinstance(error, TableNotFound):
                    raise
                restore()
                self.reasons[name] = error
                continue
            self.views[name] = self.waiting.pop(name)
            self.reasons.pop(name, None)

    def _arrange_sources(self, view: View) -> None:
        """Have sources keep their rows as a new view probes them, where nothing else reads them as they are."""
        for name, order in (self.program.orders_for(view) if self.rearranges else {}).items():
            unfilled = self.program.unfilled
            self.program.cut_unfilled()
            names = self.inputs[name].source.schema.names
            self.orders = {**self.orders, name: tuple(names[one] for one in order)}
            if name not in unfilled:
                self.program.rearrange(name, order)
                self.inputs[name] = self.inputs[name].over(*self._stored(name))
            self._add_again(unfilled)

    def _add_again(self, names: Collection[str]) -> None:
        """Compile sources and views that are declared and not in the program."""
        for name, one in list(self.inputs.items()):
            if name in names:
                self._add_input(one.source)
        views = {name: view for name, view in self.views.items() if name in names}
        self.program.add_views(views)

    def _add_input(self, source: Source) -> None:
        order = [source.schema.names.index(one) for one in self.orders.get(source.name, ())]
        self.program.add_source(source.name, source.schema, key=source.key, keeps=source.keeps, order=order)
        self.inputs[source.name] = SourceInput(source, *self._stored(source.name))

    def _stored(self, source: str) -> tuple[Arrangement, tuple[int, ...]]:
        """The arrangement that holds a source's rows, and where each column is in it."""
        store = self.program.relations[source].store
        assert store is not None
        return self.program.store(source).arrangement, store.positions
