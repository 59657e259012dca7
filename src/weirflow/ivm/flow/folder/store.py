"""``FlowStore``: the folder of a durable flow, with its checkpoints and its log."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from weirflow.checkpoint import CheckpointStorage, open_checkpoint_storage
from weirflow.checkpoint.storage.local.errors import os_errors
from weirflow.errors import EngineMissing, FlowError, FunctionMissing, HistoryGone, StorageError, WeirflowError
from weirflow.failpoints import failpoint
from weirflow.ivm.durability.checkpoints import Checkpoints
from weirflow.ivm.durability.checkup import IDENTITY, LOG
from weirflow.ivm.durability.log import Log, LogMark, sync_folder
from weirflow.ivm.durability.log_format import log_paths
from weirflow.ivm.durability.packs import FOLDER as PACKS
from weirflow.ivm.durability.records import (
    DefineSource,
    DefineView,
    DropRelation,
    Entry,
    ForceDiff,
    ReplaceView,
    Tick,
    decode_entry,
    encode_entry,
)
from weirflow.ivm.durability.remedy import remedy
from weirflow.ivm.flow.evolution.force import force_diff
from weirflow.ivm.flow.evolution.plan import restore
from weirflow.ivm.flow.evolution.rebuild import rebuild
from weirflow.ivm.flow.folder.entries import (
    entry_changes,
    entry_others,
    entry_position,
    entry_source,
    entry_view,
    manifest_of,
)
from weirflow.ivm.flow.folder.lock import FolderLock
from weirflow.ivm.flow.state import FlowState

if TYPE_CHECKING:
    from pathlib import Path

    from weirflow.ivm.compiler.view import RecomputeEngine
    from weirflow.ivm.durability.manifest import Manifest
    from weirflow.ivm.flow.outputs.history import History
    from weirflow.ivm.zset.batch import Batch
    from weirflow.observability.metrics import FlowMetrics

    OnTick = Callable[[int, Mapping[str, Batch | None]], None]

_log = logging.getLogger(__name__)

KEPT_CHECKPOINTS = 2
"""The log reaches back to the oldest of them: should the newest be damaged, the one before loses nothing."""


class FlowStore:
    """Keeps a flow in a folder. One process at a time may have it open.

    Args:
        folder: made if need be.
        flow: the flow's name.
        fsync: once in how many ticks the log is synced to the disk; 0 leaves it to the system.
        metrics: told of checkpoints.
    """

    def __init__(self, folder: Path, flow: str, *, fsync: int, metrics: FlowMetrics) -> None:
        self._folder = folder
        self._flow = flow
        lock: FolderLock | None = None
        try:
            with os_errors("open", folder):
                _make(folder)
                lock = FolderLock(folder, flow)
            self._lock = lock
            self._storage = open_checkpoint_storage(str(folder))
            self._checkpoints = Checkpoints(self._storage, metrics)
            self._identity = self._read_identity()
            self._log = Log(folder / "log", bytes.fromhex(self._identity), sync_every=fsync)
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        self._saved: Manifest | None = None
        self._fence = 1

    @property
    def folder(self) -> Path:
        """Where the flow is kept."""
        return self._folder

    @property
    def storage(self) -> CheckpointStorage:
        """The folder as a storage."""
        return self._storage

    @property
    def identity(self) -> str:
        """Tells this flow from all others, whatever they are called."""
        return self._identity

    def open(self, engine: RecomputeEngine | None, history: History) -> FlowState:
        """The flow as it was: the newest checkpoint, then the ticks of the log, remembered with what they did.

        Raises:
            StorageError: files are damaged, and so are those that could replace them.
            EngineMissing: a tick of the log needs Spark.
            FunctionMissing: a view calls a function that was not given.
        """
        state, record = self._restored(engine)
        history.forget(state.epoch)
        failpoint("restore.before_replay")
        for one in self._log.read(record):
            entry = decode_entry(one.payload, one.number, str(self._folder / "log"))
            try:
                self._replay(state, entry, history.append)
            except (EngineMissing, FunctionMissing):  # nothing is wrong with the files
                raise
            except WeirflowError as error:
                raise StorageError(
                    f"Record {one.number} of the log in {self._folder} cannot be applied again: {error.message}",
                    uri=str(self._folder),
                    hint=error.hint,
                ) from error
            failpoint("restore.in_replay")
        return state

    def replayed(self, engine: RecomputeEngine | None, after: int) -> Iterator[tuple[int, dict[str, Batch]]]:
        """What the ticks after an epoch did, worked out again beside the flow from a checkpoint and the log.

        Raises:
            HistoryGone: the log does not reach back so far.
            StorageError: files are damaged.
        """
        for epoch, changed in self.recalled(engine, after):
            yield epoch, _known(changed)

    def recalled(self, engine: RecomputeEngine | None, after: int) -> Iterator[tuple[int, Mapping[str, Batch | None]]]:
        """As ``replayed``, with None for views that began anew."""
        state, record = self._state_before(engine, after)
        ticks: list[tuple[int, Mapping[str, Batch | None]]] = []
        for one in self._log.records(record):
            entry = decode_entry(one.payload, one.number, str(self._folder / "log"))
            self._replay(state, entry, lambda epoch, changed: ticks.append((epoch, changed)))
            yield from (tick for tick in ticks if tick[0] > after)
            ticks.clear()

    def sync(self) -> None:
        """Make all entries survive a power failure."""
        self._log.sync()

    def append(self, entry: Entry, *, sync: bool = False) -> None:
        """Write an entry to the log; it survives the process when this returns, a power failure if ``sync``.

        What raises may have left a part of it, which ``rewind`` takes away.
        """
        self.require_owner()
        self._log.append(encode_entry(entry), sync=sync)

    def mark(self) -> LogMark:
        """Where the log ends now."""
        return self._log.mark()

    def rewind(self, mark: LogMark) -> None:
        """Take away what was appended after a mark. May be repeated; does not fail."""
        self._log.rewind(mark)

    def require_owner(self) -> None:
        """``FlowError`` in a process that was forked from the one that opened the flow: the flow stays with that."""
        if not self._lock.is_own:
            raise FlowError(
                f"The flow {self._flow!r} in {self._folder} belongs to the process {self._lock.owner}, which this one "
                "was forked from.",
                hint="tick it there; a child that needs the flow's rows reads a snapshot taken before the fork",
            )

    @property
    def unsaved(self) -> int:
        """How many entries the log has since the last checkpoint."""
        return self._log.last - (self._saved.record if self._saved else 0)

    @property
    def log_bytes(self) -> int:
        """Bytes of the log's files."""
        return self._log.nbytes

    def checkpoint(self, state: FlowState) -> Manifest:
        """Save what is new, begin another log file, and remove what no kept checkpoint needs."""
        if self._saved is not None and self._saved.record == self._log.last:
            return self._saved
        self._log.sync()
        manifest = manifest_of(
            state, flow=self._flow, identity=self._identity, record=self._log.last, fence=self._fence
        )
        self._saved = self._checkpoints.save(state.program.states(), manifest, compact=True)
        self._log.rotate()
        oldest = self._checkpoints.collect(KEPT_CHECKPOINTS)
        if oldest is not None:
            self._log.drop(oldest)
        return self._saved

    def close(self) -> None:
        """Sync the log and let others open the flow, also while forked children live; in those, only let go of it."""
        try:
            if self._lock.is_own:
                self._log.close()
            else:
                self._log.abandon()
        finally:
            self._lock.release()

    # Inner workings

    def _restored(self, engine: RecomputeEngine | None) -> tuple[FlowState, int]:
        """The newest checkpoint that is whole, and the last record in it; a new state if there is none at all."""
        damage: StorageError | None = None
        for name in reversed(self._checkpoints.manifests()):
            try:
                manifest = self._checkpoints.read(name)
                self._require_own(manifest)
                states = self._checkpoints.load(manifest)
            except StorageError as error:
                _log.warning("%s; trying the checkpoint before it", error.message)
                damage = damage or error
                continue
            if damage is None:
                self._saved = manifest
            self._fence = manifest.fence + 1
            return restore(manifest, states, None, engine).state, manifest.record
        if damage is not None:
            raise StorageError(damage.message, uri=damage.uri, hint=remedy(self._folder)) from damage
        if not log_paths(self._folder / LOG) and any(True for _ in self._storage.list(PACKS)):
            raise StorageError(
                f"The flow in {self._folder} has state, but no checkpoint and no log.",
                uri=self._storage.uri,
                hint=remedy(self._folder),
            )
        return FlowState(engine), 0

    def _state_before(self, engine: RecomputeEngine | None, epoch: int) -> tuple[FlowState, int]:
        """The newest state that is kept of an epoch or an earlier one, and the last record in it."""
        oldest = 0
        for name in reversed(self._checkpoints.manifests()):
            try:
                manifest = self._checkpoints.read(name)
                if manifest.epoch <= epoch:
                    return restore(manifest, self._checkpoints.load(manifest), None, engine).state, manifest.record
            except StorageError as error:
                _log.warning("%s; trying the checkpoint before it", error.message)
                continue
            oldest = manifest.epoch
        if self._log.first > 1:
            raise HistoryGone(
                f"The log of {self._flow!r} begins after epoch {oldest}.", oldest=oldest, hint="start from a snapshot"
            )
        return FlowState(engine), 0

    def _replay(self, state: FlowState, entry: Entry, on_tick: OnTick) -> None:
        match entry:
            case Tick():
                state.fill()
                changes = entry_changes(entry)
                outputs = state.step(changes)
                state.commit([])
                state.accept(state.epoch + 1, changes, entry.token, entry_position(entry))
                state.maintain(sum(len(one.rows) for one in changes.values()))
                _require_epoch(state, entry.epoch)
                on_tick(state.epoch, outputs | {name: one.rows for name, one in changes.items()})
            case DefineSource():
                state.add_source(entry_source(entry))
            case DefineView():
                state.add_view(entry.name, entry_view(entry))
            case ReplaceView():
                rebuilt = rebuild(state, entry.name, entry_view(entry), entry_others(entry, state.declared))
                state.become(rebuilt.state)
                _require_epoch(state, entry.epoch)
                on_tick(state.epoch, rebuilt.changed)
            case ForceDiff():
                rebuilt = force_diff(state, entry.view)
                begun = state.epoch
                state.become(rebuilt.state)
                _require_epoch(state, entry.epoch)
                if state.epoch > begun:
                    on_tick(state.epoch, rebuilt.changed)
            case DropRelation():
                state.drop(entry.name)

    def _read_identity(self) -> str:
        """What tells this flow's files from those of others; made with the flow."""
        where = f"{self._storage.uri}/{IDENTITY}"
        if not self._storage.exists(IDENTITY):
            if self._checkpoints.manifests() or log_paths(self._folder / LOG):
                raise StorageError(f"The file {where} is missing.", uri=where, hint=remedy(self._folder))
            self._storage.put(IDENTITY, uuid.uuid4().hex.encode())
        found = self._storage.get(IDENTITY).decode(errors="replace")
        try:
            return uuid.UUID(hex=found).hex
        except ValueError:
            raise StorageError(f"The file {where} is damaged.", uri=where, hint=remedy(self._folder)) from None

    def _require_own(self, manifest: Manifest) -> None:
        if manifest.identity != self._identity:
            raise StorageError(
                f"The checkpoint {manifest.name} in {self._folder} belongs to another flow.", uri=str(self._folder)
            )


def _make(folder: Path) -> None:
    """Make a folder, and those above it, that survive a power failure; only its owner may look into it."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
        sync_folder(one.parent)


def _require_epoch(state: FlowState, epoch: int) -> None:
    if state.epoch != epoch:
        raise FlowError(f"it is tick {epoch}, but the flow is at epoch {state.epoch}")


def _known(changed: Mapping[str, Batch | None]) -> dict[str, Batch]:
    """Without the views that began anew."""
    return {name: rows for name, rows in changed.items() if rows is not None}
