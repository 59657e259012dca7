"""The rows an expression is evaluated for, and the values it has there: one per row, or one for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.bounds import require_result

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Value: TypeAlias = pa.Array | pa.Scalar
    """An array has one value for each row; a scalar is the value of every row."""
    Node: TypeAlias = Callable[["Rows"], Value]
    """A compiled expression."""


class Rows:
    """The columns of a batch, its length, and what was already evaluated for it (by slot of the shared expression)."""

    __slots__ = ("cache", "columns", "length")

    def __init__(self, columns: Sequence[pa.Array], length: int) -> None:
        self.columns = columns
        self.length = length
        self.cache: dict[int, Value] = {}

    def where(self, chosen: NDArray[np.bool_]) -> Rows:
        """The rows at which ``chosen`` is true, in their order; columns are taken only when they are read."""
        indexes = np.flatnonzero(chosen)
        return Rows(_Chosen(self.columns, pa.array(indexes)), len(indexes))


class _Chosen(Sequence[Any]):
    """Columns of which only some rows are wanted."""

    def __init__(self, columns: Sequence[pa.Array], indexes: pa.Array) -> None:
        self._columns = columns
        self._indexes = indexes
        self._taken: dict[int, pa.Array] = {}

    def __getitem__(self, index: Any) -> pa.Array:
        if index not in self._taken:
            self._taken[index] = self._columns[index].take(self._indexes)
        return self._taken[index]

    def __len__(self) -> int:
        return len(self._columns)


def is_scalar(value: Value) -> bool:
    """Whether one value stands for all rows."""
    return isinstance(value, pa.Scalar)


def broadcast(value: Value, length: int) -> pa.Array:
    """The value as an array of ``length``; ``ResultTooLarge`` for one that is too long for so many."""
    if not isinstance(value, pa.Scalar):
        return value
    if not value.is_valid:
        return pa.nulls(length, value.type)
    if length > 1 and not pa.types.is_primitive(value.type):
        require_result(nbytes(value, length), "A constant of all rows")
    return pa.repeat(value, length)


def nbytes(value: Value, length: int) -> int:
    """The bytes that an array takes, or a scalar for so many rows: of texts and binaries alone, without offsets."""
    if isinstance(value, pa.Scalar):
        return _scalar_bytes(value) * length
    if not is_bytes(value.type):
        return int(value.nbytes)
    offsets = value.buffers()[1]
    if offsets is None or not len(value):
        return 0
    bounds = np.frombuffer(offsets, np.int32, len(value) + 1, 4 * value.offset)
    return int(bounds[-1]) - int(bounds[0])


def _scalar_bytes(value: pa.Scalar) -> int:
    if value.is_valid and is_bytes(value.type):
        return int(value.as_buffer().size)
    return int(value.values.nbytes) if value.is_valid and pa.types.is_list(value.type) else 1


def is_bytes(kind: pa.DataType) -> bool:
    """Whether the type is that of texts or binaries."""
    return kind in (pa.string(), pa.binary())


def on_arrays(kernel: Callable[..., pa.Array]) -> Callable[..., Value]:
    """Let a kernel that wants one array of equal length for each argument take scalars too."""

    def run(*values: Value) -> Value:
        for value in values:
            if not isinstance(value, pa.Scalar):
                length = len(value)
                return kernel(*(broadcast(each, length) for each in values))
        return kernel(*(broadcast(each, 1) for each in values))[0]

    return run


def valid_mask(value: Value, length: int) -> NDArray[np.bool_]:
    """True where the value is not NULL."""
    if isinstance(value, pa.Scalar):
        return np.full(length, value.is_valid)
    if value.null_count == 0:
        return np.ones(length, np.bool_)
    return to_mask(value.is_valid())


def true_mask(value: Value, length: int) -> NDArray[np.bool_]:
    """True where a boolean value is true; NULL is not."""
    if isinstance(value, pa.Scalar):
        return np.full(length, value.as_py() is True)
    return to_mask(value.fill_null(False) if value.null_count else value)  # noqa: FBT003 - the value to fill in


def to_mask(array: pa.BooleanArray) -> NDArray[np.bool_]:
    """A boolean array without NULLs as NumPy's."""
    mask: NDArray[np.bool_] = array.to_numpy(zero_copy_only=False)
    return mask


def evaluate_where(node: Node, kind: pa.DataType, rows: Rows, wanted: NDArray[np.bool_]) -> pa.Array:
    """The node's values, of type ``kind``, at the wanted rows, and NULL elsewhere; it is not evaluated for those."""
    if wanted.all():
        return broadcast(node(rows), rows.length)
    chosen = rows.where(wanted)
    if chosen.length == 0:
        return pa.nulls(rows.length, kind)
    indexes = pa.array(np.cumsum(wanted) - 1, mask=~wanted)
    return broadcast(node(chosen), chosen.length).take(indexes)


def numbers(array: pa.Array) -> NDArray[Any]:
    """The values of a fixed-width array as NumPy's, without a copy; what stands at NULLs is arbitrary.

    Dates, timestamps and durations come out as integers. Booleans and decimals have no such view.
    """
    kind = array.type
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), _NUMPY[kind.id])
    return np.frombuffer(buffer, _NUMPY[kind.id], len(array), array.offset * kind.bit_width // 8)


_NUMPY: dict[int, np.dtype[Any]] = {
    pa.int8().id: np.dtype(np.int8),
    pa.int16().id: np.dtype(np.int16),
    pa.int32().id: np.dtype(np.int32),
    pa.int64().id: np.dtype(np.int64),
    pa.float32().id: np.dtype(np.float32),
    pa.float64().id: np.dtype(np.float64),
    pa.date32().id: np.dtype(np.int32),
    pa.timestamp("us").id: np.dtype(np.int64),
    pa.duration("us").id: np.dtype(np.int64),
}


def like_nulls(values: NDArray[Any], kind: pa.DataType, *sources: pa.Array) -> pa.Array:
    """NumPy values of ``kind``'s width as an array that is NULL where any of the sources is."""
    values = np.ascontiguousarray(values, _NUMPY[kind.id])
    validity = nulls_of(*sources)
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(values)])


def nulls_of(*sources: pa.Array) -> pa.Buffer | None:
    """A validity bitmap that is unset where any of the sources is NULL; None if none ever is."""
    with_nulls = [source for source in sources if source.null_count]
    if not with_nulls:
        return None
    if len(with_nulls) == 1 and with_nulls[0].offset == 0 and not pa.types.is_null(with_nulls[0].type):
        return with_nulls[0].buffers()[0]
    valid = with_nulls[0].is_valid()
    for source in with_nulls[1:]:
        valid = pc.and_(valid, source.is_valid())
    return _bitmap(valid)


def validity(array: pa.Array) -> pa.Buffer | None:
    """The array's validity bitmap, from its first row on; None if nothing is NULL."""
    return _bitmap(array.is_valid()) if array.null_count else None


def _bitmap(array: pa.BooleanArray) -> pa.Buffer:
    if array.offset == 0:
        return array.buffers()[1]
    return pa.py_buffer(np.packbits(to_mask(array), bitorder="little"))


def first_row(wrong: NDArray[np.bool_], *sources: pa.Array) -> int | None:
    """The first row at which ``wrong`` is true and no source is NULL; None if there is none."""
    if not wrong.any():
        return None
    for source in sources:
        if source.null_count:
            wrong = wrong & to_mask(source.is_valid())
    found = np.flatnonzero(wrong)
    return int(found[0]) if len(found) else None
