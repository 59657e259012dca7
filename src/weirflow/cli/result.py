"""The rows of a query on their way out: streamed, cut at a limit, counted."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from weirflow.errors import ConfigError
from weirflow.rows.json_values import json_values
from weirflow.sql.statements.kinds import is_query, split_statements

if TYPE_CHECKING:
    from weirflow.session import Session
    from weirflow.spark.frames.frame import DataFrame

# Types that Arrow has no match for, and how Spark spells their values. A colon behind makes it a field's name.
_SPELT_BY_SPARK = (
    (re.compile(r"\bvariant\b(?!:)"), "to_json({})"),
    (re.compile(r"\binterval\b(?! (?:day|hour|minute|second)|:)"), "CAST({} AS STRING)"),
)
# Elements that can be nothing but NULL, as in array(): Arrow wants them to have a type.
_VOID_INSIDE = re.compile(r"(?<=[<,:])void\b(?!:)")


@dataclass(frozen=True)
class ResultColumn:
    """A column's name and its Spark type, such as ``decimal(10,2)``."""

    name: str
    type: str


@dataclass
class Result:
    """A query's rows, read once.

    Attributes:
        columns: what the rows consist of.
        schema: the same for Arrow.
        batches: the rows; Spark works while they are read.
        limit: how many are given out; None for all. ``batches`` may hold one more, which tells there are more.
        row_count: how many were given out so far.
        truncated: whether there are more than ``limit``; known when all were read.
    """

    columns: tuple[ResultColumn, ...]
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    limit: int | None = None
    row_count: int = field(default=0, init=False)
    truncated: bool = field(default=False, init=False)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self.batches:
            room = batch.num_rows if self.limit is None else self.limit - self.row_count
            self.truncated = batch.num_rows > room
            taken = min(room, batch.num_rows)
            self.row_count += taken
            if taken:
                yield batch.slice(0, taken)
            if self.truncated:
                return

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows one by one, as JSON values."""
        for batch in self:
            yield from zip(*(json_values(column) for column in batch.columns), strict=True)

    def require_distinct_names(self, for_what: str) -> None:
        """Raise ``ConfigError`` when two columns share a name, where a column is known by it alone."""
        names = [column.name for column in self.columns]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(
                f"Two columns are called {twice!r}, which {for_what} cannot hold.", hint="rename one with AS"
            )


@contextlib.contextmanager
def queried(session: Session, sql: str, params: Mapping[str, Any] | None, limit: int | None) -> Iterator[Result]:
    """The result of a query. Commands run at once, queries while the rows are read; leaving the block stops them.

    Of several statements with semicolons between them, all but the last must be commands.
    """
    from weirflow.spark.frames.arrow import frame_schema  # noqa: PLC0415 - imports pyspark, which is loaded by now

    *commands, last = _statements(sql)
    for command in commands:
        session.sql(command, params)
    frame = session.sql(last, params)
    columns = tuple(ResultColumn(name, kind) for name, kind in frame.dtypes)
    if limit is not None:
        frame = frame.limit(limit + 1)
    frame = _for_arrow(frame, columns)
    names = [column.name for column in columns]
    schema = frame_schema(frame.spark)
    schema = pa.schema([part.with_name(name) for part, name in zip(schema, names, strict=True)])
    batches = frame.to_batches()
    try:
        yield Result(columns, schema, (batch.rename_columns(names) for batch in batches), limit)
    finally:
        batches.close()  # type: ignore[attr-defined]  # a generator, which stops Spark when it is closed


def _statements(sql: str) -> list[str]:
    """The statements in a text, each with blanks where the others are, so that errors point to the right place."""
    places = split_statements(sql) or [(0, len(sql))]
    found = [re.sub(r"[^\n]", " ", sql[:start]) + sql[start:end] for start, end in places]
    if any(is_query(one) for one in found[:-1]):
        raise ConfigError(
            "Nobody would see the rows of a query that comes before the last statement.", hint="run it by itself"
        )
    return found


def _for_arrow(frame: DataFrame, columns: tuple[ResultColumn, ...]) -> DataFrame:
    """The frame with what Arrow cannot hold as text."""
    spelt = {position: how for position, column in enumerate(columns) if (how := _spelling(column.type))}
    if not spelt:
        return frame
    plain = [f"c{position}" for position in range(len(columns))]  # names may repeat, or need quotes
    chosen = [f"{spelt.get(position, '{}').format(name)} AS {name}" for position, name in enumerate(plain)]
    result: DataFrame = frame.toDF(*plain).selectExpr(*chosen)
    return result


def _spelling(kind: str) -> str | None:
    for pattern, spelling in _SPELT_BY_SPARK:
        if pattern.search(kind):
            return spelling
    if _VOID_INSIDE.search(kind):
        return f"CAST({{}} AS {_VOID_INSIDE.sub('string', kind)})"
    return None
