"""All functions that have an evaluator, by their canonical names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from weirflow.errors import SqlPosition, UnsupportedError
from weirflow.ivm.kernel.expressions import (
    attempt,
    boolean,
    comparison,
    conditional,
    dates,
    time_units,
    time_windows,
    zoned,
    zones,
)
from weirflow.ivm.kernel.expressions.casts import dispatch as casts
from weirflow.ivm.kernel.expressions.casts import legacy as legacy_casts
from weirflow.ivm.kernel.expressions.hashes import digests
from weirflow.ivm.kernel.expressions.hashes import values as hashes
from weirflow.ivm.kernel.expressions.json import functions as json
from weirflow.ivm.kernel.expressions.json import records as json_records
from weirflow.ivm.kernel.expressions.json import schema as json_schema
from weirflow.ivm.kernel.expressions.nested import (
    array_lambdas,
    map_lambdas,
    maps,
    rearranged,
    sequences,
    sets,
    vectors,
)
from weirflow.ivm.kernel.expressions.nested import functions as nested
from weirflow.ivm.kernel.expressions.numbers import (
    arithmetic,
    bits,
    elementary,
    grouped,
    integers,
    math,
    number_texts,
    tolerant,
    wrapping,
)
from weirflow.ivm.kernel.expressions.strings import encodings, printf, regex, regex_matches, urls, words
from weirflow.ivm.kernel.expressions.strings import functions as strings
from weirflow.ivm.kernel.expressions.times import format as time_formats
from weirflow.ivm.kernel.expressions.times import made as made_times
from weirflow.ivm.kernel.expressions.times import parse as time_parsing

if TYPE_CHECKING:
    from weirflow.ivm.kernel.expressions.nested.elements import HigherOrderBuilder
    from weirflow.ivm.kernel.expressions.signature import Builder, FormBuilder

FUNCTIONS: dict[str, Builder] = {
    **arithmetic.FUNCTIONS,
    **boolean.FUNCTIONS,
    **casts.FUNCTIONS,
    **comparison.FUNCTIONS,
    **dates.FUNCTIONS,
    **legacy_casts.FUNCTIONS,
    **math.FUNCTIONS,
    **nested.FUNCTIONS,
    **regex.FUNCTIONS,
    **strings.FUNCTIONS,
    **time_units.FUNCTIONS,
    **time_windows.FUNCTIONS,
    **zoned.FUNCTIONS,
    **tolerant.FUNCTIONS,
    **wrapping.FUNCTIONS,
    **zones.FUNCTIONS,
    **maps.FUNCTIONS,
    **rearranged.FUNCTIONS,
    **sequences.FUNCTIONS,
    **sets.FUNCTIONS,
    **time_formats.FUNCTIONS,
    **time_parsing.FUNCTIONS,
    **made_times.FUNCTIONS,
    **json.FUNCTIONS,
    **json_records.FUNCTIONS,
    **json_schema.FUNCTIONS,
    **bits.FUNCTIONS,
    **digests.FUNCTIONS,
    **elementary.FUNCTIONS,
    **encodings.FUNCTIONS,
    **grouped.FUNCTIONS,
    **hashes.FUNCTIONS,
    **integers.FUNCTIONS,
    **number_texts.FUNCTIONS,
    **printf.FUNCTIONS,
    **regex_matches.FUNCTIONS,
    **urls.FUNCTIONS,
    **vectors.FUNCTIONS,
    **words.FUNCTIONS,
}
FORMS: dict[str, FormBuilder] = {
    **attempt.FORMS,
    **boolean.FORMS,
    **comparison.FORMS,
    **conditional.FORMS,
    **words.FORMS,
}
HIGHER_ORDER: dict[str, HigherOrderBuilder] = {**array_lambdas.HIGHER_ORDER, **map_lambdas.HIGHER_ORDER}
SUPPORTED: frozenset[str] = frozenset(FUNCTIONS) | frozenset(FORMS) | frozenset(HIGHER_ORDER)
"""Every function that is evaluated for at least some argument types."""

ZERO_IS_NULL = frozenset({"try_divide", "try_integral_divide", "try_pmod", "try_remainder", "wrapping_integral_divide"})
"""Functions to which a last argument of zero is NULL."""
RIGHT_FIRST = frozenset({"divide", "integral_divide", "remainder", "pmod", "array_repeat"}) | ZERO_IS_NULL
"""Functions of which Spark evaluates the last argument first."""
ALL_EVALUATED = frozenset(
    {"array", "concat", "concat_ws", "equal_null_safe", "greatest", "least", "locate", "map", "named_struct"}
) | {"hash", "xxhash64", "format_string", "arrays_zip", "map_concat"}
"""Functions of which Spark evaluates every argument, also after one that is NULL."""


class UnknownFunction(UnsupportedError, code="FUNCTION_NOT_PROVEN"):
    """A function is not proven to give what Spark gives, for these arguments; it is never evaluated.

    Attributes:
        function: its canonical name.
        position: where in the SQL text, when known.
    """

    def __init__(self, function: str, types: Sequence[pa.DataType], position: SqlPosition | None) -> None:
        listed = ", ".join(str(each) for each in types)
        super().__init__(
            f"{function}({listed}) has no evaluator that is proven equal to Spark's.",
            hint="let Spark compute this view (a diff-based view), or write the expression differently",
        )
        self.function = function
        self.position = position


def is_supported(function: str, argument_types: Sequence[pa.DataType]) -> bool:
    """Whether calls of the function can be evaluated at all; ``compile_expression`` decides about a whole expression.

    Constants matter too (a pattern, a unit), so True means "for some constants".
    """
    return function in SUPPORTED and all(_is_known(each) for each in argument_types)


def _is_known(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind):
        return all(_is_known(kind.field(index).type) for index in range(kind.num_fields))
    return (
        kind in _KNOWN
        or (pa.types.is_decimal128(kind) and kind.scale >= 0)
        or (pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz in (None, "UTC"))
    )


_KNOWN = frozenset(
    {
        pa.null(),
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.date32(),
        pa.duration("us"),
        pa.month_day_nano_interval(),
    }
)
