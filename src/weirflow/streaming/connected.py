"""``ConnectedStreams``: two streams by key, for a function of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weirflow.arguments import checked
from weirflow.errors import ConfigError
from weirflow.streaming.processed import ProcessedStream, run_on, time_of_timers
from weirflow.types import OutputMode

if TYPE_CHECKING:
    from weirflow.state.descriptors import TimeKind
    from weirflow.streaming.keyed import KeyedStream


@checked
class ConnectedStreams:
    """Two streams with the same keys; ``KeyedStream.connect`` makes it.

    Attributes:
        left: the stream whose rows go to ``on_left``.
        right: the stream whose rows go to ``on_right``.
    """

    def __init__(self, left: KeyedStream, right: KeyedStream) -> None:
        if left.frame._runner is not right.frame._runner:  # noqa: SLF001 - the same package
            raise ConfigError("The two streams are of different Sessions.", hint="read both in one")
        types = [_key_types(one) for one in (left, right)]
        if types[0] != types[1]:
            raise ConfigError(
                f"The left stream is keyed by {_shown(left, types[0])}, the right one by {_shown(right, types[1])}.",
                hint="key both by columns of the same types: cast one of them first",
            )
        self.left = left
        self.right = right

    def process(
        self, function: Any, *, time: TimeKind | None = None, output_mode: OutputMode = OutputMode.APPEND
    ) -> ProcessedStream:
        """Run a function of both for each key, with state and timers; see ``weirflow.process.CoProcessFunction``.

        Of each batch a key's right rows come first, then its left ones. The watermark is the earlier one of the streams
        that have an event time.

        Args:
            function: copied for each task of each batch.
            time: by which time all its timers fire; by default event time if one of the streams has it.
            output_mode: that in which the result is written.

        Raises:
            ConfigError: the function cannot be used, or neither stream has an event time and it shall go by it.
            UnsupportedError: the function or the key needs what Spark has not; the message says what.
            UserCodeError: ``open`` raised, which is called once to see what the function declares.
        """
        from weirflow.spark.process.united import united  # noqa: PLC0415 - imports pyspark

        left, right = self.left.frame, self.right.frame
        event_time = left.event_time_or_none(), right.event_time_or_none()
        runner = left._runner  # noqa: SLF001 - the same package
        hosted = runner.streams.co_hosted(function, event_time)
        hosted.time = time_of_timers(hosted, time, has_events=event_time != (None, None))
        keys = list(zip(self.left.keys, self.right.keys, strict=True))
        native = runner.run("connect", lambda: united(left.spark, right.spark, keys))
        base = left._same(native, right._late)  # noqa: SLF001 - the same package
        return run_on(base, self.left.keys, hosted, output_mode=output_mode)


def _key_types(stream: KeyedStream) -> list[str]:
    types = dict(stream.frame.dtypes)
    return [types[key] for key in stream.keys]


def _shown(stream: KeyedStream, types: list[str]) -> str:
    return ", ".join(f"{key} {kind.upper()}" for key, kind in zip(stream.keys, types, strict=True))
