"""How many updates of keyed state a second: a counter for each key is read, counted up and written.

    python benchmarks/state.py [--keys N] [--seconds S]

Backends take turns in this run; each is filled first, and its counters are checked before a figure counts. A figure is
the best of several rounds, for other programs only ever make it slower. Writes benchmarks/results/state.json.
"""

from __future__ import annotations

import argparse
import json
import operator
import random
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.checkpoint.keyed_state.checkpoints import KeyedStateCheckpoints
from weirflow.state import (
    InMemoryStateBackend,
    KeyedStateStore,
    KeyGroupRange,
    ReducingState,
    RocksDbStateBackend,
    StateBackend,
    StateDescriptor,
)

if TYPE_CHECKING:
    from collections.abc import Callable

RESULTS = Path(__file__).parent / "results" / "state.json"
BATCH = 1000
BATCHES = 20
LEAST_ROUNDS = 10
GROUPS = 128
MANY = "many keys at once"
ONE = "key by key"
# Updates a second that have to be reached.
LIMITS = {("memory", MANY): 1_000_000, ("RocksDB", MANY): 200_000}


@dataclass
class Measured:
    """A backend in one way of using it, and its best round."""

    backend: str
    way: str
    state: StateBackend
    best: float = 0.0
    rounds: int = 0
    expected: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Declare the counter; each way has one of its own."""
        self.store = KeyedStateStore(self.state, f"count {self.way}")
        counter = StateDescriptor("count", int, int)
        self.total: ReducingState = self.store.reducing(counter, operator.add)

    def fill(self, keys: int) -> None:
        """Count every key once."""
        for first in range(0, keys, BATCH):
            some = range(first, min(first + BATCH, keys))
            self.total.add_many(some, [1] * len(some))
            self.store.flush()
        self.expected = dict.fromkeys(range(keys), 1)

    def round(self, batches: list[list[int]]) -> None:
        """Count up, batch by batch, each written at once."""
        update = self.many if self.way == MANY else self.one
        started = time.perf_counter()
        update(batches)
        seconds = time.perf_counter() - started
        self.best = max(self.best, sum(map(len, batches)) / seconds)
        self.rounds += 1
        for batch in batches:
            for key in batch:
                self.expected[key] += 1

    def many(self, batches: list[list[int]]) -> None:
        """A call for each batch."""
        add_many, flush, ones = self.total.add_many, self.store.flush, [1] * BATCH
        for batch in batches:
            add_many(batch, ones)
            flush()

    def one(self, batches: list[list[int]]) -> None:
        """Calls for each key."""
        set_key, add, flush = self.store.set_key, self.total.add, self.store.flush
        for batch in batches:
            for key in batch:
                set_key(key)
                add(1)
            flush()

    def check(self) -> None:
        """The counters, as another reader finds them."""
        store = KeyedStateStore(self.state, f"count {self.way}")
        counts = store.reducing(StateDescriptor("count", int, int), operator.add)
        for key, wanted in self.expected.items():
            store.set_key(key)
            if counts.get() != wanted:
                raise SystemExit(f"{self.backend}, {self.way}: the counter of {key} is wrong")


def measure(folder: Path, keys: int, seconds: float) -> list[Measured]:
    """All backends in all ways, by turns until each had so many seconds."""
    backends: dict[str, Callable[[], StateBackend]] = {
        "memory": InMemoryStateBackend,
        "RocksDB": lambda: RocksDbStateBackend(folder / "rocksdb", fsync=0),
        "RocksDB, synced every batch": lambda: RocksDbStateBackend(folder / "synced", fsync=1),
    }
    chosen = random.Random(1)
    all_measured = []
    for name, make in backends.items():
        state = make()
        all_measured += [Measured(name, way, state) for way in (MANY, ONE)]
    for one in all_measured:
        one.fill(keys)
    deadline = time.perf_counter() + seconds * len(all_measured)
    while time.perf_counter() < deadline or all_measured[0].rounds < LEAST_ROUNDS:
        batches = [chosen.sample(range(keys), BATCH) for _ in range(BATCHES)]
        for one in all_measured:
            one.round(batches)
    for one in all_measured:
        one.check()
    return all_measured


def checkpointing(folder: Path, measured: list[Measured]) -> dict[str, float]:
    """Milliseconds and bytes of a first checkpoint, and of one after a single batch."""
    figures = {}
    groups = KeyGroupRange(0, GROUPS)
    for one in measured:
        if one.way != MANY or "synced" in one.backend:
            continue
        checkpoints = KeyedStateCheckpoints(open_checkpoint_storage(folder / f"checkpoints {one.backend}"))
        for epoch, what in enumerate(("first", "next")):
            before, started = checkpoints.written, time.perf_counter()
            checkpoints.save({groups: one.state}, epoch=epoch)
            figures[f"{one.backend}, {what} checkpoint, ms"] = (time.perf_counter() - started) * 1000
            figures[f"{one.backend}, {what} checkpoint, KiB"] = (checkpoints.written - before) / 1024
            one.total.add_many(range(10), [1] * 10)
            one.store.flush()
    return figures


def main() -> None:
    """Print the figures and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000, help="different keys")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each backend and way")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        measured = measure(Path(name), arguments.keys, arguments.seconds)
        checkpoints = checkpointing(Path(name), measured)
        for one in measured:
            one.state.close()
    print(f"updates/s of {arguments.keys:,} counters, batches of {BATCH:,}; the best of {measured[0].rounds} rounds")
    unmet = False
    for one in measured:
        limit = LIMITS.get((one.backend, one.way))
        verdict = "" if limit is None else f"  >= {limit:<10,}{'ok' if one.best >= limit else 'not met'}"
        unmet = unmet or (limit is not None and one.best < limit)
        print(f"{one.backend:30}{one.way:20}{one.best:>12,.0f}{verdict}")
    for what, figure in checkpoints.items():
        print(f"{what:50}{figure:>12,.1f}")
    RESULTS.parent.mkdir(exist_ok=True)
    updates = {f"{one.backend}, {one.way}": one.best for one in measured}
    written = {"keys": arguments.keys, "updates a second": updates, "checkpoints": checkpoints}
    RESULTS.write_text(json.dumps(written, indent=2))
    if unmet:
        raise SystemExit("a limit is not met")


if __name__ == "__main__":
    main()
