"""What a delta does to groups: added up, looked up and told in one go. The twin of ``operators.aggregate``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import boolean, int64, uint64, void

from weirflow.ivm.compiled.hashes import mixed
from weirflow.ivm.compiled.memory import (
    as_double,
    as_single,
    as_word,
    ints_at,
    read_8,
    read_16,
    read_32,
    read_64,
    rows_at,
    write_8,
    write_64,
)
from weirflow.ivm.compiled.signatures import INTS, NEW_ROWS, ROWS, compiled, several
from weirflow.ivm.compiled.tables import (
    BYTE,
    COLUMN_STEP,
    DOUBLE,
    FIELDS,
    INT,
    LONG,
    NAN_DOUBLE,
    NULL_HASH,
    SHORT,
    SINGLE,
    STEP,
    add_found,
    find_places,
    is_present,
)
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


@compiled(uint64(uint64, boolean, int64, boolean))
def _hashed(before: Any, empty: Any, word: Any, double: Any) -> Any:
    """The hash of a row with one more column, as ``compiled.tables`` has it."""
    if empty:
        own = NULL_HASH
    else:
        number = as_double(word)
        if double and number != number:  # noqa: PLR0124 - only NaN differs from itself
            word = NAN_DOUBLE
        own = mixed(np.uint64(word) + STEP)
    return before * COLUMN_STEP + own


@compiled(void(ROWS, NEW_ROWS, NEW_ROWS, INTS, int64, int64, int64, int64, NEW_ROWS, NEW_ROWS))
def _tell(
    calls: Any, told: Any, nulls: Any, codes: Any, weight: Any, at: Any, group: Any, bits: Any, words: Any, empty: Any
) -> None:
    """Write the results of a group at a row of what is told; ``bits`` is where those are of what is not NULL."""
    told[0, at], told[1, at] = group, weight
    code, stride = np.uint64(codes[group]), 8 * ((told.shape[1] + 63) >> 6)
    for call in range(len(calls)):
        word, is_empty = words[call, group], empty[call, group] != 0
        told[3 + call, at] = word
        code = _hashed(code, is_empty, word, calls[call, 0] in (_AVERAGE, _DOUBLE_SUM, _DOUBLE_AVERAGE))
        if is_empty:
            nulls[call, 0] += 1
        else:
            place = bits + stride * call + (at >> 3)
            write_8(place, read_8(place) | (1 << (at & 7)))
    told[2, at] = np.int64(code)


@compiled(void(ROWS, int64, int64, INTS, int64, NEW_ROWS, NEW_ROWS))
def _add_placed(runs: Any, block: Any, keys: Any, codes: Any, columns: Any, totals: Any, places: Any) -> None:
    """``add_found``, that writes for each group a run that holds it, -1 if none does, and where."""
    width, rows, own = totals.shape[1], np.arange(len(codes)), np.empty(len(codes), np.int64)
    places[:, 0] = -1
    for run in range(len(runs)):
        find_places(runs, run, block, keys, codes.view(np.uint64), rows, columns, _GROUPING, own)
        for group in range(len(codes)):
            if own[group] >= 0:
                places[group, 0], places[group, 1] = run, own[group]
                for index in range(width):
                    totals[group, index] += read_64(runs[run, 4] + runs[run, 5] * own[group] + 8 * index)


@compiled(boolean(ROWS, INTS, ROWS, ROWS))
def _update(runs: Any, copies: Any, added: Any, places: Any) -> Any:
    """Write the values of runs with what is added to them; whether every group was there and none comes to nothing."""
    width = added.shape[1]
    for group in range(len(added)):
        run = places[group, 0]
        if run < 0:
            return False
        values, is_there = runs[run, 4] + runs[run, 5] * places[group, 1], False
        for index in range(width):
            is_there |= read_64(values + 8 * index) + added[group, index] != 0
        if not is_there:
            return False
    for run in range(len(runs)):
        copy = rows_at(copies[run], runs[run, 1], width)
        for row in range(len(copy)):
            values = runs[run, 4] + runs[run, 5] * row
            for index in range(width):
                copy[row, index] = read_64(values + 8 * index)
    for group in range(len(added)):
        copy = rows_at(copies[places[group, 0]], runs[places[group, 0], 1], width)
        for index in range(width):
            copy[places[group, 1], index] += added[group, index]
    return True


@compiled(several(int64, int64, boolean)(INTS, int64))
def _replaced(job: Any, block: Any) -> Any:
    """How many rows are told, or -1, the greatest magnitude of what is added, and whether runs are updated."""
    slots, calls = rows_at(job[0], job[1], 4), rows_at(job[2], job[3], 2)
    bounds, columns, width = ints_at(job[4], 4), job[5], job[6]
    weights, order = ints_at(job[7], job[8]), ints_at(job[9], job[8])
    starts, codes = ints_at(job[10], job[11]), ints_at(job[12], job[11])
    keys, table, runs = job[13], job[14], rows_at(job[15], job[16], 7)
    count, most = job[11], 2 * job[11]
    added, told = rows_at(job[17], count, width), rows_at(job[18], 3 + len(calls), most)
    bits = job[18] + 8 * most * (3 + len(calls))
    words_of_bits = len(calls) * ((most + 63) >> 6)
    rest = ints_at(bits, words_of_bits + len(calls))
    rest[:] = 0
    nulls = rows_at(bits + 8 * words_of_bits, len(calls), 1)
    if not _have_room(weights) or not _add_up(table, slots, bounds, weights, order, starts, added):
        return np.int64(-1), np.int64(0), False
    totals = np.zeros((count, width), np.int64)
    places = np.empty((count, 2), np.int64)
    if job[19]:
        _add_placed(runs, block, keys, codes, columns, totals, places)
    elif len(runs):
        add_found(runs, block, keys, codes.view(np.uint64), columns, _GROUPING, totals)
    least, greatest = extremes(totals)
    if least < -_LIMIT or greatest > _LIMIT:
        return np.int64(-1), np.int64(0), False
    shape = (len(calls), count)
    words, empty = np.empty(shape, np.int64), np.empty(shape, np.int64)
    others, others_empty = np.empty(shape, np.int64), np.empty(shape, np.int64)
    if not _results(totals, calls, bounds, words, empty):
        return np.int64(-1), np.int64(0), False
    was = totals[:, 0] > 0
    for group in range(count):
        for index in range(width):
            totals[group, index] += added[group, index]
        if totals[group, 0] < 0:
            return np.int64(-1), np.int64(0), False
    if not _results(totals, calls, bounds, others, others_empty):
        return np.int64(-1), np.int64(0), False
    at = np.int64(0)
    stays = np.empty(count, np.bool_)
    for group in range(count):
        stays[group] = was[group] and totals[group, 0] > 0 and _same(words, empty, others, others_empty, group)
        if was[group] and not stays[group]:
            _tell(calls, told, nulls, codes, -1, at, group, bits, words, empty)
            at += 1
    for group in range(count):
        if totals[group, 0] > 0 and not stays[group]:
            _tell(calls, told, nulls, codes, 1, at, group, bits, others, others_empty)
            at += 1
    for call in range(len(calls)):
        place = bits + 8 * (words_of_bits + len(calls) + FIELDS * (columns + call))
        write_64(place, DOUBLE if calls[call, 0] in (_AVERAGE, _DOUBLE_SUM, _DOUBLE_AVERAGE) else LONG)
        write_64(place + 8, bits + 8 * ((most + 63) >> 6) * call if nulls[call, 0] else 0)
        write_64(place + 16, job[18] + 8 * most * (3 + call))
        write_64(place + 24, 0)
        write_64(place + 32, 0)
    least, greatest = extremes(added)
    is_updated = job[19] != 0 and _update(runs, ints_at(job[19], len(runs)), added, places)
    return at, max(greatest, -least), is_updated


@compiled(NEW_ROWS(ROWS, int64))
def replace_groups(jobs: Any, block: Any) -> Any:
    """For each job what its groups change by.

    That is the number of rows, the greatest magnitude of what is added to totals, and whether runs were updated.

    The number is -1 if it is to be found out otherwise: of rows that are not there, sums that leave their limbs or
    their type, and weights that are too great. A job is made of addresses and numbers:

    - 0, 1: slots, and how many; of each summand its kind, its argument and its condition by number in the table of
      arguments, and its first total.
    - 2, 3: calls, and how many; of each its kind and the first total of its summand.
    - 4: of doubles the least and the first too great magnitude as bits, the lowest bit, and how many limbs.
    - 5, 6: how many columns the keys have, and how many totals a group.
    - 7, 8: the weights of the rows of the delta, and how many rows these are.
    - 9: these rows in the order of their groups.
    - 10, 11: where each group begins in it, and how many there are.
    - 12, 13: the codes of the groups' keys, which ascend and have no -0.0, and the table of the keys.
    - 14: the table of arguments, a row for each row of the delta.
    - 15, 16: the state, as for ``add_found``, and how many runs it has.
    - 17: zeros; what the delta adds to the totals of each group.
    - 18: room for what is told, a word for each of up to twice as many rows as there are groups: of what is taken back,
      then of what is given, the group, the weight, the code of the row, and the result of each call. Behind that, for
      each call the bits of the results that are not NULL, in whole words; behind those, how many are NULL; then a table
      of the keys, which is left as it is, and the results.
    - 19: 0, or where for each run the address of room for its values is. They are written there with what is added to
      them, unless no run holds one of the groups, or what it holds of one comes to nothing.

    Args:
        jobs: a row for each.
        block: of the samples of the state.
    """
    made = np.empty((len(jobs), 3), np.int64)
    for number in range(len(jobs)):
        told, greatest, is_updated = _replaced(jobs[number], block)
        made[number, 0], made[number, 1], made[number, 2] = told, greatest, np.int64(is_updated)
    return made
