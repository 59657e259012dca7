"""Packs: files that hold many runs one behind the other, written once and mapped ever after."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa

from weirflow.errors import StorageError
from weirflow.failpoints import failpoint
from weirflow.ivm.durability.manifest import Pack, RunRef
from weirflow.ivm.durability.parts import Parts
from weirflow.ivm.kernel.runs.run import Run

if TYPE_CHECKING:
    from weirflow.checkpoint import CheckpointStorage

FOLDER = "packs/"
_NAME = re.compile(r"packs/(\d{20})-[0-9a-f]{32}\.pack")
_ALIGNMENT = 64
# A pack of which less is in use is sparse.
_SPARSE = 0.5
# Bytes that a checkpoint may move however little it writes.
_LEAST_MOVED = 64 << 20


class PackFiles:
    """The packs of one storage, and which runs are already in them; ``remedy`` is what to do about damaged ones."""

    def __init__(self, storage: CheckpointStorage, remedy: str = "restore an earlier checkpoint: pass epoch=") -> None:
        self._storage = storage
        self._remedy = remedy
        self._known: WeakKeyDictionary[Run, RunRef] = WeakKeyDictionary()
        self._packs: dict[str, Pack] = {}
        self.written = 0
        """Bytes of all packs that were written here."""
        self._allowance = 0

    def save(self, runs: Sequence[Run], epoch: int, *, compact: bool = False) -> list[RunRef]:
        """Write those runs that are in no pack yet, into one new pack; returns where each of all is.

        With ``compact`` runs also move out of packs that are less than half in use, into a pack of their own: old runs
        live long, new ones do not. A pack that is left by all its runs is for the caller to delete.
        """
        different = list(dict.fromkeys(runs))
        fresh = [run for run in different if run not in self._known]
        before = self.written
        if fresh:
            failpoint("checkpoint.before_pack")
            self._write(fresh, epoch, "checkpoint.in_pack")
        moved = self._movable(different, self.written - before) if compact else []
        if moved:
            failpoint("compact.before_pack")
            self._write(moved, epoch, "compact.in_pack")
            failpoint("compact.after_pack")
        used = {ref.pack for ref in self._known.values()}
        self._packs = {name: pack for name, pack in self._packs.items() if name in used}
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

    def _movable(self, runs: Sequence[Run], written: int) -> list[Run]:
        """The runs to move now, those of the emptiest packs first.

        Moving a byte frees another one, so moving as much as is newly written keeps up with any churn. What is left
        over for want of allowance is moved by a later checkpoint: allowance that was too small for a run adds up.
        """
        held: dict[str, list[Run]] = {}
        for run in runs:
            held.setdefault(self._known[run].pack, []).append(run)
        used = {name: sum(_padded(self._known[run].length) for run in inside) for name, inside in held.items()}
        sparse = sorted((used[name] / self._packs[name].size, name) for name in held)
        waiting = [run for share, name in sparse if share < _SPARSE for run in held[name]]
        self._allowance += max(_LEAST_MOVED, written)
        moved: list[Run] = []
        for run in waiting:
            size = _padded(self._known[run].length)
            if size > self._allowance:
                return moved
            self._allowance -= size
            moved.append(run)
        self._allowance = 0
        return moved

    def _write(self, runs: Sequence[Run], epoch: int, in_pack: str) -> None:
        name = f"{FOLDER}{epoch:020d}-{uuid.uuid4().hex}.pack"
        places: list[tuple[int, int]] = []
        digest = hashlib.sha256()

        def chunks() -> Iterator[memoryview]:
            at = 0
            for run in runs:
                sink = Parts()
                run.save(sink)
                length = sink.nbytes
                places.append((at, length))
                for part in (*sink.views, memoryview(bytes(_padded(length) - length))):
                    digest.update(part)
                    yield part
                at += _padded(length)
                failpoint(in_pack)

        info = self._storage.put(name, chunks())
        self._packs[name] = Pack(info.size, digest.hexdigest())
        self.written += info.size
        for run, (offset, length) in zip(runs, places, strict=True):
            self._known[run] = RunRef(name, offset, length)

    def _verified(self, name: str, pack: Pack) -> pa.Buffer:
        buffer = pa.py_buffer(self._storage.map(name))
        where = f"{self._storage.uri}/{name}"
        if buffer.size != pack.size or hashlib.sha256(buffer).hexdigest() != pack.sha256:
            raise StorageError(
                f"The file {where} is damaged: its bytes are not those that were written.",
                uri=where,
                hint=self._remedy,
            )
        return buffer


def epoch_of(name: str) -> int | None:
    """The epoch of the checkpoint that wrote a pack, by its name; None for the name of anything else."""
    found = _NAME.fullmatch(name)
    return None if found is None else int(found[1])


def _padded(length: int) -> int:
    """How many bytes a run of this length takes in a pack."""
    return length + -length % _ALIGNMENT
