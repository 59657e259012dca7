"""Views that have no delta rule, run by Spark over the rows of a flow."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from weirflow.errors import QueryError
from weirflow.flows.evaluation import SparkEvaluator
from weirflow.flows.own_session import settings_of, with_settings
from weirflow.flows.view_reader import ViewReader
from weirflow.flows.view_schema import view_schema
from weirflow.sql.quoting import quoted
from weirflow.sql.stored import with_query

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.flows.functions import SessionFunctions
    from weirflow.flows.session_tables import SessionTables
    from weirflow.ivm.compiler.session_tables import SessionTable
    from weirflow.sql.settings import SqlSettings


class SparkRecompute:
    """Runs queries in Spark sessions of its own, where no other table can stand in for the flow's.

    Args:
        main: the Session's native session; starts Spark.
        open_session: a new native session that shares the Session's Spark.
        run: runs a call as an operation of the Session, with its errors translated.
        session_tables: the tables that views may read besides the flow's.
        functions: those that views may call by name.
        in_shards: see ``ViewReader``.
        is_durable: see ``ViewReader``.
    """

    def __init__(
        self,
        main: Callable[[], Any],
        open_session: Callable[[], Any],
        run: Callable[[str, Callable[[], Any]], Any],
        session_tables: SessionTables,
        functions: SessionFunctions,
        *,
        in_shards: bool = False,
        is_durable: bool = False,
    ) -> None:
        self._main = main
        self._open_session = open_session
        self._run = run
        self._tables = session_tables
        self._functions = functions
        self._settings: SqlSettings | None = None
        self._natives: dict[SqlSettings, Any] = {}
        self.reader = ViewReader(open_session, functions, in_shards=in_shards, is_durable=is_durable)
        self.evaluate = SparkEvaluator(open_session, run, functions).evaluate
        """See ``EvaluatingEngine``."""
        self.function = self._functions.function
        """See ``CallingEngine``."""

    def settings_now(self) -> SqlSettings:
        """See ``SettledEngine``."""
        return self._settings or settings_of(self._main())

    def under(self, settings: SqlSettings) -> SparkRecompute:
        """See ``SettledEngine``."""
        found = copy.copy(self)
        found._settings = settings  # noqa: SLF001 - one of this class
        return found

    def resolve(self, sql: str, tables: Mapping[str, pa.Schema]) -> str | None:
        """See ``ResolvingEngine``."""
        placed = self._tables.with_snapshots(sql, tables)
        query = sql if placed is None else placed.text
        try:
            found: str = self._run("read a view", lambda: self.reader.read(query, tables, self.settings_now()))
        except QueryError as error:
            if placed is not None:
                error.position = placed.position_in(sql, error.position)
            raise
        return found if placed is None else with_query(found, query)

    def tables(self, sql: str, known: Collection[str]) -> list[SessionTable]:
        """See ``TableEngine``."""
        return [table for _, table in self._tables.read_in(sql, known)]

    def table(self, name: str) -> SessionTable:
        """See ``TableEngine``."""
        return self._tables.table(name)

    def rows(self, table: SessionTable) -> pa.Table:
        """See ``TableEngine``."""
        return self._tables.rows(table)

    def schema(self, sql: str, tables: Mapping[str, pa.Schema]) -> pa.Schema:
        """The columns of the query's result; runs nothing."""
        from weirflow.spark.frames.arrow import frame_schema  # noqa: PLC0415 - imports pyspark

        empty = {name: schema.empty_table() for name, schema in tables.items()}
        return view_schema(self._run("plan a view", lambda: frame_schema(self._frame(sql, empty))))

    def run(self, sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        """The query's result over these tables."""
        result = self._run("recompute a view", lambda: self._frame(sql, tables).toArrow())
        return result.cast(view_schema(result.schema))

    def _frame(self, sql: str, tables: Mapping[str, pa.Table]) -> Any:
        from weirflow.spark.frames.arrow import relation_frame  # noqa: PLC0415 - imports pyspark

        settings = self.settings_now()
        if settings not in self._natives:
            self._natives[settings] = with_settings(self._open_session(), settings)
        native = self._natives[settings]
        self._functions.install(native)
        for name, table in tables.items():
            relation_frame(native, table).createOrReplaceTempView(quoted(name))
        return native.sql(sql)
