"""Queries inside statements about flows: run in this process where that is possible, on Spark otherwise."""

from __future__ import annotations

import re
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

from weirflow.errors import FunctionNotFound, QueryError, SqlSyntaxError, TableNotFound
from weirflow.session.recompute import as_views_have_it
from weirflow.sql.refusal import NotIncremental
from weirflow.sql.relation_name import RelationName
from weirflow.sql.table_references import TableReference, table_references

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from weirflow.session.flows import Flows, SessionFlow
    from weirflow.session.session import Session
    from weirflow.session.shown_relations import ShownRelations
    from weirflow.sql.composed import ComposedSql

_WORD = re.compile(r"\w+")
_ONLY_ON_SPARK = (NotIncremental, TableNotFound, FunctionNotFound, SqlSyntaxError)


class FlowQueries:
    """Runs the queries of one statement about a flow.

    Names mean, in this order: tables that the statement brings along, tables of the Session's own, sources and views of
    the flow, those of other flows.

    What it reads of other flows is read at once, so that nobody who holds one flow ever waits for another.

    Args:
        flow: the flow that the statement is about.
        statement: its text, where errors point to.
    """

    def __init__(
        self, session: Session, flows: Flows, shown: ShownRelations, flow: SessionFlow, statement: str
    ) -> None:
        self._session = session
        self._flows = flows
        self._shown = shown
        self._flow = flow
        self._statement = statement
        self._elsewhere = self._read_elsewhere()

    def run(self, query: ComposedSql, tables: Mapping[str, pa.Table]) -> pa.Table:
        """The rows of a query, which may read ``tables`` too."""
        with placed(query, self._statement):
            references = table_references(query.text)
            read, own = self._resolved(references, tables)
            found = None if own else self._in_process(query, read)
        return self._on_spark(query, references, read) if found is None else found

    # Inner workings

    def _resolved(
        self, references: list[TableReference], tables: Mapping[str, pa.Table]
    ) -> tuple[dict[str, pa.Table], bool]:
        """What the query reads beside the flow, by the names that it uses, and whether tables of Spark's are read."""
        found, own = dict(tables), False
        given = {name.casefold() for name in tables}
        for reference in references:
            written = ".".join(reference.parts)
            if written.casefold() in given:
                continue
            given.add(written.casefold())
            name = reference.relation
            if name is None or self._shown.is_own_table(name):
                own = True
            elif (spelled := self._own_relation(name)) is not None:
                if name.flow is not None or spelled not in self._flow.readable:  # which snapshot() refuses
                    found[written] = self._flow.snapshot(spelled)
            elif written.casefold() in self._elsewhere:
                found[written] = self._elsewhere[written.casefold()]
        return found, own

    def _own_relation(self, name: RelationName) -> str | None:
        """How the flow spells this source or view, if it has it."""
        if name.flow is not None and name.flow.casefold() != self._flow.name.casefold():
            return None
        known = {one.casefold(): one for one in (*self._flow.sources, *self._flow.views)}
        return known.get(name.name.casefold())

    def _read_elsewhere(self) -> dict[str, pa.Table]:
        """The rows of what the statement reads of other flows, by the names that it uses."""
        found = {}
        for reference in table_references(self._statement):
            name = reference.relation
            if name is None or self._own_relation(name) is not None or self._shown.is_own_table(name):
                continue
            relation = self._flows.find(name)
            if relation is not None:
                flow, spelled = relation
                found[".".join(reference.parts).casefold()] = flow.snapshot(spelled)
        return found

    def _in_process(self, query: ComposedSql, tables: Mapping[str, pa.Table]) -> pa.Table | None:
        """The rows of the query, or None for what Spark must run, which knows more or says what is wrong."""
        try:
            return self._flow.sql(query.text, tables=tables)
        except _ONLY_ON_SPARK:
            return None

    def _on_spark(self, query: ComposedSql, references: list[TableReference], tables: dict[str, pa.Table]) -> pa.Table:
        words = {word.casefold() for word in _WORD.findall(query.text)}
        given = {name.casefold() for name in tables}
        for name in self._flow.readable:
            is_read = name.casefold() in words and name.casefold() not in given
            if is_read and not self._shown.is_own_table(RelationName(None, name)):
                tables[name] = self._flow.snapshot(name)
        places = {name: f"_weirflow_{uuid.uuid4().hex}" for name in tables}
        folded = {name.casefold(): place for name, place in places.items()}
        edits = [
            (one.start, one.end, f"`{folded['.'.join(one.parts).casefold()]}`" + _alias(one))
            for one in references
            if len(one.parts) > 1 and ".".join(one.parts).casefold() in folded
        ]
        plain = [f"`{name}` AS (TABLE `{place}`)" for name, place in places.items() if "." not in name]
        prefix = f"WITH {', '.join(plain)} " if plain else ""
        # CTEs go before whatever tables have their names, and are seen by nobody else.
        made = query.replaced(edits).around("SELECT * FROM (\n", "\n)").around(prefix)
        spark = self._session.spark
        try:
            for name, place in places.items():
                self._session.from_arrow(tables[name]).createOrReplaceTempView(f"`{place}`")
            with placed(made, self._statement):
                result = self._session.operations.run("read rows", lambda: spark.sql(made.text).toArrow())
        finally:
            for place in places.values():
                spark.catalog.dropTempView(place)
        return result.cast(as_views_have_it(result.schema))


@contextmanager
def placed(query: ComposedSql, statement: str) -> Iterator[None]:
    """Let errors about a query say where in the statement it is."""
    try:
        yield
    except QueryError as error:
        error.position = query.position_in(statement, error.position)
        raise


def _alias(reference: TableReference) -> str:
    return "" if reference.aliased else f" AS `{reference.parts[-1]}`"
