"""``IvmVectorSink``: a view's rows in a vector store, upserted and deleted by key as the view changes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from typing_extensions import override

from weirflow.arguments import Name, Positive, checked
from weirflow.errors import ConfigError, DataError
from weirflow.flows.sinks.keyed_changes import key_columns, keyed_changes, summed
from weirflow.ivm.flow.sinks.parquet import require_distinct
from weirflow.ivm.flow.sinks.sink import Guarantee, Sink, SinkTarget
from weirflow.types import one_of
from weirflow.vector.choices import UnfitVectors
from weirflow.vector.fitted import fitted, vector_column
from weirflow.vector.store import VectorChanges, VectorLayout, VectorStore

if TYPE_CHECKING:
    from weirflow.ivm.flow.flow import Flow
    from weirflow.ivm.flow.sinks.sink import Deltas
    from weirflow.ivm.zset.delta import DeltaBatch

_log = logging.getLogger(__name__)


@checked
class IvmVectorSink(SinkTarget):
    """A target with which ``flow.sink`` writes the rows of a view to a vector store; ``spawn_vector_view`` makes both.

    The store holds the view's rows, one for each key. A row whose vector is NULL is stored without a vector.

    Args:
        store: what holds them.
        key: the columns that identify the view's rows.
        vector: the column of the vectors, ``ARRAY<FLOAT>`` or ``ARRAY<DOUBLE>``; None if the view has only one such
            column. Stores keep numbers of 4 bytes.
        unfit: what to do with a vector that the store cannot hold, because it has another length, NULL or NaN, or
            numbers too large for 4 bytes: ``raise`` an error, or write its row with ``null`` in place of the vector.
    """

    guarantee = Guarantee.EXACTLY_ONCE

    def __init__(
        self,
        store: VectorStore,
        key: Name | Sequence[Name],
        vector: Name | None = None,
        unfit: UnfitVectors | str = UnfitVectors.RAISE,
    ) -> None:
        self._store = store
        self._wanted_key = key
        self._wanted_vector = vector
        self._unfit = one_of(UnfitVectors, unfit, "Vectors that do not fit cannot be treated as")
        self._layout = VectorLayout(pa.schema([]), (), "")
        self._is_open = False

    @override
    def describe(self) -> str:
        return self._store.describe()

    @override
    def open(self, owner: str, schema: pa.Schema) -> None:
        require_distinct(schema)
        key, vector = key_columns(self._wanted_key, schema), vector_column(schema, self._wanted_vector)
        for column in key:
            if pa.types.is_nested(schema.field(column).type):
                raise ConfigError(f"The column {column!r} of type {schema.field(column).type} cannot be in a key.")
        held = pa.field(vector, pa.list_(pa.float32(), self._store.dimension))
        rows = pa.schema([held if field.name == vector else pa.field(field.name, field.type) for field in schema])
        self._layout = VectorLayout(rows, key, vector)
        self._store.open(owner, self._layout)
        self._is_open = True

    @override
    def position(self) -> int | None:
        return self._store.position()

    @override
    def write(self, after: int, upto: int, deltas: Deltas) -> None:
        self._store.apply(after, upto, self._changes(deltas))

    @override
    def replace(self, epoch: int, rows: DeltaBatch) -> None:
        self._store.backfill(epoch, self._fitted(keyed_changes(rows, self._layout.key).new))

    @override
    def close(self) -> None:
        if self._is_open:  # by this sink: a store that could not be opened may be in use by another
            self._is_open = False
            self._store.close()

    def __repr__(self) -> str:
        return f"<IvmVectorSink {self.describe()}>"

    def _changes(self, deltas: Deltas) -> VectorChanges:
        if not deltas:
            none = self._layout.schema.empty_table()
            return VectorChanges(none, none, none.select(self._layout.key))
        changes = keyed_changes(summed(deltas), self._layout.key)
        return VectorChanges(
            self._fitted(changes.new), self._fitted(changes.changed), changes.gone.select(self._layout.key)
        )

    def _fitted(self, rows: pa.Table) -> pa.Table:
        """The rows as the store holds them; ``DataError`` if it cannot."""
        for column in self._layout.key:
            if rows.column(column).null_count:
                raise DataError(
                    f"The view has a row whose key {column!r} is NULL.",
                    hint=f"leave such rows out of the view: WHERE {column} IS NOT NULL",
                )
        at = rows.schema.names.index(self._layout.vector)
        found = fitted(rows.column(at), self._store.dimension)
        if len(found.unfit):
            self._treat(rows, int(found.unfit[0]), len(found.unfit), found.why)
        columns = [found.column if place == at else column for place, column in enumerate(rows.columns)]
        return pa.Table.from_arrays(columns, schema=self._layout.schema)

    def _treat(self, rows: pa.Table, at: int, count: int, why: str) -> None:
        key = rows.select(self._layout.key).slice(at, 1).to_pylist()[0]
        if self._unfit is UnfitVectors.RAISE:
            raise DataError(
                f"The vector of the row with the key {key} {why}.",
                hint="correct the row, or make the sink again with unfit='null' to write such rows without a vector",
            )
        _log.warning(
            "rows written to %s without their vectors, which do not fit: %d, such as that of the key %s, which %s",
            self._store.describe(),
            count,
            key,
            why,
        )


@checked
def spawn_vector_view(
    flow: Flow,
    view: Name,
    store: VectorStore,
    *,
    key: Name | Sequence[Name],
    vector: Name | None = None,
    unfit: UnfitVectors | str = UnfitVectors.RAISE,
    name: Name | None = None,
    every: Positive | str = 1,
    on_failure: str = "raise",
    resync: bool = False,
) -> Sink:
    """Keep the rows of a view in a vector store: the current rows at once, then what every tick changes, exactly once.

    On a durable flow, this continues where it was, even after the process was killed.

    >>> from weirflow import IncrementalFlow
    >>> from weirflow.vector import PgVectorStore
    >>> flow = IncrementalFlow("library", path="library")  # doctest: +SKIP
    >>> store = PgVectorStore("postgresql://ann@db.example/shop", "chunks", dimension=384)
    >>> sink = spawn_vector_view(flow, "chunks", store, key="id", vector="embedding")  # doctest: +SKIP

    Args:
        flow: whose view it is.
        view: its name.
        store: the store for the view's rows; a store holds the rows of one view.
        key: the columns that identify the view's rows.
        vector: the column of the vectors; None if the view has only one of their type. See ``IvmVectorSink``.
        unfit: what to do with vectors that the store cannot hold: ``raise`` or ``null``. See ``IvmVectorSink``.
        name: what errors call the sink; the view's name if None.
        every: write once in this many epochs, or within a time such as ``"5 seconds"``.
        on_failure: what ticks do while the store cannot be written: ``raise`` an error, or continue and ``keep`` the
            deltas as long as they are few.
        resync: replace what is there with the view's current rows.

    Raises:
        ConfigError: the view does not have these columns, or the store's table has others.
        DependencyMissing: the database lacks the extension ``vector``.
        SinkConflict: the table holds rows that this view of this flow has not written.
        SinkFailed: the store cannot be written.
        VectorStoreError: the store cannot be reached.
    """
    target = IvmVectorSink(store, key, vector, unfit)
    return flow.sink(view, target, name=name, every=every, on_failure=on_failure, resync=resync)
