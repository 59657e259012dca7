"""What flows of every kind refuse, each in one sentence."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from weirflow.errors import (
    ConfigError,
    FlowError,
    StreamConflict,
    TableNotFound,
    TickPending,
    WeirflowError,
    did_you_mean,
)
from weirflow.sql.clock.relation import CLOCK
from weirflow.sql.snapshots import is_snapshot


def require_free_name(name: str, taken: Iterable[str]) -> None:
    """``ConfigError`` unless a source or view can have this name."""
    if not name.isidentifier():
        raise ConfigError(f"{name!r} cannot name a source or view.", hint="use letters, digits and underscores")
    if name.casefold() in {one.casefold() for one in taken}:
        raise ConfigError(
            f"The flow already has a source or view {name!r}, a different one.",
            hint="choose another name, or drop the old one first",
        )


def require_unread(name: str, readers: Collection[str]) -> None:
    """``ConfigError`` if views read what is to be dropped."""
    if readers:
        raise ConfigError(
            f"{name!r} cannot be dropped: {', '.join(sorted(readers))} {'reads' if len(readers) == 1 else 'read'} it.",
            hint="drop what reads it first",
        )


def no_relation(name: str, known: Iterable[str]) -> TableNotFound:
    """There is no source or view of this name."""
    return TableNotFound(f"The flow has no source or view {name!r}.", hint=_suggestion(name, known))


def no_source(name: str, views: Collection[str], sources: Iterable[str]) -> ConfigError:
    """There is no source of this name."""
    found = "is a view" if name in views else "is not registered"
    return ConfigError(f"{name!r} {found}; deltas go to sources.", hint=_suggestion(name, sources))


def waits(name: str, reason: WeirflowError | None) -> FlowError:
    """A view is declared, and cannot be computed yet."""
    why = "" if reason is None else f" {reason.message}"
    near = None if reason is None or reason.hint is None or "did you mean" not in reason.hint else reason.hint
    register = "register what is missing, or drop() the view"
    hint = f"{near} Otherwise {register}" if near else register
    return FlowError(f"The view {name!r} is waiting for what it reads.{why}", hint=hint)


def not_kept(name: str) -> ConfigError:
    """A view's rows are not there to be read."""
    return ConfigError(f"The rows of {name!r} are not kept.", hint="register the view with materialized=True")


def other_stream(stream: str) -> StreamConflict:
    """Something else feeds a flow under the name of a stream."""
    return StreamConflict(
        f"Another stream was attached as {stream!r} before, with another checkpoint or table.",
        hint="attach it under another name=, or give it back its checkpoint",
    )


def tick_pending() -> TickPending:
    """A tick failed, and nothing else can happen before somebody decides about it."""
    return TickPending("The last tick failed and its delta is kept.", hint="retry() or discard() it first")


def _suggestion(name: str, known: Iterable[str]) -> str | None:
    names = sorted(known)
    return did_you_mean(name, names) or (f"there is {', '.join(names)}" if names else None)


def require_past(epoch: int, now: int) -> None:
    """``ConfigError`` if a flow that is at the epoch ``now`` has yet to come to another one."""
    if epoch > now:
        raise ConfigError(f"The flow is at epoch {now}; {epoch} is yet to come.")


def not_refreshed(name: str) -> ConfigError:
    """The error for a refresh of a view whose rows are not kept."""
    return ConfigError(
        f"The rows of {name!r} are not kept, so a refresh could not tell what changed.",
        hint="register the view with materialized=True",
    )


def require_unsunk(sunk: Collection[str]) -> None:
    """``FlowError`` if any of the views that are to be replaced, with those that read them, has a sink."""
    if sunk:
        raise FlowError(
            f"The view {min(sunk)!r} has a sink, whose target would hold rows of two definitions.",
            hint="close the sink, replace the view, and open the sink again with resync=True",
        )


def require_declared(names: Iterable[str]) -> None:
    """``ConfigError`` if users would change what is the flow's own: its clock or a snapshot."""
    for name in names:
        if name == CLOCK:
            raise ConfigError(
                "The clock is the flow's own: it takes no deltas, and stays where it is.", hint="advance() moves it"
            )
        if is_snapshot(name):
            raise ConfigError(
                f"{name!r} is a snapshot of a table; deltas go to sources.",
                hint="refresh a view that reads it: flow.refresh_view, or REFRESH",
            )
