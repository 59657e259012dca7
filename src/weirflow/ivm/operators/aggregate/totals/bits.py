"""BIT_AND, BIT_OR and BIT_XOR, by counting how many rows have each bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.ivm.operators.aggregate.totals.linear import LinearFunction, integer_values

if TYPE_CHECKING:
    from weirflow.sql.expr import AggregateCall


class BitFold(LinearFunction):
    """The totals of a group: how many values it has, and how many of them have each bit."""

    of_parts = True

    def __init__(self, call: AggregateCall) -> None:
        super().__init__(call)
        self._bits = np.arange(call.type.bit_width)
        self._function = call.function
        self.width = 1 + len(self._bits)
        self.summand = f"{len(self._bits)} bits"

    @override
    def encode(self, arguments: Sequence[pa.Array], weights: np.ndarray, into: np.ndarray) -> bool:
        (argument,) = arguments
        into[:, 0] = weights
        set_bits = (integer_values(argument)[:, None] >> self._bits) & 1
        np.multiply(set_bits, weights[:, None], out=into[:, 1:])
        return True

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        del values
        count, having = totals[:, 0], totals[:, 1:]
        if self._function == "bit_and":
            folded = having == count[:, None]
        elif self._function == "bit_or":
            folded = having > 0
        else:
            folded = having % 2 == 1
        places = np.uint64(1) << self._bits.astype(np.uint64)
        word = (folded * places).sum(axis=1, dtype=np.uint64)
        # The highest bit of the type is its sign.
        shift = np.int64(64 - len(self._bits))
        signed = (word << shift.astype(np.uint64)).view(np.int64) >> shift
        return pa.array(signed, pa.int64(), mask=count == 0).cast(self.type)
