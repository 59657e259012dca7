"""Stream-table join: each left row with the current row of a table that changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirflow.arguments import Name, checked
from weirflow.process.joins.join import How, KeyedJoin, columns, has_null
from weirflow.state import StateDescriptor

if TYPE_CHECKING:
    from weirflow.process.context import ElementContext, OpenContext
    from weirflow.process.function import Row
    from weirflow.process.joins.inputs import JoinInput


@checked
def stream_table_join(
    left: JoinInput, table: JoinInput, *, how: How = "inner", deleted: Name | None = None
) -> KeyedJoin:
    """Join each left row with the row that the table has for its key at that time; a batch's changes are applied first.

    Args:
        left: the rows.
        table: changes of a table with one row for each key: a row replaces the previous one.
        how: what to do with left rows without a row in the table: ``inner`` drops them, ``left`` emits them with NULL.
        deleted: a boolean column of the changes: where it is true, the key's row is removed. The column is not part of
            the output.

    Raises:
        ConfigError: the inputs do not fit each other.
        ColumnNotFound: there is no such column.
    """
    return StreamTableJoin(left, table, how, deleted=deleted)


class StreamTableJoin(KeyedJoin):
    """Keeps the table, one row for each key."""

    def open(self, ctx: OpenContext) -> None:
        """The table's row of each key."""
        self._row = ctx.value(StateDescriptor("row", self.left.key_type, self.right.row_type))

    def on_left(self, ctx: ElementContext, key: Any, row: Row) -> None:
        """Look the key up."""
        left = columns(row, self.left.schema)
        right = None if has_null(key) else self._row.get()
        if right is None:
            self.unmatched(ctx, left)
        else:
            self.emit(ctx, left, right)

    def on_right(self, ctx: ElementContext, key: Any, row: Row) -> None:  # noqa: ARG002 - the contract
        """Change the table."""
        if self._deleted is not None and row.get(self._deleted):
            self._row.clear()
        elif not has_null(key):
            self._row.set(columns(row, self.right.schema))
