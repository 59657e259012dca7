"""Random operations on one slot of keyed state, with checkpoints and crashes, beside plain dicts that do the same.

A seed is a case: a kind of state, a backend, a time to live, and what is done.
"""

from __future__ import annotations

import copy
import operator
import os
import random
import tempfile
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.checkpoint.keyed_state.checkpoints import KeyedStateCheckpoints
from weirflow.state import (
    Aggregate,
    InMemoryStateBackend,
    KeyedStateStore,
    KeyGroupRange,
    RocksDbStateBackend,
    StateBackend,
    StateDescriptor,
    Ttl,
    TtlStateBackend,
)

ALL = KeyGroupRange(0, 128)
KINDS = ("value", "list", "map", "reducing", "aggregating", "broadcast")
BACKENDS = ("memory", "rocksdb")
TTLS = (None, ("processing", "write"), ("processing", "read"), ("event", "write"), ("event", "read"))
# In memory where that is possible: opening a database waits for the disk many times.
FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
LIFE = 100
STEPS = 40
KEYS: dict[Any, list[Any]] = {
    int: [-300, -1, 0, 1, 2**70],
    str: ["", "a", "a\0", "ab", "é"],
    tuple[str, int]: [("", 0), ("a", -1), ("a", 1), ("ab", 0)],
}
VALUES = {
    "value": list[int],
    "list": list[int],
    "map": dict[int, int],
    "reducing": int,
    "aggregating": tuple[int, int],
    "broadcast": dict[int, int],
}
SUM_AND_COUNT = Aggregate(lambda: (0, 0), lambda acc, value: (acc[0] + value, acc[1] + 1), list)


class Model:
    """What state should be: for each key, entries with when they expire (None for never)."""

    def __init__(self, kind: str, ttl: tuple[str, str] | None) -> None:
        self.kind = kind
        self.ttl = ttl
        self.clock = 1000
        self.watermark: int | None = None
        self.key: Any = None
        self.timestamp: int | None = None
        self.entries: dict[Any, dict[Any, tuple[Any, int | None]]] = {}
        self.flushed: dict[Any, dict[Any, tuple[Any, int | None]]] = {}

    def expiry(self) -> int | None:
        if self.ttl is None:
            return None
        if self.ttl[0] == "processing":
            return self.clock + LIFE
        return max(one for one in (self.timestamp, self.watermark) if one is not None) + LIFE

    def lives(self, expires: int | None) -> bool:
        now = None if self.ttl is None else self.clock if self.ttl[0] == "processing" else self.watermark
        return expires is None or now is None or expires > now

    def live(self, key: Any = None) -> dict[Any, Any]:
        """The current key's entries, or another's."""
        found = self.entries.get(self.key if key is None else key, {})
        return {entry: value for entry, (value, expires) in sorted(found.items()) if self.lives(expires)}

    def put(self, entry: Any, value: Any) -> None:
        self.entries.setdefault(self.key, {})[entry] = (value, self.expiry())

    def read(self, entry: Any = 0) -> Any:
        value = self.live().get(entry)
        if value is not None and self.ttl is not None and self.ttl[1] == "read":
            before = self.entries[self.key][entry][1]
            self.entries[self.key][entry] = (value, max(before, self.expiry()))
        return value

    def read_all(self) -> dict[Any, Any]:
        found = self.live()
        for entry in found:
            self.read(entry)
        return found

    def remove(self, entry: Any = 0) -> None:
        self.entries.get(self.key, {}).pop(entry, None)

    def clear(self) -> None:
        self.entries.pop(self.key, None)

    def flush(self) -> None:
        self.flushed = copy.deepcopy(self.entries)

    def discard(self) -> None:
        self.entries = copy.deepcopy(self.flushed)


class Case:
    """One seed: the state and its model, side by side."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.kind = KINDS[seed % len(KINDS)]
        self.backend_kind = BACKENDS[seed // len(KINDS) % len(BACKENDS)]
        self.ttl = TTLS[seed // len(KINDS) // len(BACKENDS) % len(TTLS)]
        self.key_type = self.random.choice(list(KEYS))
        self.keys = [None] if self.kind == "broadcast" else KEYS[self.key_type]
        self.model = Model(self.kind, self.ttl)
        self.checkpoints = KeyedStateCheckpoints(open_checkpoint_storage("memory://"))
        self.epoch = 0
        self.saved: dict[Any, Any] | None = None
        self.places = 0
        self.done: list[str] = []
        self.open(self.new_backend())

    def __str__(self) -> str:
        return f"{self.kind} of {self.key_type} in {self.backend_kind}, expiring {self.ttl}: " + "; ".join(self.done)

    def run(self) -> None:
        """Do everything; ``AssertionError`` at the first difference."""
        try:
            self.set_key()
            steps = [self.act] * 8 + [self.set_key] * 4 + [self.flush, self.flush, self.discard, self.pass_time]
            steps += [self.pass_time, self.cleanup, self.all_keys, self.save, self.crash, self.restore]
            for _ in range(STEPS):
                self.random.choice(steps)()
            self.flush()
            self.crash()
            self.all_keys()
            for key in self.keys:
                self.set_key(key)
                self.check("all", self.contents(), self.model_contents())
        finally:
            self.backend.close()

    def check(self, what: str, found: Any, wanted: Any) -> None:
        self.done.append(f"{what} -> {found!r}")
        assert found == wanted, f"{self}; wanted {wanted!r}"

    # What happens to a backend

    def new_path(self) -> Path:
        self.places += 1
        self.path = self.folder / str(self.places)
        return self.path

    def new_backend(self) -> StateBackend:
        if self.backend_kind == "memory":
            return InMemoryStateBackend()
        return RocksDbStateBackend(self.new_path(), fsync=0)

    def open(self, backend: StateBackend) -> None:
        ttl = None if self.ttl is None else Ttl(timedelta(milliseconds=LIFE), *self.ttl)  # type: ignore[arg-type]
        key = None if self.kind == "broadcast" else self.key_type
        descriptor = StateDescriptor("slot", key, VALUES[self.kind], ttl)
        self.backend = TtlStateBackend(backend, lambda: self.model.clock)
        if self.model.watermark is not None:
            self.backend.set_watermark(self.model.watermark)
        self.store = KeyedStateStore(self.backend, "op")
        extra = {"reducing": [operator.add], "aggregating": [SUM_AND_COUNT]}.get(self.kind, [])
        self.state: Any = getattr(self.store, self.kind)(descriptor, *extra)
        if self.kind == "broadcast":
            # The current key's timestamp counts for broadcast state, too.
            self.store.value(StateDescriptor("beside", int, int))

    def crash(self) -> None:
        """What was not flushed is gone; memory is back where its last checkpoint was."""
        self.done.append("crash")
        self.backend.close()
        if self.backend_kind == "rocksdb":
            self.open(RocksDbStateBackend(self.path, fsync=0))
            self.model.discard()
        elif self.saved is None:
            self.open(InMemoryStateBackend())
            self.model.flushed = {}
            self.model.discard()
        else:
            self.open(self.checkpoints.restore(ALL))
            self.model.flushed = copy.deepcopy(self.saved)
            self.model.discard()
        self.set_key()

    def save(self) -> None:
        self.epoch += 1
        self.done.append(f"save {self.epoch}")
        self.checkpoints.save({ALL: self.backend}, epoch=self.epoch)
        self.saved = copy.deepcopy(self.model.flushed)

    def restore(self) -> None:
        """The last checkpoint, in either backend."""
        if self.saved is None:
            return
        self.backend_kind = self.random.choice(BACKENDS)
        self.done.append(f"restore {self.epoch} in {self.backend_kind}")
        self.backend.close()
        path = None if self.backend_kind == "memory" else self.new_path()
        self.open(self.checkpoints.restore(ALL, path=path, fsync=0))
        self.model.flushed = copy.deepcopy(self.saved)
        self.model.discard()
        self.set_key()

    def flush(self) -> None:
        self.done.append("flush")
        self.store.flush()
        self.model.flush()

    def discard(self) -> None:
        self.done.append("discard")
        self.store.discard()
        self.model.discard()

    def pass_time(self) -> None:
        by = self.random.choice([1, 30, LIFE - 1, LIFE, 3 * LIFE])
        self.done.append(f"{by} ms pass")
        self.model.clock += by
        if self.random.random() < 0.7:
            # It may lag far behind the clock.
            now = max(self.model.watermark or 0, self.model.clock - self.random.choice([0, 50, 1000]))
            self.model.watermark = now
            self.backend.set_watermark(now)

    def cleanup(self) -> None:
        self.done.append("cleanup")
        self.backend.cleanup(self.random.choice([1, 3, 1000]))

    def set_key(self, key: Any = None) -> None:
        key = self.random.choice(self.keys) if key is None else key
        timestamp = max(0, self.model.clock - self.random.choice([0, 20, 500]))
        self.done.append(f"set_key({key!r}, {timestamp})")
        self.store.set_key(7 if self.kind == "broadcast" else key, timestamp)
        self.model.key, self.model.timestamp = key, timestamp

    def all_keys(self) -> None:
        if self.kind != "broadcast":
            wanted = {key for key in self.keys if self.model.live(key)}
            found = list(self.store.keys("slot"))
            self.check("keys", sorted(found), sorted(wanted))

    # What is done with the slot

    def contents(self) -> Any:
        if self.kind in ("map", "broadcast"):
            return list(self.state.items())
        return self.state.get()

    def model_contents(self) -> Any:
        if self.kind in ("map", "broadcast"):
            return list(self.model.read_all().items())
        if self.kind == "list":
            return list(self.model.read_all().values())
        found = self.model.read()
        return list(found) if self.kind == "aggregating" and found is not None else found

    def act(self) -> None:
        chosen = self.random.random()
        if chosen < 0.35:
            self.check("read", self.contents(), self.model_contents())
        elif chosen < 0.45:
            self.done.append("clear")
            self.state.clear()
            self.model.clear()
        else:
            getattr(self, f"write_{'map' if self.kind == 'broadcast' else self.kind}")()

    def write_value(self) -> None:
        if self.random.random() < 0.3 and self.model.key is not None:
            keys = self.random.sample(self.keys, 3)
            values = [[self.random.randrange(9)] for _ in keys]
            self.done.append(f"set_many({keys}, {values})")
            self.state.set_many(keys, values)
            current = self.model.key
            for key, value in zip(keys, values, strict=True):
                self.model.key = key
                self.model.put(0, value)
            self.model.key = current
            return
        value = [self.random.randrange(9) for _ in range(self.random.randrange(3))]
        self.done.append(f"set({value})")
        self.state.set(value)
        self.model.put(0, value)

    def write_list(self) -> None:
        values = [self.random.randrange(9) for _ in range(self.random.randrange(1, 3))]
        if self.random.random() < 0.2:
            self.done.append(f"set({values})")
            self.state.set(values)
            self.model.clear()
        else:
            self.done.append(f"extend({values})")
            self.state.extend(values)
        following = max(self.model.live(), default=-1) + 1
        for number, value in enumerate(values, following):
            self.model.put(number, value)

    def write_map(self) -> None:
        entry, value = self.random.randrange(-2, 4), self.random.randrange(9)
        chosen = self.random.random()
        if chosen < 0.5:
            self.done.append(f"put({entry}, {value})")
            self.state.put(entry, value)
            self.model.put(entry, value)
        elif chosen < 0.6:
            self.done.append(f"remove({entry})")
            self.state.remove(entry)
            self.model.remove(entry)
        elif chosen < 0.75:
            self.check(f"get({entry})", self.state.get(entry), self.model.read(entry))
        elif chosen < 0.9:
            self.check(f"{entry} in", entry in self.state, entry in self.model.live())
        else:
            self.check("keys()", list(self.state.keys()), list(self.model.live()))

    def write_reducing(self) -> None:
        keys = [self.model.key] if self.random.random() < 0.5 else self.random.choices(self.keys, k=4)
        values = [self.random.randrange(1, 9) for _ in keys]
        self.done.append(f"add_many({keys}, {values})")
        if len(keys) == 1:
            self.state.add(values[0])
        else:
            self.state.add_many(keys, values)
        current = self.model.key
        for key, value in zip(keys, values, strict=True):
            self.model.key = key
            self.model.put(0, self.model.live().get(0, 0) + value)
        self.model.key = current

    def write_aggregating(self) -> None:
        value = self.random.randrange(9)
        self.done.append(f"add({value})")
        self.state.add(value)
        total, count = self.model.live().get(0, (0, 0))
        self.model.put(0, (total + value, count + 1))


def mismatch(seed: int) -> str | None:
    """What is wrong with a seed, or None."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder, closing(_Running(seed, Path(folder))) as running:
        try:
            running.case.run()
        except Exception as error:  # noqa: BLE001 - whatever it is, the seed says how to see it again
            return f"seed {seed}: {type(error).__name__}: {error}\n{running.case}"
    return None


class _Running:
    def __init__(self, seed: int, folder: Path) -> None:
        self.case = Case(seed, folder)

    def close(self) -> None:
        self.case.backend.close()
