"""``DeltaBatch``: rows with weights, as users see them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.arguments import Name, checked
from weirflow.errors import ConfigError, DataError
from weirflow.ivm.zset import render
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.buffers import raw_values
from weirflow.ivm.zset.ingest import WEIGHT, made_table, plain_weighted, read_table, read_weights, without
from weirflow.ivm.zset.rows import consolidate
from weirflow.rows.arrays import from_numpy
from weirflow.rows.libraries import pandas_frame, polars_frame
from weirflow.rows.tabular import GivenColumns, columns_of, rereadable
from weirflow.rows.types import spark_schema

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from weirflow.ivm.zset.batch import Int64s

__all__ = ["WEIGHT", "DeltaBatch"]

_WEIGHT_FIELD = pa.field(WEIGHT, pa.int64(), nullable=False)
_MAX_REPEATED_ROWS = 2**31 - 1
_OP_WEIGHTS = {
    **dict.fromkeys(("insert", "+i", "i", "c", "r", "update_postimage", "+u"), 1),
    **dict.fromkeys(("delete", "-d", "d", "update_preimage", "-u"), -1),
}


class DeltaBatch:
    """A change to a table: rows with weights, +n for n insertions and -n for n retractions of the row.

    It is an Arrow record batch whose last column is ``_weight: int64 not null``, with Spark's types; it never changes.
    Two are equal (``==``) when they are the same change: same columns, and equal weights for equal rows.

    >>> DeltaBatch.from_updates([{"name": "ann", "age": 30}], [{"name": "ann", "age": 31}])
    DeltaBatch of 2 rows
          name  age
      -1  ann   30
      +1  ann   31

    Iterating gives each row with its weight:

    >>> for row, weight in DeltaBatch.from_inserts([{"name": "bob", "age": 12}]):
    ...     print(weight, row)
    1 {'name': 'bob', 'age': 12}
    """

    __slots__ = ("_batch", "_data", "_schema")
    __hash__ = None  # type: ignore[assignment]  # equality is that of multisets, too dear for a hash

    @checked
    def __init__(self, data: pa.RecordBatch) -> None:
        last = data.schema.field(data.num_columns - 1) if data.num_columns else None
        if last is None or not last.equals(_WEIGHT_FIELD):
            raise ConfigError(
                f"The last column of a DeltaBatch must be '{WEIGHT}: int64 not null'.",
                hint="use DeltaBatch.from_weighted",
            )
        self._data: pa.RecordBatch | None = data
        self._schema: pa.Schema | None = None
        self._batch: Batch | None = None

    def __reduce__(self) -> tuple[type[DeltaBatch], tuple[pa.RecordBatch]]:
        return type(self), (self.to_arrow(),)

    @classmethod
    @checked
    def from_inserts(cls, data: Any, *, schema: pa.Schema | None = None) -> DeltaBatch:
        """Every row of ``data`` inserted once.

        Args:
            data: Arrow data, a pandas or Polars frame, a list of dicts or a dict of columns. If a dict lacks a column
                that others have, the value is NULL.
            schema: the columns; every value is stored as it is, or refused. By default, the columns of the data.

        Raises:
            ConfigError: the data cannot be read, does not fit the schema, or has a column ``_weight``.
        """
        return cls._uniform(data, schema, 1)

    @classmethod
    @checked
    def from_deletes(cls, data: Any, *, schema: pa.Schema | None = None) -> DeltaBatch:
        """Every row of ``data`` retracted once; otherwise like ``from_inserts``.

        For a source with a key, rows may have only the columns of the key.
        """
        return cls._uniform(data, schema, -1)

    @classmethod
    @checked
    def from_updates(cls, old: Any, new: Any, *, schema: pa.Schema | None = None) -> DeltaBatch:
        """The rows ``old`` replaced with the rows ``new``; there may be more of one than of the other.

        For a source with a key, ``old`` may have only the columns of the key; ``new`` must have all columns.
        """
        old, new = rereadable(old), rereadable(new)
        columns = _common_schema(old, new) if schema is None else spark_schema(schema)
        _require_complete(new, columns)
        retracted = Batch.of_arrow(_padded(old, columns), -1)
        return cls.of_batch(columns, retracted) + cls.from_inserts(new, schema=columns)

    @classmethod
    @checked
    def from_weighted(cls, data: Any, *, schema: pa.Schema | None = None) -> DeltaBatch:
        """Rows with their weights in an integer column ``_weight``, at any place; ``schema`` leaves it out.

        Rows of weight zero are left out.
        """
        wanted = None if schema is None else spark_schema(schema)
        if wanted is None and isinstance(data, pa.RecordBatch) and (plain := plain_weighted(data)) is not None:
            return cls.of_batch(*plain)
        given = columns_of(data, None if wanted is None else wanted.names, WEIGHT)
        if WEIGHT not in given.of:
            raise ConfigError(
                f"There is no column '{WEIGHT}' among {', '.join(given.of)}.",
                hint="add an int64 column of weights, or use DeltaBatch.from_inserts for rows without weights",
            )
        weights = read_weights(given)
        table = made_table(without(given, WEIGHT), wanted)
        batch = Batch(Batch.of_arrow(table).columns, weights)
        return cls.of_batch(table.schema, batch.filter(weights != 0))

    @classmethod
    @checked
    def from_changes(cls, data: Any, *, op: Name = "op", schema: pa.Schema | None = None) -> DeltaBatch:
        """Rows with the kind of their change in the column ``op``; ``schema`` leaves it out.

        Known kinds, in any case: insert, +I, I, c, r, update_postimage and +U insert a row; delete, -D, D,
        update_preimage and -U retract it.
        """
        table = read_table(data, None if schema is None else schema.append(pa.field(op, pa.string())))
        if op not in table.schema.names:
            raise ConfigError(f"There is no column {op!r} with the kind of each change.", hint="name it with op=")
        kinds = table.column(op).to_pylist()
        weights = np.fromiter((_op_weight(kind) for kind in kinds), np.int64, len(kinds))
        rest = table.drop_columns([op])
        _refuse_weight(rest.schema)
        return cls.of_batch(rest.schema, Batch(Batch.of_arrow(rest).columns, weights))

    @classmethod
    def of_batch(cls, schema: pa.Schema, batch: Batch) -> DeltaBatch:
        """The rows of a kernel batch, with the names that ``schema`` gives its columns."""
        made = cls.__new__(cls)
        made._data, made._schema, made._batch = None, schema, batch  # noqa: SLF001 - its own
        return made

    @classmethod
    def _uniform(cls, data: Any, schema: pa.Schema | None, weight: int) -> DeltaBatch:
        table = read_table(data, schema)
        _refuse_weight(table.schema)
        return cls.of_batch(table.schema, Batch.of_arrow(table, weight))

    @property
    def schema(self) -> pa.Schema:
        """The columns without ``_weight``."""
        if self._schema is None:
            self._schema = pa.schema(list(self.to_arrow().schema)[:-1])
        return self._schema

    @property
    def weights(self) -> Int64s:
        """The weights, read-only."""
        return self.batch.weights

    @property
    def batch(self) -> Batch:
        """The rows as the kernel takes them."""
        if self._batch is None:
            *columns, weights = self.to_arrow().columns
            self._batch = Batch(tuple(columns), raw_values(weights))
        return self._batch

    @property
    def num_rows(self) -> int:
        """Rows of the record batch, whatever their weights."""
        return len(self.batch)

    def __len__(self) -> int:
        return self.num_rows

    def __iter__(self) -> Iterator[tuple[dict[str, Any], int]]:
        rows = self.to_arrow().select(self.schema.names) if self.schema.names else None
        cells = rows.to_pylist() if rows is not None else [{} for _ in range(self.num_rows)]
        return zip(cells, self.weights.tolist(), strict=True)

    def consolidate(self) -> DeltaBatch:
        """The same change with each different row once and without weights of zero; the order is unspecified.

        Raises:
            DataError: the weights of a row add up to more than int64 holds.
        """
        return self.of_batch(self.schema, consolidate(self.batch))

    def canonical(self) -> DeltaBatch:
        """The same change, consolidated, in an order that depends only on its rows."""
        net = self.consolidate()
        order = sorted(range(len(net)), key=_texts(net.to_arrow()).__getitem__)
        return self.of_batch(self.schema, net.batch.take(np.array(order, np.int64)))

    def checksum(self) -> str:
        """The SHA-256 of columns, rows and weights; equal for changes that are the same bit by bit, in any order."""
        digest = hashlib.sha256(repr([(field.name, str(field.type)) for field in self.schema]).encode())
        for text in sorted(_texts(self.consolidate().to_arrow())):
            digest.update(b"\n" + text.encode())
        return digest.hexdigest()

    def negate(self) -> DeltaBatch:
        """The change that undoes this one."""
        if self.num_rows and int(self.weights.min()) == -(2**63):
            raise DataError("The weight -2^63 has no opposite in 64 bits.", hint="no table holds a row that often")
        return self.of_batch(self.schema, self.batch.negate())

    @checked
    def add(self, other: DeltaBatch) -> DeltaBatch:
        """Both changes, one after the other; rows are not consolidated."""
        _require_same_columns(self.schema, other.schema)
        return self.of_batch(self.schema, Batch.concat([self.batch, other.batch]))

    def __add__(self, other: object) -> DeltaBatch:
        return self.add(other) if isinstance(other, DeltaBatch) else NotImplemented

    def __neg__(self) -> DeltaBatch:
        return self.negate()

    @checked
    def filter(self, condition: pc.Expression | pa.Array | Sequence[Any] | np.ndarray) -> DeltaBatch:
        """The rows for which a ``pyarrow.compute`` expression, or a mask as long as the batch, is true and not NULL."""
        mask = condition
        try:
            if not isinstance(condition, pc.Expression) and not isinstance(condition, pa.Array):
                mask = pa.array(condition, pa.bool_())
            return DeltaBatch(self.to_arrow().filter(mask))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise ConfigError(
                f"The rows cannot be filtered: {error}",
                hint="pass a boolean for each row, or an expression over the columns",
            ) from error

    def inserts(self) -> pa.Table:
        """The inserted rows, each as often as its weight says; consolidate first to drop rows that cancel."""
        return self._repeated(self.weights)

    def retractions(self) -> pa.Table:
        """The retracted rows, each as often as its weight says."""
        return self._repeated(-self.weights)

    def to_arrow(self) -> pa.RecordBatch:
        """The record batch, with ``_weight`` as its last column."""
        if self._data is None:
            batch = self.batch
            arrays = [*batch.columns, from_numpy(batch.weights)]
            self._data = pa.RecordBatch.from_arrays(arrays, schema=self.schema.append(_WEIGHT_FIELD))
        return self._data

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dicts, each with its ``_weight``."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas frame, with a column ``_weight``; needs ``weirflow[pandas]``."""
        return pandas_frame(self.to_arrow(), "DeltaBatch.to_pandas()")

    def to_polars(self) -> pl.DataFrame:
        """The rows as a Polars frame, with a column ``_weight``; needs Polars."""
        return polars_frame(self.to_arrow(), "DeltaBatch.to_polars()")

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.Table.from_batches([self.to_arrow()]).__arrow_c_stream__(requested_schema)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeltaBatch):
            return NotImplemented
        if self.schema.names != other.schema.names or self.schema.types != other.schema.types:
            return False
        return len((self + -other).consolidate()) == 0

    def __repr__(self) -> str:
        return render.text(self.to_arrow())

    def _repr_html_(self) -> str:
        return render.html(self.to_arrow())

    def _repeated(self, counts: Int64s) -> pa.Table:
        rows = np.flatnonzero(counts > 0)
        if len(rows) and counts[rows].sum(dtype=np.float64) > _MAX_REPEATED_ROWS:
            raise ConfigError("The rows do not fit in one table.", hint="use to_arrow(), which keeps the weights")
        taken = self.batch.take(np.repeat(rows, counts[rows]))
        return pa.Table.from_arrays(list(taken.columns), schema=self.schema)


def _texts(rows: pa.RecordBatch) -> list[str]:
    """Each row as text that says all of it."""
    return [repr(row) for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)]


def _common_schema(old: Any, new: Any) -> pa.Schema:
    """The columns of both."""
    if isinstance(old, list) and isinstance(new, list):
        return read_table([*old, *new]).schema
    before, after = read_table(old).schema, read_table(new).schema
    return pa.schema([*before, *(field for field in after if field.name not in before.names)])


def _padded(old: Any, schema: pa.Schema) -> pa.Table:
    """Rows with NULL in the columns that they lack."""
    given = columns_of(old, schema.names)
    absent = {name: [None] * given.count for name in schema.names if name not in given.of}
    table = made_table(GivenColumns({**given.of, **absent}, given.count), spark_schema(schema))
    _refuse_weight(table.schema)
    return table


def _require_complete(new: Any, schema: pa.Schema) -> None:
    for name, rows in columns_of(new, schema.names).absent.items():
        raise ConfigError(
            f"Row {min(rows)} of the new rows has no column {name!r}.", hint="give every column, None for NULL"
        )


def _refuse_weight(schema: pa.Schema) -> None:
    if WEIGHT in schema.names:
        raise ConfigError(
            f"The data has a column '{WEIGHT}', the name of the weights.",
            hint="use DeltaBatch.from_weighted if it holds weights, rename it otherwise",
        )


def _require_same_columns(one: pa.Schema, other: pa.Schema) -> None:
    if one.names == other.names and one.types == other.types:
        return
    for left, right in zip(one, other, strict=False):
        if left.name != right.name or left.type != right.type:
            raise ConfigError(
                f"The changes have different columns: {left.name}: {left.type} and {right.name}: {right.type}.",
                hint="pass the same schema= when you make them",
            )
    raise ConfigError(f"The changes have {len(one)} and {len(other)} columns.")


def _op_weight(kind: Any) -> int:
    weight = _OP_WEIGHTS.get(str(kind).casefold()) if kind is not None else None
    if weight is None:
        raise ConfigError(
            f"Unknown kind of change: {kind!r}.",
            hint="use insert, delete, update_preimage or update_postimage, or their short forms +I, -D, -U, +U",
        )
    return weight
