"""What a delta does to rows that a key identifies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.errors import ConfigError, DataError, did_you_mean
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.rows import group_rows

if TYPE_CHECKING:
    from weirflow.ivm.flow.sinks.sink import Deltas


@dataclass(frozen=True)
class KeyedChanges:
    """The keys that a change touches, each once.

    Attributes:
        new: rows of keys that had none.
        changed: rows of keys that had another.
        gone: rows of keys that have none any more, as they were.
    """

    new: pa.Table
    changed: pa.Table
    gone: pa.Table


def key_columns(key: str | Sequence[str], schema: pa.Schema) -> tuple[str, ...]:
    """The columns of a key; ``ConfigError`` if the view has not all of them, or if there is none."""
    columns = (key,) if isinstance(key, str) else tuple(key)
    if not columns:
        raise ConfigError(
            "A key needs at least one column.", hint="pass key= with the columns that identify the view's rows"
        )
    for column in columns:
        if column not in schema.names:
            raise ConfigError(
                f"The view has no column {column!r} to merge by.", hint=did_you_mean(column, schema.names)
            )
    return tuple(dict.fromkeys(columns))


def summed(deltas: Deltas) -> DeltaBatch:
    """One or more deltas, one behind the other, as one change."""
    return DeltaBatch.of_batch(deltas[0][1].schema, Batch.concat([delta.batch for _, delta in deltas]))


def keyed_changes(delta: DeltaBatch, key: Sequence[str]) -> KeyedChanges:
    """What becomes of the row of each key.

    Raises:
        DataError: a key has several rows after the change.
    """
    whole = delta.consolidate()
    batch, schema = whole.batch, whole.schema
    keys = tuple(batch.columns[schema.names.index(column)] for column in key)
    order, starts, _ = group_rows(keys, len(batch), Equality.GROUPING)
    if len(starts) == 0:
        return KeyedChanges(*[schema.empty_table()] * 3)
    present = np.add.reduceat(np.maximum(batch.weights, 0)[order], starts)
    if present.max() > 1:
        at = int(order[starts[int(present.argmax())]])
        found = {name: column[at].as_py() for name, column in zip(key, keys, strict=True)}
        raise DataError(
            f"The view has several rows for the key {found}.", hint="merge by a key that identifies its rows"
        )
    places = np.where(batch.weights > 0, np.arange(len(batch)) + 1, 0)[order]
    last = np.maximum.reduceat(places, starts)
    had = np.minimum.reduceat(batch.weights[order], starts) < 0

    def rows(chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Table:
        taken = batch.take(np.where(last > 0, last - 1, order[starts])[chosen])
        return pa.Table.from_arrays(list(taken.columns), schema=schema)

    return KeyedChanges(rows((last > 0) & ~had), rows((last > 0) & had), rows(last == 0))
