"""``Checkpoints``: the consistent states of one flow in a storage; saved, listed, restored, collected."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from weirflow.errors import ObjectExists, ObjectNotFound, StorageError
from weirflow.failpoints import failpoint
from weirflow.ivm.durability.manifest import MANIFESTS, Manifest, decode_manifest, place_of
from weirflow.ivm.durability.packs import FOLDER as PACKS
from weirflow.ivm.durability.packs import PackFiles, epoch_of

if TYPE_CHECKING:
    from weirflow.checkpoint import CheckpointStorage
    from weirflow.ivm.kernel.runs.run import Run
    from weirflow.observability.metrics import FlowMetrics

_log = logging.getLogger(__name__)

States = dict[str, list[list["Run"]]]
"""For each operator's fingerprint, the runs of each of its states."""


class Checkpoints:
    """Checkpoints of a flow. One writer at a time; readers any time.

    A checkpoint is first its packs, then its manifest, put if absent: it is there when the manifest is, whole.

    Args:
        storage: where they are.
        metrics: told of every checkpoint that is saved or could not be.
    """

    def __init__(self, storage: CheckpointStorage, metrics: FlowMetrics) -> None:
        self._storage = storage
        self._metrics = metrics
        self._packs = PackFiles(storage)
        self._unusable: set[str] = set()

    @property
    def uri(self) -> str:
        """Where they are."""
        return self._storage.uri

    def save(
        self,
        states: Mapping[str, Sequence[Sequence[Run]]],
        manifest: Manifest,
        *,
        full: bool = False,
        compact: bool = False,
    ) -> Manifest:
        """Write what is not in the storage yet, then the manifest with its places filled in; returns it.

        With ``full`` every run is written again, so that the checkpoint needs no older file. With ``compact`` runs move
        out of packs that hold mostly what is not needed any more, which pays where older checkpoints are collected.
        """
        started = time.perf_counter()
        if full:
            self._packs = PackFiles(self._storage)
        before = self._packs.written
        try:
            complete = self._save(states, manifest, compact=compact)
        except BaseException:
            self._metrics.checkpoint_failed()
            raise
        self._metrics.checkpoint(time.perf_counter() - started, self._packs.written - before)
        return complete

    def _save(self, states: Mapping[str, Sequence[Sequence[Run]]], manifest: Manifest, *, compact: bool) -> Manifest:
        runs = [run for state in states.values() for part in state for run in part]
        refs = iter(self._packs.save(runs, manifest.epoch, compact=compact))
        places = {key: [[next(refs) for _ in part] for part in state] for key, state in states.items()}
        used = self._packs.describe(ref for state in places.values() for part in state for ref in part)
        complete = msgspec.structs.replace(manifest, states=places, packs=used)
        self.publish(complete)
        return complete

    def publish(self, complete: Manifest) -> None:
        """Put a manifest whose files are there: from then on there is the checkpoint."""
        failpoint("checkpoint.before_manifest_put")
        try:
            self._storage.put_if_absent(complete.name, complete.encode())
        except ObjectExists:
            self._replace_or_refuse(complete)
        failpoint("checkpoint.after_manifest_put")

    def manifests(self) -> list[str]:
        """The names of all manifests, oldest first."""
        return [info.name for info in self._storage.list(MANIFESTS) if place_of(info.name) is not None]

    def next_number(self, epoch: int) -> int:
        """What tells another checkpoint of an epoch from those that are there."""
        return sum(_epoch(name) == epoch for name in self.manifests())

    def read(self, name: str) -> Manifest:
        """A manifest by name; ``StorageError`` if it cannot be used."""
        failpoint("restore.before_manifest")
        try:
            return decode_manifest(self._storage.get(name), name, self._storage.uri)
        except StorageError:
            self._unusable.add(name)
            raise

    def find(self, epoch: int | None) -> Manifest:
        """The manifest of an epoch, or the newest.

        Raises:
            ObjectNotFound: there is none.
            StorageError: it is damaged.
        """
        names = [name for name in self.manifests() if epoch is None or _epoch(name) == epoch]
        if not names:
            what = "no checkpoint" if epoch is None else f"no checkpoint of epoch {epoch}"
            known = ", ".join(str(_epoch(name)) for name in self.manifests())
            raise ObjectNotFound(
                f"There is {what} at {self.uri}.", uri=self.uri, hint=f"there are {known}" if known else None
            )
        return self.read(names[-1])

    def load(self, manifest: Manifest) -> States:
        """The states of a checkpoint, verified and mapped.

        Raises:
            StorageError: a file of it is missing or damaged.
        """
        failpoint("restore.before_packs")
        try:
            return self._load(manifest)
        except StorageError:
            self._unusable.add(manifest.name)
            raise

    def load_rows(self, manifest: Manifest) -> dict[str, list[Run]]:
        """The runs of the sources and views of a checkpoint of a flow in shards; fails like ``load``."""
        assert manifest.shards is not msgspec.UNSET
        rows = manifest.shards.rows
        found = self.load(msgspec.structs.replace(manifest, states={name: [one.runs] for name, one in rows.items()}))
        return {name: runs for name, (runs,) in found.items()}

    def load_held(self, manifest: Manifest) -> States:
        """The state of operators, by their marks, of a checkpoint of a flow in shards; fails like ``load``."""
        assert manifest.shards is not msgspec.UNSET
        held = manifest.shards.held
        return self.load(msgspec.structs.replace(manifest, states={mark: one.states for mark, one in held.items()}))

    def _load(self, manifest: Manifest) -> States:
        refs = [ref for state in manifest.states.values() for part in state for ref in part]
        unlisted = {ref.pack for ref in refs} - manifest.packs.keys()
        if unlisted:
            raise StorageError(f"The checkpoint {manifest.name} does not list {min(unlisted)}.", uri=self.uri)
        try:
            runs = iter(self._packs.load(refs, manifest.packs))
        except ObjectNotFound as error:
            raise StorageError(
                f"A file of the checkpoint {manifest.name} is missing: {error.message}",
                uri=self.uri,
                hint="restore an earlier checkpoint: pass epoch=",
            ) from error
        return {key: [[next(runs) for _ in part] for part in state] for key, state in manifest.states.items()}

    def collect(self, keep: int) -> int | None:
        """Delete what is older than the newest ``keep`` manifests that are whole, and the packs that nobody needs.

        Returns the last record of the oldest manifest that is left, whole or not; None if there is none. A manifest in
        between that cannot be read is reported and left, with all packs that it may have named.
        """
        names = self.manifests()
        whole: list[Manifest] = []
        oldest, damaged = "", -1
        while names and len(whole) < keep:
            oldest = names.pop()
            try:
                whole.append(self.read(oldest))
            except StorageError as error:
                _log.warning("%s It is left as it is, and so is all that it may need.", error.message)
                damaged = max(damaged, _epoch(oldest))
        for name in names:
            failpoint("collect.before_manifest_delete")
            self._storage.delete(name)
        needed = {pack for manifest in whole for pack in manifest.packs}
        for info in self._storage.list(PACKS):
            epoch = epoch_of(info.name)
            if info.name not in needed and epoch is not None and epoch > damaged:
                failpoint("collect.before_pack_delete")
                self._storage.delete(info.name)
        return _place(oldest)[1] if oldest else None

    def _replace_or_refuse(self, manifest: Manifest) -> None:
        """A put that was repeated may find its own first attempt, and a checkpoint made again the one it is made for.

        Raises:
            StorageError: what is there is another writer's.
        """
        try:
            found = self.read(manifest.name).encode()
        except StorageError as error:
            _log.warning("%s It is replaced by one that is whole.", error.message)
        else:
            if found == manifest.encode():
                return
            if manifest.name not in self._unusable:
                raise StorageError(
                    f"Another writer has published the checkpoint {manifest.name} at {self.uri}.",
                    uri=self.uri,
                    hint="one process at a time may run a flow",
                )
        self._storage.put(manifest.name, manifest.encode())
        self._unusable.discard(manifest.name)


def _place(name: str) -> tuple[int, int]:
    found = place_of(name)
    assert found is not None  # only such names are listed
    return found


def _epoch(name: str) -> int:
    return _place(name)[0]
