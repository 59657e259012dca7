"""What a delta does to groups: added up, looked up and told in one go. The twin of ``operators.aggregate``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import boolean, int64, uint8, void

from weirflow.ivm.compiled.memory import as_single, as_word, read_8, read_16, read_32, read_64
from weirflow.ivm.compiled.signatures import INTS, NEW_INTS, NEW_ROWS, ROWS, WORDS, compiled
from weirflow.ivm.compiled.tables import BYTE, FIELDS, INT, SHORT, SINGLE, add_found, is_present
from weirflow.ivm.compiled.totals import add_double, double_totals, extremes

_COUNT, _INTEGER, _DOUBLE = range(3)
_OF_ROWS, _SUM, _AVERAGE, _DOUBLE_SUM, _DOUBLE_AVERAGE = range(5)
_MASK = np.int64(0xFFFFFFFF)
_HALF = np.int64(1 << 31)
_MOST_ROWS = 1 << 29
_LIMIT = np.int64(1 << 62)
_GROUPING = True


@compiled(int64(int64, int64))
def integer_at(place: Any, row: Any) -> Any:
    """The integer in a row of a column."""
    kind, values, at = read_64(place), read_64(place + 16), read_64(place + 32) + row
    if kind == INT:
        return read_32(values + 4 * at)
    if kind == SHORT:
        return read_16(values + 2 * at)
    if kind == BYTE:
        return read_8(values + at)
    return read_64(values + 8 * at)


@compiled(int64(int64, int64))
def double_at(place: Any, row: Any) -> Any:
    """The bits of the floating-point number in a row of a column, as a double."""
    values, at = read_64(place + 16), read_64(place + 32) + row
    if read_64(place) == SINGLE:
        return as_word(np.float64(as_single(read_32(values + 4 * at))))
    return read_64(values + 8 * at)


@compiled(boolean(int64, int64, int64, int64))
def _counts(table: Any, argument: Any, condition: Any, row: Any) -> Any:
    """Whether the argument is not NULL and the condition is true; those that are not there are below 0."""
    if condition >= 0:
        place = table + 8 * FIELDS * condition
        at = read_64(place + 32) + row
        true = (read_8(read_64(place + 16) + (at >> 3)) >> (at & 7)) & 1 == 1
        if not true or not is_present(place, row):
            return False
    return argument < 0 or is_present(table + 8 * FIELDS * argument, row)


@compiled(boolean(INTS))
def _have_room(weights: Any) -> Any:
    """Whether so few rows count so little that no sum of them leaves 64 bits."""
    most = np.int64(_MOST_ROWS // max(len(weights), 1))
    fits = True
    for row in range(len(weights)):
        fits &= -most <= weights[row] <= most
    return fits


@compiled(boolean(int64, ROWS, INTS, INTS, INTS, INTS, NEW_ROWS))
def _add_up(table: Any, slots: Any, bounds: Any, weights: Any, order: Any, starts: Any, added: Any) -> Any:
    """Add what rows add to their groups; whether every double has room in its limbs."""
    for group in range(len(starts)):
        end = starts[group + 1] if group + 1 < len(starts) else len(order)
        for at in range(starts[group], end):
            row = order[at]
            weight = weights[row]
            added[group, 0] += weight
            for slot in range(len(slots)):
                kind, argument, first = slots[slot, 0], slots[slot, 1], slots[slot, 3]
                if weight == 0 or not _counts(table, argument, slots[slot, 2], row):
                    continue
                added[group, first] += weight
                place = table + 8 * FIELDS * argument
                if kind == _INTEGER:
                    value = integer_at(place, row)
                    added[group, first + 1] += weight * (value & _MASK)
                    added[group, first + 2] += weight * (value >> 32)
                elif kind == _DOUBLE:
                    bits = double_at(place, row)
                    if not add_double(bits, weight, bounds[0], bounds[1], bounds[2], added, group, first + 1):
                        return False
    return True


@compiled(boolean(NEW_ROWS, ROWS, INTS, NEW_ROWS, NEW_ROWS))
def _results(totals: Any, calls: Any, bounds: Any, words: Any, empty: Any) -> Any:
    """Write the results of calls, as 64 bits each, and 1 where they are NULL; whether all integers have room."""
    for call in range(len(calls)):
        kind, first = calls[call, 0], calls[call, 1]
        if kind == _OF_ROWS:
            for group in range(len(totals)):
                words[call, group], empty[call, group] = totals[group, first], 0
            continue
        if kind in (_DOUBLE_SUM, _DOUBLE_AVERAGE):
            doubles = double_totals(totals[:, first + 1 : first + 1 + bounds[3]], bounds[2])
        for group in range(len(totals)):
            count = totals[group, first]
            empty[call, group] = np.int64(count == 0)
            if kind in (_DOUBLE_SUM, _DOUBLE_AVERAGE):
                value = doubles[group]
                if kind == _DOUBLE_AVERAGE and count != 0:
                    value /= np.float64(count)
                words[call, group] = as_word(value)
                continue
            high = totals[group, first + 2] + (totals[group, first + 1] >> 32)
            if high >= _HALF or high < -_HALF:
                return False
            total = (high << 32) | (totals[group, first + 1] & _MASK)
            if kind == _AVERAGE:
                total = as_word(np.float64(total) / np.float64(count if count != 0 else 1))
            words[call, group] = total
    return True


@compiled(boolean(NEW_ROWS, NEW_ROWS, NEW_ROWS, NEW_ROWS, int64))
def _same(words: Any, empty: Any, others: Any, others_empty: Any, group: Any) -> Any:
    for call in range(len(words)):
        if empty[call, group] != others_empty[call, group]:
            return False
        if empty[call, group] == 0 and words[call, group] != others[call, group]:
            return False
    return True


@compiled(void(NEW_ROWS, uint8[:, ::1], int64, int64, NEW_ROWS, NEW_ROWS, NEW_INTS))
def _tell(told: Any, valid: Any, at: Any, group: Any, words: Any, empty: Any, nulls: Any) -> None:
    """Write the results of a group at a row of what is told."""
    bit = np.uint8(1 << (at & 7))
    for call in range(len(words)):
        told[2 + call, at] = words[call, group]
        if empty[call, group] == 0:
            valid[call, at >> 3] |= bit
        else:
            nulls[call] += 1


@compiled(int64(int64, ROWS, ROWS, INTS, INTS, INTS, INTS, ROWS, int64, int64, WORDS, int64, NEW_ROWS, NEW_ROWS,
                uint8[:, ::1], NEW_INTS))  # fmt: skip
def replace_groups(
    table: Any,
    slots: Any,
    calls: Any,
    bounds: Any,
    weights: Any,
    order: Any,
    starts: Any,
    runs: Any,
    block: Any,
    keys: Any,
    codes: Any,
    columns: Any,
    added: Any,
    told: Any,
    valid: Any,
    nulls: Any,
) -> Any:
    """The number of rows that groups change by, or -1 if it is to be found out otherwise.

    That is so of rows that are not there, sums that leave their limbs or their type, and weights that are too great.

    Args:
        table: the arguments of the calls, one row for each row of the delta.
        slots: of each summand its kind, its argument and its condition by number in the table, and its first total.
        calls: of each call its kind and the first total of its summand.
        bounds: of doubles the least and the first too great magnitude as bits, the lowest bit, and how many limbs.
        weights: of the rows of the delta.
        order: these rows in the order of their groups.
        starts: where each group begins in it.
        runs: the state, as for ``add_found``.
        block: of the samples of the state.
        keys: the table of the groups' keys.
        codes: of the groups' keys.
        columns: how many columns the keys have.
        added: zeros; what the delta adds to the totals of each group.
        told: of each row that is taken back, then of each that is given, the group, the weight and the results.
        valid: zeros; a bit for each of these results that is not NULL.
        nulls: zeros; how many of them are NULL.
    """
    if not _have_room(weights) or not _add_up(table, slots, bounds, weights, order, starts, added):
        return -1
    totals = np.zeros(added.shape, np.int64)
    if len(runs):
        add_found(runs, block, keys, codes, columns, _GROUPING, totals)
    least, greatest = extremes(totals)
    if least < -_LIMIT or greatest > _LIMIT:
        return -1
    shape = (len(calls), len(starts))
    words, empty = np.empty(shape, np.int64), np.empty(shape, np.int64)
    others, others_empty = np.empty(shape, np.int64), np.empty(shape, np.int64)
    if not _results(totals, calls, bounds, words, empty):
        return -1
    was = totals[:, 0] > 0
    for group in range(len(starts)):
        for index in range(added.shape[1]):
            totals[group, index] += added[group, index]
        if totals[group, 0] < 0:
            return -1
    if not _results(totals, calls, bounds, others, others_empty):
        return -1
    count = np.int64(0)
    stays = np.empty(len(starts), np.bool_)
    for group in range(len(starts)):
        stays[group] = was[group] and totals[group, 0] > 0 and _same(words, empty, others, others_empty, group)
        if was[group] and not stays[group]:
            told[0, count], told[1, count] = group, -1
            _tell(told, valid, count, group, words, empty, nulls)
            count += 1
    for group in range(len(starts)):
        if totals[group, 0] > 0 and not stays[group]:
            told[0, count], told[1, count] = group, 1
            _tell(told, valid, count, group, others, others_empty, nulls)
            count += 1
    return count
