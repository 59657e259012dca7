"""Queries inside statements about flows: run in this process where that is possible, on Spark otherwise."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import pyarrow as pa

from weirflow.errors import FunctionNotFound, NotIncremental, QueryError, SqlSyntaxError, TableNotFound
from weirflow.flows.own_session import settings_of
from weirflow.flows.sql.shown_relations import ShownRelations, words
from weirflow.flows.view_schema import view_schema
from weirflow.ivm.flow.query import run_query
from weirflow.ivm.flow.state import FlowState
from weirflow.sql.statements.relation_name import RelationName
from weirflow.sql.statements.table_references import TableReference, table_references

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession
    from weirflow.flows.registry import Flow, FlowRegistry
    from weirflow.flows.seen import SeenFlows
    from weirflow.spark.frames.frame import DataFrame
    from weirflow.sql.settings import SqlSettings
    from weirflow.sql.statements.composed import ComposedSql

    Rows: TypeAlias = pa.Table | DataFrame
    """Rows here, or on Spark's executors."""

_ONLY_ON_SPARK = (NotIncremental, TableNotFound, FunctionNotFound, SqlSyntaxError)


class FlowQueries:
    """Runs the queries of one statement about a flow; to be used in a ``with`` block, as long as their frames are.

    Names mean, in this order: tables that the statement brings along, tables of the Session's own, sources and views of
    the flow, those of other flows.

    What it reads of other flows is read at once, so that nobody who holds one flow ever waits for another.

    Args:
        flow: the flow that the statement is about.
        statement: its text, where errors point to.
    """

    def __init__(
        self, session: FlowSession, flows: FlowRegistry | SeenFlows, shown: ShownRelations, flow: Flow, statement: str
    ) -> None:
        self._session = session
        self._flows = flows
        self._shown = shown
        self._flow = flow
        self._statement = statement
        self._made = ExitStack()
        self._elsewhere = self._read_elsewhere()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._made.close()

    def run(self, query: ComposedSql, tables: Mapping[str, Rows]) -> pa.Table:
        """The rows of a query, which may read ``tables`` too."""
        with placed(query, self._statement):
            references = table_references(query.text)
            read, own = self._resolved(references, tables)
            here = {name: rows for name, rows in read.items() if isinstance(rows, pa.Table)}
            found = self._in_process(query, here) if not own and len(here) == len(read) else None
        if found is not None:
            return found
        made, frame = self._on_spark(query, references, read)
        with placed(made, self._statement):
            result = frame.to_arrow()
        return result.cast(view_schema(result.schema))

    def frame(self, query: ComposedSql, tables: Mapping[str, Rows]) -> tuple[ComposedSql, DataFrame]:
        """The rows of a query on Spark's executors, computed when they are asked for; and the text that Spark has.

        What is raised when they are computed is to be ``placed`` by that text.
        """
        with placed(query, self._statement):
            references = table_references(query.text)
            read, _ = self._resolved(references, tables)
        return self._on_spark(query, references, read)

    def literal(self, query: ComposedSql) -> pa.Table | None:
        """The rows of a query that reads nothing; None if Spark must run it."""
        with placed(query, self._statement):
            try:
                return run_query(FlowState(), query.text, {}, self.settings)
            except _ONLY_ON_SPARK:
                return None

    @cached_property
    def settings(self) -> SqlSettings:
        """What the Session's SQL means while the statement runs."""
        return settings_of(self._session.spark)

    def placed(self, made: ComposedSql) -> AbstractContextManager[None]:
        """Let errors about a text that Spark has say where in the statement it is."""
        return placed(made, self._statement)

    def wrapped(self, native: Any) -> DataFrame:
        """A native frame as one of the Session's."""
        return self._session._wrapped(native)  # noqa: SLF001 - a frame of this Session

    # Inner workings

    def _resolved(self, references: list[TableReference], tables: Mapping[str, Rows]) -> tuple[dict[str, Rows], bool]:
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
                if name.flow is not None or spelled not in self._flow.readable:  # which reading it refuses
                    found[written] = _rows(self._flow, spelled)
            elif written.casefold() in self._elsewhere:
                found[written] = self._elsewhere[written.casefold()]
        return found, own

    def _own_relation(self, name: RelationName) -> str | None:
        """How the flow spells this source or view, if it has it."""
        if name.flow is not None and name.flow.casefold() != self._flow.name.casefold():
            return None
        known = {one.casefold(): one for one in (*self._flow.sources, *self._flow.views)}
        return known.get(name.name.casefold())

    def _read_elsewhere(self) -> dict[str, Rows]:
        """The rows of what the statement reads of other flows, by the names that it uses."""
        found = {}
        for reference in table_references(self._statement):
            name = reference.relation
            if name is None or self._own_relation(name) is not None or self._shown.is_own_table(name):
                continue
            relation = self._flows.find(name)
            if relation is not None:
                found[".".join(reference.parts).casefold()] = _rows(*relation)
        return found

    def _in_process(self, query: ComposedSql, tables: Mapping[str, pa.Table]) -> pa.Table | None:
        """The rows of the query, or None for what Spark must run, which knows more or says what is wrong."""
        try:
            return self._flow.sql(query.text, tables=tables)
        except _ONLY_ON_SPARK:
            return None

    def _on_spark(
        self, query: ComposedSql, references: list[TableReference], tables: dict[str, Rows]
    ) -> tuple[ComposedSql, DataFrame]:
        """The text that Spark is given, and the frame that it is."""
        used = words(query.text)
        given = {name.casefold() for name in tables}
        for name in self._flow.readable:
            is_read = name.casefold() in used and name.casefold() not in given
            if is_read and not self._shown.is_own_table(RelationName(None, name)):
                tables[name] = _rows(self._flow, name)
        places = {name: self._shown_as(rows) for name, rows in tables.items()}
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

        def planned() -> DataFrame:
            frame = self.wrapped(spark.sql(made.text))
            frame.columns  # noqa: B018 - over Spark Connect, nothing is analysed before it is asked for
            return frame

        with placed(made, self._statement):
            return made, self._session.operations.run("plan rows", planned)

    def _shown_as(self, rows: Rows) -> str:
        """The name of a temporary view of the rows, which goes with this object."""
        place = f"_weirflow_{uuid.uuid4().hex}"
        frame = self._session.from_arrow(rows) if isinstance(rows, pa.Table) else rows
        frame.createOrReplaceTempView(f"`{place}`")
        self._made.callback(self._session.spark.catalog.dropTempView, place)
        return place


@contextmanager
def placed(query: ComposedSql, statement: str) -> Iterator[None]:
    """Let errors about a query say where in the statement it is."""
    try:
        yield
    except QueryError as error:
        error.position = query.position_in(statement, error.position)
        raise


def _rows(flow: Flow, name: str) -> Rows:
    return flow.frame(name) if flow.takes_frames else flow.snapshot(name)


def _alias(reference: TableReference) -> str:
    return "" if reference.aliased else f" AS `{reference.parts[-1]}`"
