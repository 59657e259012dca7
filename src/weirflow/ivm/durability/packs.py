"""Packs: files that hold many runs one behind the other, written once and mapped ever after."""

from __future__ import annotations

import hashlib
import uuid
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa

from weirflow.errors import StorageError
from weirflow.failpoints import failpoint
from weirflow.ivm.durability.manifest import Pack, RunRef
from weirflow.ivm.kernel.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from weirflow.checkpoint import CheckpointStorage

FOLDER = "packs/"
_ALIGNMENT = 64


class Packs:
    """The packs of one storage, and which runs are already in them."""

    def __init__(self, storage: CheckpointStorage) -> None:
        self._storage = storage
        self._known: WeakKeyDictionary[Run, RunRef] = WeakKeyDictionary()
        self._packs: dict[str, Pack] = {}

    def save(self, runs: Sequence[Run], epoch: int) -> list[RunRef]:
        """Write those runs that are in no pack yet, into one new pack; returns where each of all is."""
        fresh = [run for run in dict.fromkeys(runs) if run not in self._known]
        if fresh:
            failpoint("checkpoint.before_pack")
            self._write(fresh, f"{FOLDER}{epoch:020d}-{uuid.uuid4().hex}.pack")
        return [self._known[run] for run in runs]

    def describe(self, refs: Iterable[RunRef]) -> dict[str, Pack]:
        """The packs that hold these runs."""
        return {name: self._packs[name] for name in sorted({ref.pack for ref in refs})}

    def load(self, refs: Sequence[RunRef], packs: Mapping[str, Pack]) -> list[Run]:
        """The runs at these places; their packs are read whole once, to verify them.

        Raises:
            StorageError: a pack is missing or its bytes are not those that were written.
        """
        buffers = {name: self._verified(name, packs[name]) for name in sorted({ref.pack for ref in refs})}
        runs = []
        for ref in refs:
            run = Run.from_buffer(buffers[ref.pack].slice(ref.offset, ref.length), f"{self._storage.uri}/{ref.pack}")
            self._known[run] = ref
            runs.append(run)
        self._packs.update({name: packs[name] for name in buffers})
        return runs

    def _write(self, runs: Sequence[Run], name: str) -> None:
        places: list[tuple[int, int]] = []
        digest = hashlib.sha256()

        def chunks() -> Iterator[memoryview | bytes]:
            at = 0
            for run in runs:
                sink = pa.BufferOutputStream()
                run.save(sink)
                data = memoryview(sink.getvalue())
                places.append((at, len(data)))
                padding = bytes(-len(data) % _ALIGNMENT)
                for part in (data, padding):
                    digest.update(part)
                    yield part
                at += len(data) + len(padding)
                failpoint("checkpoint.in_pack")

        info = self._storage.put(name, chunks())
        self._packs[name] = Pack(info.size, digest.hexdigest())
        for run, (offset, length) in zip(runs, places, strict=True):
            self._known[run] = RunRef(name, offset, length)

    def _verified(self, name: str, pack: Pack) -> pa.Buffer:
        buffer = pa.py_buffer(self._storage.map(name))
        where = f"{self._storage.uri}/{name}"
        if buffer.size != pack.size or hashlib.sha256(buffer).hexdigest() != pack.sha256:
            raise StorageError(
                f"The file {where} is damaged: its bytes are not those that were written.",
                uri=where,
                hint="restore an earlier checkpoint: pass epoch=",
            )
        return buffer
