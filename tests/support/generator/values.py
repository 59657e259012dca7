"""Source columns: their types, and small pools of values with NULLs, duplicates and edge cases."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from support.generator.kinds import Kind

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

Row = tuple[Any, ...]

NAN = float("nan")
"""The only NaN in rows, so that equal rows are equal tuples."""
_STRUCT = pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.string())])
_INTS = pa.list_(pa.field("element", pa.int32()))
_STRINGS = pa.list_(pa.field("element", pa.string()))
_DAY = dt.date(2024, 2, 28)
_NOON = dt.datetime(2024, 2, 28, 12, 30, 15, 250_000)  # noqa: DTZ001 - the type without a zone


@dataclass(frozen=True)
class Pool:
    """A type and the values that a column of it draws from."""

    kind: Kind
    type: pa.DataType
    values: tuple[Any, ...]


def _decimals(*texts: str) -> tuple[Decimal, ...]:
    return tuple(Decimal(text) for text in texts)


def _times(zone: dt.tzinfo | None) -> tuple[dt.datetime, ...]:
    shifts = (0, 1, 3599, 86_400, -86_400, 31 * 86_400, -(10**9))
    far = (dt.datetime(100, 1, 1), dt.datetime(9000, 12, 31, 23, 59, 59, 999_999))  # noqa: DTZ001 - zone comes below
    near = tuple(_NOON + dt.timedelta(seconds=shift) for shift in shifts)
    return tuple(moment.replace(tzinfo=zone) for moment in (*near, *far))


def _minutes(zone: dt.tzinfo | None) -> tuple[dt.datetime, ...]:
    """Times near each other, some of them just as far as windows and sessions reach."""
    first = _NOON.replace(second=0, microsecond=0, tzinfo=zone)
    return tuple(first + dt.timedelta(minutes=shift) for shift in (0, 1, 5, 10, 12, 16, 60, -3))


POOLS = (
    Pool(Kind.BOOL, pa.bool_(), (True, False)),
    Pool(Kind.INT, pa.int8(), (0, 1, 2, -3, 5)),
    Pool(Kind.INT, pa.int8(), (0, 1, 127, -128)),
    Pool(Kind.INT, pa.int16(), (0, 1, 2, 300, -7)),
    Pool(Kind.INT, pa.int32(), (0, 1, 2, 3)),
    Pool(Kind.INT, pa.int32(), (-2, 0, 1, 7, 100_000)),
    Pool(Kind.INT, pa.int32(), (0, 2**31 - 1, -(2**31))),
    Pool(Kind.BIGINT, pa.int64(), (0, 1, 2, 3)),
    Pool(Kind.BIGINT, pa.int64(), (-5, 0, 1, 4, 2**40)),
    Pool(Kind.BIGINT, pa.int64(), (0, 1, 2**63 - 1, -(2**63), 2**53 + 1)),
    Pool(Kind.DECIMAL, pa.decimal128(7, 2), _decimals("0.00", "1.10", "-1.10", "2.50", "99999.99")),
    Pool(Kind.DECIMAL, pa.decimal128(12, 4), _decimals("0.0000", "1.1000", "-0.0001", "3.1416")),
    Pool(Kind.DECIMAL, pa.decimal128(5, 0), _decimals("0", "1", "2", "-99999")),
    Pool(Kind.FLOAT, pa.float32(), (0.0, -0.0, 0.5, -1.25, 2.0, NAN, float("inf"))),
    Pool(Kind.DOUBLE, pa.float64(), (0.0, 0.5, -1.25, 2.0, 3.75)),
    Pool(Kind.DOUBLE, pa.float64(), (0.0, -0.0, 1.0, NAN, float("inf"), float("-inf"), 1024.0)),
    Pool(Kind.REAL, pa.float64(), (0.1, 0.2, 0.3, -1.1, 0.001, 3.3, NAN)),
    Pool(Kind.STRING, pa.string(), ("", "a", "b", "ab", "B")),
    Pool(Kind.STRING, pa.string(), ("a", " a ", "a%", "a_b", "abcab", "é", "z\u4e2d", "x,y,,z")),
    Pool(Kind.NUMERAL, pa.string(), ("0", "1", "2", "-3", "12")),
    Pool(Kind.NUMERAL, pa.string(), ("0", "7", "7", "8", "x", "")),
    Pool(Kind.BINARY, pa.binary(), (b"", b"a", b"\x00", b"\xff\xfe", b"ab")),
    Pool(Kind.DATE, pa.date32(), tuple(_DAY + dt.timedelta(days=days) for days in (0, 1, 2, 33, -400))),
    Pool(Kind.DATE, pa.date32(), (_DAY, dt.date(1970, 1, 1), dt.date(100, 1, 1), dt.date(9000, 12, 31))),
    Pool(Kind.TIMESTAMP, pa.timestamp("us", tz="UTC"), _times(dt.UTC)),
    Pool(Kind.NTZ, pa.timestamp("us"), _times(None)),
    Pool(Kind.TIMESTAMP, pa.timestamp("us", tz="UTC"), _minutes(dt.UTC)),
    Pool(Kind.NTZ, pa.timestamp("us"), _minutes(None)),
    Pool(Kind.INTS, _INTS, ((), (1,), (1, 2), (2, None, 1), (None,), (3, 3))),
    Pool(Kind.STRINGS, _STRINGS, ((), ("a",), ("", "b"), ("a", None))),
    Pool(Kind.STRUCT, _STRUCT, ((1, "a"), (1, None), (None, "a"), (2, ""), (None, None))),
    Pool(Kind.MAP, pa.map_(pa.string(), pa.int32()), ((), (("a", 1),), (("a", 2), ("b", None)))),
)
MOMENTS = tuple(
    Pool(Kind.TIMESTAMP, pa.timestamp("us", tz="UTC"), tuple(moment.replace(tzinfo=dt.UTC) for moment in moments))
    for moments in (
        # New York's clocks are put forward and back, each seen from both sides, and midnight there and in Kolkata.
        (dt.datetime(2024, 3, 10, 6, 59, 59), dt.datetime(2024, 3, 10, 7), dt.datetime(2024, 3, 10, 5)),  # noqa: DTZ001
        (dt.datetime(2024, 11, 3, 5, 30), dt.datetime(2024, 11, 3, 6, 30), dt.datetime(2024, 11, 3, 4)),  # noqa: DTZ001
        (dt.datetime(2024, 2, 29, 18, 30), dt.datetime(2024, 2, 29, 18, 29, 59), dt.datetime(1900, 1, 1)),  # noqa: DTZ001
    )
)
"""Times at which the clocks of zones do something."""
_COMMON = [pool for pool in POOLS if pool.kind in (Kind.INT, Kind.BIGINT, Kind.STRING, Kind.DOUBLE, Kind.DECIMAL)]


@dataclass(frozen=True)
class Source:
    """A table's name and its columns."""

    name: str
    columns: tuple[tuple[str, Pool], ...]

    @property
    def schema(self) -> pa.Schema:
        """Its Arrow schema."""
        return pa.schema([(name, pool.type) for name, pool in self.columns])

    def row(self, dice: random.Random) -> Row:
        """A random row."""
        return tuple(_value(pool, dice) for _, pool in self.columns)


def random_sources(dice: random.Random, pools: Sequence[Pool] = POOLS) -> tuple[Source, ...]:
    """One to three tables; two of their first columns often share a pool, so that joins find something."""
    shared = dice.choice([pool for pool in pools if pool.kind not in (Kind.MAP, Kind.STRUCT)])
    sources = []
    for number in range(dice.choice((1, 2, 2, 3))):
        chosen = [
            dice.choice(_COMMON) if dice.random() < 0.5 else dice.choice(pools) for _ in range(dice.randint(1, 4))
        ]
        if dice.random() < 0.7:
            chosen[0] = shared
        columns = tuple((f"{'abcd'[place]}", pool) for place, pool in enumerate(chosen))
        sources.append(Source(f"t{number}", columns))
    return tuple(sources)


def _value(pool: Pool, dice: random.Random) -> Any:
    if dice.random() < 0.15:
        return None
    return dice.choice(pool.values)
