"""Random timers of process functions, with failures, checkpoints and crashes, beside plain sets that do the same.

A seed is a case: a number of instances, a backend, and what is done.
"""

from __future__ import annotations

import copy
import os
import random
import tempfile
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.checkpoint.keyed_state.checkpoints import KeyedStateCheckpoints
from weirflow.errors import UserCodeError
from weirflow.process import ProcessFunction, ProcessRunner
from weirflow.state import InMemoryStateBackend, KeyGroupRange, RocksDbStateBackend, StateDescriptor
from weirflow.testing import ManualClock

KEYS = (-300, -1, 0, 1, 2, 2**70)
KINDS = ("event", "processing")
STEPS = 25
# In memory where that is possible: opening a database waits for the disk many times.
FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def follow_ups(ts: int, kind: str) -> list[tuple[str, int, str]]:
    """What a timer does when it fires: nothing, register later, register now, delete, register of the other kind."""
    other = KINDS[kind == "event"]
    return {
        0: [("register", ts + 3, kind)],
        1: [("register", ts, kind)],
        2: [("delete", ts + 1, kind), ("register", ts + 2, kind)],
        3: [("register", ts - 2, kind), ("register", ts, other)],
    }.get(ts % 9, [])


class Scripted(ProcessFunction):
    """Does with its timers what rows and ``follow_ups`` say; emits what fires, and how many have for the key."""

    output = "key STRING, ts BIGINT, kind STRING, fired BIGINT"

    def open(self, ctx: Any) -> None:
        self.fired = ctx.value(StateDescriptor("fired", int, int))
        self.poisoned = ctx.value(StateDescriptor("poisoned", int, bool))

    def on_element(self, ctx: Any, _key: Any, row: Any) -> None:
        if row["do"] == "raise":
            raise ValueError(row["do"])
        if row["do"] == "poison":
            self.poisoned.set(True)
            ctx.timers.register(ctx.now, "processing")
        else:
            getattr(ctx.timers, row["do"])(row["ts"], row["kind"])

    def on_timer(self, ctx: Any, key: Any, ts: int, kind: Any) -> None:
        if self.poisoned.get():
            raise ValueError(ts)
        self.fired.set(self.fired.get(0) + 1)
        ctx.emit({"key": str(key), "ts": ts, "kind": kind, "fired": self.fired.get()})
        for do, at, which in follow_ups(ts, kind):
            getattr(ctx.timers, do)(at, which)


class Model:
    """What timers should be: sets of (time, key) of both kinds."""

    def __init__(self) -> None:
        self.timers: dict[str, set[tuple[int, int]]] = {kind: set() for kind in KINDS}
        self.fired: dict[int, int] = {}
        self.watermark: int | None = None

    def step(self, rows: list[dict[str, Any]], watermark: int | None, now: int) -> list[tuple[str, int, str, int]]:
        """Do what rows say, then fire; what fires, in order."""
        for row in rows:
            self._do(row["do"], row["ts"], row["kind"], row["key"])
        known = [one for one in (watermark, self.watermark) if one is not None]
        self.watermark = max(known, default=None)
        found = [] if self.watermark is None else self._fire("event", self.watermark)
        return found + self._fire("processing", now)

    def _do(self, do: str, ts: int, kind: str, key: int) -> None:
        change = self.timers[kind].add if do == "register" else self.timers[kind].discard
        change((ts, key))

    def _fire(self, kind: str, until: int) -> list[tuple[str, int, str, int]]:
        timers, found = self.timers[kind], []
        waiting = {one for one in timers if one[0] <= until}
        while waiting:
            first = min(waiting)
            waiting.discard(first)
            if first not in timers:
                continue
            timers.discard(first)
            ts, key = first
            self.fired[key] = self.fired.get(key, 0) + 1
            found.append((str(key), ts, kind, self.fired[key]))
            for do, at, which in follow_ups(ts, kind):
                self._do(do, at, which, key)
                if do == "register" and which == kind and ts < at <= until:
                    waiting.add((at, key))
        return found


class Subject:
    """A runner that can be saved, and be killed and restored to another number of instances."""

    def __init__(self, seed: int, opened: ExitStack) -> None:
        self.random = random.Random(seed)
        self.clock = ManualClock()
        self._opened = opened
        self._rocksdb = seed % 12 == 0
        self._folder = Path(opened.enter_context(tempfile.TemporaryDirectory(dir=FOLDER)))
        self._count = 0
        self._checkpoints = KeyedStateCheckpoints(open_checkpoint_storage("memory://"))
        self.runner = self._made(self._new)

    def save(self) -> None:
        """A checkpoint."""
        self._checkpoints = KeyedStateCheckpoints(open_checkpoint_storage("memory://"))
        self.runner.snapshot(self._checkpoints)

    def crash(self) -> None:
        """Go on from the last checkpoint, in other instances."""
        self.runner = self._made(self._restored)
        self.clock = ManualClock(self.runner.now)
        self.runner._clock = self.clock

    def _made(self, backend: Any) -> ProcessRunner:
        return ProcessRunner(
            Scripted(), key="key", parallelism=self.random.randint(1, 4), backend=backend, clock=self.clock
        )

    def _path(self) -> Path:
        self._count += 1
        return self._folder / str(self._count)

    def _new(self, _: KeyGroupRange) -> Any:
        return self._closing(RocksDbStateBackend(self._path(), fsync=0)) if self._rocksdb else InMemoryStateBackend()

    def _restored(self, groups: KeyGroupRange) -> Any:
        path = self._path() if self._rocksdb else None
        return self._closing(self._checkpoints.restore(groups, path=path, fsync=0))

    def _closing(self, backend: Any) -> Any:
        self._opened.callback(backend.close)
        return backend


def mismatch(seed: int) -> str | None:
    """Where timers differ from the model, or None."""
    with ExitStack() as opened:
        return _compared(seed, opened)


def _compared(seed: int, opened: ExitStack) -> str | None:
    subject, model = Subject(seed, opened), Model()
    rng, now = random.Random(seed), 0
    subject.save()
    saved = copy.deepcopy(model), now
    for step in range(STEPS):
        what = rng.choices(("batch", "fail", "save", "crash"), (12, 2, 2, 2))[0]
        if what == "save":
            subject.save()
            saved = copy.deepcopy(model), now
        elif what == "crash":
            subject.crash()
            model, now = copy.deepcopy(saved[0]), saved[1]
        else:
            rows = _rows(rng, now)
            if what == "fail":
                if not _fails(subject.runner, rows, rng.choice(("raise", "poison"))):
                    return f"seed {seed}, step {step}: the batch did not fail"
                continue
            passed = rng.choice((0, 0, 1, 7))
            subject.clock.advance(timedelta(milliseconds=passed))
            now += passed
            watermark = rng.choice((None, now + rng.randint(-10, 10)))
            expected = model.step(rows, None, now)
            found = _found(subject.runner.run(rows))
            if watermark is not None:
                expected += model.step([], watermark, now)
                found += _found(subject.runner.advance(watermark))
            if found != expected:
                return f"seed {seed}, step {step}: {found} should be {expected}"
    return None


def _rows(rng: random.Random, now: int) -> list[dict[str, Any]]:
    return [
        {
            "key": rng.choice(KEYS),
            "do": rng.choice(("register", "register", "delete")),
            "ts": now + rng.randint(-5, 15),
            "kind": rng.choice(KINDS),
        }
        for _ in range(rng.choice((0, 1, 4, 12)))
    ]


def _fails(runner: ProcessRunner, rows: list[dict[str, Any]], how: str) -> bool:
    """Whether a batch fails that does, in a row or in a timer."""
    try:
        runner.run([*rows, {"key": KEYS[-1], "do": how}])
    except UserCodeError:
        return True
    return False


def _found(result: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in result.rows.to_pylist()]
