"""Catalogs, schemas, tables and keys, as drivers list them.

A flow is a schema without a catalog: its sources are tables and its views are views, so that the name that a tool makes
of a schema and a table, ``flow.view``, is what SQL calls it. Spark's tables have a catalog, a schema and a name.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import re2

from weirflow.errors import QueryError, WeirflowError
from weirflow.sql.quoting import quoted

if TYPE_CHECKING:
    from weirflow.ivm.flow.flow import Flow
    from weirflow.server.access.caller import Caller
    from weirflow.server.coordinator import Coordinator

_log = logging.getLogger(__name__)

_INNER = "_weirflow_"
TABLE, VIEW = "TABLE", "VIEW"

CATALOGS = pa.schema([pa.field("catalog_name", pa.string(), nullable=False)])
SCHEMAS = pa.schema([pa.field("catalog_name", pa.string()), pa.field("db_schema_name", pa.string(), nullable=False)])
TABLES = pa.schema(
    [
        pa.field("catalog_name", pa.string()),
        pa.field("db_schema_name", pa.string()),
        pa.field("table_name", pa.string(), nullable=False),
        pa.field("table_type", pa.string(), nullable=False),
    ]
)
TABLES_WITH_SCHEMAS = TABLES.append(pa.field("table_schema", pa.binary(), nullable=False))
TABLE_TYPES = pa.schema([pa.field("table_type", pa.string(), nullable=False)])
KEYS = pa.schema(
    [
        pa.field("catalog_name", pa.string()),
        pa.field("db_schema_name", pa.string()),
        pa.field("table_name", pa.string(), nullable=False),
        pa.field("column_name", pa.string(), nullable=False),
        pa.field("key_name", pa.string()),
        pa.field("key_sequence", pa.int32(), nullable=False),
    ]
)
REFERENCES = pa.schema(
    [
        pa.field("pk_catalog_name", pa.string()),
        pa.field("pk_db_schema_name", pa.string()),
        pa.field("pk_table_name", pa.string(), nullable=False),
        pa.field("pk_column_name", pa.string(), nullable=False),
        pa.field("fk_catalog_name", pa.string()),
        pa.field("fk_db_schema_name", pa.string()),
        pa.field("fk_table_name", pa.string(), nullable=False),
        pa.field("fk_column_name", pa.string(), nullable=False),
        pa.field("key_sequence", pa.int32(), nullable=False),
        pa.field("fk_key_name", pa.string()),
        pa.field("pk_key_name", pa.string()),
        pa.field("update_rule", pa.uint8(), nullable=False),
        pa.field("delete_rule", pa.uint8(), nullable=False),
    ]
)


class _Found(NamedTuple):
    catalog: str | None
    schema: str | None
    name: str
    kind: str
    columns: Callable[[], pa.Schema]

    @property
    def order(self) -> tuple[str, str, str, str]:
        return (self.catalog or "", self.schema or "", self.name, self.kind)


class Listing:
    """What a caller may see of the catalogs and flows of a server."""

    def __init__(self, coordinator: Coordinator, caller: Caller) -> None:
        self._coordinator = coordinator
        self._caller = caller

    def catalogs(self) -> pa.Table:
        """The catalogs. If there are flows, the first has no name: drivers look for tables in those that are listed."""
        nameless = [""] if self._flows() else []
        return pa.Table.from_pydict({"catalog_name": nameless + sorted(self._catalogs())}, CATALOGS)

    def schemas(self, catalog: str | None, pattern: str | None) -> pa.Table:
        """The schemas of a catalog, or of all; an empty name is that of what is in none."""
        found: set[tuple[str | None, str]] = {(None, one.name) for one in self._flows() if catalog in (None, "")}
        found.update(self._schemas(catalog))
        rows = [one for one in found if _like(one[1], pattern)]
        return _table(sorted(rows, key=lambda one: (one[0] or "", one[1])), SCHEMAS)

    def tables(
        self,
        catalog: str | None,
        schema_pattern: str | None,
        pattern: str | None,
        types: Iterable[str],
        *,
        with_columns: bool,
    ) -> pa.Table:
        """The sources, views and tables that fit, with their columns if that is wanted."""
        kinds = set(types)
        found = [one for one in self._flow_relations(schema_pattern) if catalog in (None, "")]
        found += self._spark_tables(catalog, schema_pattern)
        fitting = [one for one in found if _like(one.name, pattern) and (not kinds or one.kind in kinds)]
        fitting.sort(key=lambda one: one.order)
        if not with_columns:
            return _table([one[:4] for one in fitting], TABLES)
        rows = []
        for one in fitting:
            try:
                rows.append((*one[:4], one.columns().serialize().to_pybytes()))
            except QueryError as error:  # a table whose files are gone, or with a type that Arrow has not got
                _log.warning("the columns of %s are not known: %s", one.name, error.message)
                rows.append((*one[:4], pa.schema([]).serialize().to_pybytes()))
        return _table(rows, TABLES_WITH_SCHEMAS)

    def table_types(self) -> pa.Table:
        """What there is in schemas."""
        return _table([(TABLE,), (VIEW,)], TABLE_TYPES)

    def primary_keys(self, catalog: str | None, schema: str | None, table: str) -> pa.Table:
        """The key of a source; Spark's tables have none."""
        rows = [
            (None, flow.name, source, column, None, number)
            for flow in self._flows()
            if catalog in (None, "") and schema in (None, flow.name)
            for source in flow.sources
            if source == table
            for number, column in enumerate(flow.source(source).key, 1)
        ]
        return _table(rows, KEYS)

    def no_references(self) -> pa.Table:
        """Nothing refers to anything: neither flows nor Spark have foreign keys."""
        return REFERENCES.empty_table()

    # Inner workings

    def _flows(self) -> list[Flow]:
        return list(self._coordinator.flows(self._caller))

    def _flow_relations(self, schema_pattern: str | None) -> Iterator[_Found]:
        for flow in self._flows():
            if _like(flow.name, schema_pattern):
                for names, kind in ((flow.sources, TABLE), (flow.views, VIEW)):
                    for name in names:
                        if name in flow.readable:
                            yield _Found(None, flow.name, name, kind, partial(flow.schema, name))

    def _catalogs(self) -> list[str]:
        return [one.name for one in self._coordinator.session.catalogs() if self._caller.sees_catalog(one.name)]

    def _schemas(self, catalog: str | None) -> Iterator[tuple[str, str]]:
        for name in self._catalogs():
            if catalog in (None, name):
                for row in self._shown(f"SHOW NAMESPACES IN {quoted(name)}", is_asked=catalog is not None):
                    yield name, row["namespace"]

    def _spark_tables(self, catalog: str | None, schema_pattern: str | None) -> Iterator[_Found]:
        for owner, schema in self._schemas(catalog):
            if not _like(schema, schema_pattern):
                continue
            place = f"{quoted(owner)}.{'.'.join(quoted(part) for part in schema.split('.'))}"
            is_asked = catalog is not None
            views = {row["viewName"] for row in self._shown(f"SHOW VIEWS IN {place}", is_asked=False)}
            for row in self._shown(f"SHOW TABLES IN {place}", is_asked=is_asked):
                name = row["tableName"]
                if row["isTemporary"] or name.startswith(_INNER):
                    continue
                full = f"{place}.{quoted(name)}"
                kind = VIEW if name in views else TABLE
                yield _Found(owner, schema, name, kind, partial(self._columns, full))

    def _columns(self, table: str) -> pa.Schema:
        from weirflow.spark.frames.arrow import frame_schema  # noqa: PLC0415 - imports pyspark

        session = self._coordinator.session
        frame = session.table(table)
        with session._translated():  # noqa: SLF001 - the server stands for its Session
            return frame_schema(frame.spark)

    def _shown(self, statement: str, *, is_asked: bool) -> list[dict[str, str]]:
        """The rows of a SHOW; of a catalog that does not answer none, unless it was asked for by its name."""
        try:
            rows: list[dict[str, str]] = self._coordinator.session.sql(statement).to_arrow().to_pylist()
        except WeirflowError as error:
            if is_asked:
                raise
            _log.warning("%s failed, and what it lists is left out: %s", statement, error.message)
            return []
        return rows


def _table(rows: Iterable[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def _like(name: str, pattern: str | None) -> bool:
    r"""Whether a name fits a pattern, in which ``%`` is any text, ``_`` any character and ``\`` takes both literally.

    >>> _like("orders", "ord%"), _like("orders", "order_"), _like("a_b", r"a\_b"), _like("axb", r"a\_b")
    (True, True, True, False)
    """
    if pattern is None:
        return True
    wild = {"%": ".*", "_": "."}
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    expression = "".join(wild.get(part) or re2.escape(part[-1]) for part in parts)
    # In linear time, whatever the pattern is.
    return re2.fullmatch(f"(?s){expression}", name) is not None
