"""Higher-order functions of arrays. What Spark does not reach, such as what follows the first hit, raises nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weirflow.errors import DataError
from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.kernel.expressions.failures import failure
from weirflow.ivm.kernel.expressions.nested.lists import lengths, list_from, list_offsets
from weirflow.ivm.kernel.expressions.nested.selection import gathered, known, owners_of, within
from weirflow.ivm.kernel.expressions.nested.timsort import IllOrdered, steps
from weirflow.ivm.kernel.expressions.retype import retyped
from weirflow.ivm.kernel.expressions.rows import broadcast, evaluate_where, nulls_of, numbers, true_mask, valid_mask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weirflow.ivm.kernel.expressions.nested.elements import CompiledLambda, HigherOrderBuilder
    from weirflow.ivm.kernel.expressions.rows import Node, Rows, Value
    from weirflow.ivm.kernel.expressions.signature import CallSignature


def transform(signature: CallSignature, given: list[Any]) -> Node:
    """``transform(array, (x[, place]) -> ...)``."""
    argument, function = given
    kind = signature.result

    def run(rows: Rows) -> Value:
        arrays = broadcast(argument(rows), rows.length)
        made = _of_elements(function, rows, arrays)
        return list_from(list_offsets(arrays), retyped(made, kind.value_type), kind, arrays)

    return run


def array_filter(signature: CallSignature, given: list[Any]) -> Node:
    """``filter(array, (x[, place]) -> ...)``: the elements for which that is true."""
    argument, function = given

    def run(rows: Rows) -> Value:
        arrays = broadcast(argument(rows), rows.length)
        owners = owners_of(arrays)
        kept = np.flatnonzero(true_mask(_of_elements(function, rows, arrays), len(owners)))
        return gathered(arrays.flatten(), kept, np.bincount(owners[kept], minlength=rows.length), signature, arrays)

    return run


def _of_elements(function: CompiledLambda, rows: Rows, arrays: pa.Array) -> pa.Array:
    places = pa.array(within(arrays).astype(np.int32))
    return function(rows, owners_of(arrays), [arrays.flatten(), places])


def quantified(signature: CallSignature, given: list[Any]) -> Node:
    """``exists`` and ``forall``, decided by the first element that is true, or false; else NULL if one is NULL."""
    argument, function = given
    wanted = signature.function == "exists"

    def run(rows: Rows) -> Value:
        arrays = broadcast(argument(rows), rows.length)
        owners = owners_of(arrays)
        try:
            found = function(rows, owners, [arrays.flatten()])
        except DataError:
            found, owners = _until_decided(function, rows, arrays, wanted=wanted)
        decided, unknown = np.zeros(rows.length, np.bool_), np.zeros(rows.length, np.bool_)
        decided[owners[_is(found, wanted=wanted)]] = True
        unknown[owners[~valid_mask(found, len(found))]] = True
        return pa.array(decided == wanted, mask=~valid_mask(arrays, rows.length) | (~decided & unknown))

    return run


def _is(found: pa.Array, *, wanted: bool) -> NDArray[np.bool_]:
    return true_mask(found, len(found)) if wanted else valid_mask(found, len(found)) & ~true_mask(found, len(found))


def _until_decided(
    function: CompiledLambda, rows: Rows, arrays: pa.Array, *, wanted: bool
) -> tuple[pa.Array, NDArray[np.int64]]:
    """What the function gives for the elements that decide, and those before; and whose they are."""
    values, offsets, sizes = arrays.flatten(), list_offsets(arrays).astype(np.int64), lengths(arrays)
    pieces, owners = [pa.nulls(0, pa.bool_())], [np.zeros(0, np.int64)]
    active, place = np.flatnonzero(sizes > 0), 0
    while len(active):
        check()
        found = function(rows, active, [values.take(pa.array(offsets[active] + place))])
        pieces.append(found)
        owners.append(active)
        place += 1
        active = active[~_is(found, wanted=wanted) & (sizes[active] > place)]
    return pa.concat_arrays(pieces), np.concatenate(owners)


def aggregate(signature: CallSignature, given: list[Any]) -> Node:
    """``aggregate(array, zero, (sum, x) -> ...[, sum -> ...])``: element after element, of all rows at once."""
    argument, zero, merge = given[:3]
    finish = given[3] if len(given) > 3 else None  # noqa: PLR2004 - array, zero, merge
    kind = signature.types[1]

    def run(rows: Rows) -> Value:
        arrays = broadcast(argument(rows), rows.length)
        there = valid_mask(arrays, rows.length)
        try:
            start = broadcast(zero(rows), rows.length)
        except DataError:
            start = evaluate_where(zero, kind, rows, there)
        sums = _folded(merge, rows, arrays, retyped(start, kind))
        if finish is None:
            return _where(sums, there)
        owners = np.flatnonzero(there)
        return _spread(finish(rows, owners, [sums.take(pa.array(owners))]), owners, rows.length)

    return run


def _folded(merge: CompiledLambda, rows: Rows, arrays: pa.Array, sums: pa.Array) -> pa.Array:
    values, offsets, sizes = arrays.flatten(), list_offsets(arrays).astype(np.int64), lengths(arrays)
    active, place = np.arange(len(arrays)), 0
    pieces, owners = [], []
    while True:
        check()
        goes_on = sizes[active] > place
        if not goes_on.all():
            pieces.append(sums.filter(pa.array(~goes_on)))
            owners.append(active[~goes_on])
            active, sums = active[goes_on], sums.filter(pa.array(goes_on))
        if not len(active):
            break
        element = values.take(pa.array(offsets[active] + place))
        sums = retyped(merge(rows, active, [sums, element]), sums.type)
        place += 1
    return _spread(pa.concat_arrays(pieces), np.concatenate(owners), len(arrays)) if pieces else sums


def _spread(values: pa.Array, owners: NDArray[np.int64], length: int) -> pa.Array:
    """The values at their owners' rows, NULL at all others."""
    places = np.full(length, -1, np.int64)
    places[owners] = np.arange(len(owners))
    return values.take(pa.array(places, mask=places < 0))


def _where(values: pa.Array, there: NDArray[np.bool_]) -> pa.Array:
    return values if there.all() else values.take(pa.array(np.arange(len(there)), mask=~there))


def zip_with(signature: CallSignature, given: list[Any]) -> Node:
    """``zip_with(a, b, (x, y) -> ...)``: the shorter array goes on with NULLs."""
    left, right, function = given
    kind = signature.result

    def run(rows: Rows) -> Value:
        one, other = (broadcast(node(rows), rows.length) for node in (left, right))
        sizes = np.where(known(one, other), np.maximum(lengths(one), lengths(other)), 0).astype(np.int64)
        owners = np.repeat(np.arange(rows.length), sizes)
        place = np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        sides = []
        for arrays in (one, other):
            beyond = place >= lengths(arrays)[owners]
            places = np.where(beyond, 0, list_offsets(arrays)[owners] + place)
            sides.append(arrays.flatten().take(pa.array(places, mask=beyond)))
        made = retyped(function(rows, owners, sides), kind.value_type)
        offsets = np.zeros(rows.length + 1, np.int32)
        np.cumsum(sizes, out=offsets[1:])
        return pa.Array.from_buffers(kind, rows.length, [nulls_of(one, other), pa.py_buffer(offsets)], children=[made])

    return run


def array_sort(signature: CallSignature, given: list[Any]) -> Node:
    """``array_sort(array, (a, b) -> ...)``: by comparisons as Java makes them, one of each array at a time."""
    argument, function = given
    position = signature.position

    def run(rows: Rows) -> Value:
        arrays = broadcast(argument(rows), rows.length)
        values, offsets = arrays.flatten(), list_offsets(arrays).astype(np.int64)
        order = np.arange(len(values))
        sorts = {row: steps(size) for row, size in enumerate(lengths(arrays).tolist()) if size > 1}
        answers: dict[int, int | None] = dict.fromkeys(sorts)
        while sorts:
            check()
            asked = {}
            for row, answer in answers.items():
                try:
                    asked[row] = sorts[row].send(answer)
                except StopIteration as done:
                    order[offsets[row] : offsets[row + 1]] = offsets[row] + np.array(done.value, np.int64)
                    del sorts[row]
                except IllOrdered:
                    raise DataError("Comparison method violates its general contract!", position=position) from None
            owners = np.fromiter(asked, np.int64, len(asked))
            pairs = np.array(list(asked.values()), np.int64).reshape(-1, 2) + offsets[owners][:, None]
            found = function(rows, owners, [values.take(pa.array(pairs[:, at])) for at in (0, 1)])
            if found.null_count:
                message = "The comparator of array_sort has returned a NULL."
                raise failure("COMPARATOR_RETURNS_NULL", message, position)
            answers = dict(zip(asked, numbers(found).tolist(), strict=True))
        return gathered(values, order, lengths(arrays), signature, arrays)

    return run


HIGHER_ORDER: dict[str, HigherOrderBuilder] = {
    "transform": transform,
    "filter": array_filter,
    "exists": quantified,
    "forall": quantified,
    "aggregate": aggregate,
    "zip_with": zip_with,
    "array_sort": array_sort,
}
