"""Rows of several columns at once: hashed, compared, found and gathered where Arrow's buffers are.

A *table* is the address of int64 words, ``FIELDS`` for each column: its kind, the addresses of its validity bits (0 if
nothing is NULL), values and offsets, and the number of its first value in them. ``zset.layout`` makes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import boolean, int64, uint64, void

from weirflow.ivm.compiled.hashes import mixed
from weirflow.ivm.compiled.memory import (
    as_double,
    as_single,
    read_8,
    read_16,
    read_32,
    read_64,
    write_8,
    write_16,
    write_32,
    write_64,
)
from weirflow.ivm.compiled.orders import code_order
from weirflow.ivm.compiled.signatures import (
    INTS,
    NEW_BOOLS,
    NEW_INTS,
    NEW_ROWS,
    NEW_WORDS,
    ROWS,
    WORDS,
    compiled,
    several,
)

FIELDS = 5
BITS, BYTE, SHORT, INT, LONG, SINGLE, DOUBLE, WIDE, TEXT = range(1, 10)
"""Kinds of values: booleans, signed integers of 1, 2, 4 and 8 bytes, floating-point numbers, 16 bytes, byte strings."""

_GROUPING, _IDENTITY = True, False
_NEAR = 16
"""A run of so many rows for each that is looked for is small."""
_SOME = 256
"""More rows than that are looked for in the order of their codes: those that follow each other lie near each other."""
STEP = np.uint64(0x9E3779B97F4A7C15)
COLUMN_STEP = np.uint64(0xD1342543DE82EF95)
NULL_HASH = np.uint64(0x9E6C63D0676A9A99)
_EMPTY_ROW = np.uint64(0x2545F4914F6CDD1D)
_HIGH, _LOW = np.uint64(0xFFFFFFFF00000000), np.uint64(0x00000000FFFFFFFF)
NAN_DOUBLE, _NAN_SINGLE = np.int64(0x7FF8000000000000), np.int64(0x7FC00000)
_ZERO_SINGLE = np.int64(-(1 << 31))
_ZERO_DOUBLE = np.int64(-(1 << 63))


@compiled(boolean(int64, int64))
def _bit(address: Any, at: Any) -> Any:
    return (read_8(address + (at >> 3)) >> (at & 7)) & 1 == 1


@compiled(boolean(int64, int64))
def is_present(place: Any, row: Any) -> Any:
    """Whether the value in a row of a column is not NULL."""
    valid = read_64(place + 8)
    return valid == 0 or _bit(valid, read_64(place + 32) + row)


@compiled(int64(int64, int64, int64, boolean))
def _word(kind: Any, values: Any, at: Any, grouping: Any) -> Any:
    """A value of up to 64 bits, of which equal ones have equal words."""
    if kind == LONG:
        return read_64(values + 8 * at)
    if kind == DOUBLE:
        word = read_64(values + 8 * at)
        number = as_double(word)
        if number != number:  # noqa: PLR0124 - only NaN differs from itself
            return NAN_DOUBLE
        return np.int64(0) if grouping and word == _ZERO_DOUBLE else word
    if kind == INT:
        return read_32(values + 4 * at)
    if kind == BITS:
        return np.int64(_bit(values, at))
    if kind == SINGLE:
        word = read_32(values + 4 * at)
        small = as_single(word)
        if small != small:  # noqa: PLR0124
            return _NAN_SINGLE
        return np.int64(0) if grouping and word == _ZERO_SINGLE else word
    if kind == SHORT:
        return read_16(values + 2 * at)
    return read_8(values + at)


@compiled(uint64(int64, int64))
def _hash_text(begin: Any, end: Any) -> Any:
    """The hash of the bytes between two addresses, as ``hashes.hash_bytes`` has it."""
    total = mixed(np.uint64(end - begin) + STEP)
    salt = STEP
    while True:
        if begin + 8 <= end:
            word = np.uint64(read_64(begin))
        else:
            word = np.uint64(0)
            for index in range(end - begin):
                word |= np.uint64(read_8(begin + index) & 0xFF) << np.uint64(8 * index)
        total += mixed(word + salt)
        salt += STEP
        begin += 8
        if begin >= end:
            return total


@compiled(uint64(int64, int64, int64, int64, boolean))
def _hash_value(kind: Any, values: Any, offsets: Any, at: Any, grouping: Any) -> Any:
    if kind == TEXT:
        return _hash_text(values + read_32(offsets + 4 * at), values + read_32(offsets + 4 * at + 4))
    if kind == WIDE:
        first = mixed(np.uint64(read_64(values + 16 * at)) + STEP)
        return mixed(first + np.uint64(read_64(values + 16 * at + 8)))
    return mixed(np.uint64(_word(kind, values, at, grouping)) + STEP)


@compiled(void(int64, int64, int64, boolean, NEW_WORDS))
def _hash_columns(table: Any, begin: Any, end: Any, grouping: Any, hashes: Any) -> None:
    """Write the hashes of the columns from ``begin`` to ``end``."""
    if begin == end:
        hashes[:] = _EMPTY_ROW
    for column in range(begin, end):
        place = table + 8 * FIELDS * column
        kind, valid, values = read_64(place), read_64(place + 8), read_64(place + 16)
        offsets, first = read_64(place + 24), read_64(place + 32)
        for row in range(len(hashes)):
            at = first + row
            is_null = valid != 0 and not _bit(valid, at)
            own = NULL_HASH if is_null else _hash_value(kind, values, offsets, at, grouping)
            hashes[row] = own if column == begin else hashes[row] * COLUMN_STEP + own


@compiled(NEW_WORDS(int64, int64, int64, boolean))
def hash_table(table: Any, columns: Any, length: Any, grouping: Any) -> Any:
    """Hashes of rows, the twin of ``zset.hashing.hash_rows``."""
    hashes = np.empty(length, np.uint64)
    _hash_columns(table, 0, columns, grouping, hashes)
    return hashes


@compiled(NEW_WORDS(int64, int64, int64, int64, boolean))
def keyed_codes(table: Any, columns: Any, keys: Any, length: Any, float_keys: Any) -> Any:
    """The key's hash above and the row's below, the twin of ``kernel.codes.RowCodes`` for some but not all columns."""
    codes, rest = np.empty(length, np.uint64), np.empty(length, np.uint64)
    _hash_columns(table, 0, keys, _GROUPING, codes)
    _hash_columns(table, 0 if float_keys else keys, columns, _IDENTITY, rest)
    for row in range(length):
        codes[row] = (codes[row] & _HIGH) | (rest[row] & _LOW)
    return codes


@compiled(boolean(int64, int64, int64, int64))
def _equal_bytes(left: Any, left_offsets: Any, right: Any, right_offsets: Any) -> Any:
    """Whether two byte strings are equal; offsets are the addresses of where each begins."""
    begin, start = read_32(left_offsets), read_32(right_offsets)
    size = read_32(left_offsets + 4) - begin
    if size != read_32(right_offsets + 4) - start:
        return False
    at = np.int64(0)
    while at < size and read_8(left + begin + at) == read_8(right + start + at):
        at += 1
    return at == size


@compiled(boolean(int64, int64, int64, int64, boolean))
def _equal_values(one: Any, row: Any, other: Any, other_row: Any, grouping: Any) -> Any:
    """Whether two values are equal, of columns of one kind, each given by its place in a table."""
    kind = read_64(one)
    at, there = read_64(one + 32) + row, read_64(other + 32) + other_row
    valid, others_valid = read_64(one + 8), read_64(other + 8)
    if valid != 0 or others_valid != 0:
        present = valid == 0 or _bit(valid, at)
        if present != (others_valid == 0 or _bit(others_valid, there)):
            return False
        if not present:
            return True
    values, others = read_64(one + 16), read_64(other + 16)
    if kind == TEXT:
        return _equal_bytes(values, read_64(one + 24) + 4 * at, others, read_64(other + 24) + 4 * there)
    if kind == WIDE:
        same = read_64(values + 16 * at) == read_64(others + 16 * there)
        return same and read_64(values + 16 * at + 8) == read_64(others + 16 * there + 8)
    return _word(kind, values, at, grouping) == _word(kind, others, there, grouping)


@compiled(boolean(int64, int64, int64, int64, int64, boolean))
def equal_rows(left: Any, left_row: Any, right: Any, right_row: Any, columns: Any, grouping: Any) -> Any:
    """Whether the first columns of two rows are equal; both tables have the same kinds of them."""
    for column in range(columns):
        place = 8 * FIELDS * column
        if not _equal_values(left + place, left_row, right + place, right_row, grouping):
            return False
    return True


@compiled(NEW_BOOLS(int64, INTS, int64, INTS, int64, boolean))
def equal_pairs(left: Any, left_at: Any, right: Any, right_at: Any, columns: Any, grouping: Any) -> Any:
    """Whether rows of two tables are equal, pair by pair."""
    equal = np.empty(len(left_at), np.bool_)
    for row in range(len(left_at)):
        equal[row] = equal_rows(left, left_at[row], right, right_at[row], columns, grouping)
    return equal


@compiled(several(NEW_INTS, NEW_INTS, NEW_WORDS, boolean)(int64, int64, WORDS, boolean))
def group_table(table: Any, columns: Any, codes: Any, grouping: Any) -> Any:
    """(order, starts, codes of groups, exact): equal rows side by side, sorted by code; the twin of ``group_rows``.

    It is not exact, and to be done otherwise, if rows that differ have the same code.
    """
    order = code_order(codes)
    starts, own = np.empty(len(codes), np.int64), np.empty(len(codes), np.uint64)
    count, exact = 0, True
    for at in range(len(codes)):
        code = codes[order[at]]
        if count and own[count - 1] == code:
            exact &= equal_rows(table, order[at], table, order[at - 1], columns, grouping)
            continue
        starts[count], own[count] = at, code
        count += 1
    return order, starts[:count], own[:count], exact


@compiled(NEW_INTS(NEW_INTS, int64))
def _grown(values: Any, size: Any) -> Any:
    larger = np.empty(size, np.int64)
    larger[: len(values)] = values
    return larger


@compiled(int64(int64, int64, int64, uint64))
def _bound(codes: Any, begin: Any, length: Any, code: Any) -> Any:
    """The first place from ``begin`` on whose code is not below this one, of so many that ascend.

    It goes on without a branch that depends on a code: what cannot be predicted waits for memory, here others overtake.
    """
    while length > 1:
        half = length >> 1
        begin += half * np.int64(np.uint64(read_64(codes + 8 * (begin + half - 1))) < code)
        length -= half
    if length == 1:
        begin += np.int64(np.uint64(read_64(codes + 8 * begin)) < code)
    return begin


@compiled(int64(int64, int64, int64, int64, int64, uint64))
def first_at(codes: Any, length: Any, sample: Any, samples: Any, block: Any, code: Any) -> Any:
    """The first place of a run whose code is not below this one."""
    chosen = _bound(sample, 0, samples, code)
    begin = max((chosen - 1) * block, np.int64(0))
    end = chosen * block if chosen < samples else length
    return _bound(codes, begin, end - begin, code)


@compiled(int64(int64, int64, int64, uint64))
def _next_at(codes: Any, length: Any, at: Any, code: Any) -> Any:
    """As ``first_at``, of a run that stays in the cache and a place that lies not far behind ``at``."""
    step = np.int64(1)
    while at + step <= length and np.uint64(read_64(codes + 8 * (at + step - 1))) < code:
        at += step
        step *= 2
    return _bound(codes, at, min(at + step - 1, length) - at, code)


@compiled(int64(ROWS, int64, int64, int64, int64, uint64, int64, boolean))
def _place(runs: Any, run: Any, block: Any, table: Any, row: Any, code: Any, columns: Any, grouping: Any) -> Any:
    """Where a run holds a row with this code, -1 if it does not; a run holds it once."""
    codes, length = runs[run, 0], runs[run, 1]
    at = first_at(codes, length, runs[run, 2], runs[run, 3], block, code)
    while at < length and np.uint64(read_64(codes + 8 * at)) == code:
        if equal_rows(runs[run, 6], at, table, row, columns, grouping):
            return at
        at += 1
    return np.int64(-1)


@compiled(void(ROWS, int64, int64, int64, WORDS, INTS, int64, boolean, NEW_INTS))
def find_places(
    runs: Any, run: Any, block: Any, table: Any, codes: Any, rows: Any, columns: Any, grouping: Any, places: Any
) -> None:
    """Write where a run holds rows of the table, -1 where it does not.

    A search waits for memory, and so does each comparison. Done for all rows, one after the other and a column at a
    time, they wait together. In a small run, ascending codes are looked for where the one before was.
    """
    begin, length, held = runs[run, 0], runs[run, 1], runs[run, 6]
    is_near, last, code = length <= _NEAR * len(rows), np.int64(0), np.uint64(0)
    for number in range(len(rows)):
        before, code = code, codes[rows[number]]
        if is_near and code >= before:
            last = _next_at(begin, length, last, code)
            at = last
        else:
            at = last = first_at(begin, length, runs[run, 2], runs[run, 3], block, code)
        fits = at < length and np.uint64(read_64(begin + 8 * at)) == code
        places[number] = at if fits else -1
    for column in range(columns):
        one, other = held + 8 * FIELDS * column, table + 8 * FIELDS * column
        for number in range(len(rows)):
            if places[number] >= 0 and not _equal_values(one, places[number], other, rows[number], grouping):
                # Another row with the same code, maybe the one behind it.
                places[number] = _place(runs, run, block, table, rows[number], codes[rows[number]], columns, grouping)


@compiled(void(ROWS, int64, int64, WORDS, int64, boolean, NEW_ROWS))
def add_found(runs: Any, block: Any, table: Any, codes: Any, columns: Any, grouping: Any, totals: Any) -> None:
    """Add to each row of ``totals`` the values that runs hold for the row of the table; equal by so many columns.

    ``runs`` has for each run: the address of its codes, its length, the address of its sample, how many these are, the
    address of its values, the bytes from row to row of these, and its table.
    """
    width, rows, places = totals.shape[1], np.arange(len(codes)), np.empty(len(codes), np.int64)
    for run in range(len(runs)):
        find_places(runs, run, block, table, codes, rows, columns, grouping, places)
        for row in range(len(codes)):
            if places[row] >= 0:
                for index in range(width):
                    totals[row, index] += read_64(runs[run, 4] + runs[run, 5] * places[row] + 8 * index)


@compiled(int64(int64, NEW_INTS, int64, NEW_INTS, int64, int64))
def _kept_pairs(one: Any, rows: Any, other: Any, others: Any, begin: Any, end: Any) -> Any:
    """Move the pairs between two places that are equal in a column, as keys are, to the front; returns their end."""
    kept = begin
    if read_64(one) == LONG and read_64(one + 8) == 0 and read_64(other + 8) == 0:
        values = read_64(one + 16) + 8 * read_64(one + 32)
        others_values = read_64(other + 16) + 8 * read_64(other + 32)
        for number in range(begin, end):
            row, there = rows[number], others[number]
            rows[kept], others[kept] = row, there
            kept += read_64(values + 8 * row) == read_64(others_values + 8 * there)
        return kept
    for number in range(begin, end):
        row, there = rows[number], others[number]
        rows[kept], others[kept] = row, there
        kept += _equal_values(one, row, other, there, _GROUPING)
    return kept


@compiled(several(NEW_INTS, NEW_INTS, NEW_INTS)(ROWS, int64, int64, WORDS, uint64, int64, int64))
def find_rows(runs: Any, block: Any, table: Any, low: Any, span: Any, columns: Any, most: Any) -> Any:
    """(rows of the table, rows of the runs one below the other, their values) of all pairs with equal first columns.

    A pair's code lies in [low, low | span]. With more than ``most`` such pairs, equal or not, only the first
    ``most`` + 1 are there.
    """
    size = 2 * len(low) + 16
    probe, found, values = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    count, first = np.int64(0), np.int64(0)
    is_sorted = len(low) > _SOME
    order = code_order(low) if is_sorted else np.arange(len(low))
    for run in range(len(runs)):
        codes, length, begin = runs[run, 0], runs[run, 1], count
        is_near, behind = is_sorted and length <= _NEAR * len(low), np.int64(0)
        for number in range(len(low)):
            row = order[number]
            last = low[row] | span
            if is_near:
                at = behind = _next_at(codes, length, behind, low[row])
            else:
                at = first_at(codes, length, runs[run, 2], runs[run, 3], block, low[row])
            while at < length and np.uint64(read_64(codes + 8 * at)) <= last:
                if count == size:
                    size *= 2
                    probe, found, values = _grown(probe, size), _grown(found, size), _grown(values, size)
                probe[count], found[count] = row, at
                count += 1
                if count > most:
                    return probe[:count], found[:count], values[:count]
                at += 1
        # A column at a time: rows of one key lie side by side, and so do their values.
        for column in range(columns):
            place = 8 * FIELDS * column
            count = _kept_pairs(runs[run, 6] + place, found, table + place, probe, begin, count)
        for number in range(begin, count):
            values[number] = read_64(runs[run, 4] + runs[run, 5] * found[number])
            found[number] += first
        first += length
    return probe[:count], found[:count], values[:count]


@compiled(NEW_INTS(ROWS, ROWS, int64, int64, WORDS, int64, INTS))
def overdrawn(runs: Any, unsorted: Any, block: Any, table: Any, codes: Any, columns: Any, weights: Any) -> Any:
    """The rows of negative weight that runs, and parts in any order that are like them, do not hold often enough."""
    rows = np.flatnonzero(weights < 0)
    if len(rows) > _SOME:
        rows = rows[code_order(codes[rows])]
    held, places = weights[rows], np.empty(len(rows), np.int64)
    for run in range(len(runs)):
        find_places(runs, run, block, table, codes, rows, columns, _IDENTITY, places)
        for number in range(len(rows)):
            if places[number] >= 0:
                held[number] += read_64(runs[run, 4] + runs[run, 5] * places[number])
    for part in range(len(unsorted)):
        begin, length, table_of_part = unsorted[part, 0], unsorted[part, 1], unsorted[part, 6]
        for number in range(len(rows)):
            row = rows[number]
            for at in range(length):
                if np.uint64(read_64(begin + 8 * at)) == codes[row] and equal_rows(
                    table_of_part, at, table, row, columns, _IDENTITY
                ):
                    held[number] += read_64(unsorted[part, 4] + unsorted[part, 5] * at)
    return np.sort(rows[held < 0])


@compiled(several(NEW_WORDS, NEW_ROWS, NEW_INTS, boolean)(ROWS, int64, int64, boolean))
def merge_parts(parts: Any, width: Any, columns: Any, grouping: Any) -> Any:
    """(codes, values, rows, done): rows of parts one below the other as a run has them, each by its number in those.

    ``parts`` has for each: the address of its codes, its length, the address of its values, the bytes from row to row
    of these, and its table. It is not done, and to be done otherwise, if rows that differ have the same code or a sum
    leaves 64 bits.
    """
    total = np.int64(0)
    for part in range(len(parts)):
        total += parts[part, 1]
    codes, owner, first = np.empty(total, np.uint64), np.empty(total, np.int64), np.empty(len(parts), np.int64)
    at = np.int64(0)
    for part in range(len(parts)):
        first[part] = at
        for row in range(parts[part, 1]):
            codes[at] = np.uint64(read_64(parts[part, 0] + 8 * row))
            owner[at] = part
            at += 1
    order = code_order(codes)
    kept_codes, values, rows = np.empty(total, np.uint64), np.empty((total, width), np.int64), np.empty(total, np.int64)
    count = np.int64(0)
    at = np.int64(0)
    while at < total:
        row = order[at]
        part = owner[row]
        source = parts[part, 2] + parts[part, 3] * (row - first[part])
        for index in range(width):
            values[count, index] = read_64(source + 8 * index)
        end = at + 1
        while end < total and codes[order[end]] == codes[row]:
            other = order[end]
            there = owner[other]
            if not equal_rows(
                parts[part, 4], row - first[part], parts[there, 4], other - first[there], columns, grouping
            ):
                return kept_codes[:0], values[:0], rows[:0], False
            source = parts[there, 2] + parts[there, 3] * (other - first[there])
            for index in range(width):
                value, sum_ = read_64(source + 8 * index), values[count, index]
                added = sum_ + value
                if ((sum_ ^ added) & (value ^ added)) < 0:
                    return kept_codes[:0], values[:0], rows[:0], False
                values[count, index] = added
            end += 1
        nonzero = False
        for index in range(width):
            nonzero |= values[count, index] != 0
        if nonzero:
            kept_codes[count], rows[count] = codes[row], row
            count += 1
        at = end
    return kept_codes[:count], values[:count], rows[:count], True


@compiled(boolean(NEW_ROWS, int64))
def _is_any(values: Any, row: Any) -> Any:
    """Whether any value of a row is not 0."""
    found = False
    for index in range(values.shape[1]):
        found |= values[row, index] != 0
    return found


@compiled(several(NEW_WORDS, NEW_ROWS, NEW_INTS, boolean)(ROWS, int64, int64, boolean))
def merge_sorted(parts: Any, width: Any, columns: Any, grouping: Any) -> Any:
    """As ``merge_parts``, of a few parts each of which is sorted: one pass over all of them."""
    total = np.int64(0)
    heads, firsts = np.zeros(len(parts), np.int64), np.empty(len(parts), np.int64)
    for part in range(len(parts)):
        firsts[part] = total
        total += parts[part, 1]
    codes, values, rows = np.empty(total, np.uint64), np.empty((total, width), np.int64), np.empty(total, np.int64)
    count, holder, place = np.int64(0), np.int64(-1), np.int64(0)
    for _ in range(total):
        chosen: Any = np.int64(-1)
        least = np.uint64(0)
        for part in range(len(parts)):
            if heads[part] < parts[part, 1]:
                code = np.uint64(read_64(parts[part, 0] + 8 * heads[part]))
                if chosen < 0 or code < least:
                    chosen, least = part, code
        row = heads[chosen]
        heads[chosen] += 1
        source = parts[chosen, 2] + parts[chosen, 3] * row
        if holder >= 0 and codes[count] == least:
            if not equal_rows(parts[holder, 4], place, parts[chosen, 4], row, columns, grouping):
                return codes[:0], values[:0], rows[:0], False
            for index in range(width):
                value, sum_ = read_64(source + 8 * index), values[count, index]
                added = sum_ + value
                if ((sum_ ^ added) & (value ^ added)) < 0:
                    return codes[:0], values[:0], rows[:0], False
                values[count, index] = added
            continue
        count += holder >= 0 and _is_any(values, count)
        holder, place = chosen, row
        codes[count], rows[count] = least, firsts[chosen] + row
        for index in range(width):
            values[count, index] = read_64(source + 8 * index)
    count += holder >= 0 and _is_any(values, count)
    return codes[:count], values[:count], rows[:count], True


@compiled(NEW_INTS(ROWS, INTS))
def _owners(parts: Any, rows: Any) -> Any:
    """For each of the rows of parts one below the other, the number of its part."""
    owners = np.zeros(len(rows), np.int64)
    end = np.int64(0)
    for part in range(len(parts) - 1):
        end += parts[part, 0]
        for at in range(len(rows)):
            owners[at] += rows[at] >= end
    return owners


@compiled(void(int64, int64, INTS, INTS, INTS))
def _copy_values(target: Any, width: Any, bases: Any, owners: Any, rows: Any) -> None:
    """Copy values of so many bytes; in each part, that of a row is as many times that behind the part's base."""
    if width == 8:  # noqa: PLR2004 - a word
        for at in range(len(rows)):
            write_64(target + 8 * at, read_64(bases[owners[at]] + 8 * rows[at]))
    elif width == 4:  # noqa: PLR2004
        for at in range(len(rows)):
            write_32(target + 4 * at, read_32(bases[owners[at]] + 4 * rows[at]))
    elif width == 16:  # noqa: PLR2004
        for at in range(len(rows)):
            source = bases[owners[at]] + 16 * rows[at]
            write_64(target + 16 * at, read_64(source))
            write_64(target + 16 * at + 8, read_64(source + 8))
    elif width == 2:  # noqa: PLR2004
        for at in range(len(rows)):
            write_16(target + 2 * at, read_16(bases[owners[at]] + 2 * rows[at]))
    else:
        for at in range(len(rows)):
            write_8(target + at, read_8(bases[owners[at]] + rows[at]))


@compiled(int64(int64))
def _width(kind: Any) -> Any:
    """The bytes of a value of a kind of fixed width."""
    if kind in (LONG, DOUBLE):
        return 8
    if kind in (INT, SINGLE):
        return 4
    if kind == WIDE:
        return 16
    return 2 if kind == SHORT else 1


@compiled(void(ROWS, INTS, INTS, INTS))
def gather(parts: Any, rows: Any, columns: Any, into: Any) -> None:
    """Copy the values of some columns, of fixed width and without NULL, at rows of parts one below the other.

    ``parts`` has for each part its length and its table; ``into`` has an address for each of the columns.
    """
    owners, bases = _owners(parts, rows), np.empty(len(parts), np.int64)
    for number in range(len(columns)):
        place = 8 * FIELDS * columns[number]
        width = _width(read_64(parts[0, 1] + place))
        begin = np.int64(0)
        for part in range(len(parts)):
            table = parts[part, 1] + place
            bases[part] = read_64(table + 16) + width * (read_64(table + 32) - begin)
            begin += parts[part, 0]
        _copy_values(into[number], width, bases, owners, rows)
