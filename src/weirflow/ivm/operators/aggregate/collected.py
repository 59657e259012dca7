"""COLLECT_LIST and COLLECT_SET of plain values: those of all touched groups are sorted at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from typing_extensions import override

from weirflow.ivm.kernel.bounds import require_result, require_takeable
from weirflow.ivm.kernel.sort_keys import SortColumn
from weirflow.ivm.operators.aggregate.recompute import RecomputeCall
from weirflow.ivm.operators.sorting import sorted_batch
from weirflow.ivm.zset.batch import Batch

if TYPE_CHECKING:
    from weirflow.sql.expr import AggregateCall, Expr


class CollectCall(RecomputeCall):
    """The values of a group in ascending order, NULLs left out; of a set each once."""

    def __init__(self, call: AggregateCall, key_types: Sequence[pa.DataType], expressions: list[Expr]) -> None:
        super().__init__(call, key_types, expressions)
        self._once = call.function == "collect_set"

    @staticmethod
    def takes(kind: pa.DataType) -> bool:
        """Whether values of this type are collected here: those that are equal only if they are identical."""
        plain = pt.is_integer(kind) or pt.is_boolean(kind) or pt.is_decimal(kind)
        return bool(plain or pt.is_string(kind) or pt.is_binary(kind))

    @override
    def _results(self, rows: Batch, count: int) -> pa.Array:
        present = rows.filter(rows.columns[1].is_valid().to_numpy(zero_copy_only=False))
        if self._once:
            present = Batch(present.columns, np.minimum(present.weights, 1))
        ordered = sorted_batch(self._counted(present), [SortColumn(0), SortColumn(1)])
        require_result(float(ordered.weights.sum()), self._function)
        sizes = np.bincount(ordered.columns[0].to_numpy(), ordered.weights, count).astype(np.int64)
        each = np.repeat(np.arange(len(ordered)), ordered.weights)
        require_takeable(ordered.columns[1:], each, self._function)
        values = ordered.columns[1].take(pa.array(each))
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), values, type=self._type)
