"""How compiled functions are declared: explicit types, no lock held, kept in numba's cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import boolean, int32, int64, njit, types, uint8, uint64

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _read(kind: Any, dimensions: int = 1) -> Any:
    """An array that is only read."""
    return types.Array(kind, dimensions, "C", readonly=True)


INTS, WORDS, BYTES, OFFSETS = (_read(kind) for kind in (int64, uint64, uint8, int32))
ROWS = _read(int64, 2)
NEW_INTS, NEW_WORDS, NEW_BOOLS, NEW_ROWS = int64[::1], uint64[::1], boolean[::1], int64[:, ::1]


def several(*kinds: Any) -> Any:
    """The type of several results."""
    return types.Tuple(kinds)  # type: ignore[no-untyped-call]


def compiled(signature: Any) -> Callable[[_Function], _Function]:
    """Compile a function for one signature when its module is imported, or load it from the cache."""
    return cast("Callable[[_Function], _Function]", njit(signature, cache=True, nogil=True, error_model="numpy"))
