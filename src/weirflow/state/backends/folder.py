"""``FolderStateBackend``: state in files of its own, which checkpoints copy as they are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from weirflow.errors import StateError
from weirflow.state.backends.contract import StateBackend

if TYPE_CHECKING:
    from pathlib import Path

_FORMS: dict[str, Callable[[Path, int], FolderStateBackend]] = {}


class FolderStateBackend(StateBackend):
    """A ``StateBackend`` whose state is the files of one folder. A class with a ``form`` is known by it from then on.

    Attributes:
        form: what checkpoints call its files; never changed, since old checkpoints have it.
    """

    form: ClassVar[str]

    def __init_subclass__(cls, form: str) -> None:
        super().__init_subclass__()
        cls.form = form
        _FORMS[form] = lambda path, fsync: cls(path, fsync=fsync)

    @abstractmethod
    def __init__(self, path: Path, *, fsync: int = 1) -> None:
        """Open what is in the folder, or begin there."""

    @property
    @abstractmethod
    def path(self) -> Path:
        """The folder."""

    @abstractmethod
    def link_files(self, folder: Path) -> list[Path]:
        """Everything as it is now, as the files of a folder that must not exist yet; returns them."""


def is_form(form: str) -> bool:
    """Whether files of this form can be opened here."""
    return form in _FORMS


def open_folder(form: str, path: Path, fsync: int) -> FolderStateBackend:
    """The backend of these files."""
    if form not in _FORMS:
        raise StateError(f"State of the form {form!r} cannot be opened here.", hint="first import what wrote it")
    return _FORMS[form](path, fsync)
