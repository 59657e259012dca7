"""The first value of keys in ordered state, with what a delta does to it. The twin of ``aggregate.extreme``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import boolean, int64, uint64

from weirflow.ivm.compiled.groups import double_at, integer_at
from weirflow.ivm.compiled.memory import as_double, read_64
from weirflow.ivm.compiled.signatures import INTS, NEW_BOOLS, NEW_INTS, ROWS, WORDS, compiled
from weirflow.ivm.compiled.tables import DOUBLE, FIELDS, SINGLE, equal_rows, first_at

_SIGN = np.uint64(1 << 63)
_NAN = np.int64(0x7FF8000000000000)
_LAST = np.uint64(0xFFFFFFFFFFFFFFFF)
_GROUPING = True


@compiled(int64(int64, int64))
def _bits(place: Any, row: Any) -> Any:
    """The integer in a row of a column, or the bits of a floating-point number as a double: one NaN for all."""
    kind = read_64(place)
    if kind not in (SINGLE, DOUBLE):
        return integer_at(place, row)
    bits = double_at(place, row)
    number = as_double(bits)
    return _NAN if number != number else bits  # noqa: PLR0124 - only NaN differs from itself


@compiled(uint64(int64, boolean, boolean))
def _ordered(bits: Any, floating: Any, descending: Any) -> Any:
    """A word that compares as the value does: zeros of either sign are equal, NaN is the greatest."""
    word = np.uint64(bits)
    if not floating:
        word ^= _SIGN
    elif word & ~_SIGN == np.uint64(0):
        word = _SIGN
    elif bits < 0:
        word = ~word
    else:
        word |= _SIGN
    return ~word if descending else word


@compiled(boolean(ROWS, int64, int64, WORDS, INTS, int64, boolean, boolean, INTS, INTS, INTS, NEW_BOOLS, NEW_INTS))
def first_values(
    runs: Any,
    block: Any,
    keys: Any,
    codes: Any,
    chosen: Any,
    columns: Any,
    floating: Any,
    descending: Any,
    starts: Any,
    values: Any,
    weights: Any,
    present: Any,
    first: Any,
) -> Any:
    """Whether the first values are found: it is to be done otherwise if zeros of either sign come first.

    Args:
        runs: the state, as for ``add_found``; its values are in the column behind the keys, in order for each key.
        block: of the samples of the state.
        keys: a table of keys.
        codes: of all these keys.
        chosen: the keys that are asked for, by number.
        columns: how many columns the keys have.
        floating: whether values are the bits of doubles, and not integers.
        descending: whether the greatest value comes first.
        starts: where the rows of the delta begin that each chosen key has, and where the last ones end.
        values: of these rows, in order for each key.
        weights: of these rows.
        present: whether the key has a value, which is to be written.
        first: the value, as integers or bits.
    """
    at = np.empty(len(runs), np.int64)
    for number in range(len(chosen)):
        code = codes[chosen[number]]
        for run in range(len(runs)):
            at[run] = first_at(runs[run, 0], runs[run, 1], runs[run, 2], runs[run, 3], block, code)
        row, end = starts[number], starts[number + 1]
        present[number], first[number] = False, 0
        while True:
            word, value, found = _LAST, np.int64(0), False
            for run in range(len(runs)):
                held = runs[run, 6]
                while at[run] < runs[run, 1] and np.uint64(read_64(runs[run, 0] + 8 * at[run])) == code:
                    if equal_rows(held, at[run], keys, chosen[number], columns, _GROUPING):
                        own = _bits(held + 8 * FIELDS * columns, at[run])
                        if not found or _ordered(own, floating, descending) < word:
                            word, value, found = _ordered(own, floating, descending), own, True
                        break
                    at[run] += 1
            if row < end and (not found or _ordered(values[row], floating, descending) < word):
                word, value, found = _ordered(values[row], floating, descending), values[row], True
            if not found:
                break
            total = np.int64(0)
            for run in range(len(runs)):
                held = runs[run, 6]
                while at[run] < runs[run, 1] and np.uint64(read_64(runs[run, 0] + 8 * at[run])) == code:
                    if equal_rows(held, at[run], keys, chosen[number], columns, _GROUPING):
                        own = _bits(held + 8 * FIELDS * columns, at[run])
                        if _ordered(own, floating, descending) != word:
                            break
                        if own != value:
                            return False
                        total += read_64(runs[run, 4] + runs[run, 5] * at[run])
                    at[run] += 1
            while row < end and _ordered(values[row], floating, descending) == word:
                if values[row] != value:
                    return False
                total += weights[row]
                row += 1
            if total > 0:
                present[number], first[number] = True, value
                break
    return True
