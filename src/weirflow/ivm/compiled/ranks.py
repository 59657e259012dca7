"""Finding values in order and counting the rows up to them, the twin of ``kernel.selection``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64

from weirflow.ivm.compiled.signatures import INTS, NEW_INTS, ROWS, WORDS, compiled, several


@compiled(NEW_INTS(ROWS, INTS, int64, INTS))
def sums_before(values: Any, sums: Any, block: int, places: Any) -> Any:
    """The sum of the first values of all rows before each place; ``sums`` has it for every ``block``-th row."""
    result = np.empty(len(places), np.int64)
    for index in range(len(places)):
        place = places[index]
        begin = place // block
        total = sums[begin]
        for row in range(begin * block, place):
            total += values[row, 0]
        result[index] = total
    return result


@compiled(several(NEW_INTS, NEW_INTS)(WORDS, INTS, INTS, WORDS))
def find_words(words: Any, low: Any, high: Any, wanted: Any) -> Any:
    """The first place in each sorted range whose word is not below the wanted one, and the first that is above it."""
    first, last = np.empty(len(low), np.int64), np.empty(len(low), np.int64)
    for index in range(len(low)):
        begin, end, word = low[index], high[index], wanted[index]
        while begin < end:
            middle = (begin + end) >> 1
            if words[middle] < word:
                begin = middle + 1
            else:
                end = middle
        first[index], end = begin, high[index]
        while begin < end and words[begin] == word:
            begin += 1
        last[index] = begin
    return first, last
