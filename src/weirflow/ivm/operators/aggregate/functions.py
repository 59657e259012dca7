"""Aggregate calls as the operator sees them: linear ones share its totals, touched ones keep their own rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel import sums
from weirflow.ivm.kernel.additive import AdditiveArrangement
from weirflow.ivm.operators.aggregate.totals import linear
from weirflow.ivm.operators.aggregate.totals.bits import BitFold
from weirflow.ivm.operators.aggregate.totals.doubles import (
    DoubleAverage,
    DoubleFunction,
    DoubleSum,
    DoubleVariance,
    Escapes,
)
from weirflow.ivm.operators.aggregate.totals.pairs import PairFunction
from weirflow.ivm.operators.aggregate.totals.powers import DoublePowers
from weirflow.ivm.operators.aggregate.totals.tolerant import (
    TolerantDecimalAverage,
    TolerantDecimalSum,
    TolerantIntegerSum,
    WrappingSum,
)
from weirflow.ivm.operators.truth import true_rows
from weirflow.ivm.zset.batch import take_columns
from weirflow.ivm.zset.buffers import bits
from weirflow.ivm.zset.hashing import Equality
from weirflow.ivm.zset.rows import group_rows

if TYPE_CHECKING:
    from weirflow.ivm.kernel.state import State
    from weirflow.ivm.operators.aggregate.groups import Groups
    from weirflow.sql.expr import AggregateCall, Expr

    Stage = Callable[[Callable[[], None]], None]


class LinearCall:
    """A call to a linear function, with its argument, FILTER and DISTINCT."""

    def __init__(self, call: AggregateCall, key_types: Sequence[pa.DataType], expressions: list[Expr]) -> None:
        self._function = linear_function(call)
        self._key_count = len(key_types)
        self.function = type(self._function)
        self.type = call.type
        self.arguments = added(expressions, call.arguments)
        """Which of the evaluated columns are its arguments."""
        self.filter = added(expressions, [call.filter])[0] if call.filter is not None else None
        argument_types = [argument.type for argument in call.arguments]
        self._seen = AdditiveArrangement((*key_types, *argument_types), 1) if call.distinct else None
        self.width = self._function.width
        self.summand = (self._function.summand, call.arguments, call.filter, call.distinct)
        """Equal for calls that add up the same numbers."""
        self.distinct = call.distinct
        self.inputs = (*self.arguments, *(() if self.filter is None else (self.filter,)))
        """Which of the evaluated columns it reads; one that is DISTINCT also reads the keys."""

    @property
    def states(self) -> Sequence[State]:
        """The values seen, for DISTINCT."""
        return (self._seen,) if self._seen is not None else ()

    def encode(
        self,
        evaluated: Mapping[int, pa.Array] | Sequence[pa.Array],
        weights: np.ndarray,
        into: np.ndarray,
        stage: Stage,
    ) -> Escapes | None:
        """Write the integers that each row of the delta adds; returns what escapes them."""
        arguments = [evaluated[index] for index in self.arguments]
        counted = None if self.filter is None else true_rows(evaluated[self.filter])
        for argument in arguments:
            if argument.null_count:
                valid = bits(argument.is_valid())
                counted = valid if counted is None else counted & valid
        if self._seen is not None:
            values = (*(evaluated[index] for index in range(self._key_count)), *arguments)
            weights = self.first_and_last(self._seen, values, weights, counted, stage)
        elif counted is not None:
            weights = weights * counted
        if self._function.encode(arguments, weights, into):
            return None
        assert isinstance(self._function, DoubleFunction)
        return self._function.escapes(arguments, weights)

    def read(self, totals: np.ndarray, escaped: linear.Escaped) -> Any:
        """What calls with the same summand read alike from the totals."""
        return self._function.read(totals, escaped)

    def result(self, totals: np.ndarray, values: Any) -> pa.Array:
        """The call's column, for groups with these totals, of which ``values`` were read."""
        return self._function.decode(totals, values)

    def of_parts(self, totals: np.ndarray) -> np.ndarray:
        """The totals that are its own, of those that calls have added up which are its parts on several shards."""
        if totals.shape[1] == self.width:
            return totals
        # Integers were added up as decimals, which have room for more of them.
        return np.column_stack([totals[:, 0], sums.narrowed(totals[:, 1:])])

    @staticmethod
    def first_and_last(
        seen: AdditiveArrangement,
        values: Sequence[pa.Array],
        weights: np.ndarray,
        counted: np.ndarray | None,
        stage: Stage,
    ) -> np.ndarray:
        """Weights under DISTINCT: +1 where a value appears in its group, -1 where it disappears, 0 elsewhere."""
        rows = np.arange(len(weights)) if counted is None else np.flatnonzero(counted)
        distinct = np.zeros(len(weights), np.int64)
        if not len(rows):
            return distinct
        chosen = take_columns(values, rows)
        order, starts, codes = group_rows(chosen, len(rows), Equality.GROUPING)
        keys = take_columns(chosen, order[starts])
        change = np.add.reduceat(weights[rows][order], starts)[:, None]
        old = seen.lookup(keys, codes)
        stage(lambda: seen.add(keys, change, codes))
        distinct[rows[order[starts]]] = ((old + change) > 0).astype(np.int64)[:, 0] - (old > 0)[:, 0]
        return distinct


@dataclass(frozen=True)
class TotalsSlot:
    """Where the totals of one linear call are, and of all others that add up the same."""

    number: int
    call: LinearCall
    columns: slice


class ColumnChange(NamedTuple):
    """A touched call's column before and after a delta, one value for each group, and its totals after it."""

    before: pa.Array
    after: pa.Array
    totals: np.ndarray


class CallTotals(NamedTuple):
    """What a touched call keeps of each group before a delta, and how many rows the group has after it."""

    own: np.ndarray
    rows_left: np.ndarray


class TouchedCall(ABC):
    """A call that looks again at the rows of the groups a delta touches."""

    @property
    def width(self) -> int:
        """How many integers it keeps in the totals of each group, all zero for a group without rows."""
        return 0

    @property
    @abstractmethod
    def states(self) -> Sequence[State]:
        """The rows it keeps."""

    def totals_of(self, keys: Sequence[pa.Array], count: int) -> np.ndarray:
        """What it keeps in the totals of ``count`` groups with these keys, as the rows say that it keeps."""
        del keys
        assert not self.width, f"{type(self).__name__} keeps more than its rows say"
        return np.empty((count, 0), np.int64)

    @abstractmethod
    def of_nothing(self) -> pa.Array:
        """Its column for one group without rows."""

    @abstractmethod
    def step(
        self, evaluated: Sequence[pa.Array], weights: np.ndarray, groups: Groups, totals: CallTotals, stage: Stage
    ) -> ColumnChange:
        """What the delta does to the groups, which have these totals; (groups, width) are the call's own."""


def linear_function(call: AggregateCall) -> linear.LinearFunction:
    """The linear function of a call; ``KeyError`` if it has none."""
    kind = call.arguments[0].type if call.arguments else None
    if call.function in _OF_NUMBERS:
        return _SUMS[call.function, _family(kind)](call)
    return _PLAIN[call.function](call)


def is_linear(call: AggregateCall) -> bool:
    """Whether the call's state is additive."""
    if call.function in _OF_NUMBERS:
        return call.arguments[0].type is not None and (call.function, _family(call.arguments[0].type)) in _SUMS
    return call.function in _PLAIN


def _family(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_decimal(kind):
        return "decimal"
    return "double" if pa.types.is_floating(kind) else "other"


_SUMS: dict[tuple[str, str], type[linear.LinearFunction]] = {
    ("sum", "integer"): linear.IntegerSum,
    ("sum", "decimal"): linear.DecimalSum,
    ("sum", "double"): DoubleSum,
    ("avg", "integer"): linear.IntegerAverage,
    ("avg", "decimal"): linear.DecimalAverage,
    ("avg", "double"): DoubleAverage,
    ("wrapping_sum", "integer"): WrappingSum,
    ("try_sum", "integer"): TolerantIntegerSum,
    ("try_sum", "decimal"): TolerantDecimalSum,
    ("try_sum", "double"): DoubleSum,
    ("try_avg", "integer"): linear.IntegerAverage,
    ("try_avg", "double"): DoubleAverage,
    ("try_avg", "decimal"): TolerantDecimalAverage,
}
_OF_NUMBERS = frozenset(function for function, _ in _SUMS)
_PLAIN: dict[str, type[linear.LinearFunction]] = {
    "count": linear.Count,
    "bool_and": linear.BooleanFold,
    "bool_or": linear.BooleanFold,
    **dict.fromkeys(("var_samp", "var_pop", "stddev_samp", "stddev_pop", "squared_deviations"), DoubleVariance),
    **dict.fromkeys(("skewness", "try_skewness", "kurtosis", "try_kurtosis"), DoublePowers),
    **dict.fromkeys(("covar_pop", "covar_samp", "corr", "try_corr"), PairFunction),
    **dict.fromkeys(("regr_sxy", "regr_slope", "regr_intercept", "regr_r2", "try_regr_r2"), PairFunction),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), BitFold),
}


def added(expressions: list[Expr], new: Sequence[Expr]) -> list[int]:
    """Append expressions to be evaluated and return where their columns will be."""
    expressions.extend(new)
    return list(range(len(expressions) - len(new), len(expressions)))
