"""How much an expression, a generator or a join may make at once: what is too much is refused before it is made."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.errors import ResultTooLarge, SqlPosition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.ivm.zset.batch import Int64s

MOST_BYTES = 1 << 30
"""Of one expression's values for the rows of one batch. Arrow's own limit for texts is twice as much."""
_SMALL = 1 << 26
"""So much is not worth asking whether there is memory for it."""
_FEW = 256
_LARGEST_COLUMN = (1 << 31) - 1
"""Of texts; Arrow's."""
_MEMORY, _GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def require_result(nbytes: float, function: str, position: SqlPosition | None = None) -> None:
    """``ResultTooLarge`` if a function's results, for all rows of a batch together, would take so many bytes."""
    if nbytes > MOST_BYTES:
        raise ResultTooLarge(
            f"{function} would make {_readable(nbytes)} of values at once; the most is {_readable(MOST_BYTES)}.",
            hint="look for a size in the data that is far too large; or tick with fewer rows at a time",
            position=position,
        )


def is_too_large(nbytes: float) -> bool:
    """Whether a function's results may not take so many bytes."""
    return nbytes > MOST_BYTES


def require_memory(nbytes: float, what: str) -> None:
    """``ResultTooLarge`` if something, named for people, would take so many bytes and there is no room for it."""
    if nbytes <= _SMALL:
        return
    room = available()
    if room is not None and nbytes > room:
        raise ResultTooLarge(
            f"{what} would take {_readable(nbytes)} of memory, but only {_readable(room)} is free.",
            hint="look for a join condition that is missing, or a weight or window that is far too large; "
            "or tick with fewer rows at a time",
        )


def require_copies(times: Int64s, width: int, what: str) -> None:
    """``ResultTooLarge`` if rows of so many bytes, each so many times, would not fit."""
    count = float(times.sum(dtype=np.float64))
    require_memory(count * width, f"{what} over {count:,.0f} rows, equal ones counted apart,")


def require_takeable(columns: Sequence[pa.Array], at: Int64s, what: str) -> None:
    """``ResultTooLarge`` if the rows at these places, of which some may be there often, would not fit."""
    if len(at) < _FEW:
        return
    wide = [column for column in columns if not pa.types.is_primitive(column.type)]
    if len(at) * sum(int(column.nbytes) for column in wide) <= _SMALL:
        return
    times = np.bincount(at)
    sizes = [float(_sizes(column)[: len(times)] @ times) for column in wide]
    if max(sizes, default=0) > _LARGEST_COLUMN:
        require_result(max(sizes), what)
    require_memory(sum(sizes), what)


def _sizes(column: pa.Array) -> NDArray[np.float64]:
    """The bytes of each value."""
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        lengths: NDArray[np.float64] = pc.binary_length(column).fill_null(0).to_numpy().astype(np.float64)
        return lengths
    return np.full(len(column), column.nbytes / max(len(column), 1))


def available() -> int | None:
    """The bytes of memory that this process may still take; None if the system does not tell."""
    found = [_of_machine(), _of_group(), _of_process()]
    return min((each for each in found if each is not None), default=None)


def row_bytes(types: Sequence[pa.DataType]) -> int:
    """About how many bytes a row of these columns takes at least, its weight included."""
    return 8 + sum(_width(kind) for kind in types)


def _width(kind: pa.DataType) -> int:
    try:
        return max(int(kind.bit_width) // 8, 1)
    except ValueError:  # no fixed width
        return 16


def _of_machine() -> int | None:
    try:
        lines = _MEMORY.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _of_group() -> int | None:
    try:
        most, used = ((_GROUP / f"memory.{name}").read_text().strip() for name in ("max", "current"))
    except OSError:
        return None
    return None if most == "max" else max(int(most) - int(used), 0)


def _of_process() -> int | None:
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return None
    return max(most - pages * resource.getpagesize(), 0)


def _readable(nbytes: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if nbytes < 1024:  # noqa: PLR2004 - what a unit is of the one before
            return f"{nbytes:.3g} {unit}"
        nbytes /= 1024
    return f"{nbytes:,.0f} TiB"
