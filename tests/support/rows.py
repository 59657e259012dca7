"""Values of every Spark type, and rows as plain Python for models to count."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.rows import Equality, canonical_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NAN, ZERO, MINUS_ZERO = float("nan"), 0.0, -0.0
OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

# Each value differs from all others of its type, in both equalities; None comes first.
VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [None, False, True],
    pa.int8(): [None, 0, 1, -1, 127, -128],
    pa.int16(): [None, 0, 1, -1, 32767, -32768],
    pa.int32(): [None, 0, 1, -1, 2**31 - 1, -(2**31)],
    pa.int64(): [None, 0, 1, -1, 2**63 - 1, -(2**63), 2**32],
    pa.float32(): [None, 0.0, 1.5, -1.5, math.inf, -math.inf, NAN],
    pa.float64(): [None, 0.0, 1.5, -1.5, math.inf, -math.inf, NAN, 5e-324],
    pa.decimal128(10, 2): [None, Decimal("0.00"), Decimal("1.10"), Decimal("-1.10"), Decimal("99999999.99")],
    pa.decimal128(38, 0): [None, Decimal(0), Decimal(10**37), Decimal(-(10**37)), Decimal(2**64), Decimal(1)],
    pa.string(): [None, "", "a", "ab", "a\0", "\0", "\0a", "ä", "日本語", "x" * 8, "x" * 9, "x" * 7, "y" * 200, "🙂"],
    pa.binary(): [None, b"", b"a", b"\0", b"\0\0", b"\xff\xfe", b"12345678", b"123456789", b"z" * 1000],
    pa.date32(): [None, dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    pa.timestamp("us", tz="UTC"): [None, EPOCH, EPOCH + dt.timedelta(microseconds=1), EPOCH - dt.timedelta(days=9999)],
    pa.timestamp("us"): [None, dt.datetime(1970, 1, 1), dt.datetime(2026, 3, 29, 2, 30)],  # noqa: DTZ001
    pa.duration("us"): [None, dt.timedelta(0), dt.timedelta(days=-3), dt.timedelta(microseconds=1)],
    pa.month_day_nano_interval(): [None, (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (-13, 0, 0)],
    pa.list_(pa.int64()): [None, [], [None], [1], [1, 2], [2, 1], [1, None], [0]],
    pa.list_(pa.string()): [None, [], ["a", "b"], ["ab"], ["", "ab"], ["a", "b", None]],
    pa.list_(pa.list_(pa.float64())): [None, [], [[]], [[], []], [[NAN]], [[1.0], [2.0]], [[1.0, 2.0]], [None]],
    pa.map_(pa.string(), pa.int64()): [None, [], [("a", 1)], [("a", 2)], [("b", 1)], [("a", 1), ("b", None)]],
    pa.struct([("x", pa.int64()), ("y", pa.string())]): [
        None,
        {"x": None, "y": None},
        {"x": 1, "y": "a"},
        {"x": 1, "y": None},
        {"x": None, "y": "a"},
    ],
    pa.struct([("s", pa.struct([("l", pa.list_(pa.bool_()))]))]): [
        None,
        {"s": None},
        {"s": {"l": None}},
        {"s": {"l": []}},
        {"s": {"l": [True, None]}},
    ],
}


def sliced(array: pa.Array) -> pa.Array:
    """The same values at an offset into larger buffers, with other values around them."""
    around = pa.concat_arrays([array[-1:], array[-1:], array[:1], array, array[:1], array[-1:]])
    start = len(around) - len(array) - (2 if len(array) else 0)
    return around.slice(start, len(array))


def batch(types: Sequence[pa.DataType], rows: Iterable[tuple[Any, ...]], weights: Iterable[int] | None = None) -> Batch:
    """Rows of plain values as a batch; weights are 1 unless given."""
    rows = list(rows)
    columns = tuple(pa.array([row[index] for row in rows], type_) for index, type_ in enumerate(types))
    return Batch(columns, np.array([1] * len(rows) if weights is None else list(weights), np.int64))


def count_rows(batches: Iterable[Batch], equality: Equality = Equality.IDENTITY) -> Counter[Any]:
    """Rows and the sums of their weights; zeros are left out."""
    counted: Counter[Any] = Counter()
    for part in batches:
        for row, weight in zip(canonical_rows(part.columns, len(part), equality), part.weights.tolist(), strict=True):
            counted[row] += weight
    return Counter({row: weight for row, weight in counted.items() if weight})


def colliding_hash(columns: Sequence[pa.Array], length: int, equality: Equality) -> Any:
    """The worst hash there is: all rows have the same."""
    return np.full(length, 0x1234_5678_9ABC_DEF0, np.uint64)


def coarse_hash(columns: Sequence[pa.Array], length: int, equality: Equality) -> Any:
    """A bad hash: few different values, so that different rows collide and others lie between them."""
    hashes = [hash(row) % 3 for row in canonical_rows(columns, length, equality)]
    return np.array(hashes, np.uint64) << np.uint64(62)
