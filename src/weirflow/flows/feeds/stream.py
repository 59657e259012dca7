"""``StreamFeed``: takes the batches of a streaming query into a flow, each exactly once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weirflow.errors import StreamConflict
from weirflow.flows.feeds.change_frames import weighted_frame
from weirflow.ivm.flow.position import Position
from weirflow.ivm.flow.refusals import other_stream
from weirflow.ivm.zset.delta import DeltaBatch

if TYPE_CHECKING:
    from weirflow.streaming.host import StreamHost
    from weirflow.streaming.savepoints.named import RestoreNote
    from weirflow.streaming.sinks.flow import FlowSink


class StreamFeed:
    """Ticks a source of a flow with each batch of one query.

    The flow remembers the last batch in one step with its rows, under the stream's name and with the query's id. So a
    batch that Spark brings again is recognised, and one that does not follow is refused.

    Args:
        sink: the flow and its source, and what is to be done with the rows.
        query_id: the query's id; waits until it is known.
        before: reads what the query's checkpoint was restored from, if it was.
        host: where the query runs.
    """

    def __init__(
        self, sink: FlowSink, query_id: Callable[[], str], before: Callable[[], RestoreNote | None], host: StreamHost
    ) -> None:
        self._sink = sink
        self._flow = sink.flow
        self._query_id = query_id
        self._before = before
        self._host = host

    def __call__(self, batch: Any, number: int) -> None:
        """Take in a native frame, unless the flow has it.

        Raises:
            StreamConflict: it is not the batch that follows the flow's last one, or of another stream.
        """
        query_id = self._query_id()
        stream = self._sink.stream or query_id
        last = self._flow.position(stream)
        after = None
        if last is not None and last.origin == query_id:
            reached = int(last.at)
        else:
            reached, after = self._first(query_id, number, last)
        if number not in (reached, reached + 1):
            raise StreamConflict(
                f"The stream {stream!r} brings batch {number}, but the flow expects batch {reached + 1}.",
                hint="give it another checkpoint, and another name= if it has one, so that it starts over",
            )
        position = Position(stream, query_id, str(number), after)
        if number == reached or self._flow.feed(self._sink.source, self._delta(batch), position=position).replayed:
            self._read(batch.write.format("noop").mode("append").save)  # or Spark misses the state of its operators

    def _first(self, query_id: str, number: int, last: Position | None) -> tuple[int, tuple[str, str] | None]:
        """The batch before the first one of a query that the flow is to take, and the place that it takes over from."""
        if self._sink.stream is None:
            # Before positions were kept for every query, ticks of those without a name had tokens.
            for at in (number, number - 1):
                if self._flow.epoch_of(f"{query_id}/{at}") is not None:
                    return at, None
        before = self._before() if number else None
        if before is None or not before.query_id:
            if last is not None:
                raise other_stream(last.stream)
            return -1, None
        left = last if self._sink.stream is not None else self._flow.position(before.query_id)
        if left is not None and left.origin == before.query_id and int(left.at) != before.batch:
            raise StreamConflict(
                f"The flow has the batches up to {left.at} of the query that was saved, but the savepoint is of batch "
                f"{before.batch}: rows would be lost or doubled.",
                hint="restore the flow to when the savepoint was made, or feed another flow",
            )
        return before.batch, (before.query_id, str(before.batch))

    def _delta(self, batch: Any) -> Any:
        """The rows as the flow takes them: as the frame that they are, or here."""
        if not self._flow.takes_frames or self._flow.source(self._sink.source).dedup:
            rows = self._read(batch.toArrow)
            return rows if self._sink.changes is None else DeltaBatch.from_changes(rows, op=self._sink.changes)
        return self._host.wrap(batch) if self._sink.changes is None else weighted_frame(batch, op=self._sink.changes)

    def _read(self, call: Callable[[], Any]) -> Any:
        with self._host.inside():
            return self._host.run("read a batch", call)
