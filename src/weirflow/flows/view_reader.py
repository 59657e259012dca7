"""``ViewReader``: has Spark read the SQL of views."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from weirflow.errors import QueryError
from weirflow.rows.types import spark_schema
from weirflow.sql.plan import Field
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

    from weirflow.sql.plan import Plan


class ViewReader:
    """Reads SQL over relations without rows, in a Spark session of its own.

    Args:
        open_session: a new native session that shares the Session's Spark.
    """

    def __init__(self, open_session: Callable[[], Any]) -> None:
        self._open_session = open_session
        self._native: Any = None
        self._known: dict[str, pa.Schema] = {}

    def read(self, sql: str, tables: Mapping[str, pa.Schema]) -> str | None:
        """See ``ResolvingEngine.resolve``."""
        from weirflow.spark.analyzed.tree import AnalyzedQuery  # noqa: PLC0415 - imports pyspark
        from weirflow.spark.compat import arrow_schema  # noqa: PLC0415 - imports pyspark

        if self._native is None:
            self._native = self._open_session()
        if not hasattr(self._native, "_jsparkSession"):
            return None
        self._register(tables)
        query = AnalyzedQuery(self._native, sql)
        if not query.is_query:
            raise QueryError("A view is one query.", hint="statements that change something are run by session.sql")
        try:
            plan = read_plan(query.plan, {name: _fields(schema) for name, schema in tables.items()}, self._zone)
            _require_columns(plan, _fields(spark_schema(arrow_schema(query.schema))))
            return encode_plan(plan)
        except LeftToBinder as refusal:
            return None if self._has_usual_settings() else encode_refusal(refusal, query.reads)
        except NotIncremental as refusal:
            return encode_refusal(refusal, query.reads)

    @property
    def _zone(self) -> str:
        found = self._native.conf.get("spark.sql.session.timeZone")
        return UTC if is_utc(found) else found

    def _has_usual_settings(self) -> bool:
        """Whether the settings are those that the binder reads SQL with."""
        return self._zone == UTC and self._native.conf.get("spark.sql.ansi.enabled") == "true"

    def _register(self, tables: Mapping[str, pa.Schema]) -> None:
        """Have temporary views of these columns, and no others."""
        from weirflow.spark.frames.arrow import relation_frame  # noqa: PLC0415 - imports pyspark

        for name in self._known.keys() - tables.keys():
            self._native.catalog.dropTempView(name)
            del self._known[name]
        for name, schema in tables.items():
            if self._known.get(name) != schema:
                relation_frame(self._native, schema.empty_table()).createOrReplaceTempView(quoted(name))
                self._known[name] = schema


def _fields(schema: pa.Schema) -> tuple[Field, ...]:
    return tuple(Field(one.name, nullable(one.type)) for one in schema)


def _require_columns(plan: Plan, columns: tuple[Field, ...]) -> None:
    """Refuse a plan that was read otherwise than Spark means it."""
    if plan.fields != columns:
        raise NotIncremental(
            "Spark gives the query other columns than it would have here.", reason=Reason.TYPE_NOT_SUPPORTED
        )
