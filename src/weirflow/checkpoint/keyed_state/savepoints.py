"""``Savepoints``: states of a job's operators that somebody gave a name, each with files of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from weirflow.arguments import Count, Folder, Name, checked
from weirflow.checkpoint.keyed_state.checkpoints import require_whole
from weirflow.checkpoint.keyed_state.manifest import EARLIER, FileRef, StatePart
from weirflow.checkpoint.keyed_state.parts import restore_parts, save_part, stored_in
from weirflow.checkpoint.named import NamedState, NamedStateFiles
from weirflow.checkpoint.sealed import FORMAT
from weirflow.state.dry_run import stored_versions

if TYPE_CHECKING:
    from weirflow.state import KeyGroupRange, StateBackend


class SavepointSlot(msgspec.Struct, frozen=True):
    """The values of one version in one slot: how many, and their bytes with those of their keys."""

    operator: str
    slot: str
    kind: str
    version: int
    values: int
    size: int


class Savepoint(NamedState, frozen=True):
    """A savepoint: what it is called, when it was made, and what is in it."""

    parts: list[StatePart]
    slots: list[SavepointSlot]
    format: int = FORMAT

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum({ref.object: ref.size for ref in self.files}.values())

    @property
    def files(self) -> list[FileRef]:
        """All its files."""
        return [ref for part in self.parts for ref in part.files.values()]

    def describe(self) -> str:
        """What is in it, for people: a line for each slot and version."""
        rows = [
            ("operator", "slot", "kind", "version", "values", "bytes"),
            *(
                (one.operator, one.slot, one.kind, str(one.version), f"{one.values:,}", f"{one.size:,}")
                for one in self.slots
            ),
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([f"savepoint {self.name}: {len(self.parts)} parts, {self.size:,} bytes", *lines])


@checked
class Savepoints(NamedStateFiles[Savepoint]):
    """The savepoints in a storage."""

    _folder = "savepoints/"
    _called = "savepoint"
    _remedy = EARLIER
    _kind = Savepoint

    def create(self, name: Name, backends: Mapping[KeyGroupRange, StateBackend]) -> Savepoint:
        """Save the state of all key groups, as it is now, under a name.

        Raises:
            ConfigError: the name cannot be used, or the ranges leave out or repeat key groups.
            ObjectExists: there is a savepoint of that name; it is untouched.
            StorageError: the storage failed; the savepoint is not there.
        """
        require_whole(backends)
        self._require_free(name)
        files = self._files(name)
        parts = [save_part(files, groups, backends[groups]) for groups in sorted(backends)]
        return self._publish(Savepoint(name, datetime.now(UTC), parts, _slots(backends)))

    def restore(
        self, name: Name, groups: KeyGroupRange, *, path: Folder | None = None, fsync: Count = 1
    ) -> StateBackend:
        """A new backend with the state of some key groups; see ``KeyedStateCheckpoints.restore``."""
        savepoint = self.get(name)
        target = None if path is None else Path(path).absolute()
        return restore_parts(self._files(name), savepoint.parts, groups, target, fsync)

    def _moved(self, savepoint: Savepoint, name: str, move: Callable[[FileRef], FileRef]) -> Savepoint:
        parts = [
            msgspec.structs.replace(part, files={at: move(ref) for at, ref in part.files.items()})
            for part in savepoint.parts
        ]
        return msgspec.structs.replace(savepoint, name=name, parts=parts)


def _slots(backends: Mapping[KeyGroupRange, StateBackend]) -> list[SavepointSlot]:
    """What is in all backends together; it reads everything."""
    found: dict[tuple[str, str, str, int], tuple[int, int]] = {}
    for backend in backends.values():
        with closing(stored_in(backend).snapshot()) as snapshot:
            for operator in snapshot.operators():
                for (slot, version), (values, size) in stored_versions(snapshot, operator).items():
                    which = (operator, slot.name, slot.kind, version)
                    before = found.get(which, (0, 0))
                    found[which] = (before[0] + values, before[1] + size)
    return [SavepointSlot(*which, *found[which]) for which in sorted(found)]
