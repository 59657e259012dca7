"""The files of a partitioned flow as a task sees them: runs that are mapped once, rows on their way."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from weirflow.checkpoint import CheckpointStorage, open_checkpoint_storage
from weirflow.checkpoint.sealed import refused
from weirflow.ivm.durability.checkup import CHANGED
from weirflow.ivm.durability.packs import PackFiles
from weirflow.ivm.durability.parts import Parts
from weirflow.ivm.durability.records import decode_batches, encode_rows, write_stream
from weirflow.ivm.sharded.worker.reports import RowsRef, StateRefs
from weirflow.ivm.zset.batch import Batch

if TYPE_CHECKING:
    from weirflow.ivm.durability.manifest import Pack, RunRef
    from weirflow.ivm.kernel.runs.run import Run

ROWS = "rows/"
_REMEDY = "restore the flow's storage from a copy, or go back to its newest whole commit with 'weirflow flow repair'"


class FlowFiles:
    """The storage of one flow. Runs that are in use anywhere in this process are not opened again."""

    def __init__(self, uri: str) -> None:
        self.storage: CheckpointStorage = open_checkpoint_storage(uri)
        self.packs = PackFiles(self.storage, _REMEDY)
        self._runs: WeakValueDictionary[RunRef, Run] = WeakValueDictionary()

    def load(self, states: Sequence[StateRefs], packs: Mapping[str, Pack]) -> list[list[list[Run]]]:
        """The runs of several operators' states.

        Raises:
            StorageError: a file is missing or damaged.
        """
        wanted = {ref for state in states for part in state for ref in part}
        found = {ref: run for ref in wanted if (run := self._runs.get(ref)) is not None}
        missing = [ref for ref in wanted if ref not in found]
        found |= zip(missing, self.packs.load(missing, packs), strict=True)
        self._runs.update(found)
        return [[[found[ref] for ref in part] for part in state] for state in states]

    def save(self, states: Sequence[Sequence[Sequence[Run]]], epoch: int) -> tuple[list[StateRefs], dict[str, Pack]]:
        """Write the runs that are in no file yet; returns where all are, and the files."""
        runs = [run for state in states for part in state for run in part]
        refs = self.packs.save(runs, epoch)
        self._runs.update(zip(refs, runs, strict=True))
        places = iter(refs)
        return [[[next(places) for _ in part] for part in state] for state in states], self.packs.describe(refs)

    def read_rows(self, refs: Sequence[RowsRef]) -> Batch:
        """Rows on their way.

        Raises:
            StorageError: their file is missing or damaged.
        """
        return Batch.concat([batch for ref in refs for batch in self._read(ref)])

    def write_rows(self, rows: Batch, epoch: int, inline: int) -> RowsRef:
        """Put rows into a reference, or a file if they are many."""
        if rows.nbytes <= inline:
            data = encode_rows(rows)
            if len(data) <= inline:
                return RowsRef(len(rows), data=data)
        return self.write_file([rows], epoch)

    def write_file(self, batches: Sequence[Batch], epoch: int) -> RowsRef:
        """Put rows into a file."""
        parts = Parts()
        write_stream(batches, parts)
        name = f"{ROWS}{epoch:020d}-{uuid.uuid4().hex}.arrow"
        self.storage.put(name, iter(parts.views))
        digest = hashlib.sha256()
        for view in parts.views:
            digest.update(view)
        return RowsRef(sum(map(len, batches)), file=name, sha256=digest.hexdigest())

    def _read(self, ref: RowsRef) -> list[Batch]:
        if ref.data is not None:
            return decode_batches(ref.data)
        assert ref.file is not None
        data = self.storage.map(ref.file)
        if hashlib.sha256(data).hexdigest() != ref.sha256:
            where = f"{self.storage.uri}/{ref.file}"
            raise refused(where, CHANGED, _REMEDY)
        return decode_batches(data)


@lru_cache(maxsize=32)
def flow_files(uri: str) -> FlowFiles:
    """The files of a flow, shared by all tasks of this process."""
    return FlowFiles(uri)
