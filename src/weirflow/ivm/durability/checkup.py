"""``check_flow``: what of a durable flow's folder is whole, told file by file, without changing anything."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weirflow.checkpoint.storage.local.errors import os_errors
from weirflow.errors import ObjectNotFound, StorageError
from weirflow.ivm.durability.log_format import TAIL, log_paths
from weirflow.ivm.durability.log_scan import LogScan, log_identities, scan_log
from weirflow.ivm.durability.manifest import MANIFESTS, Manifest, Pack, decode_manifest, place_of
from weirflow.ivm.durability.packs import FOLDER as PACKS
from weirflow.ivm.durability.sink_position import SINKS, decode_position

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY = "identity"
LOG = "log"
LOCK = "lock"
_HEX = re.compile(rb"[0-9a-f]{32}")
MISSING = "it is missing"
CHANGED = "its bytes are not those that were written"
# A flow that ticks and makes checkpoints while it is looked at may seem damaged, but not twice in the same way.
_LOOKS = 5


@dataclass(frozen=True)
class CheckedFile:
    """A file of a flow.

    Attributes:
        name: its path in the flow's folder.
        holds: what is in it, as far as it is whole.
        trouble: what is wrong with it; None if nothing is.
    """

    name: str
    holds: str
    trouble: str | None = None


@dataclass(frozen=True)
class CheckedManifest:
    """A checkpoint: its manifest if that can be read, and what is wrong with it or with a file it needs."""

    name: str
    epoch: int
    record: int
    manifest: Manifest | None
    trouble: str | None = None
    pack_trouble: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the flow can be opened from it."""
        return self.trouble is None and self.pack_trouble is None


@dataclass(frozen=True)
class Lost:
    """What cannot be reached any more.

    Attributes:
        records: the first and the last of them; None if only a sink still tells of what was there.
        epochs: likewise; None if it is not known which they were, or if the records held none.
        what: what is numbered: a record of a log, or a commit of a flow in shards.
    """

    records: tuple[int, int] | None
    epochs: tuple[int, int] | None
    what: str = "record"

    def __str__(self) -> str:
        numbers = "" if self.records is None else _span(self.what, *self.records)
        epochs = "" if self.epochs is None else _span("epoch", *self.epochs)
        return f"{epochs} ({numbers})" if epochs and numbers else epochs or numbers


@dataclass(frozen=True)
class Checkup:
    """What was found in a flow's folder.

    Attributes:
        path: the folder.
        name: the flow's, as its newest checkpoint says; None without one.
        identity: what tells the flow's files from others, as most of them say.
        identity_trouble: what is wrong with the file that says it.
        log: the log.
        manifests: the checkpoints, oldest first.
        packs: for each pack what is wrong with it, None for nothing.
        is_empty: whether there is neither a log nor a checkpoint, but state of one.
        sinks: for each file of a sink its epoch, or what is wrong with it.
        is_open: whether another process has the flow open.
    """

    path: Path
    name: str | None
    identity: str
    identity_trouble: str | None
    log: LogScan
    manifests: tuple[CheckedManifest, ...]
    packs: Mapping[str, str | None]
    sinks: Mapping[str, int | str]
    is_empty: bool = False
    is_open: bool = field(default=False, compare=False)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is damaged or missing."""
        return not any(file.trouble for file in self.files)

    @property
    def record(self) -> int:
        """The last record that can be reached from a whole checkpoint, or from nothing."""
        return self._best[0]

    @property
    def epoch(self) -> int:
        """The epoch after that record: the last whole one."""
        return self._best[1]

    @property
    def lost(self) -> Lost | None:
        """What was there behind that, as far as anything still tells of it."""
        places = [(one.epoch, one.record) for one in self.manifests]
        files = self.log.files
        record = max([self.log.synced, *(number for _, number in places), *(file.last for file in files)])
        told = [position for position in self.sinks.values() if isinstance(position, int)]
        epoch = max(
            [*told, *(number for number, _ in places), *(after for file in files for _, after in file.epochs)],
            default=0,
        )
        records = (self.record + 1, record) if record > self.record else None
        epochs = (self.epoch + 1, epoch) if epoch > self.epoch else None
        return Lost(records, epochs) if records or epochs else None

    @property
    def reaching(self) -> tuple[CheckedManifest, ...]:
        """The whole checkpoints from which the last whole epoch can be reached, oldest first."""
        return tuple(one for one in self.manifests if one.is_whole and self.log.reach(one.record) == self.record)

    @property
    def begins_whole(self) -> bool:
        """Whether the log tells all of the flow, so that it needs no checkpoint."""
        return bool(self.log.files) and self.log.files[0].first == 1

    @property
    def files(self) -> tuple[CheckedFile, ...]:
        """What is in each file, and what is wrong with it; what is missing has a line too."""
        return tuple(self._files())

    def __str__(self) -> str:
        return f"the flow in {self.path} {outcome(self.epoch, self.lost, is_whole=self.is_whole)}"

    @property
    def _best(self) -> tuple[int, int]:
        """The record and epoch that can be reached, and the best there is."""
        bases = [(one.record, one.epoch) for one in self.manifests if one.is_whole]
        if self.begins_whole or not bases:
            bases.append((0, 0))
        reached = [(self.log.reach(record), record, epoch) for record, epoch in bases]
        through, record, epoch = max(reached)
        return through, self.log.epoch(record, through, epoch)

    def _files(self) -> Iterator[CheckedFile]:
        yield CheckedFile(IDENTITY, self.identity if self.identity_trouble is None else "", self.identity_trouble)
        for one in self.manifests:
            packs = 0 if one.manifest is None else len(one.manifest.packs)
            yield CheckedFile(one.name, f"epoch {one.epoch}, record {one.record}, {packs} packs", one.trouble)
        if self.is_empty:
            yield CheckedFile(MANIFESTS, "", MISSING)
        for name, trouble in self.packs.items():
            yield CheckedFile(name, "state", trouble)
        for file in self.log.files:
            held = _span("record", file.first, file.last) if file.ends else "nothing"
            torn = ", and a torn one that was never synced" if file.torn else ""
            yield CheckedFile(f"{LOG}/{file.path.name}", held + torn, file.trouble or file.unread)
        kept = [one.record for one in self.manifests if one.is_whole]
        for first, last in self.log.missing(min(kept, default=0)):
            yield CheckedFile(f"{LOG}/", _span("record", first, last), MISSING)
        tail = "" if self.log.tail is None else f"synced up to record {self.log.tail}"
        yield CheckedFile(f"{LOG}/{TAIL}", tail, self.log.tail_trouble)
        for name, position in self.sinks.items():
            known = isinstance(position, int)
            yield CheckedFile(name, f"epoch {position}" if known else "", None if known else str(position))


def check_flow(path: Path) -> Checkup:
    """Read every file of a flow and its checksums. Works while another process has the flow open.

    Raises:
        ObjectNotFound: there is no flow at the path.
        StorageError: a file cannot be read at all.
    """
    with os_errors("read", path.absolute()):
        if not is_flow(path):
            raise ObjectNotFound(f"There is no flow in {path}.", uri=str(path), hint="give the path of a flow")
        found = _look_patiently(path)
        for _ in range(_LOOKS):
            if found.is_whole or not found.is_open:
                break
            before, found = found, _look_patiently(path)
            if [one for one in found.files if one.trouble] == [one for one in before.files if one.trouble]:
                break
        return found


def _look_patiently(path: Path) -> Checkup:
    """Look, and look again if a file that was there a moment ago was removed: the flow has made a checkpoint."""
    for _ in range(_LOOKS):
        try:
            return _look(path)
        except FileNotFoundError:
            continue
    return _look(path)


def _look(path: Path) -> Checkup:
    was_open = is_open(path)
    decoded = {name: _decoded(path, name) for name in _names(path, MANIFESTS) if place_of(name) is not None}
    places = [place for name in decoded if (place := place_of(name)) is not None]
    readable = [one for one in decoded.values() if isinstance(one, Manifest)]
    identity, identity_trouble = _identity(path, [one.identity for one in readable])
    log = scan_log(path / LOG, bytes.fromhex(identity), max((place[1] for place in places), default=0))
    wanted = {name: pack for one in readable for name, pack in one.packs.items()}
    packs = {name: _pack_trouble(path / name, pack) for name, pack in sorted(wanted.items())}
    return Checkup(
        path,
        readable[-1].flow if readable else None,
        identity,
        identity_trouble,
        log,
        tuple(_checked(name, one, identity, packs) for name, one in decoded.items()),
        packs,
        {name: _position(path, name) for name in _names(path, SINKS) if name.endswith(".json")},
        is_empty=not decoded and not log.files and bool(_names(path, PACKS)),
        is_open=was_open or is_open(path),
    )


def is_flow(path: Path) -> bool:
    """Whether anything of a flow is in a folder."""
    manifests = any(place_of(name) is not None for name in _names(path, MANIFESTS))
    return manifests or bool(log_paths(path / LOG)) or (path / IDENTITY).is_file()


def is_open(path: Path) -> bool:
    """Whether somebody has the flow open; this process counts too."""
    try:
        lock = os.open(path / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _names(path: Path, folder: str) -> list[str]:
    return sorted(str(one.relative_to(path)) for one in (path / folder).rglob("*") if one.is_file())


def _decoded(path: Path, name: str) -> Manifest | str:
    try:
        return decode_manifest((path / name).read_bytes(), name, str(path))
    except StorageError as error:
        return reason_of(error, path / name)


def _checked(name: str, found: Manifest | str, identity: str, packs: Mapping[str, str | None]) -> CheckedManifest:
    place = place_of(name)
    assert place is not None  # only such files are looked at
    if isinstance(found, str):
        return CheckedManifest(name, *place, None, found)
    foreign = "it belongs to another flow" if found.identity != identity else None
    troubled = next((f"{pack}: {packs[pack]}" for pack in sorted(found.packs) if packs[pack]), None)
    return CheckedManifest(name, *place, found, foreign, troubled)


def _identity(path: Path, of_manifests: list[str]) -> tuple[str, str | None]:
    """The flow's identity, and what is wrong with the file that has it.

    The other files know it too: the file is believed if one of them agrees, or if there is none.
    """
    others = [*of_manifests, *(one.hex() for one in log_identities(path / LOG))]
    file = path / IDENTITY
    data = file.read_bytes() if file.exists() else None
    if data is not None and _HEX.fullmatch(data) and (not others or data.decode() in others):
        return data.decode(), None
    trouble = MISSING if data is None else "it is not that of the flow's files" if others else "it is damaged"
    return Counter(others).most_common(1)[0][0] if others else os.urandom(16).hex(), trouble


def _pack_trouble(file: Path, pack: Pack) -> str | None:
    try:
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
            size = opened.tell()
    except FileNotFoundError:
        return MISSING
    return None if (size, digest) == (pack.size, pack.sha256) else CHANGED


def _position(path: Path, name: str) -> int | str:
    try:
        return decode_position((path / name).read_bytes(), str(path / name)).epoch
    except StorageError as error:
        return reason_of(error, path / name)


def reason_of(error: StorageError, file: Path | str) -> str:
    """What is wrong with a file, without its name."""
    return error.message.removeprefix(f"{file} cannot be used: ").rstrip(".")


def outcome(epoch: int, lost: Lost | None, *, is_whole: bool) -> str:
    """What of a flow is whole, in a few words."""
    harmless = "nothing is lost" if lost is None else f"{lost} cannot be reached"
    return f"is whole up to epoch {epoch}; {'nothing is damaged' if is_whole else harmless}"


def _span(what: str, first: int, last: int) -> str:
    return f"{what} {first}" if first == last else f"{what}s {first} to {last}"
