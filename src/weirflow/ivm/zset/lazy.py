"""``LazyColumns``: columns of which Arrow arrays are made when somebody asks for them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from typing_extensions import override

from weirflow.ivm.zset.batch import Batch, take_array
from weirflow.ivm.zset.layout import Layout

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.ivm.zset.batch import Int64s


class LazyColumns(Sequence[Any]):
    """Columns of equal length; those that are read become arrays.

    Attributes:
        length: how many rows there are.
    """

    __slots__ = ("_arrays", "_layout", "length")

    def __init__(self, length: int) -> None:
        self.length = length
        self._arrays: tuple[pa.Array, ...] | None = None
        self._layout: Layout | None = None

    @property
    @abstractmethod
    def types(self) -> Sequence[pa.DataType]:
        """Of the columns."""

    @property
    def arrays(self) -> tuple[pa.Array, ...]:
        """The columns."""
        if self._arrays is None:
            self._arrays = self._made()
        return self._arrays

    @property
    def layout(self) -> Layout | None:
        """Where they lie; None if there are no rows, or kernels do not read one of them."""
        if self._layout is None and self.length:
            self._layout = self._laid_out()
        return self._layout

    @property
    @abstractmethod
    def held(self) -> int:
        """Bytes that they keep alive."""

    def select(self, indexes: Sequence[int]) -> LazyColumns:
        """Some of the columns."""
        return _Selected(self, indexes)

    def __len__(self) -> int:
        return len(self.types)

    @overload
    def __getitem__(self, index: int) -> pa.Array: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[pa.Array]: ...
    @override
    def __getitem__(self, index: int | slice) -> Any:
        return self.arrays[index]

    @abstractmethod
    def _made(self) -> tuple[pa.Array, ...]:
        """The arrays."""

    @abstractmethod
    def _laid_out(self) -> Layout | None:
        """The layout, which must hold what lies there, but not these columns; there are rows."""


class _Selected(LazyColumns):
    """Some columns of others."""

    __slots__ = ("_indexes", "_of")

    def __init__(self, of: LazyColumns, indexes: Sequence[int]) -> None:
        super().__init__(of.length)
        self._of = of
        self._indexes = indexes

    @property
    @override
    def types(self) -> Sequence[pa.DataType]:
        types = self._of.types
        return [types[index] for index in self._indexes]

    @property
    @override
    def held(self) -> int:
        return self._of.held

    @override
    def _made(self) -> tuple[pa.Array, ...]:
        return tuple([self._of[index] for index in self._indexes])

    @override
    def _laid_out(self) -> Layout | None:
        layout = self._of.layout
        return layout.select(self._indexes) if layout is not None and self._indexes else None


class _TakenColumns(LazyColumns):
    """The values of columns at some rows; each column is taken when it is read, and the others let go when all are."""

    __slots__ = ("_of", "_own", "_rows")

    def __init__(self, of: Sequence[pa.Array], rows: Int64s) -> None:
        super().__init__(len(rows))
        self._of = of
        self._rows = rows
        self._own: dict[int, pa.Array] = {}

    @property
    @override
    def types(self) -> Sequence[pa.DataType]:
        return self._of.types if isinstance(self._of, LazyColumns) else [column.type for column in self._of]

    @property
    @override
    def held(self) -> int:
        return _held(self.arrays)

    @override
    def select(self, indexes: Sequence[int]) -> LazyColumns:
        return _SomeTaken(self, indexes)

    @override
    def __getitem__(self, index: int | slice) -> Any:
        if self._arrays is not None or isinstance(index, slice):
            return self.arrays[index]
        if index not in self._own:
            self._own[index] = take_array(self._of[index], self._rows)
        return self._own[index]

    @override
    def _made(self) -> tuple[pa.Array, ...]:
        self._of = arrays = tuple([self[index] for index in range(len(self._of))])
        self._own = {}
        return arrays

    @override
    def _laid_out(self) -> Layout | None:
        return Layout.of(self.arrays)


class _SomeTaken(LazyColumns):
    """Some columns of taken ones: no others are taken for them."""

    __slots__ = ("_indexes", "_of")

    def __init__(self, of: LazyColumns, indexes: Sequence[int]) -> None:
        super().__init__(of.length)
        self._of: LazyColumns | None = of
        self._indexes = indexes

    @property
    @override
    def types(self) -> Sequence[pa.DataType]:
        if self._of is None:
            return [column.type for column in self.arrays]
        types = self._of.types
        return [types[index] for index in self._indexes]

    @property
    @override
    def held(self) -> int:
        return _held(self.arrays)

    @override
    def __getitem__(self, index: int | slice) -> Any:
        if self._of is None or isinstance(index, slice):
            return self.arrays[index]
        return self._of[self._indexes[index]]

    @override
    def _made(self) -> tuple[pa.Array, ...]:
        assert self._of is not None
        arrays = tuple([self._of[index] for index in self._indexes])
        self._of = None
        return arrays

    @override
    def _laid_out(self) -> Layout | None:
        return Layout.of(self.arrays)


def _held(arrays: Sequence[pa.Array]) -> int:
    return sum([array.get_total_buffer_size() for array in arrays])


def taken(batch: Batch, rows: Int64s) -> Batch:
    """The rows of a batch at these places, of which each column is taken when it is read."""
    return Batch.of_lazy(_TakenColumns(batch.read, rows), batch.weights[rows])
