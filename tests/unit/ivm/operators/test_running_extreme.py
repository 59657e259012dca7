"""The kept extreme of a group is that of its rows, whatever comes and goes."""

import math
import random
from collections import Counter

import pyarrow as pa
import pytest
from support.maintained import Maintained

VALUES = {
    "BIGINT": [None, -(2**63), -1, 0, 1, 2, 2**63 - 1],
    "DOUBLE": [None, -math.inf, -1.5, -0.0, 0.0, 2.5, math.inf, math.nan],
    "FLOAT": [None, -1.5, -0.0, 0.0, 2.5, math.nan],
    "TINYINT": [None, -128, 0, 127],
}
TYPES = {"BIGINT": pa.int64(), "DOUBLE": pa.float64(), "FLOAT": pa.float32(), "TINYINT": pa.int8()}


def rank(value):
    """Spark's order: NaN above all, zeros equal."""
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("seed", range(4))
def test_min_and_max_after_every_tick(kind, seed):
    chosen = random.Random(seed)
    sources = {"t": pa.schema([("k", pa.int64()), ("v", TYPES[kind])])}
    views = Maintained(sources, {"v": "SELECT k, MIN(v) AS low, MAX(v) AS high FROM t GROUP BY k"})
    # Rows are told apart by how they are written: zeros of either sign are equal to Python, and NaN to nothing.
    held = Counter()
    value_of = {repr(value): value for value in VALUES[kind]}
    for _ in range(30):
        inserted = [(chosen.randrange(3), chosen.choice(list(value_of))) for _ in range(chosen.randrange(4))]
        present = list(held.elements())
        retracted = chosen.sample(present, min(len(present), chosen.randrange(4)))
        changes = [*((row, 1) for row in inserted), *((row, -1) for row in retracted)]
        views.tick({"t": [((key, value_of[text]), weight) for (key, text), weight in changes]})
        held.update(inserted)
        held.subtract(retracted)
        held = +held
        expected = {}
        for key, text in held:
            low, high = expected.get(key, (None, None))
            value = value_of[text]
            if value is not None:
                low = value if low is None else min(low, value, key=rank)
                high = value if high is None else max(high, value, key=rank)
            expected[key] = (low, high)
        found = {key: (low, high) for key, low, high in views.views["v"]}
        assert {key: tuple(map(comparable, both)) for key, both in found.items()} == {
            key: tuple(map(comparable, both)) for key, both in expected.items()
        }


def comparable(value):
    """NaN equal to itself; zeros of either sign are the same extreme."""
    if value is None or value == "NaN" or (isinstance(value, float) and math.isnan(value)):
        return None if value is None else "NaN"
    return value
