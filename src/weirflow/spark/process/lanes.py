"""Lanes: some keys each, with a copy of what is broadcast, which Spark keeps in one partition of its state.

A stateful query keeps a key where the hash of all its columns says, modulo the number of partitions. Here two columns
are added to a key: in front the number of its lane, and behind a number that is chosen so that the hash of all columns
is that of the lane. So the keys of a lane and the lane's copy are together in any number of partitions. Spark promises
never to change that hash: the state of all queries lies by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import functions as sf

from weirflow.spark.streaming.columns import named

LANES: Final = 32
"""Into how many lanes keys are divided; the same for ever, for state lies by it."""
LANE: Final = "_weirflow_lane"
"""The first column of a key: the number of its lane; of a copy it is that less than -1, so that it comes first."""
STEER: Final = "_weirflow_steer"
"""The last column of a key: what makes the hash of all its columns that of the lane."""

_SEED = 42
_BITS = 32
_ALL = (1 << _BITS) - 1
_HALF = 16
# Murmur3's constants, and the inverses of those that it multiplies by.
_C1, _C2, _M, _N = 0xCC9E2D51, 0x1B873593, 5, 0xE6546B64
_F1, _F2 = 0x85EBCA6B, 0xC2B2AE35
_R1, _R2 = 15, 13
_BACK_C1, _BACK_C2, _BACK_M, _BACK_F1, _BACK_F2 = (pow(one, -1, 1 << _BITS) for one in (_C1, _C2, _M, _F1, _F2))


def copy_lane(lane: int) -> int:
    """What the lane column says of the copy in a lane, and back.

    >>> copy_lane(3), copy_lane(copy_lane(3))
    (-4, 3)
    """
    return -1 - lane


def copy_key(lane: int, columns: int) -> tuple[Any, ...]:
    """The key of the copy in a lane, beside keys of so many columns; NULL does not change a hash."""
    return (copy_lane(lane), *([None] * columns), _copy_steer(lane))


def in_lanes(keys: Sequence[str]) -> list[Any]:
    """The columns of a key in its lane: the lane, the key and the steer.

    Spark itself looks at every row: where its hash is not as it was here, the row is an error.
    """
    columns = [named(key) for key in keys]
    lane = sf.pmod(sf.hash(*columns), sf.lit(LANES)).cast("int")
    steer = _steer(lane, sf.hash(lane, *columns))
    return [lane.alias(LANE), *columns, _checked(steer, lane, lane, *columns).alias(STEER)]


def in_every_lane(native: Any, keys: Sequence[tuple[str, Any]], name: str) -> Any:
    """The rows of a native frame for the copy in every lane: its key, and the row as a STRUCT.

    Args:
        native: the frame.
        keys: the names and types of the key's columns, which are NULL.
        name: of the STRUCT.
    """
    steers = sf.array(*(sf.lit(_copy_steer(lane)) for lane in range(LANES)))
    spread = native.select(sf.struct("*").alias(name), sf.posexplode(steers).alias(LANE, STEER))
    lane, steer = sf.col(LANE), sf.col(STEER)
    copy = sf.lit(-1) - lane
    nulls = [sf.lit(None).cast(kind) for _, kind in keys]
    named_nulls = [null.alias(key) for null, (key, _) in zip(nulls, keys, strict=True)]
    return spread.select(copy.alias(LANE), *named_nulls, _checked(steer, lane, copy, *nulls).alias(STEER), name)


def hash_int(value: int, seed: int = _SEED) -> int:
    """Spark's hash of an INT, behind columns that have the hash ``seed``; both signed, of 32 bits.

    >>> hash_int(1)  # SELECT hash(1)
    -559580957
    """
    key = _rotated((value & _ALL) * _C1 & _ALL, _R1) * _C2 & _ALL
    mixed = (_rotated((seed & _ALL) ^ key, _R2) * _M + _N) & _ALL
    mixed ^= 4
    mixed = (mixed ^ mixed >> 16) * _F1 & _ALL
    mixed = (mixed ^ mixed >> 13) * _F2 & _ALL
    return _signed(mixed ^ mixed >> 16)


def steered(target: int, seed: int) -> int:
    """The INT whose hash is ``target``, behind columns that have the hash ``seed``.

    >>> hash_int(steered(7, seed=hash_int(1)), seed=hash_int(1))
    7
    """
    key = (_aim(target) ^ seed) & _ALL
    return _signed(_rotated(key * _BACK_C2 & _ALL, _BITS - _R1) * _BACK_C1 & _ALL)


def _copy_steer(lane: int) -> int:
    return steered(lane, hash_int(copy_lane(lane)))


def _aim(target: int) -> int:
    """What mixes into a hash: that part of the way back which does not depend on the columns before."""
    mixed = target & _ALL
    mixed = (mixed ^ mixed >> 16) * _BACK_F2 & _ALL
    mixed = (mixed ^ mixed >> 13 ^ mixed >> 26) * _BACK_F1 & _ALL
    mixed ^= mixed >> 16
    mixed ^= 4
    return _rotated((mixed - _N) * _BACK_M & _ALL, _BITS - _R2)


def _rotated(bits: int, by: int) -> int:
    return (bits << by | bits >> _BITS - by) & _ALL


def _signed(bits: int) -> int:
    return bits - (bits >> _BITS - 1 << _BITS)


def _steer(lane: Any, seed: Any) -> Any:
    """As ``steered``, for columns. Nothing overflows, which ANSI mode would not allow."""
    aims = sf.array(*(sf.lit(_signed(_aim(one))) for one in range(LANES)))
    key = sf.get(aims, lane).bitwiseXOR(seed).cast("bigint").bitwiseAND(sf.lit(_ALL))
    key = _times(key, _BACK_C2)
    back = sf.shiftleft(key.bitwiseAND(sf.lit((1 << _R1) - 1)), _BITS - _R1)
    key = _times(back.bitwiseOR(sf.shiftright(key, _R1)), _BACK_C1)
    sign = sf.lit(1 << _BITS - 1)
    return (key.bitwiseXOR(sign) - sign).cast("int")


def _times(bits: Any, factor: int) -> Any:
    """A product modulo 2**32, in two halves."""
    low = bits * sf.lit(factor & (1 << _HALF) - 1)
    high = (bits * sf.lit(factor >> _HALF)).bitwiseAND(sf.lit((1 << _HALF) - 1))
    return (low + sf.shiftleft(high, _HALF)).bitwiseAND(sf.lit(_ALL))


def _checked(steer: Any, lane: Any, *columns: Any) -> Any:
    """The steer, if it leads where it should."""
    lost = sf.raise_error(
        sf.lit("Weirflow: this Spark hashes keys in another way, so that broadcast state is not found")
    )
    return sf.when(sf.hash(*columns, steer) == lane, steer).otherwise(lost.cast("int"))
