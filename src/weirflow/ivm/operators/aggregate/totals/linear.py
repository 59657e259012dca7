"""Linear aggregates: their state is a vector of integers to which each row adds its own, times its weight."""

from __future__ import annotations

import decimal
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from typing_extensions import override

from weirflow.errors import DataError, SqlPosition
from weirflow.ivm.kernel import sums
from weirflow.ivm.operators.truth import true_rows
from weirflow.ivm.zset.buffers import raw_values
from weirflow.rows.arrays import from_numpy

if TYPE_CHECKING:
    from fractions import Fraction

    from weirflow.sql.expr import AggregateCall

    Escaped = Mapping[int, Sequence[tuple[int, int]]]
    """By group number, the slots of the side table and the amounts in them."""

_INT64_DIGITS = 18


class LinearFunction(ABC):
    """How one call turns rows into integers and totals into its result.

    Attributes:
        width: how many integers it keeps for each group.
        summand: names what a row adds; functions with the same one can share their totals.
        of_parts: whether it gives for all rows what it gives for what it gave for parts of them.
    """

    width: int
    summand: str
    of_parts = False

    def __init__(self, call: AggregateCall) -> None:
        self.type = call.type
        self.position: SqlPosition | None = call.position

    @abstractmethod
    def encode(self, arguments: Sequence[pa.Array], weights: np.ndarray, into: np.ndarray) -> bool:
        """Write the (rows, width) integers of single rows, times their weights; whether that is all they add.

        The weight of a row that does not count, because an argument is NULL or for another reason, is zero.
        """

    def read(self, totals: np.ndarray, escaped: Escaped) -> Any:
        """What functions with the same summand read alike from (groups, width) totals; nothing for most."""
        del totals, escaped

    @abstractmethod
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        """The results of groups with these totals, of which ``values`` were read."""


class Count(LinearFunction):
    """COUNT(*) and COUNT(x): the rows whose argument is not NULL."""

    width = 1
    summand = "row"

    @override
    def encode(self, arguments: Sequence[pa.Array], weights: np.ndarray, into: np.ndarray) -> bool:
        del arguments
        into[:, 0] = weights
        return True

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        del values
        return from_numpy(totals[:, 0])


class IntegerSum(LinearFunction):
    """SUM of integers: bigint, and an error if the total does not fit."""

    width = 1 + sums.INTEGER_LIMBS
    summand = "integer"

    @override
    def encode(self, arguments: Sequence[pa.Array], weights: np.ndarray, into: np.ndarray) -> bool:
        (argument,) = arguments
        into[:, 0] = weights
        np.multiply(sums.split_integers(integer_values(argument)), weights[:, None], out=into[:, 1:])
        return True

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        del values
        sums_, overflow = sums.integer_totals(totals[:, 1:])
        empty = totals[:, 0] == 0
        if np.any(overflow & ~empty):
            raise DataError(
                "SUM overflows BIGINT.",
                hint="sum a wider type, for example CAST(x AS DECIMAL(38, 0))",
                condition="ARITHMETIC_OVERFLOW",
                position=self.position,
            )
        return from_numpy(sums_, empty)


class DecimalSum(LinearFunction):
    """SUM of decimals, exact, and an error if the total has too many digits."""

    def __init__(self, call: AggregateCall) -> None:
        super().__init__(call)
        self._narrow = call.arguments[0].type.precision <= _INT64_DIGITS
        self.width = 1 + (sums.INTEGER_LIMBS if self._narrow else sums.WIDE_LIMBS)
        self.summand = "narrow decimal" if self._narrow else "wide decimal"

    @override
    def encode(self, arguments: Sequence[pa.Array], weights: np.ndarray, into: np.ndarray) -> bool:
        (argument,) = arguments
        words = decimal_words(argument)
        limbs = sums.split_integers(words[:, 0]) if self._narrow else sums.split_wide(words)
        into[:, 0] = weights
        np.multiply(limbs, weights[:, None], out=into[:, 1:])
        return True

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        del values
        return decimal_array(self.unscaled(totals), self.type, self.position)

    def unscaled(self, totals: np.ndarray) -> list[int | None]:
        """The totals as integers in units of the last digit; None for groups without a value."""
        exact = sums.wide_totals(totals[:, 1:])
        counts = totals[:, 0].tolist()
        return [None if count == 0 else total for count, total in zip(counts, exact, strict=True)]


class IntegerAverage(IntegerSum):
    """AVG of integers: the exact total, divided once as doubles."""

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        del values
        empty = totals[:, 0] == 0
        exact = np.array([float(total) for total in sums.wide_totals(totals[:, 1:])])
        return from_numpy(exact / np.where(empty, 1, totals[:, 0]), empty)


class DecimalAverage(DecimalSum):
    """AVG of decimals: the exact total divided by the count, rounded half up to the result's scale."""

    def __init__(self, call: AggregateCall) -> None:
        super().__init__(call)
        self._scale = call.arguments[0].type.scale

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        del values
        return decimal_array(self.averages(totals), self.type, self.position)

    def averages(self, totals: np.ndarray) -> list[int | None]:
        """The averages as integers in units of the last digit; None for groups without a value."""
        shift = 10 ** (self.type.scale - self._scale)
        return [
            None if total is None else _divide_half_up(total * shift, count)
            for count, total in zip(totals[:, 0].tolist(), self.unscaled(totals), strict=True)
        ]


class BooleanFold(LinearFunction):
    """BOOL_AND and BOOL_OR, by counting how many are true and how many are false."""

    width = 2
    summand = "boolean"
    of_parts = True

    def __init__(self, call: AggregateCall) -> None:
        super().__init__(call)
        self._all = call.function == "bool_and"

    @override
    def encode(self, arguments: Sequence[pa.Array], weights: np.ndarray, into: np.ndarray) -> bool:
        (argument,) = arguments
        true = true_rows(argument)
        into[:, 0] = weights * true
        into[:, 1] = weights * ~true
        return True

    @override
    def decode(self, totals: np.ndarray, values: Any) -> pa.Array:
        del values
        true, false = totals[:, 0], totals[:, 1]
        folded = false == 0 if self._all else true > 0
        return pa.array(folded, pa.bool_(), mask=(true + false) == 0)


def present_rows(argument: pa.Array | None, counted: np.ndarray) -> np.ndarray:
    """The counted rows whose argument is not NULL."""
    if argument is None or argument.null_count == 0:
        return counted
    present: np.ndarray = counted & argument.is_valid().to_numpy(zero_copy_only=False)
    return present


def integer_values(argument: pa.Array) -> np.ndarray:
    """The integers, with anything where they are NULL."""
    values: np.ndarray = raw_values(argument).astype(np.int64, copy=False)
    return values


def decimal_words(argument: pa.Array) -> np.ndarray:
    """The unscaled values of a decimal128 array as (n, 2) int64 words, low word first; NULLs hold anything."""
    words: np.ndarray = raw_values(argument).view(np.int64)
    return words


def decimal_array(unscaled: list[int | None], kind: pa.DataType, position: SqlPosition | None) -> pa.Array:
    """Unscaled integers as a decimal array; ``DataError`` if one has more digits than the type."""
    limit = 10**kind.precision
    if any(value is not None and not -limit < value < limit for value in unscaled):
        raise DataError(
            f"A total does not fit into decimal({kind.precision},{kind.scale}).",
            condition="NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
            position=position,
        )
    with decimal.localcontext(prec=50):
        values = [None if value is None else decimal.Decimal(value).scaleb(-kind.scale) for value in unscaled]
    return pa.array(values, kind)


def _divide_half_up(numerator: int, denominator: int) -> int:
    quotient, remainder = divmod(abs(numerator), denominator)
    quotient += 2 * remainder >= denominator
    return quotient if numerator >= 0 else -quotient


def divided(left: float, right: float, *, position: SqlPosition | None, raises: bool) -> float | None:
    """A quotient of doubles; where the divisor is zero an error, or NULL."""
    if right != 0:
        return left / right
    if not raises:
        return None
    raise DataError(
        "Division by zero.",
        hint="leave out groups in which all values are the same",
        condition="DIVIDE_BY_ZERO",
        position=position,
    )


def exact_double(total: Fraction) -> float:
    """A fraction as the nearest double; infinity if it is too large for one."""
    try:
        return float(total)
    except OverflowError:
        return float("inf") if total > 0 else float("-inf")
