"""Spark's order of values of every type."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from support.rows import sliced

from weirflow.ivm.kernel.sort_keys import SortColumn, prefixes, row_order

NAN, INF = math.nan, math.inf
# Values in Spark's ascending order.
ASCENDING = {
    pa.bool_(): [False, True],
    pa.int8(): [-128, -1, 0, 1, 127],
    pa.int64(): [-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1],
    pa.float32(): [-INF, -1.5, 0.0, 1.5, INF, NAN],
    pa.float64(): [-INF, -1e300, -5e-324, 0.0, 5e-324, 1.5, INF, NAN],
    pa.decimal128(38, 2): [
        Decimal(-(10**35)),
        Decimal("-1.5"),
        Decimal(0),
        Decimal("0.01"),
        Decimal(2**64),
        Decimal(10**35),
    ],
    pa.string(): ["", "\0", "\0\0", "a", "a\0", "ab", "abcdefgh", "abcdefghi", "abcdefghj", "b", "ä", "日", "🙂"],
    pa.binary(): [b"", b"\0", b"\x7f", b"\x80", b"\xff", b"\xff\xff"],
    pa.date32(): [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(9999, 12, 31)],
    pa.timestamp("us"): [dt.datetime(1, 1, 1), dt.datetime(1970, 1, 1), dt.datetime(2026, 1, 1)],  # noqa: DTZ001
    pa.duration("us"): [dt.timedelta(days=-1), dt.timedelta(0), dt.timedelta(microseconds=1)],
    pa.month_day_nano_interval(): [(-13, 0, 0), (-1, 0, 0), (0, 0, 0), (1, 0, 0), (12, 0, 0)],
    pa.list_(pa.int64()): [[], [None], [None, 5], [-1], [1], [1, None], [1, 2], [2]],
    pa.list_(pa.string()): [[], ["a"], ["a", "b"], ["b"]],
    pa.struct([("x", pa.int64()), ("y", pa.float64())]): [
        {"x": None, "y": 1.0},
        {"x": 1, "y": None},
        {"x": 1, "y": -1.0},
        {"x": 1, "y": NAN},
        {"x": 2, "y": 0.0},
    ],
}


@pytest.mark.parametrize("nulls_first", [True, False])
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("type_", ASCENDING, ids=str)
def test_values_of_every_type_are_sorted_as_spark_sorts(type_, descending, nulls_first):
    values = ASCENDING[type_][::-1] if descending else ASCENDING[type_]
    expected = pa.array([None, *values] if nulls_first else [*values, None], type_)
    shuffled = np.random.default_rng(5).permutation(len(expected))
    array = sliced(expected.take(pa.array(shuffled)))
    order = [SortColumn(0, descending, nulls_first)]
    prefix = prefixes([array], order, len(array))
    result, _ = row_order(np.zeros(len(array), np.uint64), prefix, [array], order)
    assert shuffled[result].tolist() == list(range(len(expected)))


def test_ties_are_broken_by_all_columns():
    first, second = pa.array([1, 1, 1, 0]), pa.array(["b", None, "a", "z"])
    order = [SortColumn(0, descending=True)]
    result, tied = row_order(np.zeros(4, np.uint64), prefixes([first], order, 4), [first, second], order)
    assert result.tolist() == [1, 2, 0, 3]
    assert tied.tolist() == [1, 2]


def test_zeros_tie_in_the_order_but_are_told_apart():
    zeros, names = pa.array([0.0, -0.0, 0.0]), pa.array(["b", "a", "c"])
    order = [SortColumn(0), SortColumn(1, descending=True)]
    result, _ = row_order(np.zeros(3, np.uint64), prefixes([zeros], order, 3), [zeros, names], order)
    assert result.tolist() == [2, 0, 1]
    alone, _ = row_order(np.zeros(3, np.uint64), prefixes([zeros], order[:1], 3), [zeros], order[:1])
    assert alone.tolist()[0] == 1


def test_codes_come_before_everything():
    values = pa.array([1, 2, 3])
    order = [SortColumn(0)]
    result, tied = row_order(np.array([2, 1, 1], np.uint64), prefixes([values], order, 3), [values], order)
    assert (result.tolist(), tied.tolist()) == ([1, 2, 0], [])
