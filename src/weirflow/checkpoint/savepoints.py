"""``Savepoints``: states of a job's operators that somebody gave a name, each with files of its own."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from weirflow.checkpoint.keyed_state import require_whole
from weirflow.checkpoint.names import check_name
from weirflow.checkpoint.sealed import FORMAT, refused, seal, unseal
from weirflow.checkpoint.state_files import StateFiles
from weirflow.checkpoint.state_manifest import EARLIER, FileRef, StatePart
from weirflow.checkpoint.state_parts import restore_parts, save_part, stored_in
from weirflow.errors import ConfigError, ObjectExists, ObjectNotFound, did_you_mean
from weirflow.state.dry_run import stored_versions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weirflow.checkpoint.storage import CheckpointStorage
    from weirflow.state import KeyGroupRange, StateBackend

_FOLDER = "savepoints/"
_MANIFEST = "savepoint.json"


class SavepointSlot(msgspec.Struct, frozen=True):
    """The values of one version in one slot: how many, and their bytes with those of their keys."""

    operator: str
    slot: str
    kind: str
    version: int
    values: int
    size: int


class Savepoint(msgspec.Struct, frozen=True):
    """A savepoint: what it is called, when it was made, and what is in it."""

    name: str
    created: datetime
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


class Savepoints:
    """The savepoints in a storage.

    A savepoint is there when its manifest is, which is put if absent behind its files. It shares no file with
    checkpoints or other savepoints.
    """

    def __init__(self, storage: CheckpointStorage) -> None:
        self._storage = storage

    def create(self, name: str, backends: Mapping[KeyGroupRange, StateBackend]) -> Savepoint:
        """Save the state of all key groups, as it is now, under a name.

        Raises:
            ConfigError: the name cannot be used, or the ranges leave out or repeat key groups.
            ObjectExists: there is a savepoint of that name; it is untouched.
            StorageError: the storage failed; the savepoint is not there.
        """
        require_whole(backends)
        manifest = _manifest(name)
        if self._storage.exists(manifest):
            raise self._exists(name)
        files = self._files(name)
        parts = [save_part(files, groups, backends[groups]) for groups in sorted(backends)]
        return self._publish(Savepoint(name, datetime.now(UTC), parts, _slots(backends)))

    def list(self) -> list[Savepoint]:
        """All savepoints, by name.

        Raises:
            StorageError: the manifest of one is damaged.
        """
        names = [info.name.split("/")[1] for info in self._storage.list(_FOLDER) if info.name.endswith("/" + _MANIFEST)]
        return [self.get(name) for name in names]

    def get(self, name: str) -> Savepoint:
        """A savepoint by name.

        Raises:
            ObjectNotFound: there is none of that name.
            StorageError: its manifest is damaged.
        """
        where = f"{self._storage.uri}/{_manifest(name)}"
        try:
            data = self._storage.get(_manifest(name))
        except ObjectNotFound:
            names = [info.name.split("/")[1] for info in self._storage.list(_FOLDER)]
            raise ObjectNotFound(
                f"There is no savepoint {name!r} at {self._storage.uri}.", uri=where, hint=did_you_mean(name, names)
            ) from None
        savepoint = unseal(data, Savepoint, where, EARLIER)
        if savepoint.name != name:
            raise refused(where, f"it is that of {savepoint.name!r}", EARLIER)
        return savepoint

    def restore(
        self, name: str, groups: KeyGroupRange, *, path: str | Path | None = None, fsync: int = 1
    ) -> StateBackend:
        """A new backend with the state of some key groups; see ``KeyedStateCheckpoints.restore``."""
        savepoint = self.get(name)
        target = None if path is None else Path(path).absolute()
        return restore_parts(self._files(name), savepoint.parts, groups, target, fsync)

    def delete(self, name: str) -> None:
        """Remove a savepoint and its files. That it does not exist is no error."""
        self._storage.delete(_manifest(name))
        self._files(name).collect(())

    def copy(self, name: str, to: CheckpointStorage, *, new_name: str | None = None) -> Savepoint:
        """Copy a savepoint to another storage, or to another name; every byte is verified.

        Raises:
            ObjectNotFound: there is none of that name.
            ObjectExists: there is one where it shall go; it is untouched.
            StorageError: a file is missing or damaged; there is no copy.
        """
        savepoint, target = self.get(name), Savepoints(to)
        wanted = name if new_name is None else new_name
        if to.exists(_manifest(wanted)):
            raise target._exists(wanted)
        source, files = self._files(name), target._files(wanted)
        parts = [
            msgspec.structs.replace(part, files={at: source.copy_to(files, ref) for at, ref in part.files.items()})
            for part in savepoint.parts
        ]
        return target._publish(msgspec.structs.replace(savepoint, name=wanted, parts=parts))

    def _publish(self, savepoint: Savepoint) -> Savepoint:
        try:
            self._storage.put_if_absent(_manifest(savepoint.name), seal(savepoint))
        except ObjectExists:
            raise self._exists(savepoint.name) from None
        return savepoint

    def _files(self, name: str) -> StateFiles:
        return StateFiles(self._storage, f"{_FOLDER}{name}/files/")

    def _exists(self, name: str) -> ObjectExists:
        where = f"{self._storage.uri}/{_manifest(name)}"
        return ObjectExists(
            f"There is a savepoint {name!r} at {self._storage.uri} already.", uri=where, hint="use another name"
        )


def _manifest(name: str) -> str:
    if "/" in name:
        raise ConfigError(f"{name!r} cannot be the name of a savepoint: it has a slash.")
    return check_name(f"{_FOLDER}{name}/{_MANIFEST}")


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
