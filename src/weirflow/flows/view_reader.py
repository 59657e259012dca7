"""``ViewReader``: has Spark read the SQL of views."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from weirflow.errors import QueryError, UnsupportedError
from weirflow.flows.functions import SessionFunctions
from weirflow.flows.own_session import meaning
from weirflow.ivm.compiler.program import FRAME
from weirflow.ivm.kernel.expressions.compile import computes
from weirflow.ivm.kernel.expressions.python_calls import is_plain
from weirflow.rows.types import spark_schema
from weirflow.sql.bind.query import bind_query
from weirflow.sql.foreign import foreign_calls, shown
from weirflow.sql.plan import Field
from weirflow.sql.print import print_plan
from weirflow.sql.quoting import quoted
from weirflow.sql.refusal import NotIncremental, Reason
from weirflow.sql.resolved.functions import UTC
from weirflow.sql.resolved.node import LeftToBinder
from weirflow.sql.resolved.reading import is_utc
from weirflow.sql.resolved.relations import read_plan
from weirflow.sql.stored import encode_plan, encode_refusal
from weirflow.sql.types import nullable

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.spark.analyzed.tree import AnalyzedQuery
    from weirflow.sql.plan import Plan


class ViewReader:
    """Reads SQL over relations without rows, in a Spark session of its own.

    Args:
        open_session: a new native session that shares the Session's Spark.
        functions: those that views may call by name.
        in_shards: whether the views are those of a flow in shards, where no Spark can be asked for values.
    """

    def __init__(
        self, open_session: Callable[[], Any], functions: SessionFunctions | None = None, *, in_shards: bool = False
    ) -> None:
        self._open_session = open_session
        self._functions = functions or SessionFunctions()
        self._in_shards = in_shards
        self._native: Any = None
        self._known: dict[str, pa.Schema] = {}
        self._lock = threading.RLock()  # two threads may ask, and what they read over is the session's

    def read(self, sql: str, tables: Mapping[str, pa.Schema]) -> str | None:
        """See ``ResolvingEngine.resolve``."""
        from weirflow.spark.analyzed.tree import AnalyzedQuery  # noqa: PLC0415 - imports pyspark

        if not self.is_classic:
            return None
        with self._lock:
            self._register(tables)
            self._functions.install(self._native)
            query = AnalyzedQuery.of_sql(self._native, sql)
        if not query.is_query:
            raise QueryError("A view is one query.", hint="statements that change something are run by session.sql")
        try:
            return encode_plan(self._plan(query, tables))
        except LeftToBinder as left:
            refusal: NotIncremental = left
        except NotIncremental as refused:
            return encode_refusal(refused, query.reads)
        try:
            if self._has_usual_settings():
                return encode_plan(_agreeing(bind_query(sql, _catalog(tables)), query))
        except NotIncremental as refused:
            refusal = refused
        return encode_refusal(refusal, query.reads)

    def table(self, name: str, tables: Mapping[str, pa.Schema]) -> Any:
        """A native frame of a relation's columns, without rows."""
        self._require_classic()
        with self._lock:
            self._register(tables)
            return self._native.table(quoted(name))

    def read_frame(self, native_df: Any, tables: Mapping[str, pa.Schema]) -> tuple[str, str]:
        """The text and the plan of a view that a frame of ``table``'s is made into.

        Raises:
            NotIncremental: it has no delta rule.
        """
        from weirflow.spark.analyzed.tree import AnalyzedQuery  # noqa: PLC0415 - imports pyspark

        self._require_classic()
        self._functions.install(self._native)
        plan = self._plan(AnalyzedQuery.of_frame(native_df), tables)
        return FRAME + print_plan(plan), encode_plan(plan)

    @property
    def is_classic(self) -> bool:
        """Whether Spark tells how it reads a query."""
        with self._lock:
            if self._native is None:
                self._native = self._open_session()
        return hasattr(self._native, "_jsparkSession")

    def _require_classic(self) -> None:
        if not self.is_classic:
            raise UnsupportedError(
                "Over Spark Connect there is no plan of a frame that a view could be made of.", hint="register SQL"
            )

    def _plan(self, query: AnalyzedQuery, tables: Mapping[str, pa.Schema]) -> Plan:
        from weirflow.spark.analyzed.foreign import ForeignReader  # noqa: PLC0415 - imports pyspark

        foreign = ForeignReader(self._native, meaning(self._native), computes, is_plain, self._functions.find)
        plan = read_plan(query.plan, _catalog(tables), self._zone, foreign)
        calls = foreign_calls(plan) if self._in_shards else []
        if calls:
            raise NotIncremental(
                f"{shown(calls[0])} is evaluated by Spark or this process, which a flow in shards cannot ask for it.",
                reason=Reason.SPARK_NOT_ON_EXECUTORS,
                hint="a flow in this process, session.flow(name), has Spark evaluate it for the rows of the delta",
            )
        return _agreeing(plan, query)

    @property
    def _zone(self) -> str:
        found = self._native.conf.get("spark.sql.session.timeZone")
        return UTC if is_utc(found) else found

    def _has_usual_settings(self) -> bool:
        """Whether the settings are those that the binder reads SQL with."""
        return self._zone == UTC and self._native.conf.get("spark.sql.ansi.enabled") == "true"

    def _register(self, tables: Mapping[str, pa.Schema]) -> None:
        """Have temporary views of these columns, and no others."""
        from weirflow.spark.frames.arrow import empty_relation  # noqa: PLC0415 - imports pyspark

        for name in self._known.keys() - tables.keys():
            self._native.catalog.dropTempView(name)
            del self._known[name]
        for name, schema in tables.items():
            if self._known.get(name) != schema:
                empty_relation(self._native, schema).createOrReplaceTempView(quoted(name))
                self._known[name] = schema


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
