"""Views that have no delta rule, run by Spark over the rows of a flow."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.flows.own_session import settings_of, with_settings
from weirflow.flows.view_reader import ViewReader
from weirflow.rows.types import spark_schema
from weirflow.sql.quoting import quoted
from weirflow.sql.types import nullable

if TYPE_CHECKING:
    from weirflow.sql.settings import SqlSettings


class SparkRecompute:
    """Runs queries in Spark sessions of its own, where no other table can stand in for the flow's.

    Args:
        main: the Session's native session; starts Spark.
        open_session: a new native session that shares the Session's Spark.
        run: runs a call as an operation of the Session, with its errors translated.
    """

    def __init__(
        self,
        main: Callable[[], Any],
        open_session: Callable[[], Any],
        run: Callable[[str, Callable[[], Any]], Any],
    ) -> None:
        self._main = main
        self._open_session = open_session
        self._run = run
        self._settings: SqlSettings | None = None
        self._natives: dict[SqlSettings, Any] = {}
        self.reader = ViewReader(open_session)

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
        found: str | None = self._run("read a view", lambda: self.reader.read(sql, tables, self.settings_now()))
        return found

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
        for name, table in tables.items():
            relation_frame(native, table).createOrReplaceTempView(quoted(name))
        return native.sql(sql)


def view_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with everything nullable: views do not track what is never NULL."""
    return spark_schema(pa.schema([(field.name, nullable(field.type)) for field in schema]))
