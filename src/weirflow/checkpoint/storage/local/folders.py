"""Walking below a root folder by folder descriptors, so that no symbolic link can lead outside."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def open_folders(stack: ExitStack, root: Path, segments: Sequence[str]) -> list[int]:
    """Descriptors of the root and of each folder down the segments; the stack closes them.

    Raises:
        FileNotFoundError: one does not exist.
        NotADirectoryError: one is a file or a symbolic link.
    """
    folders = [_open_folder(stack, root)]
    for segment in segments:
        folders.append(open_subfolder(stack, segment, folders[-1]))
    return folders


def make_folders(stack: ExitStack, root: Path, segments: Sequence[str], mode: int) -> list[int]:
    """Like ``open_folders``, but makes what is missing, with this mode; durable once ``sync_folders`` has returned.

    Folders above the root are made as the umask says.

    Raises:
        FileNotFoundError: a folder was removed again meanwhile; try again.
        NotADirectoryError: one is a file or a symbolic link.
    """
    _make_root(root, mode)
    folders = [_open_folder(stack, root)]
    for segment in segments:
        with suppress(FileExistsError):
            os.mkdir(segment, mode, dir_fd=folders[-1])
        folders.append(open_subfolder(stack, segment, folders[-1]))
    return folders


def sync_folders(folders: Sequence[int]) -> None:
    """Make the entries of these folders durable, the deepest first.

    All of them each time, because another process may have made one and not synced it yet; a folder without
    changes costs some microseconds.
    """
    for folder in reversed(folders):
        os.fsync(folder)


def remove_empty_folders(folders: Sequence[int], segments: Sequence[str]) -> None:
    """Remove the folders down the segments, deepest first, as far as they are empty. The root stays."""
    # Not empty, already gone or not ours to remove: it may stay.
    with suppress(OSError):
        for parent, segment in zip(reversed(folders[:-1]), reversed(segments), strict=True):
            os.rmdir(segment, dir_fd=parent)


def open_subfolder(stack: ExitStack, segment: str, parent: int) -> int:
    """The descriptor of one folder in another; a symbolic link is a NotADirectoryError."""
    folder = os.open(segment, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)
    stack.callback(os.close, folder)
    return folder


def _open_folder(stack: ExitStack, path: Path) -> int:
    folder = os.open(path, _FOLDER)
    stack.callback(os.close, folder)
    return folder


def _make_root(root: Path, mode: int) -> None:
    if root.is_dir():
        return
    missing = [root, *(parent for parent in root.parents if not parent.exists())]
    root.mkdir(mode, parents=True, exist_ok=True)
    for folder in missing:
        parent = os.open(folder.parent, _FOLDER)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)
