"""``Position``: where something that feeds a flow is, remembered by the flow in one step with the rows."""

from __future__ import annotations

from dataclasses import dataclass

from weirflow.arguments import Name, checked


@checked
@dataclass(frozen=True)
class Position:
    """A place in a stream.

    Unlike the tokens of ticks, the last position of every stream is kept for as long as the flow is.

    Attributes:
        stream: the name under which the stream is attached.
        origin: tells the stream from others that might be attached under this name; any text.
        at: the batch or version; any text.
    """

    stream: Name
    origin: str
    at: str
