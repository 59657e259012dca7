"""SQL in two dialects at once, and why some of it has no DuckDB text: the one list of what the model leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Differs(Enum):
    """Where DuckDB means something else than Spark. Views that use it are compared with our own recompute instead."""

    DECIMAL_TYPES = "the result has another scale or precision than Spark's, or becomes a double"
    INEXACT_SUM = "a sum of doubles depends on the order of rows"
    DOUBLE_TEXT = "doubles are printed and rounded in other ways"
    TEXT_FUNCTION = "the function treats regular expressions, positions or NULL in another way, or is not there"
    TIME_FUNCTION = "the function has another type, calendar field or time zone"
    NESTED_ORDER = "arrays and structs with NULL inside compare in another way"
    NESTED_FUNCTION = "arrays count from one, and functions of maps and structs differ"
    COLLECTED = "collected lists keep NULLs and have no set form"
    OUTER_GENERATOR = "UNNEST has no outer form"
    BITS = "shifts and bitwise functions differ in width"
    FRAME = "it is made by PySpark's methods and has no text"
    RAISES = "ANSI mode raises where DuckDB returns NULL, rounds or reads more"


@dataclass(frozen=True)
class Sql:
    """A piece of SQL as Spark reads it and as DuckDB does, or the reason why no DuckDB text means the same."""

    spark: str
    duck: str | Differs

    def __format__(self, spec: str) -> str:
        raise TypeError("Sql is put together by sql(), so that no dialect is lost")


def sql(template: str, *parts: Sql | str, duck: str | Differs | None = None) -> Sql:
    """A template filled in both dialects; ``duck`` is DuckDB's template where it differs from Spark's."""
    spark = template.format(*(part.spark if isinstance(part, Sql) else part for part in parts))
    if isinstance(duck, Differs):
        return Sql(spark, duck)
    texts: list[str] = []
    for part in parts:
        text = part.duck if isinstance(part, Sql) else part
        if isinstance(text, Differs):
            return Sql(spark, text)
        texts.append(text)
    return Sql(spark, (duck or template).format(*texts))


def joined(separator: str, parts: list[Sql]) -> Sql:
    """Pieces with a separator between them."""
    return sql(separator.join(["{}"] * len(parts)), *parts)
