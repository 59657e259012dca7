"""``ProcessFunction``: code that runs for each row of a key, with state and timers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from weirflow.arguments import require_plain_methods

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.process.context import BroadcastContext, ElementContext, OpenContext
    from weirflow.state.descriptors import TimeKind

Row: TypeAlias = Mapping[str, Any]
"""A row: its columns by name."""

LATE = "late"
"""The side output that late rows go to, whole, if a function declares it."""


class KeyedFunction:
    """What functions of one and of two inputs have in common.

    A function is copied for each instance that runs it, before ``open``: attributes are what ``__init__`` made them,
    and what must survive is in state. The callbacks of one batch are one change of state: if any of them raises,
    state and timers are what they were before the batch.

    Attributes:
        output: the columns of the rows that are emitted, as in ``CREATE TABLE`` or as an Arrow schema.
        side_outputs: the columns of each side output, by its tag. One that is called ``"late"`` has the columns of the
            input, and gets the rows that are late: whose time is not after the watermark. They reach no callback.
            Without it they are only counted.
    """

    output: str | pa.Schema
    side_outputs: ClassVar[Mapping[str, str | pa.Schema]] = {}

    def __init_subclass__(cls) -> None:
        """Refuse callbacks that do nothing when they are called."""
        require_plain_methods(cls)

    def open(self, ctx: OpenContext) -> None:
        """Declare the state. Called once for each instance, before anything else."""

    def on_timer(self, ctx: ElementContext, key: Any, ts: int, kind: TimeKind) -> None:
        """Called when a timer of the key fires, after the rows of a batch, ordered by time, then by key.

        Timers by event time come first, then those by processing time. A timer that is registered here for a later
        time, and is due, fires in the same batch.
        """
        raise NotImplementedError(f"{type(self).__name__} registers timers and has no on_timer")

    def close(self) -> None:
        """Close what ``open`` has opened. Called once for each instance, even after a batch that failed."""


class ProcessFunction(KeyedFunction):
    """Code that runs for each row of a key. Override ``on_element``, or ``on_batch`` to get a key's rows together.

    Callbacks read and write the state of the key for which they are called.
    """

    def on_element(self, ctx: ElementContext, key: Any, row: Row) -> None:
        """Called for each row, in the order of arrival within a key."""
        raise NotImplementedError(f"{type(self).__name__} has neither on_element nor on_batch")

    def on_batch(self, ctx: ElementContext, key: Any, rows: Iterable[Row]) -> None:
        """Called with all rows of a key in a batch; keys come in the order of their first rows.

        ``rows`` can be read only once, and ``ctx.timestamp`` is the time of the row that was read last.
        """
        for row in rows:
            self.on_element(ctx, key, row)

    def on_broadcast(self, ctx: BroadcastContext, row: Row) -> None:
        """Called for each row of the broadcast input, on every instance, before the rows of the batch.

        It may change broadcast state, and has no key: keyed state is a ``StateError`` here.
        """
        raise NotImplementedError(f"{type(self).__name__} is given a broadcast input and has no on_broadcast")


class CoProcessFunction(KeyedFunction):
    """Code that runs for each row of two inputs with the same keys, which share state and timers.

    In each batch the right rows come first, then the left rows, so that left rows can look up right ones.
    """

    def on_left(self, ctx: ElementContext, key: Any, row: Row) -> None:
        """Called for each row of the left input, in the order of arrival."""
        raise NotImplementedError(f"{type(self).__name__} has no on_left")

    def on_right(self, ctx: ElementContext, key: Any, row: Row) -> None:
        """Called for each row of the right input, in the order of arrival."""
        raise NotImplementedError(f"{type(self).__name__} has no on_right")
