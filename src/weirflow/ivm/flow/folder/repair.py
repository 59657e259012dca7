"""``repair_flow``: the folder of a damaged flow made such that the flow opens at its last whole epoch.

What is damaged, and what lies behind damage, is moved to a folder beside it and never deleted. Every step leaves the
folder such that another repair comes to the same end: one that was killed is simply done again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from weirflow.checkpoint.storage.local.errors import os_errors
from weirflow.errors import FlowError, StorageError
from weirflow.failpoints import failpoint
from weirflow.ivm.durability.checkup import IDENTITY, LOG, Checkup, Lost, check_flow
from weirflow.ivm.durability.log_format import HEADER_SIZE, TAIL, encode_header, encode_tail
from weirflow.ivm.durability.packs import FOLDER as PACKS
from weirflow.ivm.durability.sink_position import sink_name
from weirflow.ivm.flow.folder.lock import FolderLock

if TYPE_CHECKING:
    from pathlib import Path

    from weirflow.ivm.durability.log_scan import ScannedFile

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True)
class Repair:
    """What a repair has done to a flow's folder, or would do.

    Attributes:
        name: the flow's, as its newest checkpoint says; None without one, and for a flow in shards.
        epoch: the last whole one, at which the flow opens.
        lost: what cannot be reached any more; None if nothing is lost.
        was_whole: whether nothing was damaged or missing, so that nothing was done.
        aside: the folder, or for a flow in shards the URI, that has what was damaged; None if nothing was moved.
        moved: the files that were moved there.
        rewritten: the files that were moved there and of which the whole part stays.
        ahead: the sinks that are ahead of the epoch; each has to be made with ``resync=True``.
        anew: the sinks whose position is lost; each begins with its view's current rows.
    """

    name: str | None
    epoch: int
    lost: Lost | None
    was_whole: bool
    aside: Path | str | None
    moved: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    ahead: tuple[str, ...] = ()
    anew: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.was_whole:
            return f"The flow is whole, at epoch {self.epoch}."
        lines = [f"The flow opens at epoch {self.epoch}."]
        lines.append("Nothing is lost." if self.lost is None else f"Lost: {self.lost}.")
        if self.aside is not None:
            lines.append(f"What was damaged is in {self.aside}:")
        lines += [f"  {name}" for name in self.moved]
        lines += [f"  {name}, of which the whole part stays" for name in self.rewritten]
        lines += [f"The sink {name!r} is ahead of the flow: make it with resync=True." for name in self.ahead]
        lines += [f"The position of the sink {name!r} is lost: it begins with all rows." for name in self.anew]
        return "\n".join(lines)


def repair_flow(path: Path, *, dry_run: bool = False) -> Repair:
    """Put aside what is damaged, so that the flow opens at its last whole epoch. A whole flow is left as it is.

    Args:
        path: the flow's folder.
        dry_run: only say what would be done.

    Raises:
        ObjectNotFound: there is no flow at the path.
        FlowError: the flow is open.
        StorageError: nothing whole is left, or a later version has written a file; nothing has changed.
    """
    checkup = check_flow(path)  # first, because the lock would make a file
    if dry_run or checkup.is_whole:
        return _Plan(checkup).repair
    if checkup.is_open:
        raise FlowError(f"The flow in {path} is open in another process or object.", hint="close it there first")
    lock = FolderLock(path, path.name)
    try:
        plan = _Plan(check_flow(path))
        with os_errors("repair", path.absolute()):
            plan.carry_out()
        return plan.repair
    finally:
        lock.release()


class _Plan:
    """What is to be done about what was found."""

    def __init__(self, found: Checkup) -> None:
        self._found = found
        self._path = found.path
        self._aside = _free(found.path)
        if not found.is_whole:
            _require_reachable(found)
        kept = found.reaching
        self._base = min((one.record for one in kept), default=0)
        self._cut = tuple(file for file in found.log.files if file.trouble and self._is_needed(file))
        self._moved = tuple(self._outdated())
        self._rewritten = tuple(self._patched())

    @property
    def repair(self) -> Repair:
        """What it comes to."""
        found = self._found
        return Repair(
            found.name,
            found.epoch,
            found.lost,
            found.is_whole,
            self._aside if self._moved or self._rewritten else None,
            self._moved,
            self._rewritten,
            tuple(sink_name(one) for one, at in found.sinks.items() if isinstance(at, int) and at > found.epoch),
            tuple(sink_name(one) for one, at in found.sinks.items() if isinstance(at, str)),
        )

    def carry_out(self) -> None:
        """Do it. The log is cut first, then what lies behind goes, newest first."""
        found = self._found
        identity = bytes.fromhex(found.identity)
        if found.identity_trouble:
            self._replace(IDENTITY, found.identity.encode())
        for file in self._cut:
            failpoint("repair.before_cut")
            body = file.path.read_bytes()[HEADER_SIZE : file.end_of(file.last)]
            self._replace(f"{LOG}/{file.path.name}", encode_header(identity, file.first) + body)
        if self._has_wrong_tail:
            for file in found.log.files:
                if file.path.exists():
                    _sync(file.path, os.O_RDONLY)
            failpoint("repair.before_tail")
            self._replace(f"{LOG}/{TAIL}", encode_tail(identity, found.record))
        for name in self._moved:
            failpoint("repair.before_move")
            self._put_aside(name)

    def _is_needed(self, file: ScannedFile) -> bool:
        """Whether a checkpoint that is kept is followed by records of the file."""
        return bool(file.ends) and self._base < file.last <= self._found.record

    @property
    def _has_wrong_tail(self) -> bool:
        log = self._found.log
        return log.tail_trouble is not None or (log.tail or 0) > self._found.record

    def _patched(self) -> list[str]:
        """What is replaced by its whole part, or written anew."""
        names = [f"{LOG}/{file.path.name}" for file in self._cut]
        if self._found.identity_trouble:
            names.append(IDENTITY)
        if self._has_wrong_tail:
            names.append(f"{LOG}/{TAIL}")
        return [name for name in names if (self._path / name).exists()]

    def _outdated(self) -> list[str]:
        """What is damaged, and what tells of what cannot be reached."""
        found = self._found
        if found.is_whole:
            return []
        behind = [
            file
            for file in found.log.files
            if file not in self._cut and (file.trouble or file.first > found.record + 1)
        ]
        manifests = [one for one in found.manifests if one not in found.reaching]
        needed = {pack for one in found.reaching if one.manifest for pack in one.manifest.packs}
        packs = sorted(f"{PACKS}{one.name}" for one in (self._path / PACKS).glob("*")) if manifests else []
        return [
            *(f"{LOG}/{file.path.name}" for file in reversed(behind)),
            *(one.name for one in reversed(manifests)),
            *(pack for pack in packs if pack not in needed),
            *(name for name, position in found.sinks.items() if isinstance(position, str)),
        ]

    def _put_aside(self, name: str) -> None:
        source, target = self._path / name, self._target(name)
        source.rename(target)
        _sync(target.parent)
        _sync(source.parent)

    def _replace(self, name: str, data: bytes) -> None:
        """Put other bytes in a file's place in one step; the file as it was goes aside."""
        file = self._path / name
        file.parent.mkdir(0o700, exist_ok=True)
        draft = file.with_name(f".{file.name}.repaired")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        if file.exists():
            target = self._target(name)
            target.hardlink_to(file)
            _sync(target.parent)
        draft.replace(file)
        _sync(file.parent)

    def _target(self, name: str) -> Path:
        target = self._aside / name
        for folder in reversed(target.relative_to(self._path).parents[:-1]):
            (self._path / folder).mkdir(0o700, exist_ok=True)
        _sync(self._aside)
        _sync(self._path)
        return target


def _free(path: Path) -> Path:
    """A folder for what is damaged, of a name that is not taken."""
    name = f"damaged-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    number = 1
    while (path / name).exists():
        number += 1
        name = f"damaged-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{number}"
    return path / name


def _require_reachable(found: Checkup) -> None:
    unread = next((file.unread for file in found.log.files if file.unread), None)
    if unread is not None:
        raise StorageError(
            f"The flow in {found.path} cannot be repaired: {unread}",
            uri=str(found.path),
            hint="repair it with the version of Weirflow that wrote it",
        )
    if not found.record:
        raise StorageError(
            f"Nothing whole is left in {found.path}: neither a checkpoint nor the beginning of the log.",
            uri=str(found.path),
            hint="restore the flow's folder from a copy",
        )


def _sync(path: Path, flags: int = _FOLDER) -> None:
    opened = os.open(path, flags)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
