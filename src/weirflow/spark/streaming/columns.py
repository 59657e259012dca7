"""Columns that windows of streams are made of."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf


def sql_column(text: str) -> Any:
    """SQL text as a column."""
    return sf.expr(text)


def is_column(one: object) -> bool:
    """Whether it is a column of PySpark's, classic or of Spark Connect."""
    return isinstance(one, Column)


def time_window(column: str, size: str, slide: str | None) -> Any:
    """Windows of a fixed size."""
    return sf.window(named(column), size, slide)


def session_window(column: str, gap: str) -> Any:
    """Windows that end with a gap."""
    return sf.session_window(named(column), gap)


def one_key(column: str) -> Any:
    """A key that all rows share. Not a literal, which Spark would leave out: it makes sessions only by key."""
    return sf.pmod(sf.unix_micros(named(column)), sf.lit(1))


def last_end_micros(column: str, size_ms: int, slide_ms: int | None) -> Any:
    """When the last window ends that a row belongs to; ``slide_ms`` is None for sessions, which begin with a row."""
    at = sf.unix_micros(named(column))
    begin = at if slide_ms is None else at - sf.pmod(at, sf.lit(slide_ms * 1000))
    return begin + sf.lit(size_ms * 1000)


def named(column: str) -> Any:
    """The column of a name, whatever it is made of."""
    return sf.col(f"`{column.replace('`', '``')}`")
