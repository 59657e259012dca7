"""Sums that wrap around or are NULL are functions of the rows alone, whatever came and went."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from weirflow.ivm.operators.aggregate.operator import Aggregate
from weirflow.ivm.zset.batch import Batch
from weirflow.sql.expr import AggregateCall, Column

BIGINT, WIDE = pa.int64(), pa.decimal128(38, 0)
LARGEST = 2**63 - 1
DIGITS = Decimal(9 * 10**37)


@pytest.mark.parametrize(
    ("function", "kind", "result", "ticks", "expected"),
    [
        (
            "wrapping_sum",
            BIGINT,
            BIGINT,
            [[(LARGEST, 1)], [(1, 2)], [(1, -1)], [(LARGEST, -1)], [(1, -1), (None, 1)]],
            [LARGEST, -(2**63) + 1, -(2**63), 1, None],
        ),
        (
            "try_sum",
            BIGINT,
            BIGINT,
            [[(LARGEST, 1)], [(1, 2)], [(1, -1)], [(LARGEST, -1)]],
            [LARGEST, None, None, 1],
        ),
        ("try_sum", WIDE, WIDE, [[(DIGITS, 1)], [(DIGITS, 1)], [(DIGITS, -1)]], [DIGITS, None, DIGITS]),
        (
            "try_avg",
            WIDE,
            pa.decimal128(38, 4),
            [[(Decimal(7), 2)], [(DIGITS, 1)], [(DIGITS, -1), (Decimal(8), 1)]],
            [Decimal(7), None, Decimal("7.3333")],
        ),
    ],
)
def test_sums_come_back(function, kind, result, ticks, expected):
    total = Aggregate([], [AggregateCall(function, (Column(0, "x", kind),), result)])
    found = total.start().columns[0].to_pylist()
    assert found == [None]
    for rows, wanted in zip(ticks, expected, strict=True):
        values, weights = zip(*rows, strict=True)
        change = total.step([Batch((pa.array(values, kind),), np.array(weights, np.int64))])
        total.commit()
        new = [value for value, weight in zip(change.columns[0].to_pylist(), change.weights, strict=True) if weight > 0]
        found = new or found
        assert found == [wanted]
