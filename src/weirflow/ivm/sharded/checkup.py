"""What of a flow in shards is whole: every commit and the files it needs; how to go back to the newest such commit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from weirflow.errors import ObjectNotFound, StorageError
from weirflow.ivm.durability.checkup import CHANGED, MISSING, CheckedFile, Lost, outcome, reason_of
from weirflow.ivm.durability.sink_position import SINKS, decode_position, sink_name
from weirflow.ivm.flow.folder.repair import Repair
from weirflow.ivm.sharded.commits import COMMITS, PENDING, Commit, CommitFiles, read_pending

if TYPE_CHECKING:
    from weirflow.checkpoint import CheckpointStorage


@dataclass(frozen=True)
class CheckedCommit:
    """A commit.

    Attributes:
        name: its file.
        commit: what is in it; None if that cannot be read.
        trouble: what is wrong with the file.
        state_trouble: what is wrong with a file that holds the flow's state or definition.
        rows_trouble: what is wrong with a file that holds what the tick changed.
    """

    name: str
    commit: Commit | None
    trouble: str | None = None
    state_trouble: str | None = None
    rows_trouble: str | None = None

    @property
    def is_usable(self) -> bool:
        """Whether the flow can go on from it."""
        return self.trouble is None and self.state_trouble is None

    @property
    def is_whole(self) -> bool:
        """Whether all that it names is there."""
        return self.is_usable and self.rows_trouble is None


@dataclass(frozen=True)
class ShardsCheckup:
    """What was found in the storage of a flow in shards.

    Attributes:
        path: where it is.
        commits: oldest first.
        files: what is in each file, and what is wrong with it.
        is_open: never known: commits of another coordinator do not harm who reads.
    """

    path: str
    commits: tuple[CheckedCommit, ...]
    files: tuple[CheckedFile, ...]
    is_open: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether nothing is damaged or missing."""
        return not any(file.trouble for file in self.files)

    @property
    def newest(self) -> CheckedCommit | None:
        """The newest commit that the flow can go on from."""
        return next((one for one in reversed(self.commits) if one.is_usable), None)

    @property
    def epoch(self) -> int:
        """The last whole one."""
        return 0 if self.newest is None or self.newest.commit is None else self.newest.commit.epoch

    @property
    def lost(self) -> Lost | None:
        """What came behind that."""
        newest = self.newest
        number = -1 if newest is None else _number(newest.name)
        behind = [one for one in self.commits if _number(one.name) > number]
        if not behind:
            return None
        epoch = max((one.commit.epoch for one in behind if one.commit is not None), default=0)
        epochs = (self.epoch + 1, epoch) if epoch > self.epoch else None
        return Lost((number + 1, _number(behind[-1].name)), epochs, "commit")

    def __str__(self) -> str:
        return f"the flow in shards at {self.path} {outcome(self.epoch, self.lost, is_whole=self.is_whole)}"


def check_shards(storage: CheckpointStorage) -> ShardsCheckup:
    """Read every commit of a flow in shards, and every file that one needs, with their checksums.

    Raises:
        ObjectNotFound: there is no flow in shards.
    """
    names = [info.name for info in storage.list(COMMITS)]
    if not names:
        raise ObjectNotFound(f"There is no flow in shards at {storage.uri}.", uri=storage.uri)
    found: dict[str, CheckedFile] = {}
    commits = tuple(_checked(storage, name, found) for name in names)
    files = [
        CheckedFile(one.name, "" if one.commit is None else f"epoch {one.commit.epoch}, {one.commit.kind}", one.trouble)
        for one in commits
    ]
    return ShardsCheckup(storage.uri, commits, (*files, *found.values(), *_pending(storage), *_sinks(storage)))


def repair_shards(storage: CheckpointStorage, *, dry_run: bool = False) -> Repair:
    """Go back to the newest whole commit. Nobody may have the flow open; what is put aside is copied, then deleted.

    Raises:
        ObjectNotFound: there is no flow in shards.
        StorageError: no commit is whole; nothing has changed.
    """
    found = check_shards(storage)
    if found.is_whole:
        return Repair(None, found.epoch, None, was_whole=True, aside=None)
    newest = found.newest
    if newest is None or newest.commit is None:
        raise StorageError(
            f"No commit of the flow at {storage.uri} is whole.", uri=storage.uri, hint="restore it from a copy"
        )
    aside = f"damaged-{datetime.now(UTC):%Y%m%dT%H%M%SZ}/"
    moved = tuple(_outdated(storage, found, newest))
    if not dry_run:
        for name in moved:
            if name == newest.name:  # all of it but what its tick changed goes on in a commit of its own
                _copy_without_rows(storage, newest.commit)
            _put_aside(storage, name, aside)
    sinks = {sink_name(file.name): file for file in found.files if file.name.startswith(SINKS)}
    return Repair(
        None,
        found.epoch,
        found.lost,
        was_whole=False,
        aside=f"{storage.uri}/{aside.rstrip('/')}",
        moved=moved,
        ahead=tuple(name for name, file in sinks.items() if not file.trouble and int(file.holds[6:]) > found.epoch),
        anew=tuple(name for name, file in sinks.items() if file.trouble),
    )


def _outdated(storage: CheckpointStorage, found: ShardsCheckup, newest: CheckedCommit) -> Iterator[str]:
    """What is damaged or behind the newest whole commit, in the order in which it goes: the newest first."""
    assert newest.commit is not None
    for one in reversed(found.commits):
        if _number(one.name) > newest.commit.number or not one.is_whole:
            yield one.name
    needed = {file for one in found.commits if one.is_whole and one.commit for file in one.commit.files}
    needed |= set(newest.commit.packs)
    for file in found.files:
        is_file = file.trouble not in (None, MISSING) and not file.name.startswith(COMMITS)
        if is_file and file.name not in needed:
            yield file.name
    for info in storage.list(PENDING):
        epoch = int(info.name.removeprefix(PENDING).partition("-")[0])
        if epoch > newest.commit.epoch + 1 and not any(info.name == file.name and file.trouble for file in found.files):
            yield info.name


def _copy_without_rows(storage: CheckpointStorage, commit: Commit) -> None:
    CommitFiles(storage).put(
        msgspec.structs.replace(commit, number=commit.number + 1, kind="open", outputs={}, earlier=[])
    )


def _put_aside(storage: CheckpointStorage, name: str, aside: str) -> None:
    storage.put(f"{aside}{name}", storage.stream(name))
    storage.delete(name)


def _checked(storage: CheckpointStorage, name: str, found: dict[str, CheckedFile]) -> CheckedCommit:
    commits = CommitFiles(storage)
    try:
        commit = commits.read(name)
    except StorageError as error:
        return CheckedCommit(name, None, reason_of(error, f"{storage.uri}/{name}"))
    definition = f"definitions/{commit.definition}.json"
    if definition not in found:
        try:
            commits.definition(commit.definition)
            found[definition] = CheckedFile(definition, "what the flow is made of")
        except ObjectNotFound:
            found[definition] = CheckedFile(definition, "", MISSING)
        except StorageError as error:
            found[definition] = CheckedFile(definition, "", reason_of(error, f"{storage.uri}/{definition}"))
    for pack, described in commit.packs.items():
        if pack not in found:
            found[pack] = CheckedFile(pack, "state", _trouble(storage, pack, described.sha256))
    rows = commit.rows
    for file, digest in rows.items():
        if file not in found:
            found[file] = CheckedFile(file, "rows", _trouble(storage, file, digest))
    return CheckedCommit(
        name,
        commit,
        None,
        next((one for file in (definition, *commit.packs) if (one := found[file].trouble)), None),
        next((one for file in rows if (one := found[file].trouble)), None),
    )


def _pending(storage: CheckpointStorage) -> Iterator[CheckedFile]:
    """The ticks that were begun, with the rows they need."""
    for info in storage.list(PENDING):
        where = f"{storage.uri}/{info.name}"
        try:
            tick = read_pending(storage.get(info.name), where, "")
        except StorageError as error:
            yield CheckedFile(info.name, "", reason_of(error, where))
            continue
        shards = [one for given in tick.given for one in given.deltas.values()]
        refs = [ref for own in shards for some in own.values() for ref in some]
        troubles = (_trouble(storage, ref.file, ref.sha256) for ref in refs if ref.file is not None)
        missing = next((trouble for trouble in troubles if trouble), None)
        trouble = None if missing is None else f"rows of it: {missing}"
        ticks = f"the ticks of epochs {tick.epoch} to {tick.last}" if tick.more else f"the tick of epoch {tick.epoch}"
        yield CheckedFile(info.name, f"{ticks}, begun", trouble)


def _sinks(storage: CheckpointStorage) -> Iterator[CheckedFile]:
    """How far functions are."""
    for info in storage.list(SINKS):
        where = f"{storage.uri}/{info.name}"
        try:
            yield CheckedFile(info.name, f"epoch {decode_position(storage.get(info.name), where).epoch}")
        except StorageError as error:
            yield CheckedFile(info.name, "", reason_of(error, where))


def _trouble(storage: CheckpointStorage, name: str, sha256: str | None) -> str | None:
    digest = hashlib.sha256()
    try:
        for chunk in storage.stream(name):
            digest.update(chunk)
    except ObjectNotFound:
        return MISSING
    return None if digest.hexdigest() == sha256 else CHANGED


def _number(name: str) -> int:
    return int(name.removeprefix(COMMITS).removesuffix(".json"))
