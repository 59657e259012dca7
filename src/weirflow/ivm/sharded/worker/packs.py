"""Packs of state from one storage to another: what tasks do when a flow in shards is saved or restored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.checkpoint.sealed import refused
from weirflow.errors import ObjectNotFound
from weirflow.failpoints import failpoint
from weirflow.ivm.durability.checkup import CHANGED

_REMEDY = "restore the file from a copy, or continue from another checkpoint or commit"


@dataclass(frozen=True)
class CopiedPack:
    """A file to copy.

    Attributes:
        name: in the storage that has it.
        new: its name in the other.
        sha256: of its bytes.
    """

    name: str
    new: str
    sha256: str


@dataclass(frozen=True)
class CopyPacks:
    """Copies a share of some files, each whole and as it was written, or not at all."""

    source: str
    target: str
    packs: tuple[CopiedPack, ...]
    shards: int

    def __call__(self, shard: int) -> bytes:
        """Copy the share of one task."""
        source, target = open_checkpoint_storage(self.source), open_checkpoint_storage(self.target)
        for pack in self.packs[shard :: self.shards]:
            where = f"{source.uri}/{pack.name}"
            digest = hashlib.sha256()

            def chunks(name: str = pack.name, digest: hashlib._Hash = digest) -> Iterator[bytes]:
                for chunk in source.stream(name):
                    digest.update(chunk)
                    yield chunk

            failpoint("saved.before_pack")
            try:
                target.put(pack.new, chunks())
            except ObjectNotFound:
                raise refused(where, "it is missing", _REMEDY) from None
            if digest.hexdigest() != pack.sha256:
                target.delete(pack.new)
                raise refused(where, CHANGED, _REMEDY)
        return b""
