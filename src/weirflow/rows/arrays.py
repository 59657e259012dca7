"""Arrow arrays made of NumPy's and of short lists, without ``pyarrow.array``.

That one imports pandas, where it is installed, to see whether it was given one of its columns: a third of a second, for
everyone who makes an array. Where the types are known, buffers are also made in half the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

_TYPES: dict[Any, pa.DataType] = {
    np.dtype(name): pa.type_for_alias(name)
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
}
_SHORT = 1000
_NONE = type(None)
_TEXTS = frozenset({str, _NONE})
_INTEGERS = frozenset({int, _NONE})
_PLAIN = {
    pa.bool_(): (np.bool_, frozenset({bool, _NONE})),
    pa.int32(): (np.int64, _INTEGERS),
    pa.int64(): (np.int64, _INTEGERS),
    pa.float64(): (np.float64, frozenset({float, _NONE})),
}
"""For a type, what NumPy reads its values as, and of which types they are."""


def from_numpy(values: npt.NDArray[Any], null: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """One-dimensional numbers or booleans as an array of the same type; numbers that lie side by side are not copied.

    Args:
        values: must not be changed afterwards.
        null: which values are NULL; None if none is.
    """
    bitmap = None if null is None or not null.any() else _bitmap(~null)
    if values.dtype == np.bool_:
        return pa.Array.from_buffers(pa.bool_(), len(values), [bitmap, _bitmap(values)])
    data = pa.py_buffer(values if values.flags.c_contiguous else values.copy())
    return pa.Array.from_buffers(_TYPES[values.dtype], len(values), [bitmap, data])


def from_short_list(values: Sequence[Any], kind: pa.DataType) -> pa.Array | None:
    """Plain Python values as an array of the type, as ``pyarrow.array`` makes it; None if that is to do it.

    Raises:
        ValueError: a text cannot be written in UTF-8.
        OverflowError: an int has more than 64 bits.
    """
    if len(values) > _SHORT:
        return None
    types = set(map(type, values))
    null = np.array([value is None for value in values]) if _NONE in types else None
    if kind == pa.string():
        return _texts(values, null) if types <= _TEXTS else None
    dtype, known = _PLAIN.get(kind, (None, frozenset()))
    if dtype is None or not types <= known:
        return None
    given = values if null is None else [0 if value is None else value for value in values]
    found: npt.NDArray[Any] = np.array(given, dtype)
    if kind != pa.int32():
        return from_numpy(found, null)
    narrow = found.astype(np.int32)
    return from_numpy(narrow, null) if np.array_equal(narrow, found) else None


def scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """A Python value as a scalar of the type, as ``pyarrow.scalar`` makes it."""
    found = from_short_list([value], kind)
    return pa.scalar(value, kind) if found is None else found[0]


def _texts(values: Sequence[str | None], null: npt.NDArray[np.bool_] | None) -> pa.Array | None:
    encoded = [b"" if value is None else value.encode() for value in values]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(one) for one in encoded], out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        return None
    parts = [pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), [None if null is None else _bitmap(~null), *parts])


def _bitmap(bits: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(bits, bitorder="little"))
