"""``hash`` and ``xxhash64`` of values of any type: a NULL leaves the hash as it was, nested values go one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.kernel.expressions.hashes.murmur3 import Murmur3
from weirflow.ivm.kernel.expressions.hashes.xxhash64 import XxHash64
from weirflow.ivm.kernel.expressions.nested.lists import lengths, list_offsets
from weirflow.ivm.kernel.expressions.numbers.decimal_words import LONG_DIGITS, unscaled
from weirflow.ivm.kernel.expressions.rows import numbers, on_arrays, to_mask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel

    Hashes = NDArray[Any]

_SEED = 42
_SHORT = 1024
"""Up to so many bytes, pieces are hashed side by side."""


class Hash(Protocol):
    """A hash of integers and bytes."""

    result: pa.DataType
    dtype: np.dtype[Any]

    def ints(self, values: NDArray[np.int32], seeds: Hashes) -> Hashes:
        """Of integers of 32 bits."""

    def longs(self, values: NDArray[np.int64], seeds: Hashes) -> Hashes:
        """Of integers of 64 bits."""

    def short_bytes(
        self, data: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64], seeds: Hashes
    ) -> Hashes:
        """Of pieces of a buffer."""

    def long_bytes(self, data: bytes, seed: int) -> int:
        """Of one piece."""


_HASHES: dict[str, Hash] = {"hash": Murmur3(), "xxhash64": XxHash64()}


def hashed(signature: CallSignature) -> Kernel | None:
    """``hash`` and ``xxhash64``, which are never NULL."""
    if not all(_is_hashed(kind) for kind in signature.types):
        return None
    one = _HASHES[signature.function]

    def run(*arrays: pa.Array) -> pa.Array:
        hashes = np.full(len(arrays[0]), _SEED, one.dtype)
        for array in arrays:
            check()
            hashes = _hash(one, array, hashes)
        return pa.array(hashes.view(np.int32 if one.result == pa.int32() else np.int64), one.result)

    return on_arrays(run)


def _is_hashed(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind) or pa.types.is_list(kind):
        return all(_is_hashed(kind.field(at).type) for at in range(kind.num_fields))
    return bool(
        kind in (pa.null(), pa.bool_(), pa.string(), pa.binary(), pa.date32(), pa.duration("us"))
        or pa.types.is_signed_integer(kind)
        or kind in (pa.float32(), pa.float64())
        or pa.types.is_decimal128(kind)
        or pa.types.is_timestamp(kind)
    )


def _hash(one: Hash, array: pa.Array, seeds: Hashes) -> Hashes:
    """The hashes with the values of an array, row by row; where it is NULL, they are what they were."""
    if pa.types.is_null(array.type):
        return seeds
    hashes = _hash_all(one, array, seeds)
    return hashes if not array.null_count else np.where(to_mask(array.is_valid()), hashes, seeds)


def _hash_all(one: Hash, array: pa.Array, seeds: Hashes) -> Hashes:  # noqa: PLR0911 - one for each kind of type
    kind = array.type
    if pa.types.is_struct(kind):
        for at in range(kind.num_fields):
            seeds = _hash(one, pc.struct_field(array, [at]), seeds)
        return seeds
    if pa.types.is_list(kind):
        return _hash_lists(one, array, seeds)
    if kind in (pa.string(), pa.binary()):
        return _hash_bytes(one, array, seeds)
    if pa.types.is_decimal(kind):
        if kind.precision <= LONG_DIGITS:
            return one.longs(np.ascontiguousarray(unscaled(array)), seeds)
        pieces = [int(value).to_bytes((_bits(int(value)) + 8) // 8, signed=True) for value in unscaled(array)]
        return _hash_bytes(one, pa.array(pieces, pa.binary()), seeds)
    if kind == pa.bool_():
        return one.ints(to_mask(array.fill_null(False)).astype(np.int32), seeds)  # noqa: FBT003 - NULL
    values = numbers(array)
    if pa.types.is_floating(kind):
        values = np.where(np.isnan(values), np.nan, values + 0.0).astype(values.dtype)
        return (
            one.ints(values.view(np.int32), seeds) if kind == pa.float32() else one.longs(values.view(np.int64), seeds)
        )
    return one.longs(values, seeds) if values.itemsize == 8 else one.ints(values.astype(np.int32), seeds)  # noqa: PLR2004


def _bits(value: int) -> int:
    """As many as Java's numbers of any size need, without the sign."""
    return (value if value >= 0 else ~value).bit_length()


def _hash_lists(one: Hash, array: pa.Array, seeds: Hashes) -> Hashes:
    """Their elements in order, those of all rows side by side."""
    hashes = seeds.copy()
    starts, sizes, elements = list_offsets(array)[:-1], lengths(array), array.flatten()
    rows, at = np.flatnonzero(sizes > 0), 0
    while len(rows):
        check()
        hashes[rows] = _hash(one, elements.take(pa.array(starts[rows] + at)), hashes[rows])
        at += 1
        rows = rows[sizes[rows] > at]
    return hashes


def _hash_bytes(one: Hash, array: pa.Array, seeds: Hashes) -> Hashes:
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(array) + 1, 4 * array.offset).astype(np.int64)
    starts, sizes = bounds[:-1], np.diff(bounds)
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    short = sizes <= _SHORT
    if short.all():
        return one.short_bytes(content, starts, sizes, seeds)
    hashes = seeds.copy()
    hashes[short] = one.short_bytes(content, starts[short], sizes[short], seeds[short])
    for row in np.flatnonzero(~short):
        check()
        piece = content[starts[row] : starts[row] + sizes[row]].tobytes()
        hashes[row] = one.long_bytes(piece, int(seeds[row]))
    return hashes


FUNCTIONS: dict[str, Builder] = {"hash": hashed, "xxhash64": hashed}
