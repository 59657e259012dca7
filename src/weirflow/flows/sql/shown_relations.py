"""Sources and views of flows as tables of the Session's SQL."""

from __future__ import annotations

import itertools
import re
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from weirflow.errors import TableNotFound
from weirflow.flows.registry import Flow, FlowRegistry, ambiguous
from weirflow.sql.quoting import quoted
from weirflow.sql.statements.composed import ComposedSql
from weirflow.sql.statements.relation_name import RelationName
from weirflow.sql.statements.table_references import table_references

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession
    from weirflow.spark.frames.frame import DataFrame

_WORD = re.compile(r"\w+")
_ATTEMPTS = 3

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Shown:
    """Rows of a source or view, as a temporary view has them.

    Attributes:
        flow: whose they are.
        name: the source or view.
        epoch: when they were so.
        frame: the rows; as long as there is somebody who has it, its files stay.
    """

    flow: Flow
    name: str
    epoch: int
    frame: DataFrame


@dataclass(frozen=True)
class Sight:
    """What a query may see of flows: its text, as Spark gets it, and the temporary views that it may read."""

    text: str
    shown: Mapping[str, Shown]

    @property
    def is_simple(self) -> bool:
        """Whether it does not matter if others let one of them show a later epoch meanwhile."""
        flows = {one.flow for one in self.shown.values()}
        return len(flows) == len(self.shown) and not any(flow.takes_frames for flow in flows)


class ShownRelations:
    """Temporary views of Spark's that hold the rows of sources and views, made when a query may read them."""

    def __init__(self, session: FlowSession, flows: FlowRegistry) -> None:
        self._session = session
        self._flows = flows
        self._turn = threading.RLock()  # of who makes views; nobody takes a flow's locks with it
        self._shown: dict[str, Shown] = {}
        self._numbers: weakref.WeakKeyDictionary[Flow, int] = weakref.WeakKeyDictionary()
        self._next = itertools.count()

    def reading(
        self, query: str, run: Callable[[str], T], *, repeats: bool, sees: Callable[[str], bool] | None = None
    ) -> T:
        """Run what may read open flows, each of them as it was at one epoch, whatever others read meanwhile.

        Args:
            query: what is to be run; it may name sources and views, and the flows that these are of.
            run: given the text to run instead, which Spark has analyzed when it returns. What it returns is a frame
                whose rows are still to be read, or of which nothing is asked any more.
            repeats: whether it may be called again, as what only analyzes may be.
            sees: says of which flows, by their names, sources and views may be seen; None for all.

        Raises:
            ConfigError: the query reads a name that several flows have.
        """
        for _ in range(_ATTEMPTS if repeats else 0):
            sight = self._seen_by(query, sees)
            found = run(sight.text)
            if self._is_current(sight):
                return _with_files(found, sight)
        sight = self._seen_by(query, sees)
        if sight.is_simple:
            return run(sight.text)
        with self._turn:  # others' views do not take the place of these before they are read
            self._publish(sight.shown)
            return _with_files(run(sight.text), sight)

    def _seen_by(self, query: str, sees: Callable[[str], bool] | None) -> Sight:
        """What a query sees of open flows as they are now.

        In the text to run, a source or view behind the name of its flow has the name of its temporary view. A table of
        the Session's own that has the name of a source or view stays what it is.
        """
        self._forget_gone()
        used = Counter(_words(query))
        wanted: dict[str, list[tuple[Flow, str]]] = {}
        flows = [flow for flow in self._flows.opened if sees is None or sees(flow.name)]
        for flow in flows:
            for name in flow.readable:
                if name.casefold() in used:
                    wanted.setdefault(name.casefold(), []).append((flow, name))
        if not wanted:
            return Sight(query, {})
        chosen: dict[Flow, dict[str, str]] = {}
        edits = []
        for table, flow, name, span in self._qualified(query, flows):
            chosen.setdefault(flow, {})[table] = name
            edits.append(span)
            used[name.casefold()] -= 1
        for word, having in wanted.items():
            if not used[word]:
                continue  # it is behind the name of its flow wherever it is
            if len(having) > 1:
                self._refuse_ambiguous(query, having)
            else:
                flow, name = having[0]
                if not self._is_taken(name):
                    chosen.setdefault(flow, {})[name] = name
        shown = {table: one for flow, names in chosen.items() for table, one in self._show(flow, names).items()}
        return Sight(ComposedSql([query]).replaced(edits).text if edits else query, shown)

    def has(self, table: str) -> bool:
        """Whether a temporary view is one of these."""
        return table.casefold() in {shown.casefold() for shown in list(self._shown)}

    def flow_of(self, table: str) -> str | None:
        """The name of the flow that a temporary view is of; None if it is of none."""
        shown = {name.casefold(): one.flow.name for name, one in list(self._shown.items())}
        return shown.get(table.casefold())

    def is_own_table(self, name: RelationName) -> bool:
        """Whether Spark has a table or view of this name that is not a flow's."""
        if name.flow is None and self.has(name.name):
            return False
        table = ".".join(quoted(part) for part in (name.flow, name.name) if part is not None)
        spark = self._session.spark
        return bool(self._session.operations.run("look up", lambda: spark.catalog.tableExists(table)))

    def forget(self, flow: Flow, name: str) -> None:
        """Remove what was registered for a source or view."""
        for table, one in list(self._shown.items()):
            if (one.flow, one.name) == (flow, name) and self._shown.pop(table, None) is not None:
                with suppress(TableNotFound):  # its user may have dropped it
                    self._session.drop(table)

    # Inner workings

    def _forget_gone(self) -> None:
        for one in list(self._shown.values()):
            if one.flow.closed or one.name not in one.flow.readable:
                self.forget(one.flow, one.name)

    def _qualified(self, query: str, opened: Iterable[Flow]) -> list[tuple[str, Flow, str, tuple[int, int, str]]]:
        """For each ``flow.name`` in the query: its table, flow and name, and what to write instead."""
        folded = query.casefold()
        flows = {flow.name.casefold(): flow for flow in opened}
        if "." not in query or not any(name in folded for name in flows):
            return []
        found = []
        for reference in table_references(query):
            wanted = reference.relation
            if wanted is None or wanted.flow is None or wanted.flow.casefold() not in flows:
                continue
            flow = flows[wanted.flow.casefold()]
            name = {one.casefold(): one for one in flow.readable}.get(wanted.name.casefold())
            if name is None or self.is_own_table(wanted):
                continue
            table = f"_weirflow_{self._number(flow)}_{name}"
            alias = "" if reference.aliased else f" AS `{name}`"
            found.append((table, flow, name, (reference.start, reference.end, f"`{table}`{alias}")))
        return found

    def _number(self, flow: Flow) -> int:
        """One that no other flow has, and none had before."""
        with self._turn:
            if flow not in self._numbers:
                self._numbers[flow] = next(self._next)
            return self._numbers[flow]

    def _refuse_ambiguous(self, query: str, having: list[tuple[Flow, str]]) -> None:
        name = having[0][1]
        read = {reference.parts[0].casefold() for reference in table_references(query) if len(reference.parts) == 1}
        if name.casefold() in read and not self.is_own_table(RelationName(None, name)):
            raise ambiguous(name, [flow for flow, _ in having])

    def _is_taken(self, name: str) -> bool:
        """Whether the Session has a table of its own that goes before a source or view."""
        return not self.has(name) and self.is_own_table(RelationName(None, name))

    def _show(self, flow: Flow, names: Mapping[str, str]) -> Mapping[str, Shown]:
        """Have temporary views of sources and views of a flow, by the names of these views, at one epoch."""
        known = {table: self._shown.get(table) for table in names}
        epoch = flow.epoch
        if all(
            one is not None and (one.flow, one.name, one.epoch) == (flow, names[table], epoch)
            for table, one in known.items()
        ):
            return {table: one for table, one in known.items() if one is not None}
        reached, frames = flow.frames(list(dict.fromkeys(names.values())))
        shown = {table: Shown(flow, name, reached, frames[name]) for table, name in names.items()}
        self._publish(shown)
        return shown

    def _publish(self, shown: Mapping[str, Shown]) -> None:
        """Have temporary views show this, and nothing else of these names."""
        with self._turn:
            for table, one in shown.items():
                if self._shown.get(table) is not one:
                    one.frame.createOrReplaceTempView(f"`{table}`")
                    self._shown[table] = one

    def _is_current(self, sight: Sight) -> bool:
        """Whether all views still show what they did, so that what was analyzed meanwhile reads that."""
        return all(self._shown.get(table) is one for table, one in sight.shown.items())


def _with_files(found: T, sight: Sight) -> T:
    """What was returned, which has the files of the rows that it reads for as long as somebody has it."""
    frames = [one.frame for one in sight.shown.values() if one.flow.takes_frames]
    if frames:
        weakref.finalize(found, frames.clear).atexit = False
    return found


def words(query: str) -> set[str]:
    """All words of a query, one of which may be a source or view."""
    return set(_words(query))


def _words(query: str) -> Iterator[str]:
    return (word.casefold() for word in _WORD.findall(query))
