"""A disk that loses power: what was written behind the last sync may be there or not, in any combination.

The calls of the process go to real files, which are what it sees as long as there is power. Beside that the disk keeps
what was synced, and what was not: writes to files, and names in folders. A power failure keeps all of the former and
some of the latter, sector by sector. Calls can also be made to fail.
"""

from __future__ import annotations

import errno
import os
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

_SECTOR = 512
_CALLS = (
    "open",
    "write",
    "pwrite",
    "ftruncate",
    "fsync",
    "fdatasync",
    "link",
    "replace",
    "rename",
    "unlink",
    "mkdir",
    "rmdir",
)
_real = {name: getattr(os, name) for name in _CALLS}


class SimulatedDisk:
    """All files below a folder.

    Attributes:
        calls: how many calls that write or sync have been made.
    """

    def __init__(self, root: Path) -> None:
        self._root = str(root.resolve())
        self.calls = 0
        self._fail_at: int | None = None
        self._failure = errno.EIO
        self._lasting = False
        self._synced: dict[int, bytes] = {}
        self._unsynced: dict[int, list[tuple[int, bytes] | int]] = defaultdict(list)
        self._names: dict[str, dict[str, int]] = {self._root: {}}
        self._renamed: dict[str, list[tuple[str, int | None]]] = defaultdict(list)

    def fail(self, at: int | None, failure: int = errno.EIO, *, lasting: bool = False) -> None:
        """Let the call of this number, counted from now, fail with an error number; with ``lasting``, all after it."""
        self._fail_at = None if at is None else self.calls + at
        self._failure, self._lasting = failure, lasting

    @contextmanager
    def mounted(self) -> Iterator[SimulatedDisk]:
        """Have the process use the disk."""
        wrapped = {name: getattr(self, f"_{name}") for name in _CALLS}
        for name, call in wrapped.items():
            setattr(os, name, call)
        try:
            yield self
        finally:
            for name, call in _real.items():
                setattr(os, name, call)

    def lose_power(self, target: Path, dice: random.Random) -> None:
        """Write what a disk could hold after a power failure into another folder."""
        keep = dice.choice([0.0, 0.5, 0.9, 1.0])
        self._rebuild(self._root, target, dice, keep)

    def _rebuild(self, folder: str, target: Path, dice: random.Random, keep: float) -> None:
        names = dict(self._names.get(folder, {}))
        for name, inode in self._renamed.get(folder, []):
            if dice.random() < keep:
                if inode is None:
                    names.pop(name, None)
                else:
                    names[name] = inode
        target.mkdir()
        for name, inode in names.items():
            if inode in self._synced or inode in self._unsynced:
                (target / name).write_bytes(self._content(inode, dice, keep))
            elif os.path.join(folder, name) in self._names:  # noqa: PTH118 - paths are text here
                self._rebuild(os.path.join(folder, name), target / name, dice, keep)  # noqa: PTH118 - as above

    def _content(self, inode: int, dice: random.Random, keep: float) -> bytes:
        data = bytearray(self._synced.get(inode, b""))
        for change in self._unsynced.get(inode, []):
            if isinstance(change, int):
                if dice.random() < keep:
                    _resize(data, change)
                continue
            offset, written = change
            for start in range(0, len(written), _SECTOR):
                part = written[start : start + _SECTOR]
                if dice.random() < keep:
                    _resize(data, max(len(data), offset + start + len(part)))
                    data[offset + start : offset + start + len(part)] = part
                elif dice.random() < 0.5:
                    _resize(data, max(len(data), offset + start + len(part)))  # the length without the bytes
        return bytes(data)

    # Calls

    def _open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        full = _full(path, dir_fd)
        if not self._is_ours(full) or not flags & (os.O_CREAT | os.O_TRUNC):
            return _real["open"](path, flags, mode, dir_fd=dir_fd)
        is_new = not os.path.exists(full)  # noqa: PTH110 - paths are text here
        self._called()
        file = _real["open"](path, flags, mode, dir_fd=dir_fd)
        inode = os.fstat(file).st_ino
        if is_new:
            self._synced.pop(inode, None)
            self._unsynced[inode] = []
            self._name(full, inode)
        elif flags & os.O_TRUNC:
            self._unsynced[inode].append(0)
        return int(file)

    def _write(self, file: int, data: Any) -> int:
        if not self._is_ours(_path(file)):
            return int(_real["write"](file, data))
        self._called()
        status = os.fstat(file)
        offset = status.st_size if _is_appending(file) else os.lseek(file, 0, os.SEEK_CUR)
        count = int(_real["write"](file, data))
        self._unsynced[status.st_ino].append((offset, bytes(data)[:count]))
        return count

    def _pwrite(self, file: int, data: Any, offset: int) -> int:
        if not self._is_ours(_path(file)):
            return int(_real["pwrite"](file, data, offset))
        self._called()
        count = int(_real["pwrite"](file, data, offset))
        self._unsynced[os.fstat(file).st_ino].append((offset, bytes(data)[:count]))
        return count

    def _ftruncate(self, file: int, length: int) -> None:
        if self._is_ours(_path(file)):
            self._called()
            self._unsynced[os.fstat(file).st_ino].append(length)
        _real["ftruncate"](file, length)

    def _fsync(self, file: int, call: str = "fsync") -> None:
        path = _path(file)
        if not self._is_ours(path):
            _real[call](file)
            return
        self._called()
        if os.path.isdir(path):  # noqa: PTH112 - paths are text here
            for name, inode in self._renamed.pop(path, []):
                if inode is None:
                    self._names.setdefault(path, {}).pop(name, None)
                else:
                    self._names.setdefault(path, {})[name] = inode
            return
        inode = os.fstat(file).st_ino
        data = os.pread(file, os.fstat(file).st_size, 0) if _is_readable(file) else Path(path).read_bytes()
        self._synced[inode] = data
        self._unsynced[inode] = []

    def _fdatasync(self, file: int) -> None:
        self._fsync(file, "fdatasync")

    def _link(self, source: Any, target: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        full = _full(target, dst_dir_fd)
        if self._is_ours(full):
            self._called()
        _real["link"](source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        if self._is_ours(full):
            self._name(full, Path(full).stat().st_ino)

    def _replace(
        self, source: Any, target: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
    ) -> None:
        before, after = _full(source, src_dir_fd), _full(target, dst_dir_fd)
        if self._is_ours(after):
            self._called()
        _real["replace"](source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        if self._is_ours(after):
            self._name(after, Path(after).stat().st_ino)
            self._name(before, None)

    _rename = _replace

    def _unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        full = _full(path, dir_fd)
        if self._is_ours(full):
            self._called()
        _real["unlink"](path, dir_fd=dir_fd)
        if self._is_ours(full):
            self._name(full, None)

    def _mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        full = _full(path, dir_fd)
        if self._is_ours(full):
            self._called()
        _real["mkdir"](path, mode, dir_fd=dir_fd)
        if self._is_ours(full):
            self._names.setdefault(full, {})
            self._name(full, -Path(full).stat().st_ino)

    def _rmdir(self, path: Any, *, dir_fd: int | None = None) -> None:
        full = _full(path, dir_fd)
        if self._is_ours(full):
            self._called()
        _real["rmdir"](path, dir_fd=dir_fd)
        if self._is_ours(full):
            self._name(full, None)

    # Inner workings

    def _name(self, path: str, inode: int | None) -> None:
        folder, name = os.path.split(path)
        self._renamed[folder].append((name, inode))

    def _called(self) -> None:
        self.calls += 1
        if self._fail_at is not None and (
            self.calls == self._fail_at or (self._lasting and self.calls > self._fail_at)
        ):
            raise OSError(self._failure, os.strerror(self._failure))

    def _is_ours(self, path: str) -> bool:
        return path == self._root or path.startswith(self._root + os.sep)


def _path(file: int) -> str:
    return os.readlink(f"/proc/self/fd/{file}").removesuffix(" (deleted)")  # noqa: PTH115 - paths are text here


def _full(path: Any, dir_fd: int | None) -> str:
    base = os.getcwd() if dir_fd is None else _path(dir_fd)  # noqa: PTH109 - paths are text here
    return os.path.normpath(os.path.join(base, os.fspath(path)))  # noqa: PTH118 - as above


def _flags(file: int) -> int:
    text = Path(f"/proc/self/fdinfo/{file}").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("flags:")).split()[1], 8)


def _is_appending(file: int) -> bool:
    return bool(_flags(file) & os.O_APPEND)


def _is_readable(file: int) -> bool:
    return (_flags(file) & os.O_ACCMODE) != os.O_WRONLY


def _resize(data: bytearray, length: int) -> None:
    if length < len(data):
        del data[length:]
    else:
        data.extend(bytes(length - len(data)))
