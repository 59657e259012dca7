"""``Instance``: a copy of a function with the state of some key groups."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from weirflow.errors import ConfigError
from weirflow.process.context import BroadcastContext
from weirflow.process.function import KeyedFunction, ProcessFunction, Row
from weirflow.process.progress import RunProgress, StoredProgress
from weirflow.process.store_context import StoreOpenContext
from weirflow.process.timers import InstanceTimers, NoTimers
from weirflow.state import KeyedStateStore, KeyGroupRange, StateBackend, TtlStateBackend

if TYPE_CHECKING:
    from weirflow.process.outputs import FunctionOutputs
    from weirflow.process.user_code import UserCode
    from weirflow.state.descriptors import TimeKind
    from weirflow.state.encoding.key_types import KeyCodec


class Moment:
    """The time as all callbacks of a batch see it; a ``BroadcastContext``."""

    def __init__(self) -> None:
        self.watermark: int | None = None
        self.now = 0


class KeyContext(BroadcastContext):
    """What callbacks for a key are given; an ``ElementContext``."""

    def __init__(self, moment: Moment, outputs: FunctionOutputs, timers: InstanceTimers | NoTimers) -> None:
        self._moment = moment
        self.timestamp: int | None = None
        self.timers = timers
        self.emit = outputs.emit
        self.side = outputs.side

    @property
    @override
    def watermark(self) -> int | None:
        return self._moment.watermark

    @property
    @override
    def now(self) -> int:
        return self._moment.now


class Instance:
    """Runs callbacks; what they change is written by ``flush`` or forgotten by ``discard``.

    Attributes:
        groups: the key groups it has.
        function: its own copy.
        codec: of the keys, or None if the function has no keyed state.
        timers: None if the function has no keyed state.
        backend: where its state is.
    """

    def __init__(
        self,
        function: KeyedFunction,
        backend: StateBackend,
        groups: KeyGroupRange,
        *,
        operator: str,
        moment: Moment,
        outputs: FunctionOutputs,
        user_code: UserCode,
    ) -> None:
        self.groups = groups
        self.function = copied(function)
        self.backend = backend if isinstance(backend, TtlStateBackend) else TtlStateBackend(backend, lambda: moment.now)
        self._store = KeyedStateStore(self.backend, operator, owned=groups)
        self._progress = StoredProgress(self._store)
        self._moment = moment
        self._user_code = user_code
        declaring = StoreOpenContext(self._store)
        with user_code("open"):
            self.function.open(declaring)
        self._broadcasts = declaring.broadcasts
        self.codec: KeyCodec | None = declaring.codec
        self.timers = None if self.codec is None else InstanceTimers(self._store, declaring.key)
        self.context = KeyContext(moment, outputs, self.timers or NoTimers())

    # Callbacks

    def element(self, callback: Callable[..., None], key: Any, timestamp: int | None, row: Row) -> None:
        """Run a callback for one row."""
        self._begin(key, timestamp)
        callback(self.context, key, row)

    def batch(self, key: Any, rows: Iterable[tuple[int | None, Row]]) -> None:
        """Run ``on_batch`` for all rows of a key, each with its time."""
        assert isinstance(self.function, ProcessFunction), "it has one input"
        self._begin(key, None)
        self.function.on_batch(self.context, key, self._timed(key, rows))

    def broadcast(self, rows: Iterable[Row]) -> None:
        """Run ``on_broadcast`` for rows that belong to no key."""
        assert isinstance(self.function, ProcessFunction), "it has a broadcast input"
        self._store.unset_key()
        try:
            self._allow_broadcasts(allowed=True)
            for row in rows:
                self.function.on_broadcast(self._moment, row)
        finally:
            self._allow_broadcasts(allowed=False)

    def timer(self, at: int, data: bytes, kind: TimeKind) -> None:
        """Fire a timer of the key with these bytes, unless it was deleted."""
        assert self.timers is not None, "it has found the timer"
        key = self.timers.key(data)
        self._begin(key, at if kind == "event" else None)
        if self.timers.take(at, kind):
            self._user_code.key = key
            self.function.on_timer(self.context, key, at, kind)

    # State

    def resume(self, inputs: int) -> RunProgress:
        """The progress that is stored; state expires by its watermark."""
        progress = self._progress.read(inputs)
        self._expire(progress)
        return progress

    def flush(self, progress: RunProgress) -> None:
        """Write all changes and the progress together; state expires by its watermark from now on."""
        self._progress.write(progress)
        self._store.flush()
        self._expire(progress)
        if self.timers is not None:
            for added in self.timers.added.values():
                added.clear()

    def discard(self) -> None:
        """Forget all changes since the last flush."""
        self._allow_broadcasts(allowed=False)
        self._store.discard()
        if self.timers is not None:
            self.timers.forget()

    def _allow_broadcasts(self, *, allowed: bool) -> None:
        for slot in self._broadcasts:
            slot.writable = allowed

    def _expire(self, progress: RunProgress) -> None:
        # Nothing expires before 1970.
        if progress.watermark is not None and progress.watermark >= 0:
            self.backend.set_watermark(progress.watermark)

    def _begin(self, key: Any, timestamp: int | None) -> None:
        if self.codec is not None:
            self._store.set_key(key, timestamp)
        self.context.timestamp = timestamp

    def _timed(self, key: Any, rows: Iterable[tuple[int | None, Row]]) -> Iterator[Row]:
        for timestamp, row in rows:
            self._begin(key, timestamp)
            yield row


def copied(function: KeyedFunction) -> KeyedFunction:
    """A copy of a function, for an instance; ``ConfigError`` if it cannot be copied."""
    try:
        return copy.deepcopy(function)
    except Exception as error:
        raise ConfigError(
            f"{type(function).__name__} cannot be copied for an instance: {error}",
            hint="let open() make what cannot be copied, such as connections and locks",
        ) from error
