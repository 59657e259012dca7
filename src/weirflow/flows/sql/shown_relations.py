"""Sources and views of flows as tables of the Session's SQL."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

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


class ShownRelations:
    """Temporary views of Spark's that hold the rows of sources and views, made when a query may read them."""

    def __init__(self, session: FlowSession, flows: FlowRegistry) -> None:
        self._session = session
        self._flows = flows
        self._shown: dict[str, tuple[Flow, str, int]] = {}
        self._frames: dict[str, DataFrame] = {}

    def show(self, query: str) -> str:
        """Register what a query may read of open flows as it is now, each flow's rows at one epoch.

        Returns the query to run instead, in which a source or view behind the name of its flow has the name that it is
        registered by. A table of the Session's own that has the name of a source or view stays what it is.

        Raises:
            ConfigError: the query reads a name that several flows have.
        """
        self._forget_gone()
        used = words(query)
        wanted: dict[str, list[tuple[Flow, str]]] = {}
        for flow in self._flows.opened:
            for name in flow.readable:
                if name.casefold() in used:
                    wanted.setdefault(name.casefold(), []).append((flow, name))
        if not wanted:
            return query
        chosen: dict[Flow, dict[str, str]] = {}
        edits = []
        for table, flow, name, span in self._qualified(query):
            chosen.setdefault(flow, {})[table] = name
            edits.append(span)
        for having in wanted.values():
            if len(having) > 1:
                self._refuse_ambiguous(query, having)
            else:
                flow, name = having[0]
                chosen.setdefault(flow, {})[name] = name
        for flow, names in chosen.items():
            self._register(flow, names)
        return ComposedSql([query]).replaced(edits).text if edits else query

    def has(self, table: str) -> bool:
        """Whether a temporary view is one of these."""
        return table.casefold() in {shown.casefold() for shown in self._shown}

    def flow_of(self, table: str) -> str | None:
        """The name of the flow that a temporary view is of; None if it is of none."""
        shown = {name.casefold(): flow.name for name, (flow, _, _) in list(self._shown.items())}
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
        for table in [table for table, (one, shown, _) in self._shown.items() if (one, shown) == (flow, name)]:
            with suppress(TableNotFound):  # its user may have dropped it
                self._session.drop(table)
            del self._shown[table], self._frames[table]

    # Inner workings

    def _forget_gone(self) -> None:
        for flow, name, _ in list(self._shown.values()):
            if flow.closed or name not in flow.readable:
                self.forget(flow, name)

    def _qualified(self, query: str) -> list[tuple[str, Flow, str, tuple[int, int, str]]]:
        """For each ``flow.name`` in the query: its table, flow and name, and what to write instead."""
        folded = query.casefold()
        flows = {flow.name.casefold(): (number, flow) for number, flow in enumerate(self._flows.opened)}
        if "." not in query or not any(name in folded for name in flows):
            return []
        found = []
        for reference in table_references(query):
            wanted = reference.relation
            if wanted is None or wanted.flow is None or wanted.flow.casefold() not in flows:
                continue
            number, flow = flows[wanted.flow.casefold()]
            name = {one.casefold(): one for one in flow.readable}.get(wanted.name.casefold())
            if name is None or self.is_own_table(wanted):
                continue
            table = f"_weirflow_{number}_{name}"
            alias = "" if reference.aliased else f" AS `{name}`"
            found.append((table, flow, name, (reference.start, reference.end, f"`{table}`{alias}")))
        return found

    def _refuse_ambiguous(self, query: str, having: list[tuple[Flow, str]]) -> None:
        name = having[0][1]
        read = {reference.parts[0].casefold() for reference in table_references(query) if len(reference.parts) == 1}
        if name.casefold() in read and not self.is_own_table(RelationName(None, name)):
            raise ambiguous(name, [flow for flow, _ in having])

    def _register(self, flow: Flow, names: dict[str, str]) -> None:
        """Register sources and views of a flow, by the names of their tables, at one epoch."""
        stale = {table: name for table, name in names.items() if self._shown.get(table) != (flow, name, flow.epoch)}
        if not stale:
            return
        own = {table.casefold() for table in self._session.tables()} - {table.casefold() for table in self._shown}
        free = {table: name for table, name in stale.items() if table.casefold() not in own}
        epoch, frames = flow.frames(list(dict.fromkeys(free.values())))
        for table, name in free.items():
            frames[name].createOrReplaceTempView(f"`{table}`")
            self._shown[table] = (flow, name, epoch)
            self._frames[table] = frames[name]  # which keeps the files that it reads


def words(query: str) -> set[str]:
    """All words of a query, one of which may be a source or view."""
    return {word.casefold() for word in _WORD.findall(query)}
