"""From the name a user wrote to the function: canonical names, aliases, and the refusals of all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.errors import FunctionNotFound, NotIncremental, QueryError, Reason, SqlPosition, did_you_mean
from weirflow.sql.functions.aggregates.signatures import AGGREGATES, INTERNAL_AGGREGATES, AggregateFunction
from weirflow.sql.functions.arrays import ARRAYS
from weirflow.sql.functions.attempts import ATTEMPTS
from weirflow.sql.functions.bits import BITS
from weirflow.sql.functions.collections import COLLECTIONS
from weirflow.sql.functions.conditionals import CONDITIONALS
from weirflow.sql.functions.dates import DATES
from weirflow.sql.functions.encodings import ENCODINGS
from weirflow.sql.functions.json import JSON
from weirflow.sql.functions.numbers import NUMBERS
from weirflow.sql.functions.operators import OPERATORS
from weirflow.sql.functions.spark_names import SPARK_FUNCTIONS
from weirflow.sql.functions.strings import STRINGS
from weirflow.sql.functions.times import TIMES
from weirflow.sql.functions.vectors import VECTORS
from weirflow.sql.functions.windows import FRAMED, OFFSET, RANKING

if TYPE_CHECKING:
    from weirflow.sql.functions.rules import Rule

SCALARS: dict[str, Rule] = {
    **NUMBERS,
    **STRINGS,
    **DATES,
    **COLLECTIONS,
    **CONDITIONALS,
    **ATTEMPTS,
    **ARRAYS,
    **TIMES,
    **JSON,
    **BITS,
    **ENCODINGS,
    **VECTORS,
}
"""Functions called by name, without the operators."""

ALIASES: dict[str, str] = {
    "pow": "power",
    "signum": "sign",
    "ceiling": "ceil",
    "mod": "remainder",
    "negative": "negate",
    "dlog10": "log10",
    "isnan": "is_nan",
    "ucase": "upper",
    "lcase": "lower",
    "substr": "substring",
    "char_length": "length",
    "character_length": "length",
    "len": "length",
    "char": "chr",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "position": "locate",
    "btrim": "trim",
    "dayofmonth": "day",
    "datediff": "date_diff",
    "dateadd": "date_add",
    "cardinality": "size",
    "mean": "avg",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "variance": "var_samp",
    "every": "bool_and",
    "any": "bool_or",
    "some": "bool_or",
    "array_agg": "collect_list",
    "string_agg": "listagg",
    "first_value": "first",
    "last_value": "last",
    "sha": "sha1",
    "getbit": "bit_get",
    "printf": "format_string",
    "to_varchar": "to_char",
}
_CALLABLE_OPERATORS = frozenset({"remainder", "negate", "pmod", "rlike", "like", "ilike"})
GENERATORS = frozenset(
    {"explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack", "json_tuple"}
)
_NOT_DETERMINISTIC_NAMES = """
current_date curdate current_timestamp now localtimestamp current_time current_timezone unix_timestamp
rand random randn randstr uniform uuid shuffle monotonically_increasing_id spark_partition_id
input_file_name input_file_block_length input_file_block_start
current_user session_user user current_catalog current_database current_schema version
"""
NOT_DETERMINISTIC = frozenset(_NOT_DETERMINISTIC_NAMES.split())


def scalar(name: str) -> Rule | None:
    """The scalar function a user calls ``name``, or None."""
    canonical = _canonical(name)
    if canonical in _CALLABLE_OPERATORS:
        return OPERATORS[canonical]
    return SCALARS.get(canonical)


def aggregate(name: str) -> AggregateFunction | None:
    """The aggregate a user calls ``name``, or None."""
    canonical = _canonical(name)
    return None if canonical in INTERNAL_AGGREGATES else AGGREGATES.get(canonical)


def is_window_only(name: str) -> bool:
    """Whether ``name`` is a ranking or offset function, which needs OVER."""
    return name.casefold() in RANKING or name.casefold() in OFFSET or name.casefold() in FRAMED


def unknown(name: str, position: SqlPosition | None) -> QueryError:
    """The error for a function that is not accepted: not deterministic, not proven, or not there at all."""
    folded = name.casefold()
    if folded in NOT_DETERMINISTIC:
        return NotIncremental(
            f"{name}() can give another result for the same rows, so a view cannot be kept equal to it.",
            reason=Reason.EXPRESSION_NOT_DETERMINISTIC,
            hint="put the value into a column of a source, or run the query on Spark",
            position=position,
        )
    if folded in SPARK_FUNCTIONS:
        return NotIncremental(
            f"{name}() is not proven equal to Spark's.",
            reason=Reason.FUNCTION_NOT_PROVEN,
            hint="run the query on Spark, or use functions that docs/sql-support.md lists",
            position=position,
        )
    hint = did_you_mean(name, {*SCALARS, *AGGREGATES, *ALIASES, *GENERATORS, *RANKING, *OFFSET} - INTERNAL_AGGREGATES)
    return FunctionNotFound(f"There is no function {name!r}.", hint=hint, position=position)


def _canonical(name: str) -> str:
    folded = name.casefold()
    return ALIASES.get(folded, folded)
