"""What a statement may not do to a source, whoever has the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.errors import DataError
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.rows import consolidate, group_rows

if TYPE_CHECKING:
    from weirflow.ivm.flow.source import Source


def several_match(source: Source) -> DataError:
    """The error for a MERGE in which several rows match one."""
    return DataError(
        f"Several rows of the MERGE's source match one row of {source.name!r}.",
        hint="make the source's rows unique, for example with GROUP BY",
        condition="MERGE_CARDINALITY_VIOLATION",
    )


def require_in_time(source: Source, late: int) -> None:
    """``DataError`` if so many rows that would go are too old to be changed."""
    if late:
        raise DataError(
            f"{late} of the rows to be changed are older than the lateness of {source.name!r} allows.",
            hint="leave out rows before the newest event time minus the lateness",
        )


def one_for_each_key(source: Source, added: pa.Table, removed: pa.Table, there: pa.Table | None) -> pa.Table:
    """The rows that come, equal ones once.

    Args:
        source: a source with a key.
        added: rows that come.
        removed: rows that go.
        there: the source's rows, as far as their keys are among those of the others; None if no row gets another key.
            Of these only the columns of the key are looked at.

    Raises:
        DataError: several rows would have one key.
    """
    rows = consolidate(Batch.of_arrow(added))
    keys = _keys(source, rows.columns, added.schema)
    if there is not None:
        both = Batch.of_arrow(there), Batch.of_arrow(removed, -1)
        stays = [Batch(_keys(source, part.columns, added.schema), part.weights) for part in both]
        left = consolidate(Batch.concat(stays))
        left = left.filter(left.weights > 0)
        keys = Batch.concat([Batch(keys, np.ones(len(rows), np.int64)), left]).columns
    count = len(keys[0])
    order, starts, _ = group_rows(keys, count)
    if len(starts) < count:
        ends = np.append(starts[1:], count)
        at = int(order[starts[int(np.argmax(ends - starts))]])
        key = {column: values[at].as_py() for column, values in zip(source.key, keys, strict=True)}
        raise DataError(
            f"The statement leaves several rows for one key of {source.name!r}: {key}.",
            hint="give each key one row",
        )
    return pa.Table.from_arrays(list(rows.columns), schema=added.schema)


def _keys(source: Source, columns: tuple[pa.Array, ...], schema: pa.Schema) -> tuple[pa.Array, ...]:
    return tuple(columns[schema.names.index(column)] for column in source.key)
