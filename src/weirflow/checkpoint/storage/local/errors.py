"""Errors of the operating system turned into ours, with what to do."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from weirflow.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path

_FULL = "free some space or raise the quota; nothing half written is visible"
_DENIED = "let this user read and write the folder, or choose another one"
_IN_THE_WAY = "a file, or a folder with objects, is in the way; use another name or remove it"
_NO_LINKS = "this file system has no hard links; choose another one, or an object store"
_HINTS = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "the object is larger than this file system or the process's limit allows",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: "the file system is mounted read-only; choose another folder",
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EISDIR: _IN_THE_WAY,
    errno.EEXIST: _IN_THE_WAY,
    errno.ELOOP: "symbolic links below the storage folder are not followed",
    errno.EMFILE: "this process has too many open files; raise its limit (ulimit -n)",
    errno.ENFILE: "this machine has too many open files",
    errno.EXDEV: "all of the storage folder must be on one file system",
    errno.EOPNOTSUPP: _NO_LINKS,
    errno.ENOSYS: _NO_LINKS,
    errno.EIO: "the disk or network file system fails; look at the system log",
    errno.ESTALE: "the network file system was unmounted or replaced; mount it again",
}


@contextmanager
def os_errors(doing: str, path: Path) -> Iterator[None]:
    """Turn an OSError inside into a StorageError that names the path."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise StorageError(
            f"Could not {doing} {path}: {reason}.", uri=path.absolute().as_uri(), hint=_HINTS.get(error.errno or 0)
        ) from None
