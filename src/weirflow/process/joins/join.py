"""``KeyedJoin``: what all joins have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pyarrow as pa

from weirflow.arguments import checked
from weirflow.errors import ColumnNotFound, ConfigError, did_you_mean
from weirflow.process.function import CoProcessFunction, Row

if TYPE_CHECKING:
    from weirflow.process.context import ElementContext
    from weirflow.process.joins.inputs import JoinInput

How: TypeAlias = Literal["inner", "left"]
"""Whether left rows that match nothing are left out, or put out with NULL."""


class KeyedJoin(CoProcessFunction):
    """A join of two inputs; run it with ``run_co_process(join, batches, key=join.key, event_time=join.event_time)``.

    An output row has the left columns, then the right columns without key columns of the same name.

    Attributes:
        key: the columns of the key, left and right.
        event_time: the columns of the event time, left and right.
    """

    @checked
    def __init__(self, left: JoinInput, right: JoinInput, how: How, *, deleted: str | None = None) -> None:
        if deleted is not None and deleted not in right.schema.names:
            hint = did_you_mean(deleted, right.schema.names)
            raise ColumnNotFound(f"There is no column {deleted!r} that marks deletions.", hint=hint)
        if left.key_type != right.key_type:
            raise ConfigError(
                f"The keys {left.key!r} and {right.key!r} are of different types.", hint="cast one of them first"
            )
        self.left, self.right, self.how = left, right, how
        self.key = left.key, right.key
        self.event_time = left.time, right.time
        self._deleted = deleted
        dropped = {deleted, *(name for name, other in zip(right.keys, left.keys, strict=True) if name == other)}
        self._left_names = left.schema.names
        self._right_names = [name for name in right.schema.names if name not in dropped]
        fields = [field.with_nullable(nullable=True) for field in right.schema if field.name in self._right_names]
        self.output = _output(left.schema, fields)

    def emit(self, ctx: ElementContext, left: Row, right: Row | None) -> None:
        """Emit a left row with a right one, or with NULL."""
        matched = {} if right is None else {name: right[name] for name in self._right_names}
        ctx.emit({name: left[name] for name in self._left_names} | matched)

    def unmatched(self, ctx: ElementContext, left: Row) -> None:
        """Handle a left row that matches nothing."""
        if self.how == "left":
            self.emit(ctx, left, None)


def has_null(key: Any) -> bool:
    """Whether a key, or a part of it, is NULL."""
    return key is None or (type(key) is tuple and None in key)


def columns(row: Row, schema: pa.Schema) -> dict[str, Any]:
    """A row's columns that are in a schema; NULL for those that it has not."""
    return {name: row.get(name) for name in schema.names}


def _output(left: pa.Schema, right: list[pa.Field]) -> pa.Schema:
    for field in right:
        if field.name in left.names:
            raise ConfigError(
                f"Both inputs have a column {field.name!r}.", hint="rename or leave out one of them before the join"
            )
    return pa.schema([*left, *right])
