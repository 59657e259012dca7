"""Temporal join: each left row with the version of the right row that was valid at its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirflow.arguments import Name, checked
from weirflow.errors import ConfigError
from weirflow.process.joins.join import How, KeyedJoin, columns, has_null
from weirflow.state import StateDescriptor

if TYPE_CHECKING:
    from weirflow.process.context import ElementContext, OpenContext
    from weirflow.process.function import Row
    from weirflow.process.joins.inputs import JoinInput
    from weirflow.state.descriptors import TimeKind


@checked
def temporal_join(
    left: JoinInput, versions: JoinInput, *, how: How = "inner", deleted: Name | None = None
) -> KeyedJoin:
    """Join each left row with the latest version of its key that is not newer than the row.

    A left row is emitted when the watermark has reached its time, because only then are all versions known. Of several
    versions with the same time, the last one counts. State keeps left rows until then, versions that are newer than the
    watermark, and one older version for each key.

    Args:
        left: the rows.
        versions: the versions to join with, each valid from its time on.
        how: what to do with left rows without a version: ``inner`` drops them, ``left`` emits them with NULL.
        deleted: a boolean column of the versions: where it is true, there is no valid version from that time on. The
            column is not part of the output.

    Raises:
        ConfigError: an input has no time, or the inputs do not fit each other.
        ColumnNotFound: there is no such column.
    """
    if left.time is None or versions.time is None:
        raise ConfigError("A temporal join needs the times of both inputs.", hint="give JoinInput(..., time=...)")
    return TemporalJoin(left, versions, how, deleted=deleted)


class TemporalJoin(KeyedJoin):
    """Keeps left rows and versions by time; timers look versions up and let go."""

    def open(self, ctx: OpenContext) -> None:
        """Left rows by (time, number), versions by time."""
        key = self.left.key_type
        self._count = ctx.value(StateDescriptor("count", key, int))
        self._lefts = ctx.map(StateDescriptor("left", key, self.left.rows_by(tuple[int, int])))
        self._versions = ctx.map(StateDescriptor("versions", key, self.right.rows_by(int)))

    def on_left(self, ctx: ElementContext, key: Any, row: Row) -> None:
        """Wait until all versions of its time are known."""
        left, time = columns(row, self.left.schema), ctx.timestamp
        if time is None or has_null(key):
            self.unmatched(ctx, left)
            return
        number = self._count.get(0)
        self._count.set(number + 1)
        self._lefts.put((time, number), left)
        ctx.timers.register(time)

    def on_right(self, ctx: ElementContext, key: Any, row: Row) -> None:
        """A version, from its time on."""
        time = ctx.timestamp
        if time is not None and not has_null(key):
            self._versions.put(time, columns(row, self.right.schema))
            ctx.timers.register(time)

    def on_timer(self, ctx: ElementContext, key: Any, ts: int, kind: TimeKind) -> None:  # noqa: ARG002 - the contract
        """Put out the left rows of this time; older versions than the valid one are not needed any more."""
        known = list(self._versions.items(None, ts + 1))
        for older, _ in known[:-1]:
            self._versions.remove(older)
        valid = known[-1][1] if known else None
        if valid is not None and self._deleted is not None and valid[self._deleted]:
            self._versions.remove(known[-1][0])
            valid = None
        for place, left in self._lefts.items((ts, 0), (ts + 1, 0)):
            if valid is None:
                self.unmatched(ctx, left)
            else:
                self.emit(ctx, left, valid)
            self._lefts.remove(place)
        if next(self._lefts.keys(), None) is None:
            self._count.clear()
