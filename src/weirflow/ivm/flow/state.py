"""``FlowState``: all that a flow is at an epoch; what is kept, restored and compared."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING

from weirflow.errors import TableNotFound
from weirflow.ivm.compiler.program import Engine, Program, View
from weirflow.ivm.compiler.reads import in_order, readers_of, tables
from weirflow.ivm.flow.describe import RelationInfo
from weirflow.ivm.flow.refusals import (
    no_relation,
    no_source,
    not_kept,
    other_stream,
    require_free_name,
    require_token,
    require_unread,
)
from weirflow.ivm.flow.source import Change, Source, SourceInput
from weirflow.ivm.zset.delta import DeltaBatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from weirflow.ivm.flow.position import Position
    from weirflow.ivm.zset.batch import Batch

_TOKENS = 100_000
_ROWS_BEFORE_RELEASE = 1000
"""How many rows come in before it is worth looking for state that is too old to change."""


class FlowState:
    """Sources, views, their rows, the epoch, recent tokens, where streams are. Not for several threads at once.

    What raises leaves the state as it was. Views may be declared before what they read; they wait until it is there.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine
        self.program = Program(engine)
        self.inputs: dict[str, SourceInput] = {}
        self.views: dict[str, View] = {}
        self.waiting: dict[str, View] = {}
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

    def has_source(self, source: Source) -> bool:
        """Whether exactly this source is declared; ``ConfigError`` if its name is something else's."""
        if source.name in self.inputs and self.inputs[source.name].source == source:
            return True
        self._refuse_taken(source.name)
        return False

    def has_view(self, name: str, view: View) -> bool:
        """Whether exactly this view is declared; ``ConfigError`` if its name is something else's."""
        if view in (self.views.get(name), self.waiting.get(name)):
            return True
        self._refuse_taken(name)
        return False

    def add_source(self, source: Source) -> None:
        """Declare an input."""
        self.program.add_source(source.name, source.schema, key=source.key, keeps=source.keeps)
        store = self.program.relations[source.name].store
        assert store is not None
        arrangement = self.program.store(source.name).arrangement
        self.inputs[source.name] = SourceInput(source, arrangement, store.positions)
        self._build_waiting()

    def add_view(self, name: str, view: View) -> None:
        """Declare a view; it is filled at once if there have been ticks."""
        view = self.effective(name, view)
        in_order({one: other.sql for one, other in (*self.waiting.items(), (name, view))})
        self.waiting[name] = view
        try:
            self._build_waiting()
        except BaseException:
            self.waiting.pop(name, None)
            raise

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
            return
        self.fill()
        self.program.drop(name)
        self.inputs.pop(name, None)
        self.views.pop(name, None)

    def ready(self) -> None:
        """Compile and fill all views; a view that reads what is not there is an error by now."""
        if not self.waiting and self.program.is_filled:
            return
        self._build_waiting()
        if self.waiting:
            name, view = next(iter(self.waiting.items()))
            self.program.add_views({name: view})  # raises what keeps it waiting
        self.fill()

    def fill(self) -> None:
        """Bring new views to the rows that are there; those that cannot be filled are gone again."""
        before = set(self.program.relations)
        try:
            self.program.fill()
        except BaseException:
            for name in before - self.program.relations.keys():
                self.views.pop(name, None)
            raise

    # Ticks

    def step(self, changes: Mapping[str, Change]) -> dict[str, Batch]:
        """What the changes do to the views. Nothing has changed yet when it returns or raises."""
        try:
            return self.program.circuit.step({name: one.rows for name, one in changes.items() if len(one.rows)})
        except BaseException:
            self.discard()
            raise

    def position(self, position: Position) -> int | None:
        """The epoch of the tick that brought the stream to this position, if that is its last one.

        Raises:
            StreamConflict: another stream of this name is known.
        """
        if position.stream not in self.positions:
            return None
        last, epoch = self.positions[position.stream]
        if last.origin != position.origin:
            raise other_stream(position.stream)
        return epoch if last.at == position.at else None

    def epoch_of(self, token: str) -> int | None:
        """The tick that had this token, if it was one of the last; ``ConfigError`` for a token that is too long."""
        require_token(token)
        return self.tokens.get(token)

    def commit(self, changes: Mapping[str, Change], token: str | None, position: Position | None) -> None:
        """Make it so. Does not fail."""
        self.program.circuit.commit(sum(len(one.rows) for one in changes.values()))
        self.epoch += 1
        for name, change in changes.items():
            self.inputs[name].accept(change)
            self._unreleased += len(change.rows)
        if self._unreleased > _ROWS_BEFORE_RELEASE:
            self._release()
        if token is not None:
            self.tokens[token] = self.epoch
            if len(self.tokens) > _TOKENS:
                self.tokens.popitem(last=False)
        if position is not None:
            self.positions[position.stream] = (position, self.epoch)

    def _release(self) -> None:
        """Let go of state that is too old to change."""
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

    def kept_rows(self, name: str) -> DeltaBatch | None:
        """All rows of a source or view; None if they are not kept."""
        return None if self.program.relations[name].store is None else self.delta(name, self.rows(name))

    def delta(self, name: str, rows: Batch) -> DeltaBatch:
        """Weighted rows of a source or view, as users see them."""
        return DeltaBatch.of_batch(self.schema(name), rows)

    @property
    def nbytes(self) -> int:
        """Bytes of all state."""
        return sum(state.nbytes for node in self.program.circuit.nodes for state in node.operator.states)

    def relations(self) -> tuple[RelationInfo, ...]:
        """All sources and views, those that are read before those that read them."""
        known = {name.casefold(): name for name in (*self.inputs, *self.views, *self.waiting)}
        views = {**self.views, **self.waiting}
        found = []
        for name in (*self.inputs, *in_order({name: view.sql for name, view in views.items()})):
            relation = self.program.relations.get(name)
            kept = relation is not None and relation.store is not None
            kind = "waiting" if relation is None else "source" if relation.mode is None else relation.mode.value
            read = tables(views[name].sql) if name in views else set[str]()
            reads = tuple(sorted(known[one] for one in read if one in known and known[one] != name))
            runs = self.program.store(name).arrangement.runs if kept else ()
            rows = sum(int(run.values[:, 0].sum()) for run in runs) if kept else None
            found.append(RelationInfo(name, kind, rows, reads))
        return tuple(found)

    def readers(self, name: str) -> list[str]:
        """The views that read a source or view directly."""
        return readers_of(name, {**self.views, **self.waiting})

    # Inner workings

    def _build_waiting(self) -> None:
        """Compile the views whose inputs are all known."""
        for name in in_order({name: view.sql for name, view in self.waiting.items()}):
            try:
                self.program.add_views({name: self.waiting[name]})
            except TableNotFound:
                continue
            self.views[name] = self.waiting.pop(name)
        if self.epoch:
            self.fill()

    def _refuse_taken(self, name: str) -> None:
        require_free_name(name, (*self.inputs, *self.views, *self.waiting))
