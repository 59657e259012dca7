"""``Position``: where something that feeds a flow is, remembered by the flow in one step with the rows."""

from __future__ import annotations

from dataclasses import dataclass, field

from weirflow.arguments import Name, checked
from weirflow.ivm.flow.refusals import other_stream


@checked
@dataclass(frozen=True)
class Position:
    """A place in a stream.

    Unlike the tokens of ticks, the last position of every stream is kept for as long as the flow is.

    Attributes:
        stream: the name under which the stream is attached.
        origin: tells the stream from others that might be attached under this name; any text.
        at: the batch or version; any text.
        after: origin and place of the stream that this one takes over from, if it does; not kept.
    """

    stream: Name
    origin: str
    at: str
    after: tuple[str, str] | None = field(default=None, compare=False, repr=False)

    def repeats(self, last: Position) -> bool:
        """Whether the stream is here already, ``last`` being where it is.

        Raises:
            StreamConflict: ``last`` is a place in another stream, and not the one to take over from.
        """
        if self.origin == last.origin:
            return self.at == last.at
        if self.after == (last.origin, last.at):
            return False
        raise other_stream(self.stream)
