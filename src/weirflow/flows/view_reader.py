"""``ViewReader``: has Spark read the SQL of views."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weirflow.errors import ConfigError, NotIncremental, QueryError, Reason, UnsupportedError
from weirflow.flows.own_session import conf_of, settings_of, with_settings
from weirflow.ivm.compiler.reads import tables as read_tables
from weirflow.ivm.compiler.view import FRAME
from weirflow.ivm.kernel.expressions.compile import computes
from weirflow.ivm.kernel.expressions.python_calls import is_plain
from weirflow.rows.types import spark_schema
from weirflow.sql.bind.query import bind_query
from weirflow.sql.foreign import foreign_calls, foreign_parts, shown
from weirflow.sql.plan import Field
from weirflow.sql.print import print_plan
from weirflow.sql.quoting import quoted
from weirflow.sql.registered import versions
from weirflow.sql.resolved.node import LeftToBinder
from weirflow.sql.resolved.relations import read_plan
from weirflow.sql.stored import encode_plan, encode_refusal
from weirflow.sql.types import nullable

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.flows.functions import SessionFunctions
    from weirflow.spark.analyzed.tree import AnalyzedQuery
    from weirflow.sql.expr import Call
    from weirflow.sql.plan import Plan
    from weirflow.sql.resolved.node import Node
    from weirflow.sql.settings import SqlSettings


class ViewReader:
    """Reads SQL over relations without rows, in Spark sessions of its own, one for each settings.

    Args:
        open_session: a new native session that shares the Session's Spark.
        functions: those that views may call by name.
        in_shards: whether the views are those of a flow in shards, where no Spark can be asked for values.
        is_durable: whether the views outlive this process, and with it functions without a name.
    """

    def __init__(
        self,
        open_session: Callable[[], Any],
        functions: SessionFunctions,
        *,
        in_shards: bool = False,
        is_durable: bool = False,
    ) -> None:
        self._open_session = open_session
        self._functions = functions
        self._in_shards = in_shards
        self._is_durable = is_durable
        self._mark = uuid.uuid4().hex
        self._relations: dict[SqlSettings, EmptyRelations] = {}
        self._lock = threading.RLock()  # two threads may ask, and what they read over is the session's

    def read(self, sql: str, tables: Mapping[str, pa.Schema], settings: SqlSettings) -> str:
        """See ``ResolvingEngine.resolve``; with these settings."""
        from weirflow.spark.analyzed.tree import AnalyzedQuery  # noqa: PLC0415 - imports pyspark
        from weirflow.spark.vector_functions import (  # noqa: PLC0415 - beside what imports pyspark
            calls_vector_functions,
            define_vector_functions,
        )

        with self._lock:
            relations = self._under(settings)
            self._functions.install(relations.native)
            about_vectors = calls_vector_functions(sql)
            if about_vectors:  # which Spark knows as expressions of its own: the text says what is meant
                define_vector_functions(relations.native)
            if about_vectors or not relations.is_classic:
                return _read_by_binder(relations, sql, tables, settings)
            relations.become(tables)
            query = AnalyzedQuery.of_sql(relations.native, sql)
        if not query.is_query:
            raise QueryError("A view is one query.", hint="use session.sql for statements that change something")
        if query.reads_others:
            raise UnsupportedError(
                "The view reads a table of the Session in a way that cannot be replaced by a snapshot.",
                hint="write the table's plain name, and give no CTE the same name; or read a Spark view of the table",
            )
        try:
            plan = self._read(relations.native, query.plan, tables, settings)
            return encode_plan(_with_columns(plan, _columns(query)))
        except LeftToBinder as left:
            refusal: NotIncremental = left
        except NotIncremental as refused:
            return encode_refusal(refused, query.reads)
        try:
            bound = bind_query(sql, _catalog(tables), settings=settings)
            return encode_plan(_with_columns(bound, _columns(query)))
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

    def outside(self, native_df: Any) -> list[tuple[str, ...]]:
        """The names of the tables that a frame reads besides those of ``table``.

        Raises:
            ConfigError: something that it reads is another flow's, or has no name.
        """
        from weirflow.spark.analyzed.tree import AnalyzedQuery  # noqa: PLC0415 - imports pyspark

        _require_classic(native_df.sparkSession)
        return AnalyzedQuery.of_frame(native_df).outside(self._mark)

    def read_frame(
        self, native_df: Any, tables: Mapping[str, pa.Schema], snapshots: Mapping[tuple[str, ...], str]
    ) -> tuple[str, str, SqlSettings]:
        """The text, the plan and the settings of a view that a frame is made into, over ``tables``.

        Args:
            native_df: a frame of ``table``'s.
            tables: the flow's relations.
            snapshots: which of them takes the place of each that is ``outside``.

        Raises:
            NotIncremental: it has no delta rule.
        """
        from weirflow.spark.analyzed.tree import AnalyzedQuery  # noqa: PLC0415 - imports pyspark

        native = native_df.sparkSession
        self._functions.install(native)
        query, settings = AnalyzedQuery.of_frame(native_df), settings_of(native)
        read = self._read(native, query.plan_over(self._mark, snapshots), tables, settings)
        plan = _with_columns(read, _columns(query))
        return FRAME + print_plan(plan), encode_plan(plan), settings

    def _read(self, native: Any, root: Node, tables: Mapping[str, pa.Schema], settings: SqlSettings) -> Plan:
        from weirflow.spark.analyzed.foreign import ForeignReader  # noqa: PLC0415 - imports pyspark

        foreign = ForeignReader(native, conf_of(settings), computes, is_plain, self._functions.find)
        plan = read_plan(root, _catalog(tables), settings, foreign)
        calls = foreign_calls(plan)
        if self._is_durable:
            self._require_names(calls)
        if calls and self._in_shards:
            raise NotIncremental(
                f"{shown(calls[0])} needs Spark or this process to evaluate it, and a flow in shards can use neither.",
                reason=Reason.SPARK_NOT_ON_EXECUTORS,
                hint="use a flow in this process, session.flow(name): there Spark evaluates it for the delta",
            )
        return plan

    def _require_names(self, calls: Sequence[Call]) -> None:
        """Refuse functions that the next process to open the flow could not be given."""
        for call in calls:
            for name in versions(json.loads(foreign_parts(call).settings)):
                found = self._functions.find(name)
                if found is not None and found.is_anonymous:
                    raise ConfigError(
                        "A view of a durable flow calls a function that has no name.",
                        hint="register it under a name, session.udf('a name', ...): it must be given again when the "
                        "flow is opened again",
                    )

    def _under(self, settings: SqlSettings) -> EmptyRelations:
        if settings not in self._relations:
            self._relations[settings] = EmptyRelations(with_settings(self._open_session(), settings), self._mark)
        return self._relations[settings]


class EmptyRelations:
    """Temporary views without rows in a native session.

    Args:
        native: the session, in which there are no others.
        mark: what tells them from other relations in plans.
    """

    def __init__(self, native: Any, mark: str) -> None:
        self.native = native
        self._mark = mark
        self._known: dict[str, pa.Schema] = {}

    @property
    def is_classic(self) -> bool:
        """Whether Spark tells how it reads a query."""
        return hasattr(self.native, "_jsparkSession")

    def become(self, tables: Mapping[str, pa.Schema]) -> None:
        """Have views of these columns, and no others."""
        for name in self._known.keys() - tables.keys():
            self.native.catalog.dropTempView(name)
            del self._known[name]
        for name, schema in tables.items():
            if self._known.get(name) != schema:
                self._relation(schema).createOrReplaceTempView(quoted(name))
                self._known[name] = schema

    def _relation(self, schema: pa.Schema) -> Any:
        from weirflow.spark.analyzed.outside import MARK  # noqa: PLC0415 - beside what imports pyspark
        from weirflow.spark.frames.arrow import empty_relation, relation_frame  # noqa: PLC0415 - imports pyspark

        if self.is_classic:
            return empty_relation(self.native, schema, {MARK: self._mark})
        return relation_frame(self.native, schema.empty_table())


def _read_by_binder(relations: EmptyRelations, sql: str, tables: Mapping[str, pa.Schema], settings: SqlSettings) -> str:
    """What the binder reads, where Spark tells no more of a query than its columns: they must be the same."""
    from weirflow.spark.frames.arrow import frame_schema  # noqa: PLC0415 - imports pyspark

    read = read_tables(sql)  # which also refuses what is no query: Spark Connect would run it at once
    relations.become(tables)
    fields = _fields(spark_schema(frame_schema(relations.native.sql(sql))))
    try:
        return encode_plan(_with_columns(bind_query(sql, _catalog(tables), settings=settings), fields))
    except NotIncremental as refused:
        refusal = refused
    except QueryError as unread:  # by the binder alone: Spark has read it
        refusal = NotIncremental(unread.message, reason=Reason.OPERATOR_NOT_INCREMENTALIZABLE, hint=unread.hint)
    return encode_refusal(refusal, [name for name in tables if name.casefold() in read])


def _require_classic(native: Any) -> None:
    if not hasattr(native, "_jsparkSession"):
        raise UnsupportedError("Over Spark Connect a view cannot be made from a frame.", hint="register SQL")


def _columns(query: AnalyzedQuery) -> tuple[Field, ...]:
    from weirflow.spark.compat import arrow_schema  # noqa: PLC0415 - imports pyspark

    return _fields(spark_schema(arrow_schema(query.schema)))


def _fields(schema: pa.Schema) -> tuple[Field, ...]:
    return tuple(Field(one.name, nullable(one.type)) for one in schema)


def _catalog(tables: Mapping[str, pa.Schema]) -> dict[str, tuple[Field, ...]]:
    return {name: _fields(schema) for name, schema in tables.items()}


def _with_columns(plan: Plan, columns: tuple[Field, ...]) -> Plan:
    """The plan, unless its columns are not those that Spark gives the query."""
    if plan.fields != columns:
        raise NotIncremental(
            "Spark gives the query other columns than Weirflow would.", reason=Reason.TYPE_NOT_SUPPORTED
        )
    return plan
