"""``StateDescriptor``: what a slot of keyed state holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, get_args

from weirflow.arguments import Name, Positive, checked
from weirflow.errors import ConfigError
from weirflow.state.encoding.layout import slot_bytes

TimeKind = Literal["processing", "event"]
Refresh = Literal["write", "read"]
_MILLISECOND = timedelta(milliseconds=1)


@checked
@dataclass(frozen=True)
class Ttl:
    """How long state lives.

    Attributes:
        duration: the time from the last refresh on; at least a millisecond.
        time: by the clock, or by the watermark of the events.
        refresh: what starts it again: only writing, or reading as well.
    """

    duration: timedelta
    time: TimeKind = "processing"
    refresh: Refresh = "write"

    def __post_init__(self) -> None:
        """Refuse what cannot be kept."""
        if self.duration < _MILLISECOND:
            raise ConfigError(f"State cannot live for {self.duration!r}.", hint="give a timedelta of 1 ms or more")
        if self.time not in get_args(TimeKind):
            raise ConfigError(f"{self.time!r} is not a time to expire by.", hint="use 'processing' or 'event'")
        if self.refresh not in get_args(Refresh):
            raise ConfigError(f"{self.refresh!r} does not refresh state.", hint="use 'write' or 'read'")

    @property
    def milliseconds(self) -> int:
        """The duration in milliseconds."""
        return self.duration // _MILLISECOND


@checked
@dataclass(frozen=True)
class StateDescriptor:
    """A slot: its name, its types, how long it lives, and the version of its values.

    Attributes:
        name: of the slot, unique in its operator.
        key: the type of keys: bool, int, float, str, bytes, date, datetime, tuples of these, or a dataclass, msgspec
            Struct or NamedTuple of them. None for broadcast state, which has no key.
        value: the type of the value for a key: any type that msgspec supports (Python's own types, dataclasses, Structs
            and collections of them), or an Arrow type. A ``list[...]`` for list state, a ``dict[..., ...]`` for map and
            broadcast state, the accumulator's type for aggregating state.
        ttl: how long values live; None for ever.
        version: the version of the value's type. Increase it when the type changes, and register a ``state_migration``.
    """

    name: Name
    key: Any
    value: Any
    ttl: Ttl | None = None
    version: Positive = 1

    def __post_init__(self) -> None:
        """Refuse names and versions that cannot be stored."""
        slot_bytes(self.name)
        if type(self.version) is not int or self.version < 1:
            raise ConfigError(f"{self.version!r} is not a version of {self.name!r}.", hint="count from 1")
