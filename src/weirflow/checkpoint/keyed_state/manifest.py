"""``StateManifest``: what a checkpoint of keyed state consists of, as one small file that vouches for all others."""

from __future__ import annotations

import msgspec

from weirflow.checkpoint.sealed import FORMAT
from weirflow.state.catalogue import SlotInfo  # noqa: TC001 - msgspec reads it

EARLIER = "restore an earlier checkpoint (pass epoch=) or another savepoint"


class FileRef(msgspec.Struct, frozen=True):
    """A file: the name of the object that holds it, its length and the SHA-256 of its bytes."""

    object: str
    size: int
    sha256: str


class StatePart(msgspec.Struct, frozen=True):
    """The state of one range of key groups.

    Attributes:
        first: the first group.
        end: the group after the last.
        form: that of a ``FolderStateBackend`` for its files, ``entries`` for packs of entries by key group.
        files: by their names in the database, or by key group.
        slots: for each operator.
    """

    first: int
    end: int
    form: str
    files: dict[str, FileRef]
    slots: dict[str, list[SlotInfo]]


class StateManifest(msgspec.Struct, frozen=True):
    """A consistent state of a job's operators.

    Attributes:
        epoch: which one it is; later ones are greater.
        fence: the token of whoever wrote it; a greater one has the say.
        parts: of all key groups, in their order.
    """

    epoch: int
    fence: int
    parts: list[StatePart]
    format: int = FORMAT
