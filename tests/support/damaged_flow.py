"""A durable flow whose every byte is known, to be damaged anywhere: what can be salvaged is worked out by hand."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weirflow.ivm.flow import IncrementalFlow

if TYPE_CHECKING:
    import random
    from pathlib import Path

HEADER = 36
"""Bytes before the first record of a log file."""
DEFINITIONS = (
    lambda flow: flow.register_source("orders", "customer STRING, amount BIGINT"),
    lambda flow: flow.register_view("totals", "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer"),
    lambda flow: flow.register_view("large", "SELECT customer FROM totals WHERE total > 20"),
)


def tick(flow: IncrementalFlow, number: int) -> None:
    """The tick of a number."""
    rows = [{"customer": f"c{(number * 7 + place) % 5}", "amount": number + place} for place in range(2)]
    flow.tick("orders", rows, token=f"tick {number}")


def contents(flow: IncrementalFlow) -> dict[str, Counter[Any]]:
    """All rows of what is defined."""
    return {
        name: Counter(tuple(row.items()) for row in flow.snapshot(name).to_pylist())
        for name in sorted((*flow.sources, *flow.views))
    }


@dataclass(frozen=True)
class Written:
    """A record of the log: the file it is in, where it begins and ends there, and the flow after it."""

    file: str
    start: int
    end: int
    epoch: int
    contents: dict[str, Counter[Any]]


@dataclass
class Original:
    """A flow that was written, and what is known of its files.

    Attributes:
        path: where it is.
        records: all that were ever written, in order.
        checkpoints: for each manifest that is there, how many records are in it, and its packs.
        dropped: how many records are not in the log any more.
    """

    path: Path
    records: list[Written] = field(default_factory=list)
    checkpoints: dict[str, tuple[int, frozenset[str]]] = field(default_factory=dict)
    dropped: int = 0

    def files(self) -> list[str]:
        """The names of all files but the lock."""
        return names(self.path)


@dataclass(frozen=True)
class Damage:
    """A file that was changed from a byte on: one bit of it flipped, all behind it cut off, or the file deleted."""

    file: str
    kind: str
    at: int

    def apply(self, path: Path) -> bytes | None:
        """Do it; returns what the file is then, None if it is gone."""
        file = path / self.file
        data = bytearray(file.read_bytes())
        if self.kind == "delete":
            file.unlink()
            return None
        if self.kind == "cut":
            del data[self.at :]
        elif self.at < len(data):
            data[self.at] ^= 1 << (self.at % 8)
        file.write_bytes(data)
        return bytes(data)


def names(path: Path) -> list[str]:
    """The names of all files below a folder but the lock."""
    every = (str(one.relative_to(path)) for one in path.rglob("*") if one.is_file())
    return sorted(name for name in every if name != "lock")


def digests(path: Path) -> dict[str, str]:
    """Every file but the lock, with the digest of its bytes."""
    return {name: hashlib.sha256((path / name).read_bytes()).hexdigest() for name in names(path)}


def write(path: Path, *, ticks: int, checkpoints: tuple[int, ...] = (), fsync: int = 1) -> Original:
    """Write a flow with a sink, noting where each record lies."""
    original = Original(path)
    flow = IncrementalFlow("shop", path=path, fsync=fsync, checkpoint_every=0)
    sizes: dict[str, int] = {}

    def note() -> None:
        for file in sorted((path / "log").glob("*.log")):
            name, size = f"log/{file.name}", file.stat().st_size
            before = sizes.get(name, HEADER)
            if size > before:
                original.records.append(Written(name, before, size, flow.epoch, contents(flow)))
            sizes[name] = size

    for define in DEFINITIONS:
        define(flow)
        note()
    flow.sink("totals", lambda *_: None, name="told")
    for number in range(1, ticks + 1):
        tick(flow, number)
        note()
        if number in checkpoints:
            flow.checkpoint()
    if fsync:
        flow.close()
    else:
        flow._backend._sinks.close(lambda _: True)
        flow._backend._store._log.abandon()  # as if killed: what was not synced stays so
        flow._backend._store._lock.release()
    for file in sorted((path / "manifests").glob("*")):
        body = json.loads(file.read_bytes().partition(b"\n")[2])
        original.checkpoints[f"manifests/{file.name}"] = (body["record"], frozenset(body["packs"]))
    left = {str(file.relative_to(path)) for file in (path / "log").glob("*.log")}
    original.dropped = sum(record.file not in left for record in original.records)
    return original


def choose(original: Original, chosen: random.Random) -> Damage:
    """Some damage: every kind of file is as likely as any other, and so is every byte of a file."""
    kinds = sorted({name.partition("/")[0] for name in original.files()})
    kind = chosen.choice(kinds)
    file = chosen.choice([name for name in original.files() if name.partition("/")[0] == kind])
    size = (original.path / file).stat().st_size
    return Damage(file, chosen.choice(["flip", "flip", "cut", "cut", "delete"]), chosen.randrange(size))


def best(original: Original, damages: list[Damage]) -> int:
    """How many records can be salvaged at best: from a whole checkpoint, or none, and all whole records behind it."""
    hurt = {damage.file for damage in damages}
    bases = [record for name, (record, packs) in original.checkpoints.items() if name not in hurt and not packs & hurt]
    if not original.dropped:
        bases.append(0)
    return max((_reach(original, base, damages) for base in bases), default=0)


def _reach(original: Original, base: int, damages: list[Damage]) -> int:
    while base < len(original.records) and _is_whole(original.records[base], damages):
        base += 1
    return base


def _is_whole(record: Written, damages: list[Damage]) -> bool:
    for damage in damages:
        if damage.file != record.file:
            continue
        if damage.kind == "delete" or (damage.kind == "cut" and damage.at < max(record.end, HEADER)):
            return False
        # What lies behind a record that is not whole is not found.
        if damage.kind == "flip" and HEADER <= damage.at < record.end:
            return False
    return True
