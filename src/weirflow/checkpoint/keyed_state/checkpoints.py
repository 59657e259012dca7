"""``KeyedStateCheckpoints``: consistent states of operators in a storage; saved, listed, restored, collected."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from weirflow.arguments import Count, Folder, Positive, checked
from weirflow.checkpoint.keyed_state.files import StateFiles
from weirflow.checkpoint.keyed_state.manifest import EARLIER, StateManifest
from weirflow.checkpoint.keyed_state.parts import restore_parts, save_part
from weirflow.checkpoint.sealed import refused, seal, unseal
from weirflow.errors import ConfigError, ObjectExists, ObjectNotFound, StorageError

if TYPE_CHECKING:
    from weirflow.checkpoint.storage.contract import CheckpointStorage
    from weirflow.state import KeyGroupRange, StateBackend

_MANIFESTS = "state/manifests/"
_FILES = "state/files/"
_SUFFIX = ".json"


@checked
class KeyedStateCheckpoints:
    """Checkpoints of keyed state. One writer at a time; readers any time.

    A checkpoint is first its files, then its manifest, put if absent: it is there when the manifest is, whole. Files
    that an earlier checkpoint has are not written again: the data files of RocksDB, and the key groups of other
    backends that have not changed.

    Args:
        storage: where they are.
        fence: the token of this writer, kept in what it writes.
    """

    def __init__(self, storage: CheckpointStorage, *, fence: Positive = 1) -> None:
        self._storage = storage
        self._fence = fence
        self._files = StateFiles(storage, _FILES)
        self._tried: dict[int, bytes] = {}

    @property
    def written(self) -> int:
        """Bytes of all files that were written here."""
        return self._files.written

    def save(self, backends: Mapping[KeyGroupRange, StateBackend], *, epoch: Count) -> StateManifest:
        """Save the state of all key groups, as it is now.

        Args:
            backends: of all instances, each with the range of key groups it has.
            epoch: of the checkpoint; greater than those before.

        Raises:
            ConfigError: there is no number for the epoch, or the ranges leave out or repeat key groups.
            StorageError: the storage failed, or another writer has published the epoch. The checkpoint is not there.
        """
        require_whole(backends)
        parts = [save_part(self._files, groups, backends[groups]) for groups in sorted(backends)]
        manifest = StateManifest(epoch, self._fence, parts)
        data = seal(manifest)
        tried, self._tried = self._tried.get(epoch), {epoch: data}
        try:
            self._storage.put_if_absent(_name(epoch), data)
        except ObjectExists:
            # A put that was repeated may find its own first attempt, or that of a call that an exception ended.
            if self._storage.get(_name(epoch)) not in (data, tried):
                raise StorageError(
                    f"There is another checkpoint of epoch {epoch} at {self._storage.uri}.",
                    uri=f"{self._storage.uri}/{_name(epoch)}",
                    hint="one process at a time may write checkpoints; use a later epoch",
                ) from None
            return self.find(epoch)
        self._tried = {}
        return manifest

    def epochs(self) -> list[int]:
        """The epochs of all checkpoints, oldest first."""
        return [int(Path(info.name).stem) for info in self._storage.list(_MANIFESTS)]

    def find(self, epoch: Count | None = None) -> StateManifest:
        """The checkpoint of an epoch, or the newest.

        Raises:
            ObjectNotFound: there is none.
            StorageError: its manifest is damaged.
        """
        epochs = self.epochs()
        if not epochs or (epoch is not None and epoch not in epochs):
            what = "no checkpoint" if epoch is None else f"no checkpoint of epoch {epoch}"
            raise ObjectNotFound(
                f"There is {what} of keyed state at {self._storage.uri}.",
                uri=self._storage.uri,
                hint=f"there are {', '.join(map(str, epochs))}" if epochs else None,
            )
        chosen = epochs[-1] if epoch is None else epoch
        where = f"{self._storage.uri}/{_name(chosen)}"
        manifest = unseal(self._storage.get(_name(chosen)), StateManifest, where, EARLIER)
        if manifest.epoch != chosen:
            raise refused(where, f"it is that of epoch {manifest.epoch}", EARLIER)
        return manifest

    def restore(
        self, groups: KeyGroupRange, *, epoch: Count | None = None, path: Folder | None = None, fsync: Count = 1
    ) -> StateBackend:
        """A new backend with the state of some key groups, whatever backends and ranges it was saved from.

        Nothing is tried in place of a checkpoint that is damaged: choose an earlier one by its epoch.

        Args:
            groups: which the new backend shall have.
            epoch: which checkpoint; the newest without it.
            path: where to put a RocksDbStateBackend; without it, the state is in memory.
            fsync: as for a RocksDbStateBackend.

        Raises:
            ObjectNotFound: there is no such checkpoint.
            StorageError: a file of it is missing or damaged; the error names it. Nothing is at the path.
            StateError: something is at the path already.
        """
        manifest = self.find(epoch)
        return restore_parts(
            self._files, manifest.parts, groups, None if path is None else Path(path).absolute(), fsync
        )

    def collect(self, keep: Positive) -> None:
        """Delete all but the newest ``keep`` checkpoints, and the files that none of these needs.

        Raises:
            ConfigError: nothing would be kept.
            StorageError: one that is to be kept cannot be read; nothing was deleted.
        """
        epochs = self.epochs()
        kept = [self.find(epoch) for epoch in epochs[-keep:]]
        for epoch in epochs[:-keep]:
            self._storage.delete(_name(epoch))
        self._files.collect(ref for manifest in kept for part in manifest.parts for ref in part.files.values())


def require_whole(backends: Mapping[KeyGroupRange, StateBackend]) -> None:
    """Refuse ranges that leave out or repeat key groups; ``ConfigError``."""
    at = 0
    for groups in sorted(backends):
        if groups.first != at:
            raise ConfigError(f"The key groups {groups} do not follow group {at - 1}.", hint="save all key groups once")
        at = groups.end
    if at == 0:
        raise ConfigError("There is no state to save.", hint="give the backend of each range of key groups")


def _name(epoch: int) -> str:
    return f"{_MANIFESTS}{epoch:020d}{_SUFFIX}"
