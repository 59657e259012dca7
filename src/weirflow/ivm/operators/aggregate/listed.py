"""LISTAGG: the texts of a group in an order, one behind the other with a delimiter between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from weirflow.ivm.kernel.bounds import require_result
from weirflow.ivm.kernel.sort_keys import SortColumn
from weirflow.ivm.operators.aggregate.recompute import RecomputeCall
from weirflow.ivm.operators.sorting import sorted_batch
from weirflow.sql.expr import Literal

if TYPE_CHECKING:
    from weirflow.errors import SqlPosition
    from weirflow.ivm.zset.batch import Batch
    from weirflow.sql.expr import AggregateCall, Expr

_VALUE = 1
"""The place of the texts, behind the number of their group."""


class ListCall(RecomputeCall):
    """``listagg(value, delimiter) WITHIN GROUP (ORDER BY ...)``: NULLs do not count; rows that tie go by their text."""

    def __init__(self, call: AggregateCall, key_types: Sequence[pa.DataType], expressions: list[Expr]) -> None:
        value, delimiter = call.arguments
        assert isinstance(delimiter, Literal), "the binder gives a constant"
        others = tuple(key.expr for key in call.order_by if key.expr != value)
        super().__init__(replace(call, arguments=(value, *others)), key_types, expressions)
        self._delimiter = delimiter.value
        self._position = call.position
        places = iter(range(_VALUE + 1, _VALUE + 1 + len(others)))
        self._order = [SortColumn(0)] + [
            SortColumn(_VALUE if key.expr == value else next(places), key.descending, key.nulls_first)
            for key in call.order_by
        ]

    @override
    def _results(self, rows: Batch, count: int) -> pa.Array:
        counted = self._counted(rows.filter(rows.columns[_VALUE].is_valid().to_numpy(zero_copy_only=False)))
        ordered = sorted_batch(counted, self._order)
        each = np.repeat(np.arange(len(ordered)), ordered.weights)
        numbers = ordered.columns[0].to_numpy()[each]
        texts = ordered.columns[_VALUE].take(pa.array(each))
        return joined_texts(texts, np.bincount(numbers, minlength=count), self._delimiter, self._position)


def joined_texts(
    texts: pa.Array, sizes: np.ndarray, delimiter: str | bytes | None, position: SqlPosition | None
) -> pa.Array:
    """The first ``sizes[0]`` texts joined, then the next ``sizes[1]``, and so on; NULL where that is none."""
    between = pa.scalar(delimiter, texts.type) if delimiter is not None else pa.scalar("", pa.string()).cast(texts.type)
    require_result(texts.nbytes + len(texts) * len(between.as_py()), "listagg", position)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), texts)
    joined = pc.binary_join(lists, between)
    return pc.if_else(pa.array(sizes > 0), joined, pa.scalar(None, texts.type))
