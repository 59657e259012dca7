"""A view's deltas in a table of Spark: appended as a changelog, or merged so that the table equals the view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from typing_extensions import override

from weirflow.errors import ConfigError, SinkConflict, UnsupportedError
from weirflow.flows.own_session import own_session, provider
from weirflow.flows.sinks.keyed_changes import key_columns, keyed_changes, summed
from weirflow.flows.sinks.table_positions import POSITIONS, PropertyPosition, TablePosition
from weirflow.ivm.flow.sinks.parquet import changelog, changelog_schema, require_distinct
from weirflow.ivm.flow.sinks.sink import Guarantee, SinkTarget
from weirflow.sql.quoting import quoted
from weirflow.types import SinkMode, one_of

if TYPE_CHECKING:
    from weirflow.flows.host import FlowSession
    from weirflow.ivm.flow.sinks.sink import Deltas
    from weirflow.ivm.zset.delta import DeltaBatch

_DELETED = "_deleted"
_SOURCE = "weirflow_sink"


class TableTarget(SinkTarget):
    """A table that exists. Delta and Iceberg tables get their rows and the sink's position in one commit.

    Args:
        session: whose Spark writes.
        table: its name, as SQL has it.
        mode: append a changelog, or merge by key.
        key: the columns that identify the view's rows, to merge by.
    """

    def __init__(self, session: FlowSession, table: str, mode: str, key: str | Sequence[str] | None) -> None:
        self._session = session
        self._table = table
        self._mode = _mode(mode)
        self._key = () if key is None else (key,) if isinstance(key, str) else tuple(key)
        if (self._mode is SinkMode.UPSERT) != bool(self._key):
            raise ConfigError(
                "Only an upsert takes a key, and it needs one.", hint="pass mode='upsert' and key= together, or neither"
            )
        self._schema = pa.schema([])
        self._columns: list[str] = []
        self._native: Any = None
        self._position: TablePosition = PropertyPosition(None, table, "")

    @property
    @override
    def guarantee(self) -> Guarantee:
        return self._position.guarantee

    @override
    def describe(self) -> str:
        return f"the {self._position.kind} table {self._table}, {self._mode}"

    @override
    def open(self, owner: str, schema: pa.Schema) -> None:
        if self._key:
            self._key = key_columns(self._key, schema)
        require_distinct(schema)
        self._schema = schema if self._mode is SinkMode.UPSERT else changelog_schema(schema)
        main = self._session.spark

        def look() -> tuple[Any, list[str], str]:
            native = own_session(main)
            return native, native.table(self._table).columns, provider(native, self._table)

        self._native, self._columns, kind = self._run("look at", look)
        self._position = POSITIONS.get(kind, PropertyPosition)(self._native, self._table, owner)
        if self._mode is SinkMode.UPSERT and self._position.guarantee is not Guarantee.EXACTLY_ONCE:
            raise UnsupportedError(
                f"The {kind} table {self._table} cannot be merged into.",
                hint="use a Delta or Iceberg table, or mode='changelog'",
            )
        if sorted(self._columns) != sorted(self._schema.names):
            raise ConfigError(
                f"The table {self._table} has the columns {', '.join(self._columns)}; "
                f"the sink writes {', '.join(self._schema.names)}.",
                hint="make a table with the columns that the sink writes",
            )

    @override
    def position(self) -> int | None:
        found: int | None = self._run("find the position in", self._position.read)
        if found is None and self._run("look into", lambda: self._native.table(self._table).take(1)):
            raise SinkConflict(
                f"The table {self._table} has rows that this view of this flow has not written.",
                hint="write to an empty table, or pass resync=True to replace its rows with the view's current ones",
            )
        return found

    @override
    def write(self, after: int, upto: int, deltas: Deltas) -> None:
        if self._mode is SinkMode.UPSERT and deltas:
            rows = merge_rows(summed(deltas), self._key)
            self._commit(upto, "merge into", lambda: self._merge(rows))
            return
        rows = changelog(self._schema, deltas) if self._mode is SinkMode.CHANGELOG else self._schema.empty_table()
        self._commit(upto, "append to", lambda: self._insert(rows, overwrite=False))

    @override
    def replace(self, epoch: int, rows: DeltaBatch) -> None:
        held = rows.inserts() if self._mode is SinkMode.UPSERT else changelog(self._schema, [(epoch, rows)])
        if self._mode is SinkMode.UPSERT:
            merge_rows(rows, self._key)  # refuses rows that share a key
        self._commit(epoch, "replace", lambda: self._insert(held, overwrite=True))

    # Inner workings

    def _commit(self, epoch: int, what: str, write: Callable[[], None]) -> None:
        def commit() -> None:
            with self._position.recorded(epoch):
                write()
            self._session.spark.catalog.refreshTable(self._table)  # which may hold on to what was there before

        self._run(what, commit)

    def _insert(self, rows: pa.Table, *, overwrite: bool) -> None:
        self._frame(rows).select(*(quoted(name) for name in self._columns)).write.insertInto(
            self._table, overwrite=overwrite
        )

    def _merge(self, rows: pa.Table) -> None:
        self._frame(rows).createOrReplaceTempView(_SOURCE)
        names = [quoted(name) for name in self._columns]
        same = " AND ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in self._key)
        self._native.sql(
            f"MERGE INTO {self._table} t USING {_SOURCE} s ON {same} "  # noqa: S608 - names, quoted
            f"WHEN MATCHED AND s.{_DELETED} THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{name} = s.{name}' for name in names)} "
            f"WHEN NOT MATCHED AND NOT s.{_DELETED} THEN "
            f"INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
        ).collect()

    def _frame(self, rows: pa.Table) -> Any:
        from weirflow.spark.frames.arrow import spark_table  # noqa: PLC0415 - imports pyspark

        return self._native.createDataFrame(spark_table(rows)).coalesce(1)

    def _run(self, what: str, call: Callable[[], Any]) -> Any:
        return self._session.operations.run(f"{what} {self._table}", call)


def merge_rows(delta: DeltaBatch, key: Sequence[str]) -> pa.Table:
    """For each key that a change touches its row after it, or a row marked as deleted where none is left.

    Raises:
        DataError: a key has several rows after the change.
    """
    changes = keyed_changes(delta, key)
    marked = pa.field(_DELETED, pa.bool_())
    parts = [(changes.new, False), (changes.changed, False), (changes.gone, True)]
    whole = pa.concat_tables(
        rows.append_column(marked, pa.repeat(pa.scalar(gone, pa.bool_()), rows.num_rows)) for rows, gone in parts
    )
    return whole.combine_chunks()  # Spark loses rows behind chunks that have none


def _mode(mode: str) -> SinkMode:
    return one_of(SinkMode, mode, "No mode of a sink is called")
