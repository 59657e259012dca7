"""Where the buffers of merged runs live: in memory, or in files that the system may page out."""

from __future__ import annotations

import mmap
import tempfile
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

_SMALL = 1 << 20


class Allocate(Protocol):
    """Makes arrays to be filled; what is in them at first has no meaning."""

    def __call__(self, shape: int | tuple[int, int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A writable, contiguous array."""


def in_memory(shape: int | tuple[int, int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Plain memory, a page of which costs nothing before it is written to.

    NumPy asks for huge pages, and the first touch of each takes milliseconds (the system clears 2 MB): a spike in the
    middle of a tick. Small pages spread that work evenly over the slices of a merge.
    """
    count = int(np.prod(shape))
    size = count * np.dtype(dtype).itemsize
    if size < _SMALL:
        return np.empty(shape, dtype)
    mapped = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        mapped.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(mapped, dtype, count).reshape(shape)


class InFiles:
    """Arrays of a megabyte or more are mapped files in ``folder``, so that state may be larger than memory.

    The files have no names: they are gone with the last run that uses them, and with the process.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, shape: int | tuple[int, int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A mapped file, or plain memory for a small array."""
        count = int(np.prod(shape))
        size = count * np.dtype(dtype).itemsize
        if size < _SMALL:
            return np.empty(shape, dtype)
        with tempfile.TemporaryFile(dir=self._folder) as file:
            file.truncate(size)
            mapped = mmap.mmap(file.fileno(), size)
        return np.frombuffer(mapped, dtype, count).reshape(shape)


def allocator(folder: Path | None) -> Allocate:
    """Files in ``folder``, or memory without one."""
    return in_memory if folder is None else InFiles(folder)
