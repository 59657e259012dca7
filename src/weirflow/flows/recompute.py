"""Views that have no delta rule, run by Spark over the rows of a flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from weirflow.flows.evaluation import SparkEvaluator
from weirflow.flows.functions import SessionFunctions
from weirflow.flows.view_reader import ViewReader
from weirflow.rows.types import spark_schema
from weirflow.sql.quoting import quoted
from weirflow.sql.types import nullable


class SparkRecompute:
    """Runs queries in a Spark session of its own, where no other table can stand in for the flow's.

    Args:
        open_session: a new native session that shares the Session's Spark.
        run: runs a call as an operation of the Session, with its errors translated.
        functions: those that views may call by name.
        in_shards: see ``ViewReader``.
    """

    def __init__(
        self,
        open_session: Callable[[], Any],
        run: Callable[[str, Callable[[], Any]], Any],
        functions: SessionFunctions | None = None,
        *,
        in_shards: bool = False,
    ) -> None:
        self._functions = functions or SessionFunctions()
        self._open_session = open_session
        self._run = run
        self._native: Any = None
        self.reader = ViewReader(open_session, self._functions, in_shards=in_shards)
        self.evaluate = SparkEvaluator(open_session, run, self._functions).evaluate
        """See ``EvaluatingEngine``."""
        self.function = self._functions.function
        """See ``CallingEngine``."""

    def resolve(self, sql: str, tables: Mapping[str, pa.Schema]) -> str | None:
        """See ``ResolvingEngine``."""
        found: str | None = self._run("read a view", lambda: self.reader.read(sql, tables))
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

        if self._native is None:
            self._native = self._open_session()
        self._functions.install(self._native)
        for name, table in tables.items():
            relation_frame(self._native, table).createOrReplaceTempView(quoted(name))
        return self._native.sql(sql)


def view_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with everything nullable: views do not track what is never NULL."""
    return spark_schema(pa.schema([(field.name, nullable(field.type)) for field in schema]))
