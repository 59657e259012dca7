"""Generators: functions of a row that make several rows, or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weirflow.ivm.kernel.expressions.compile import compile_expression
from weirflow.ivm.kernel.expressions.nested.lists import entries_of, lengths
from weirflow.ivm.kernel.expressions.registry import UnknownFunction
from weirflow.ivm.kernel.expressions.retype import retyped
from weirflow.ivm.kernel.expressions.time_windows import TimeWindows
from weirflow.sql.expr import Call, Literal

if TYPE_CHECKING:
    from numpy.typing import NDArray

Generator = Callable[[Sequence[pa.Array], int], tuple[pa.Array, list[pa.Array]]]
"""Columns of a batch and its length to the generated rows: for each, the index (int64) of the row it comes from, in
ascending order, and one array for each column made, of exactly the types of the call's struct type."""

_NAMES = frozenset({"explode", "posexplode", "inline"})


def compile_generator(call: Call, *, outer: bool = False) -> Generator:
    """A generator over an array, a map or, for ``hop``, a moment; ``UnknownFunction`` for others.

    With ``outer``, a row for which there is nothing to make is kept once, with NULLs in the columns made.
    """
    if call.function == "hop":
        return _hop(call, outer=outer)
    kinds = [call.type.field(index).type for index in range(call.type.num_fields)]
    if call.function not in _NAMES:
        raise UnknownFunction(call.function, [each.type for each in call.arguments], call.position)
    evaluate = compile_expression(call.arguments[0])
    with_position, flat = call.function == "posexplode", call.function == "inline"

    def generate(columns: Sequence[pa.Array], length: int) -> tuple[pa.Array, list[pa.Array]]:
        source = evaluate(columns, length)
        sizes = lengths(source) if length else np.zeros(0, np.int32)
        made = _columns(source, flat=flat) if length else [pa.array([], kind) for kind in kinds]
        owners = np.repeat(np.arange(length), sizes)
        if with_position and length:
            starts = np.cumsum(sizes) - sizes
            made = [pa.array((np.arange(len(owners)) - np.repeat(starts, sizes)).astype(np.int32)), *made]
        if outer:
            owners, made = _with_empty_rows(sizes, owners, made)
        return pa.array(owners, pa.int64()), [retyped(each, kind) for each, kind in zip(made, kinds, strict=True)]

    return generate


def _hop(call: Call, *, outer: bool) -> Generator:
    """``window(time, size, slide)``: a row for each of the overlapping windows that hold the time."""
    time, *lengths = call.arguments
    constants = [pa.scalar(each.value, each.type) if isinstance(each, Literal) else None for each in lengths]
    windows = TimeWindows.of_constants(constants, call.type.field(0).type, call.position)
    if windows is None or not pa.types.is_timestamp(time.type):
        raise UnknownFunction(call.function, [each.type for each in call.arguments], call.position)
    evaluate = compile_expression(time)

    def generate(columns: Sequence[pa.Array], length: int) -> tuple[pa.Array, list[pa.Array]]:
        owners, window = windows.all(evaluate(columns, length))
        made = [window]
        if outer:
            owners, made = _with_empty_rows(np.bincount(owners, minlength=length), owners, made)
        return pa.array(owners, pa.int64()), made

    return generate


def _columns(source: pa.Array, *, flat: bool) -> list[pa.Array]:
    if pa.types.is_map(source.type):
        entries = entries_of(source)
        return [entries.keys, entries.items]
    values = source.flatten()
    if not flat:
        return [values]
    return [pc.struct_field(values, [index]) for index in range(values.type.num_fields)]


def _with_empty_rows(
    sizes: NDArray[np.int32] | NDArray[np.int64], owners: NDArray[np.int64], made: list[pa.Array]
) -> tuple[NDArray[np.int64], list[pa.Array]]:
    empty = np.flatnonzero(sizes == 0)
    if not len(empty):
        return owners, made
    order = np.argsort(np.concatenate([owners, empty]), kind="stable")
    place = np.concatenate([np.arange(len(owners)), np.full(len(empty), -1)])[order]
    indexes = pa.array(place, mask=place < 0)
    return np.concatenate([owners, empty])[order], [each.take(indexes) for each in made]
