"""``NamedStateFiles``: what savepoints of all kinds have in common, a manifest under a name behind files of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime  # noqa: TC003 - msgspec reads it
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

import msgspec

from weirflow.arguments import Name, checked
from weirflow.checkpoint.keyed_state.files import StateFiles
from weirflow.checkpoint.sealed import refused, seal, unseal
from weirflow.checkpoint.storage.names import check_name
from weirflow.errors import ConfigError, ObjectExists, ObjectNotFound, did_you_mean

if TYPE_CHECKING:
    from weirflow.checkpoint.keyed_state.manifest import FileRef
    from weirflow.checkpoint.storage.contract import CheckpointStorage

_MANIFEST = "savepoint.json"


class NamedState(msgspec.Struct, frozen=True):
    """A savepoint: what it is called and when it was made."""

    name: str
    created: datetime


S = TypeVar("S", bound=NamedState)


@checked
class NamedStateFiles(ABC, Generic[S]):
    """The savepoints of one kind in a storage.

    A savepoint is there when its manifest is, which is put if absent behind its files. It shares no file with
    checkpoints or other savepoints.
    """

    _folder: ClassVar[str]
    """The folder that all of them are in, with a slash at the end."""
    _called: ClassVar[str]
    """What one is, for people, such as ``savepoint``."""
    _remedy: ClassVar[str]
    """What to do if a manifest is damaged."""
    _kind: type[S]
    """What a manifest is."""

    def __init__(self, storage: CheckpointStorage) -> None:
        self._storage = storage

    @abstractmethod
    def _moved(self, savepoint: S, name: str, move: Callable[[FileRef], FileRef]) -> S:
        """The savepoint under another name, with each of its files moved."""

    def list(self) -> list[S]:
        """All savepoints, by name; ``StorageError`` if the manifest of one is damaged."""
        names = [self._name(info.name) for info in self._storage.list(self._folder) if info.name.endswith(_MANIFEST)]
        return [self.get(name) for name in names]

    def get(self, name: Name) -> S:
        """A savepoint by name.

        Raises:
            ObjectNotFound: there is none of that name.
            StorageError: its manifest is damaged.
        """
        where = f"{self._storage.uri}/{self._manifest(name)}"
        try:
            data = self._storage.get(self._manifest(name))
        except ObjectNotFound:
            names = {self._name(info.name) for info in self._storage.list(self._folder)}
            raise ObjectNotFound(
                f"There is no {self._called} {name!r} at {self._storage.uri}.",
                uri=where,
                hint=did_you_mean(name, sorted(names)),
            ) from None
        savepoint = unseal(data, self._kind, where, self._remedy)
        if savepoint.name != name:
            raise refused(where, f"it is that of {savepoint.name!r}", self._remedy)
        return savepoint

    def delete(self, name: Name) -> None:
        """Remove a savepoint and its files. One that does not exist is not an error."""
        self._storage.delete(self._manifest(name))
        self._files(name).collect(())

    def copy(self, name: Name, to: CheckpointStorage, *, new_name: Name | None = None) -> S:
        """Copy a savepoint to another storage, or to another name; every byte is verified.

        Raises:
            ObjectNotFound: there is none of that name.
            ObjectExists: there is one where it shall go; it is untouched.
            StorageError: a file is missing or damaged; there is no copy.
        """
        savepoint = self.get(name)
        target: NamedStateFiles[S] = type(self)(to)
        wanted = name if new_name is None else new_name
        target._require_free(wanted)
        source, files = self._files(name), target._files(wanted)
        return target._publish(self._moved(savepoint, wanted, lambda ref: source.copy_to(files, ref)))

    def _require_free(self, name: str) -> None:
        """``ConfigError`` if the name cannot be used, ``ObjectExists`` if it is."""
        if self._storage.exists(self._manifest(name)):
            raise self._exists(name)

    def _publish(self, savepoint: S) -> S:
        try:
            self._storage.put_if_absent(self._manifest(savepoint.name), seal(savepoint))
        except ObjectExists:
            raise self._exists(savepoint.name) from None
        return savepoint

    def _files(self, name: str) -> StateFiles:
        return StateFiles(self._storage, f"{self._folder}{name}/files/")

    def _exists(self, name: str) -> ObjectExists:
        where = f"{self._storage.uri}/{self._manifest(name)}"
        return ObjectExists(
            f"There is a {self._called} {name!r} at {self._storage.uri} already.", uri=where, hint="use another name"
        )

    @classmethod
    def _manifest(cls, name: str) -> str:
        if "/" in name:
            raise ConfigError(f"{name!r} cannot be the name of a savepoint: it has a slash.")
        return check_name(f"{cls._folder}{name}/{_MANIFEST}")

    @staticmethod
    def _name(path: str) -> str:
        return path.split("/")[1]
