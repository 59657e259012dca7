"""``Manifest``: what a checkpoint consists of, as one small file that names and vouches for all others."""

from __future__ import annotations

import re

import msgspec

from weirflow.checkpoint.sealed import FORMAT, refused, seal, unseal
from weirflow.sql.settings import SqlSettings  # noqa: TC001 - read when files are

PLANNED = 2
"""The format of a file about views with plans or settings, which versions before must not take for views without."""
FORMATS = (FORMAT, PLANNED)
ORDERED = 4
"""The format of a checkpoint of sources whose rows are kept as views probe them, where versions before look in vain.

3 is that of commits of several ticks of shards.
"""
SHARDED = 6
"""The format of a checkpoint of a flow in shards; 5 is that of commits with a spread policy."""
MOVED = 7
"""The format of what has state that was moved to other shards, whose rows versions before would look for elsewhere."""
_EARLIER = "restore an earlier one: pass epoch="
MANIFESTS = "manifests/"
_NAME = re.compile(r"manifests/(\d{20})-(\d{20})\.json")


class RunRef(msgspec.Struct, frozen=True, array_like=True):
    """Where a run lies: in which pack, from which byte on, how many bytes."""

    pack: str
    offset: int
    length: int


class Pack(msgspec.Struct, frozen=True):
    """A file of runs: its length and the SHA-256 of its bytes."""

    size: int
    sha256: str


class SourceState(msgspec.Struct, frozen=True):
    """A source: how it was declared, and what its input remembers.

    Attributes:
        order: the columns by which its rows are kept, where views probe them; left out if they do not.
    """

    schema: bytes
    key: list[str]
    dedup: int
    lateness: tuple[str, str] | None
    watermark: int | None
    digests: list[bytes]
    keep: bool = True
    order: list[str] | msgspec.UnsetType = msgspec.UNSET


class ViewState(msgspec.Struct, frozen=True):
    """A view as it was declared, which state holds its rows, and whether it is recomputed whatever its mode says.

    Attributes:
        plan: what its SQL means; left out for a view without a plan.
        settings: those that it was registered with; left out if nobody wrote them down.
    """

    sql: str
    mode: str
    stored: bool
    store: str | None
    forced: bool = False
    plan: str | msgspec.UnsetType = msgspec.UNSET
    settings: SqlSettings | msgspec.UnsetType = msgspec.UNSET


class StoredRows(msgspec.Struct, frozen=True):
    """Where the rows of a source or view are.

    Attributes:
        positions: the relation's columns among those of the runs.
        keys: how many of the runs' columns they are sorted by.
        runs: of all shards together.
    """

    positions: list[int]
    keys: int
    runs: list[RunRef]


class HeldState(msgspec.Struct, frozen=True):
    """The state of an operator, on all shards together.

    Attributes:
        states: the runs of each of its states.
        are_parts: whether it is an aggregate of which each shard has what it has seen of the rows.
    """

    states: list[list[RunRef]]
    are_parts: bool = False


class ShardsState(msgspec.Struct, frozen=True):
    """A flow in shards, as it is: what goes on in the same shards needs all of it, and all else the rows.

    Attributes:
        definition: what the flow is made of.
        commit: where its state is.
        rows: of the sources and views that keep theirs.
        held: if not all rows are kept, the state of operators by their marks.
    """

    definition: bytes
    commit: bytes
    rows: dict[str, StoredRows]
    held: dict[str, HeldState] = {}


class Manifest(msgspec.Struct, frozen=True):
    """A consistent state of a flow.

    Attributes:
        flow: the flow's name.
        identity: 32 hexadecimal digits that tell this flow from others of the same name.
        epoch: after which tick.
        record: the last record of the log that is part of it.
        fence: the token of whoever wrote it; a greater one has the say.
        states: for each operator's fingerprint, the runs of each of its states.
        packs: the files that hold those runs.
        forced: whether all views, later ones too, are recomputed.
        positions: for each stream, its origin, where it is and the epoch that brought it there.
        shards: of a flow in shards, which has its state here and not in ``states``.
    """

    flow: str
    identity: str
    epoch: int
    record: int
    fence: int
    sources: dict[str, SourceState]
    views: dict[str, ViewState]
    tokens: dict[str, int]
    states: dict[str, list[list[RunRef]]]
    packs: dict[str, Pack]
    positions: dict[str, tuple[str, str, int]] = {}
    forced: bool = False
    format: int = FORMAT
    shards: ShardsState | msgspec.UnsetType = msgspec.UNSET

    @property
    def name(self) -> str:
        """The name it has in storage; names sort by epoch."""
        return manifest_name(self.epoch, self.record)

    def encode(self) -> bytes:
        """The file: a checksum, then JSON."""
        return seal(self)


def manifest_name(epoch: int, record: int) -> str:
    """``manifests/<epoch>-<record>.json``: views may be added between two ticks, so that an epoch has several."""
    return f"{MANIFESTS}{epoch:020d}-{record:020d}.json"


def place_of(name: str) -> tuple[int, int] | None:
    """The epoch and the record in the name of a manifest; None for the name of anything else."""
    found = _NAME.fullmatch(name)
    return None if found is None else (int(found[1]), int(found[2]))


def decode_manifest(data: bytes, name: str, uri: str) -> Manifest:
    """The manifest in a file.

    Raises:
        StorageError: the file is damaged, of a later format, or lies under another manifest's name.
    """
    where = f"{uri}/{name}"
    manifest = unseal(data, Manifest, where, _EARLIER, (*FORMATS, ORDERED, SHARDED, MOVED))
    if manifest.name != name:
        raise refused(where, f"it is that of {manifest.name}", _EARLIER)
    return manifest
