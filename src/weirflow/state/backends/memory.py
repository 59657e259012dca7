"""``InMemoryStateBackend``: state in dicts; it lasts as long as the process, unless it is checkpointed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from threading import Lock

from typing_extensions import override

from weirflow.errors import StateError
from weirflow.state.backends.contract import Changes, StateBackend
from weirflow.state.backends.sorted_keys import SortedKeys
from weirflow.state.encoding.layout import NOBODY


class InMemoryStateBackend(StateBackend):
    """State in this process's memory; see ``StateBackend`` for the contract."""

    def __init__(self) -> None:
        self._data: dict[str, dict[bytes, bytes]] = {}
        self._keys: dict[str, SortedKeys] = {}
        self._lock = Lock()
        self._closed = False

    def __repr__(self) -> str:
        return f"<state in memory, {sum(map(len, self._data.values()))} entries>"

    @override
    def get(self, operator: str, key: bytes) -> bytes | None:
        return self._of(operator).get(key)

    @override
    def multi_get(self, operator: str, keys: Sequence[bytes]) -> list[bytes | None]:
        return list(map(self._of(operator).get, keys))

    @override
    def write(self, changes: Changes) -> None:
        self._require_open()
        with self._lock:
            self._apply(changes)

    def _apply(self, changes: Changes) -> None:
        targets: list[dict[bytes, bytes | None]] = []
        holders: list[dict[bytes, bytes | None]] = []
        gone: list[bytes] = []
        for operator, own in changes.items():
            data = self._data.setdefault(operator, {})
            # First, as keys that are looked at in vain do no harm.
            self._index(operator).touch([key for key, value in own.items() if (value is None) == (key in data)])
            targets.append(data)  # type: ignore[arg-type]  # what is None is removed at once
            if None in own.values():
                removed = [key for key, value in own.items() if value is None]
                gone += removed
                holders += [data] * len(removed)  # type: ignore[list-item]  # as above
        # One call that runs no Python code: no signal and no exception of another thread comes into it.
        deque(chain(map(dict.update, targets, changes.values()), map(dict.pop, holders, gone)), maxlen=0)

    @override
    def scan(self, operator: str, start: bytes, end: bytes, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        data = self._of(operator)
        return self._scanned(data, self._index(operator), start, end, reverse=reverse) if data else iter(())

    @override
    def operators(self) -> list[str]:
        self._require_open()
        return sorted(operator for operator, data in self._data.items() if operator != NOBODY and data)

    def snapshot(self) -> InMemoryStateBackend:
        """See ``StateBackend``. It copies the dicts, but not what they hold."""
        self._require_open()
        copy = InMemoryStateBackend()
        with self._lock:
            copy._data = {operator: data.copy() for operator, data in self._data.items()}
            copy._keys = {operator: keys.copy(copy._data[operator]) for operator, keys in self._keys.items()}
        return copy

    @override
    def close(self) -> None:
        self._closed = True
        self._data = {}
        self._keys = {}

    def _scanned(
        self, data: dict[bytes, bytes], keys: SortedKeys, start: bytes, end: bytes, *, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        """Some keys at a time, so that it costs what is read of it."""
        while some := keys.last(start, end) if reverse else keys.first(start, end):
            if reverse:
                end = some[0]
                some.reverse()
            else:
                start = some[-1] + b"\0"
            for key in some:
                value = data.get(key)
                if value is not None:
                    yield key, value

    def _of(self, operator: str) -> dict[bytes, bytes]:
        found = self._data.get(operator)
        if found is None:
            self._require_open()
            return {}
        return found

    def _index(self, operator: str) -> SortedKeys:
        found = self._keys.get(operator)
        if found is None:
            found = self._keys[operator] = SortedKeys(self._data[operator])
        return found

    def _require_open(self) -> None:
        if self._closed:
            raise StateError("The state backend is closed.")
