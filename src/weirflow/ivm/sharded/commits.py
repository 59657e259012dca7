"""The commits of a partitioned flow: one sealed file after the other, each the whole of what the flow is.

The name of a commit is its number, and it is put if absent: of two coordinators that both believe to be the one, the
first to put a number has it, and the other one learns that it is fenced off.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

import msgspec

from weirflow.checkpoint.sealed import FORMAT, refused, seal, unseal
from weirflow.errors import LeaseLost, ObjectExists, ObjectNotFound
from weirflow.failpoints import failpoint
from weirflow.ivm.durability.manifest import FORMATS, MOVED, Pack, RunRef
from weirflow.ivm.durability.packs import FOLDER as PACKS
from weirflow.ivm.sharded.definition import SPREAD
from weirflow.ivm.sharded.worker.reports import RowsRef  # noqa: TC001 - msgspec reads the annotations

if TYPE_CHECKING:
    from weirflow.checkpoint import CheckpointStorage

COMMITS = "commits/"
_DEFINITIONS = "definitions/"
PENDING = "pending/"
_HINT = "restore the flow's storage from a copy, or go back to its newest whole commit with 'weirflow flow repair'"
_GIVE_UP = "restore the file, or delete it to give up the tick that was begun, and tick again"

SHARED = 3
"""The format of a file about several ticks, of which versions before would see only the last or the first."""
_FORMATS = (*FORMATS, SHARED, SPREAD, MOVED)

ShardStates = dict[str, dict[int, list[list[RunRef]]]]
"""For each node's key and each shard, where the runs of its states are."""


class CommittedTick(msgspec.Struct, frozen=True):
    """A tick of a commit, and what it changed; rows of each shard."""

    epoch: int
    outputs: dict[str, list[RowsRef]]


class Commit(msgspec.Struct, frozen=True):
    """All that a flow is, after one change of it.

    Attributes:
        identity: tells the flow from all others.
        number: of this commit; each has the next one.
        epoch: the last tick.
        fence: the token of the coordinator that wrote it.
        kind: what it did: ``open``, ``define``, ``tick``, ``drop``, ``replace``, ``force``, ``rescale`` or
            ``restore``.
        definition: the digest of what the flow is made of.
        shards: how many there are.
        states: where all state is.
        versions: for each stage and shard, which attempt left its state.
        packs: the files that hold the state.
        released: for each node's key and each shard, how many rows its states had when the last were let go.
        outputs: what the tick changed; rows of each shard.
        earlier: the ticks before it that were run in the same job.
        tokens: of the last ticks that had one, with their epochs.
        positions: of attached streams: origin, place, epoch.
        watermarks, digests: what sources remember.
    """

    identity: str
    number: int
    epoch: int
    fence: int
    kind: str
    definition: str
    shards: int
    states: ShardStates = {}
    versions: dict[int, dict[int, str]] = {}
    packs: dict[str, Pack] = {}
    released: dict[str, dict[int, list[int]]] = {}
    outputs: dict[str, list[RowsRef]] = {}
    tokens: dict[str, int] = {}
    positions: dict[str, tuple[str, str, int]] = {}
    watermarks: dict[str, int | None] = {}
    digests: dict[str, list[bytes]] = {}
    format: int = FORMAT
    earlier: list[CommittedTick] = []

    @property
    def ticks(self) -> list[CommittedTick]:
        """All that it has, if it is one of ticks."""
        return [*self.earlier, CommittedTick(self.epoch, self.outputs)] if self.kind == "tick" else []

    @property
    def rows(self) -> dict[str, str | None]:
        """The files that hold what was changed, with their checksums."""
        changed = [self.outputs, *(tick.outputs for tick in self.earlier)]
        refs = [ref for outputs in changed for own in outputs.values() for ref in own]
        return {ref.file: ref.sha256 for ref in refs if ref.file is not None}

    @property
    def files(self) -> set[str]:
        """All files that it needs."""
        return {*self.packs, *self.rows}


class GivenTick(msgspec.Struct, frozen=True):
    """What a tick brings: its token, where its rows are, and digests of deltas whose repetitions are to be noticed."""

    token: str | None
    deltas: dict[str, dict[int, list[RowsRef]]]
    digests: dict[str, bytes]


class PendingTick(msgspec.Struct, frozen=True):
    """A tick that was begun: what is needed to run it again.

    Attributes:
        more: the ticks of others that are run behind it in the same job, if all goes well.
    """

    identity: str
    epoch: int
    fence: int
    token: str | None
    position: tuple[str, str, str] | None
    deltas: dict[str, dict[int, list[RowsRef]]]
    digests: dict[str, bytes]
    format: int = FORMAT
    more: list[GivenTick] = []

    @property
    def given(self) -> list[GivenTick]:
        """What each of its ticks brings."""
        return [GivenTick(self.token, self.deltas, self.digests), *self.more]

    @property
    def last(self) -> int:
        """The epoch of the last of its ticks."""
        return self.epoch + len(self.more)

    @property
    def alone(self) -> PendingTick:
        """It, without those of others."""
        return msgspec.structs.replace(self, more=[], format=FORMAT)


class CommitFiles:
    """The commits of one flow in a storage."""

    def __init__(self, storage: CheckpointStorage) -> None:
        self.storage = storage

    def newest(self) -> Commit | None:
        """The last commit; None for a flow that is yet to be made.

        Raises:
            StorageError: it is damaged.
        """
        names = [info.name for info in self.storage.list(COMMITS)]
        if not names and any(True for _ in self.storage.list(PACKS)):
            raise refused(f"{self.storage.uri}/{COMMITS}", "the flow has files but no commits", _HINT)
        return self.read(names[-1]) if names else None

    def read(self, name: str) -> Commit:
        """A commit by its name."""
        where = f"{self.storage.uri}/{name}"
        commit = unseal(self.storage.get(name), Commit, where, _HINT, _FORMATS)
        if commit_name(commit.number) != name:
            raise refused(where, f"it is commit {commit.number}", _HINT)
        return commit

    def at(self, number: int) -> Commit:
        """A commit by its number.

        Raises:
            ObjectNotFound: it is not kept any more.
        """
        return self.read(commit_name(number))

    def kept(self) -> list[Commit]:
        """All commits that are there, oldest first."""
        found = []
        for info in self.storage.list(COMMITS):
            with contextlib.suppress(ObjectNotFound):  # another coordinator has just tidied up
                found.append(self.read(info.name))
        return found

    def put(self, commit: Commit, *others: Commit) -> Commit:
        """Publish a commit; returns the one that has its number now.

        That is another one if one of ``others`` was there first: commits that the same coordinator tried to publish.

        Raises:
            LeaseLost: another coordinator has published one of this number or a later one.
        """
        name, data = commit_name(commit.number), seal(commit)
        published = commit
        failpoint("partitioned.before_commit")
        try:
            self.storage.put_if_absent(name, data)
        except ObjectExists:
            there = self.storage.get(name)  # a put that was repeated finds its own first attempt
            mine = next((one for one in (commit, *others) if seal(one) == there), None)
            if mine is None:
                raise self._fenced_off(commit, name) from None
            published = mine
        else:
            failpoint("partitioned.after_commit")
        # Old commits are deleted: who slept while another one went far ahead finds the name free again.
        newest = max((info.name for info in self.storage.list(COMMITS)), default=name)
        if newest > name:
            raise self._fenced_off(commit, newest)
        return published

    def _fenced_off(self, commit: Commit, name: str) -> LeaseLost:
        """For a commit that another coordinator is ahead of, with the one of this name."""
        return LeaseLost(
            f"Another coordinator of this flow has published {self.storage.uri}/{name}.",
            uri=self.storage.uri,
            name=commit.identity,
            hint="it has taken the flow over; use it there, or open the flow again here",
        )

    def put_definition(self, digest: str, data: bytes) -> None:
        """Keep what a flow is made of, under its digest."""
        self.storage.put(f"{_DEFINITIONS}{digest}.json", data)

    def definition(self, digest: str) -> bytes:
        """What was kept under a digest.

        Raises:
            StorageError: it is damaged.
        """
        name = f"{_DEFINITIONS}{digest}.json"
        data = self.storage.get(name)
        if not hashlib.sha256(data).hexdigest().startswith(digest):
            raise refused(f"{self.storage.uri}/{name}", "its checksum is wrong", _HINT)
        return data

    def put_pending(self, pending: PendingTick) -> None:
        """Remember a tick before it is run."""
        self.storage.put(_pending_name(pending.epoch, pending.fence), seal(pending))
        failpoint("partitioned.after_pending")

    def pending(self, commit: Commit, since: int) -> PendingTick | None:
        """The tick after a commit that a coordinator with this fence, or a later one, has begun and not committed.

        Raises:
            StorageError: it is damaged.
        """
        found = []
        for info in self.storage.list(PENDING):
            epoch, _, fence = info.name.removeprefix(PENDING).removesuffix(".json").partition("-")
            if int(epoch) > commit.epoch + 1:
                raise refused(f"{self.storage.uri}/{info.name}", f"the commit of tick {int(epoch) - 1} is gone", _HINT)
            if int(epoch) == commit.epoch + 1 and int(fence) >= since:
                found.append((int(fence), info.name))
        if not found:
            return None
        name = max(found)[1]
        where = f"{self.storage.uri}/{name}"
        pending = read_pending(self.storage.get(name), where, _GIVE_UP)
        if pending.identity != commit.identity or _pending_name(pending.epoch, pending.fence) != name:
            raise refused(where, f"it is tick {pending.epoch} of {pending.identity}", _GIVE_UP)
        return pending

    def drop_pending(self, epoch: int, fence: int) -> None:
        """Forget a tick that was begun."""
        self.storage.delete(_pending_name(epoch, fence))

    def drop_all_pending(self, fence: int) -> None:
        """Forget all ticks that coordinators before the one with this token have begun."""
        for info in list(self.storage.list(PENDING)):
            begun_by = info.name.removesuffix(".json").rpartition("-")[2]
            if int(begun_by) < fence:
                self.storage.delete(info.name)


def read_pending(data: bytes, where: str, hint: str) -> PendingTick:
    """A tick that was begun, from its file; ``StorageError`` with this hint if that is damaged."""
    return unseal(data, PendingTick, where, hint, (FORMAT, SHARED))


def commit_name(number: int) -> str:
    """The name of a commit; names sort by number."""
    return f"{COMMITS}{number:020d}.json"


def _pending_name(epoch: int, fence: int) -> str:
    return f"{PENDING}{epoch:020d}-{fence:020d}.json"
