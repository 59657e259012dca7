"""``ViewReader``: has Spark read the SQL of views."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from weirflow.errors import QueryError, UnsupportedError
from weirflow.flows.own_session import settings_of, with_settings
from weirflow.ivm.compiler.program import FRAME
from weirflow.rows.types import spark_schema
from weirflow.sql.bind.query import bind_query
from weirflow.sql.plan import Field
from weirflow.sql.print import print_plan
from weirflow.sql.quoting import quoted
from weirflow.sql.refusal import NotIncremental, Reason
from weirflow.sql.resolved.node import LeftToBinder
from weirflow.sql.resolved.relations import read_plan
from weirflow.sql.stored import encode_plan, encode_refusal
from weirflow.sql.types import nullable

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.spark.analyzed.tree import AnalyzedQuery
    from weirflow.sql.plan import Plan
    from weirflow.sql.settings import SqlSettings


class ViewReader:
    """Reads SQL over relations without rows, in Spark sessions of its own, one for each settings.

    Args:
        open_session: a new native session that shares the Session's Spark.
    """

    def __init__(self, open_session: Callable[[], Any]) -> None:
        self._open_session = open_session
        self._relations: dict[SqlSettings, EmptyRelations] = {}
        self._lock = threading.RLock()  # two threads may ask, and what they read over is the session's

    def read(self, sql: str, tables: Mapping[str, pa.Schema], settings: SqlSettings) -> str | None:
        """See ``ResolvingEngine.resolve``; with these settings."""
        from weirflow.spark.analyzed.tree import AnalyzedQuery  # noqa: PLC0415 - imports pyspark

        with self._lock:
            relations = self._under(settings)
            if not relations.is_classic:
                return None
            relations.become(tables)
            query = AnalyzedQuery.of_sql(relations.native, sql)
        if not query.is_query:
            raise QueryError("A view is one query.", hint="statements that change something are run by session.sql")
        try:
            return encode_plan(_plan(query, tables, settings))
        except LeftToBinder as left:
            refusal: NotIncremental = left
        except NotIncremental as refused:
            return encode_refusal(refused, query.reads)
        try:
            return encode_plan(_agreeing(bind_query(sql, _catalog(tables), settings=settings), query))
        except NotIncremental as refused:
            refusal = refused
        return encode_refusal(refusal, query.reads)

    def table(self, name: str, tables: Mapping[str, pa.Schema], settings: SqlSettings) -> Any:
        """A native frame of a relation's columns, without rows; what is made of it is read with these settings."""
        with self._lock:
            relations = self._under(settings)
            _require_classic(relations.native)
            relations.become(tables)
            return relations.native.table(quoted(name))

    @staticmethod
    def read_frame(native_df: Any, tables: Mapping[str, pa.Schema]) -> tuple[str, str, SqlSettings]:
        """The text, the plan and the settings of a view that a frame of ``table``'s is made into.

        Raises:
            NotIncremental: it has no delta rule.
        """
        from weirflow.spark.analyzed.tree import AnalyzedQuery  # noqa: PLC0415 - imports pyspark

        _require_classic(native_df.sparkSession)
        settings = settings_of(native_df.sparkSession)
        plan = _plan(AnalyzedQuery.of_frame(native_df), tables, settings)
        return FRAME + print_plan(plan), encode_plan(plan), settings

    def _under(self, settings: SqlSettings) -> EmptyRelations:
        if settings not in self._relations:
            self._relations[settings] = EmptyRelations(with_settings(self._open_session(), settings))
        return self._relations[settings]


class EmptyRelations:
    """Temporary views without rows in a native session."""

    def __init__(self, native: Any) -> None:
        self.native = native
        self._known: dict[str, pa.Schema] = {}

    @property
    def is_classic(self) -> bool:
        """Whether Spark tells how it reads a query."""
        return hasattr(self.native, "_jsparkSession")

    def become(self, tables: Mapping[str, pa.Schema]) -> None:
        """Have views of these columns, and no others."""
        from weirflow.spark.frames.arrow import empty_relation  # noqa: PLC0415 - imports pyspark

        for name in self._known.keys() - tables.keys():
            self.native.catalog.dropTempView(name)
            del self._known[name]
        for name, schema in tables.items():
            if self._known.get(name) != schema:
                empty_relation(self.native, schema).createOrReplaceTempView(quoted(name))
                self._known[name] = schema


def _require_classic(native: Any) -> None:
    if not hasattr(native, "_jsparkSession"):
        raise UnsupportedError(
            "Over Spark Connect there is no plan of a frame that a view could be made of.", hint="register SQL"
        )


def _plan(query: AnalyzedQuery, tables: Mapping[str, pa.Schema], settings: SqlSettings) -> Plan:
    return _agreeing(read_plan(query.plan, _catalog(tables), settings.time_zone, ansi=settings.ansi), query)


def _fields(schema: pa.Schema) -> tuple[Field, ...]:
    return tuple(Field(one.name, nullable(one.type)) for one in schema)


def _catalog(tables: Mapping[str, pa.Schema]) -> dict[str, tuple[Field, ...]]:
    return {name: _fields(schema) for name, schema in tables.items()}


def _agreeing(plan: Plan, query: AnalyzedQuery) -> Plan:
    """The plan, unless its columns are not those that Spark gives the query."""
    from weirflow.spark.compat import arrow_schema  # noqa: PLC0415 - imports pyspark

    if plan.fields != _fields(spark_schema(arrow_schema(query.schema))):
        raise NotIncremental(
            "Spark gives the query other columns than it would have here.", reason=Reason.TYPE_NOT_SUPPORTED
        )
    return plan
