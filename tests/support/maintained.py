"""Views maintained by a circuit, and the same views recomputed from scratch, to compare after every tick."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from support.compiled_views import compile_views

from weirflow.ivm.zset.batch import Batch
from weirflow.sql.settings import USUAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import duckdb

    from weirflow.sql.settings import SqlSettings

Row = tuple[Any, ...]


class Maintained:
    """Sources and views as multisets of Python rows; ``tick`` changes both, views by their deltas only."""

    def __init__(
        self,
        sources: Mapping[str, pa.Schema],
        views: Mapping[str, str],
        plans: Mapping[str, str] | None = None,
        settings: SqlSettings = USUAL,
    ) -> None:
        compiled = compile_views(sources, views, plans, settings)
        self.sources = dict(sources)
        self.schemas = {
            name: pa.schema([(field.name, field.type) for field in fields]) for name, fields in compiled.fields.items()
        }
        self.circuit = compiled.circuit
        self.tables: dict[str, Counter[Row]] = {name: Counter() for name in sources}
        self.views: dict[str, Counter[Row]] = {name: Counter() for name in views}
        self._apply(self.circuit.start())

    def tick(self, changes: Mapping[str, Sequence[tuple[Row, int]]]) -> dict[str, Batch]:
        """Apply weighted rows to sources; returns the deltas of the views."""
        deltas = {name: self._batch(name, rows) for name, rows in changes.items() if rows}
        outputs = self.circuit.step(deltas)
        self.circuit.commit([])
        self.circuit.maintain(sum(len(delta) for delta in deltas.values()))
        for name, rows in changes.items():
            _add(self.tables[name], rows)
        self._apply(outputs)
        return outputs

    def discard(self) -> None:
        """Forget a tick that has raised."""
        self.circuit.discard()

    def table(self, name: str) -> pa.Table:
        """A source as an Arrow table, every row as often as it occurs."""
        rows = list(self.tables[name].elements())
        schema = self.sources[name]
        return pa.table(
            [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(schema.types)], schema=schema
        )

    def _batch(self, name: str, rows: Sequence[tuple[Row, int]]) -> Batch:
        types = self.sources[name].types
        columns = tuple(pa.array([row[at] for row, _ in rows], kind) for at, kind in enumerate(types))
        return Batch(columns, np.array([weight for _, weight in rows], np.int64))

    def _apply(self, outputs: Mapping[str, Batch]) -> None:
        for name, delta in outputs.items():
            assert [column.type for column in delta.columns] == self.schemas[name].types
            assert (delta.weights != 0).all()
            _add(self.views[name], zip(batch_rows(delta), delta.weights.tolist(), strict=True))
            assert all(weight > 0 for weight in self.views[name].values()), f"{name} holds rows less than zero times"


def batch_rows(batch: Batch) -> list[Row]:
    """The rows of a batch as comparable Python tuples."""
    if not batch.columns:
        return [()] * len(batch)
    return list(zip(*([comparable(value) for value in column.to_pylist()] for column in batch.columns), strict=True))


def comparable(value: Any) -> Any:
    """A value that can be counted: lists and dicts frozen, NaN equal to itself."""
    if isinstance(value, float) and value != value:  # noqa: PLR0124 - the test for NaN
        return "NaN"
    if isinstance(value, list):
        return tuple(comparable(item) for item in value)
    if isinstance(value, dict):
        return tuple((name, comparable(item)) for name, item in value.items())
    return value


def duckdb_rows(connection: duckdb.DuckDBPyConnection, sql: str) -> Counter[Row]:
    """The rows that DuckDB returns for a query."""
    return Counter(tuple(comparable(value) for value in row) for row in connection.execute(sql).fetchall())


def _add(counts: Counter[Row], rows: Iterable[tuple[Row, int]]) -> None:
    for row, weight in rows:
        counts[row] += weight
        if counts[row] == 0:
            del counts[row]
