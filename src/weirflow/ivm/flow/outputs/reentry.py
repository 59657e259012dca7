"""``ReentryGuard``: whom a flow is telling right now what a tick did, so that those told cannot tick it meanwhile."""

from __future__ import annotations

from weirflow.errors import FlowReentered


class ReentryGuard:
    """Whoever uses it holds the flow's lock: somebody who is being told and comes back is in the same thread.

    Attributes:
        listener: the function of the user's that is called now, as errors call it. Set it in a ``try`` and put back
            what it was, by a plain assignment in the ``finally``: nothing can interrupt that.
    """

    def __init__(self) -> None:
        self.listener: str | None = None

    def require_over(self, what: str) -> None:
        """``FlowReentered`` if it is such a function that wants to do this."""
        if self.listener is not None:
            raise reentered(self.listener, what)


def reentered(listener: str, what: str) -> FlowReentered:
    """The error for a function that a tick calls and that would change what calls it."""
    return FlowReentered(
        f"{listener} cannot {what} while the flow is calling it.",
        hint="do it when the tick has returned, or hand it to another thread without waiting for it",
    )
