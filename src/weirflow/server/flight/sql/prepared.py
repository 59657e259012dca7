"""Prepared statements: kept under handles, with the parameters that were bound to them last."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from weirflow.errors import ConfigError, ServerBusy, TicketExpired

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.server.access.caller import Caller
    from weirflow.server.coordinator import Prepared

_MOST_OF_CALLER = 1000
_IDLE_SECONDS = 3600.0
_RETRY_SECONDS = 10.0

Parameters = dict[str, Any] | list[Any]


@dataclass(frozen=True)
class PreparedStatement:
    """A statement that was prepared.

    Attributes:
        owner: whose it is: ``Caller.key``.
        statement: what is known of it.
        bound: the rows of parameters that it is to be run with; None if none were bound.
        used: when it was used last.
    """

    owner: str
    statement: Prepared
    bound: tuple[Parameters, ...] | None = None
    used: float = 0.0


class PreparedStatements:
    """The prepared statements of all callers. One that is not used for an hour is closed."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, PreparedStatement] = OrderedDict()
        self._counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, caller: Caller, statement: Prepared) -> bytes:
        """Keep a statement; returns its handle.

        Raises:
            ServerBusy: the caller has too many.
        """
        handle = secrets.token_bytes(16)
        with self._lock:
            self._forget_idle()
            if self._counts[caller.key] >= _MOST_OF_CALLER:
                raise ServerBusy(
                    f"{caller.name!r} has {_MOST_OF_CALLER} prepared statements open.",
                    retry_after=_RETRY_SECONDS,
                    hint="close those that are not needed any more",
                )
            self._counts[caller.key] += 1
            self._kept[handle] = PreparedStatement(caller.key, statement, used=self._now())
        return handle

    def get(self, caller: Caller, handle: bytes) -> PreparedStatement:
        """A statement of the caller's; ``TicketExpired`` if there is none."""
        with self._lock:
            return self._used(caller, handle)

    def bind(self, caller: Caller, handle: bytes, rows: tuple[Parameters, ...]) -> None:
        """Have a statement run with these parameters from now on."""
        with self._lock:
            self._kept[handle] = replace(self._used(caller, handle), bound=rows)

    def close(self, caller: Caller, handle: bytes) -> None:
        """Forget a statement, if there is one."""
        with self._lock:
            found = self._kept.get(handle)
            if found is not None and found.owner == caller.key:
                self._drop(handle)

    def _used(self, caller: Caller, handle: bytes) -> PreparedStatement:
        self._forget_idle()
        found = self._kept.get(handle)
        if found is None or found.owner != caller.key:
            raise TicketExpired(
                "There is no such prepared statement: it was closed, was not used for an hour, or the server was "
                "started again.",
                hint="prepare it again",
            )
        found = self._kept[handle] = replace(found, used=self._now())
        self._kept.move_to_end(handle)
        return found

    def _forget_idle(self) -> None:
        oldest = self._now() - _IDLE_SECONDS
        while self._kept:
            handle, statement = next(iter(self._kept.items()))
            if statement.used > oldest:
                return
            self._drop(handle)

    def _drop(self, handle: bytes) -> None:
        owner = self._kept.pop(handle).owner
        self._counts[owner] -= 1
        if not self._counts[owner]:
            del self._counts[owner]


def parameters_of(statement: Prepared, rows: pa.Table) -> tuple[Parameters, ...]:
    """Rows of values as the parameters of a statement, by their places.

    Raises:
        ConfigError: there are more or fewer than the statement has markers.
    """
    markers = statement.parameters
    if rows.num_columns != len(markers):
        raise ConfigError(
            f"{rows.num_columns} parameters were bound to a statement that has {len(markers)}.",
            hint=f"its parameters are {', '.join(markers)}" if markers else "it has none",
        )
    columns = [column.to_pylist() for column in rows.columns]
    if markers and not markers[0].startswith("?"):
        return tuple(dict(zip(markers, row, strict=True)) for row in zip(*columns, strict=True))
    return tuple(list(row) for row in zip(*columns, strict=True))
