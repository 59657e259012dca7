import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from support.exprs import BIGINT, POSITION, TIMESTAMP, TIMESTAMP_NTZ, apply_rows, call, condition_of, lit

from weirflow.errors import DataError
from weirflow.ivm.kernel.expressions import UnknownFunction, compile_expression, compile_generator
from weirflow.sql.expr import Column

MINUTE = 60_000_000
MOST = 2**63 - 1


def window_of(kind):
    return pa.struct([pa.field("start", kind), pa.field("end", kind)])


def lengths(size, slide, start=0):
    return [lit(length, BIGINT) for length in (size, slide, start)]


def tumble(times, size, start=0, kind=TIMESTAMP):
    return apply_rows("tumble", window_of(kind), (pa.array(times, kind), kind), *lengths(size, size, start))


def hop(times, size, slide, start=0, *, outer=False):
    made = pa.struct([pa.field("window", window_of(TIMESTAMP))])
    generator = compile_generator(
        call("hop", made, Column(0, "t", TIMESTAMP), *lengths(size, slide, start)), outer=outer
    )
    owners, (windows,) = generator([pa.array(times, TIMESTAMP)], len(times))
    windows.validate(full=True)
    assert windows.type == window_of(TIMESTAMP)
    bounds = [field.view(BIGINT).to_pylist() for field in windows.flatten()]
    return list(zip(owners.to_pylist(), *bounds, strict=True))


def at(*parts, tz=UTC):
    return datetime(*parts, tzinfo=tz)


def test_a_moment_is_in_the_window_that_begins_with_it_and_not_in_the_one_that_ends():
    ten = timedelta(minutes=10)
    moments = [at(2020, 1, 1, 0, 10), at(2020, 1, 1, 0, 19, 59, 999999), at(1969, 12, 31, 23, 59, 59), None]
    starts = [at(2020, 1, 1, 0, 10), at(2020, 1, 1, 0, 10), at(1969, 12, 31, 23, 50)]
    assert tumble(moments, 10 * MINUTE) == [*({"start": start, "end": start + ten} for start in starts), None]


@pytest.mark.parametrize(("start", "expected"), [(15, (1969, 12, 31, 23, 15)), (-15, (1969, 12, 31, 23, 45))])
def test_windows_may_begin_off_the_hour(start, expected):
    begin = at(*expected, tz=None)
    [window] = tumble([at(1970, 1, 1, 0, 10, tz=None)], 60 * MINUTE, start * MINUTE, TIMESTAMP_NTZ)
    assert window == {"start": begin, "end": begin + timedelta(hours=1)}


def test_every_window_that_holds_a_moment_and_no_other():
    dice = random.Random(5)
    for _ in range(40):
        slide = dice.randint(1, 9)
        size = slide + dice.randint(1, 20)
        start = dice.randint(1 - slide, slide - 1)
        times = [dice.randint(-50, 50) for _ in range(5)]
        begins = [begin for begin in range(-200, 200) if (begin - start) % slide == 0]
        expected = [
            (row, begin, begin + size)
            for row, time in enumerate(times)
            for begin in begins
            if begin <= time < begin + size
        ]
        assert sorted(hop(times, size, slide, start)) == expected


def test_no_moment_is_in_no_window():
    assert hop([None, 0], 2, 1) == [(1, 0, 2), (1, -1, 1)]
    assert hop([], 2, 1) == []
    assert hop([None], 2, 1, outer=True) == [(0, None, None)]


@pytest.mark.parametrize(("time", "start"), [(MOST, 0), (-MOST, 0), (-MOST, 3 * MINUTE)])
def test_a_window_beyond_the_last_moment_is_an_overflow(time, start):
    constants = lengths(10 * MINUTE, 10 * MINUTE, start)
    assert condition_of("tumble", window_of(TIMESTAMP), (time, TIMESTAMP), *constants) == "ARITHMETIC_OVERFLOW"


def test_far_moments_whose_windows_fit_are_exact():
    last = MOST - MOST % MINUTE - 1
    windows = compile_expression(
        call("tumble", window_of(TIMESTAMP), Column(0, "t", TIMESTAMP), *lengths(MINUTE, MINUTE))
    )
    start, end = windows([pa.array([last, 0], TIMESTAMP)], 2).flatten()
    assert start.view(BIGINT).to_pylist() == [last + 1 - MINUTE, 0]
    assert end.view(BIGINT).to_pylist() == [last + 1, MINUTE]
    with pytest.raises(DataError) as raised:
        hop([last], MINUTE, MINUTE // 7)
    assert raised.value.position == POSITION


def test_lengths_that_are_no_constants_are_refused():
    arguments = [Column(0, "t", TIMESTAMP), Column(1, "n", BIGINT), *lengths(1, 1)[1:], lit(0, BIGINT)]
    with pytest.raises(UnknownFunction):
        compile_expression(call("tumble", window_of(TIMESTAMP), *arguments))
    with pytest.raises(UnknownFunction):
        compile_generator(call("hop", pa.struct([pa.field("window", window_of(TIMESTAMP))]), *arguments))
