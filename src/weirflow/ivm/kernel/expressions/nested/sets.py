"""Arrays as sets: ``array_distinct``, ``array_union`` and the like, and where in an array a value is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weirflow.ivm.kernel.expressions.comparison import comparer
from weirflow.ivm.kernel.expressions.nested.lists import lengths
from weirflow.ivm.kernel.expressions.nested.selection import (
    codes_of,
    equality_of,
    gathered,
    known,
    owners_of,
    within,
)
from weirflow.ivm.kernel.expressions.retype import retyped
from weirflow.ivm.kernel.expressions.rows import like_nulls, on_arrays, true_mask, valid_mask
from weirflow.sql.types import is_orderable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.ivm.kernel.expressions.nested.selection import Places
    from weirflow.ivm.kernel.expressions.signature import Builder, CallSignature, Kernel


def array_distinct(signature: CallSignature) -> Kernel | None:
    """Each different element once, where it is first."""
    kind = signature.types[0]
    if not _is_set(kind):
        return None

    def run(arrays: pa.Array) -> pa.Array:
        values, owners = arrays.flatten(), owners_of(arrays)
        codes, count = codes_of(values, equality_of(kind.value_type))
        return _chosen(values, _first(owners * count + codes), owners, signature, arrays)

    return on_arrays(run)


def _union(left: Places, right: Places) -> Places:
    return _first(np.concatenate([left, right]))


def _intersection(left: Places, right: Places) -> Places:
    first = _first(left)
    return first[np.isin(left[first], right)]


def _difference(left: Places, right: Places) -> Places:
    first = _first(left)
    return first[~np.isin(left[first], right)]


_CHOICES: dict[str, Callable[[Places, Places], Places]] = {
    "array_union": _union,
    "array_intersect": _intersection,
    "array_except": _difference,
}
"""From what is equal for equal elements of a row, of both arrays, to the places of those that are chosen."""


def of_two(signature: CallSignature) -> Kernel | None:
    """``array_union``, ``array_intersect`` and ``array_except``: different elements, in the order of the arguments."""
    kind, choose = signature.types[0], _CHOICES[signature.function]
    if not all(_is_set(one) for one in signature.types):
        return None

    def run(left: pa.Array, right: pa.Array) -> pa.Array:
        values, owners, keys, split = _keys(left, right, kind)
        chosen = choose(keys[:split], keys[split:])
        chosen = chosen[np.argsort(owners[chosen], kind="stable")]
        return _chosen(values, chosen, owners, signature, left, right)

    return on_arrays(run)


def arrays_overlap(signature: CallSignature) -> Kernel | None:
    """Whether two arrays have an element in common; NULL if none is known, neither is empty and one has a NULL."""
    kind = signature.types[0]
    if not all(_is_set(one) for one in signature.types):
        return None

    def run(left: pa.Array, right: pa.Array) -> pa.Array:
        values, owners, keys, split = _keys(left, right, kind)
        is_null = ~valid_mask(values, len(values))
        found, unknown = np.zeros(len(left), np.bool_), np.zeros(len(left), np.bool_)
        common = np.isin(keys[:split], keys[split:]) & ~is_null[:split]
        found[owners[:split][common]] = True
        unknown[owners[is_null]] = True
        unknown &= (lengths(left) > 0) & (lengths(right) > 0)
        return pa.array(found, mask=~known(left, right) | (~found & unknown))

    return on_arrays(run)


def _keys(left: pa.Array, right: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Places, Places, int]:
    """The elements of both where neither is NULL: values, owners, what equal ones have in common, the split."""
    both = known(left, right)
    pools, rows = [], []
    for arrays in (left, right):
        values, owners = retyped(arrays.flatten(), kind.value_type), owners_of(arrays)
        wanted = both[owners]
        pools.append(values if wanted.all() else values.filter(pa.array(wanted)))
        rows.append(owners[wanted])
    values, owners = pa.concat_arrays(pools), np.concatenate(rows)
    codes, count = codes_of(values, equality_of(kind.value_type))
    return values, owners, owners * count + codes, len(pools[0])


def array_remove(signature: CallSignature) -> Kernel | None:
    """Without the elements that are equal to a value; NULLs stay."""
    equal = _equal(signature)
    if equal is None:
        return None

    def run(arrays: pa.Array, values: pa.Array) -> pa.Array:
        owners = owners_of(arrays)
        hits = equal(arrays, values)
        kept = np.flatnonzero(~hits & valid_mask(values, len(values))[owners])
        return _chosen(arrays.flatten(), kept, owners, signature, arrays, values)

    return on_arrays(run)


def array_position(signature: CallSignature) -> Kernel | None:
    """The place, from 1, of the first element that is equal to a value; 0 if there is none."""
    equal = _equal(signature)
    if equal is None:
        return None

    def run(arrays: pa.Array, values: pa.Array) -> pa.Array:
        hits = np.flatnonzero(equal(arrays, values))[::-1]  # the first one is written last
        found = np.zeros(len(arrays), np.int64)
        found[owners_of(arrays)[hits]] = within(arrays)[hits] + 1
        return like_nulls(found, pa.int64(), arrays, values)

    return on_arrays(run)


def _equal(signature: CallSignature) -> Callable[[pa.Array, pa.Array], NDArray[np.bool_]] | None:
    """Which elements are equal to the value of their row."""
    kind = signature.types[0]
    if not pa.types.is_list(kind):
        return None
    equal = comparer("equal", kind.value_type, signature.types[1])
    if equal is None:
        return None

    def run(arrays: pa.Array, values: pa.Array) -> NDArray[np.bool_]:
        owners = owners_of(arrays)
        return true_mask(equal(arrays.flatten(), values.take(pa.array(owners))), len(owners))

    return run


def _is_set(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind)) and is_orderable(kind)


def _first(keys: Places) -> Places:
    """The places at which keys are there for the first time, in their order."""
    return np.sort(np.unique(keys, return_index=True)[1])


def _chosen(values: pa.Array, chosen: Places, owners: Places, signature: CallSignature, *nulls: pa.Array) -> pa.Array:
    sizes = np.bincount(owners[chosen], minlength=len(nulls[0]))
    return gathered(values, chosen, sizes, signature, *nulls)


FUNCTIONS: dict[str, Builder] = {
    "array_distinct": array_distinct,
    **dict.fromkeys(_CHOICES, of_two),
    "arrays_overlap": arrays_overlap,
    "array_remove": array_remove,
    "array_position": array_position,
}
