"""``Subscription``: the changes of a view as rows with their epoch and weight, for as long as they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from weirflow.arguments import Seconds, checked
from weirflow.errors import ConfigError, DataError, did_you_mean
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.delta import WEIGHT, DeltaBatch
from weirflow.ivm.zset.rows import consolidate, group_rows

if TYPE_CHECKING:
    from weirflow.ivm.flow.flow import Flow
    from weirflow.ivm.flow.outputs.watch import Watch

EPOCH = "_epoch"
"""The column of epochs."""
PROGRESS = "_progress"
"""The column that tells rows from epochs that changed nothing."""


class Subscription(AbstractContextManager["Subscription"]):
    """What ``SUBSCRIBE TO view`` returns: a blocking iterator of record batches of changes; also for ``async for``.

    Each batch has the view's columns, then ``_epoch`` and ``_weight``, and holds the changes of one epoch. With
    progress there is a column ``_progress``, which is true in a row that only reports an epoch without changes. With a
    key, ``_weight`` is 1 for a row that replaces the one with the same key, and -1 for a row whose key is gone.

    Close it when you are done, best with ``with``.

    >>> from weirflow import IncrementalFlow
    >>> flow = IncrementalFlow("shop")
    >>> flow.register_source("orders", "id BIGINT, amount BIGINT", key="id")
    >>> flow.register_view("large", "SELECT id, amount FROM orders WHERE amount > 10")
    >>> with Subscription.of(flow, "large") as changes:
    ...     _ = flow.tick("orders", [{"id": 1, "amount": 20}])
    ...     changes.get(timeout=1).to_pylist()
    [{'id': 1, 'amount': 20, '_epoch': 1, '_weight': 1}]

    Attributes:
        view: whose changes.
        schema: the columns of its batches.
    """

    def __init__(
        self,
        watch: Watch,
        columns: pa.Schema,
        first: tuple[int, DeltaBatch] | None = None,
        *,
        progress: bool = False,
        upsert: Sequence[str] = (),
    ) -> None:
        _require_free(columns)
        self.view = watch.view
        self._watch = watch
        self._first = first
        self._progress = progress
        self._key = [_place(columns, name) for name in upsert]
        own = [pa.field(EPOCH, pa.int64()), pa.field(WEIGHT, pa.int64())]
        marks = [pa.field(PROGRESS, pa.bool_())] if progress else []
        self.schema = pa.schema([*(pa.field(field.name, field.type) for field in columns), *own, *marks])

    @classmethod
    def of(
        cls,
        flow: Flow,
        view: str,
        *,
        as_of: int | None = None,
        snapshot: bool = True,
        progress: bool = False,
        upsert: Sequence[str] = (),
        capacity: int = 1024,
    ) -> Subscription:
        """The changes of a view of a flow.

        Args:
            flow: whose.
            view: its name there.
            as_of: the epoch to begin with; None for the current one.
            snapshot: whether all rows of that epoch come first.
            progress: whether epochs without changes are reported.
            upsert: the columns of the key by which rows replace each other.
            capacity: how many deltas may wait for the reader.

        Raises:
            HistoryGone: the changes after that epoch are not kept any more.
            WatchOverflow: raised by ``get``: the reader fell behind.
        """
        columns, is_past = flow.schema(view), as_of is not None
        watch = flow.watch_output(
            view, snapshot=snapshot and not is_past, from_epoch=as_of, capacity=capacity, progress=progress
        )
        try:
            first = None
            if as_of is not None and snapshot:
                first = (as_of, DeltaBatch.from_inserts(flow.snapshot(view, epoch=as_of), schema=columns))
            return cls(watch, columns, first, progress=progress, upsert=upsert)
        except BaseException:
            watch.close()
            raise

    @checked
    def get(self, timeout: Seconds | None = None) -> pa.RecordBatch | None:
        """The next changes; None if it is closed, or if nothing came within ``timeout`` seconds.

        Raises:
            WatchOverflow: the reader fell behind; raised after all that was buffered is read.
            DataError: two rows of the view have the same key.
        """
        if self._first is not None:
            (epoch, delta), self._first = self._first, None
        else:
            item = self._watch.get(timeout)
            if item is None:
                return None
            epoch, delta = item
        return self._shown(epoch, delta)

    @property
    def closed(self) -> bool:
        """Whether it was closed, by its reader or together with its view or flow."""
        return self._first is None and self._watch.closed

    def close(self) -> None:
        """End the iteration, also for a reader that waits."""
        self._first = None
        self._watch.close()

    def reader(self) -> pa.RecordBatchReader:
        """The batches as an Arrow reader, which ends when this is closed."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        batch = self.get()
        if batch is None:
            raise StopIteration
        return batch

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        if self._first is not None:
            (epoch, delta), self._first = self._first, None
        else:
            epoch, delta = await anext(self._watch)
        return self._shown(epoch, delta)

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Subscription to {self.view}>"

    def _shown(self, epoch: int, delta: DeltaBatch) -> pa.RecordBatch:
        rows = delta.batch
        if self._key and len(rows):
            rows = self._upserts(epoch, rows)
        is_mark = self._progress and not len(rows)
        count = 1 if is_mark else len(rows)
        columns = [pa.nulls(1, field.type) for field in delta.schema] if is_mark else list(rows.columns)
        arrays = [
            *columns,
            pa.array(np.full(count, epoch)),
            pa.array(np.zeros(1, np.int64) if is_mark else rows.weights),
        ]
        if self._progress:
            arrays.append(pa.array([is_mark] * count, pa.bool_()))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _upserts(self, epoch: int, delta: Batch) -> Batch:
        """One row for each key: the new one, or the one that is gone."""
        rows = consolidate(delta)
        order, starts, _ = group_rows([rows.columns[place] for place in self._key], len(rows))
        if not len(starts):
            return rows
        new = rows.weights[order] > 0
        counts = np.add.reduceat(np.where(new, rows.weights[order], 0), starts)
        if counts.max(initial=0) > 1:
            at = int(order[starts[int(counts.argmax())]])
            key = {self.schema.names[place]: rows.columns[place][at].as_py() for place in self._key}
            raise DataError(
                f"At epoch {epoch} the view {self.view!r} has more than one row with the key {key}.",
                hint="name all columns that identify a row in UPSERT",
            )
        ranks = np.where(new, np.arange(len(rows)) + len(rows), np.arange(len(rows)))
        chosen = order[np.maximum.reduceat(ranks, starts) % len(rows)]
        found = rows.take(np.sort(chosen))
        return Batch(found.columns, np.sign(found.weights))


def _place(columns: pa.Schema, name: str) -> int:
    for place, one in enumerate(columns.names):
        if one.casefold() == name.casefold():
            return place
    raise ConfigError(
        f"The view has no column {name!r} that could be in a key.",
        hint=did_you_mean(name, columns.names) or f"it has {', '.join(columns.names)}",
    )


def _require_free(columns: pa.Schema) -> None:
    for name in (EPOCH, WEIGHT, PROGRESS):
        if name in columns.names:
            raise ConfigError(
                f"The view has a column {name!r}, but a subscription adds a column with that name.",
                hint="subscribe to a view that gives the column another name",
            )
