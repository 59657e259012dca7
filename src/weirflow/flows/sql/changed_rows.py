"""The rows that a statement changes as a delta, computed on Spark's executors, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.flows.sql.change_rules import one_for_each_key
from weirflow.flows.view_schema import view_schema
from weirflow.ivm.zset.delta import WEIGHT

if TYPE_CHECKING:
    from weirflow.flows.sql.change_plan import ChangePlan
    from weirflow.ivm.flow.source import Source

THERE = "_weirflow_there"
"""A column that is true in rows of the source, which are only there to be looked at."""


@dataclass(frozen=True)
class ChangedRows:
    """Makes a delta of the rows that a statement finds."""

    plan: ChangePlan

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The rows that go and the rows that come, with their weights."""
        for batch in batches:
            found = pa.Table.from_batches([batch])
            removed, added = self.plan.apply(found.cast(view_schema(found.schema)))
            yield _weighted(removed, added)


@dataclass(frozen=True)
class OneForEachKey:
    """Makes sure that a delta leaves one row for each key, and brings equal rows once.

    It is given all rows that have a key together.
    """

    source: Source
    moves_keys: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The delta, without what was there already."""
        given = list(batches)
        if not given:
            return
        rows = pa.Table.from_batches(given)
        plain = pa.schema([(field.name, field.type) for field in self.source.schema])
        there = rows.column(THERE)
        weights = rows.column(WEIGHT)
        rows = rows.select(plain.names).cast(plain)
        removed = rows.filter(pc.less(weights, 0))
        added = rows.filter(pc.and_(pc.greater(weights, 0), pc.invert(there)))
        known = rows.filter(there) if self.moves_keys else None
        yield _weighted(removed, one_for_each_key(self.source, added, removed, known))


def delta_schema(source: Source) -> pa.Schema:
    """The columns of a delta, everything nullable."""
    return pa.schema([*((field.name, field.type) for field in source.schema), (WEIGHT, pa.int64())])


def _weighted(removed: pa.Table, added: pa.Table) -> pa.Table:
    weights = np.repeat(np.array([-1, 1], np.int64), [removed.num_rows, added.num_rows])
    return pa.concat_tables([removed, added]).append_column(WEIGHT, pa.array(weights))
