"""The tables of benchmarks: deltas take back rows that are there, and groups have the sizes that names promise."""

from collections import Counter

import numpy as np
import pytest
from ordered_views import HOT_ROWS, changes
from ticking.data import WEIGHT, DimensionChanges, FactChanges


def rows_of(batch):
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def applied(rows, delta):
    changed = Counter(rows)
    for row in rows_of(delta):
        changed[row[:-1]] += row[-1]
    assert min(changed.values()) >= 0
    return +changed


@pytest.mark.parametrize(
    "world", [FactChanges(1000, 20), changes(1000, 20, same_hot_key=False)], ids=["facts", "ordered"]
)
def test_the_table_is_the_base_and_its_deltas(world):
    rows = Counter(rows_of(world.table()))
    for _ in range(5):
        delta = world.tick()
        assert Counter(delta[WEIGHT].to_pylist()) == {1: 14, -1: 6}
        rows = applied(rows, delta)
    assert rows == Counter(rows_of(world.table()))


def test_the_dimension_is_the_base_and_its_deltas():
    world = DimensionChanges(10_000, 10)
    rows = Counter(rows_of(world.tables()[1]))
    for _ in range(5):
        rows = applied(rows, world.tick())
    assert rows == Counter(rows_of(world.tables()[1]))


@pytest.mark.parametrize("rows", [100_000, 400_000])
def test_groups_keep_their_sizes_when_the_table_grows(rows):
    table = changes(rows, 100, same_hot_key=True).table()
    sizes = {name: len(table) / len(np.unique(table[name].to_numpy())) for name in ("small", "middle", "large")}
    assert sizes == {"small": 1_000, "middle": 10_000, "large": 100_000}
    assert np.count_nonzero(table["k"].to_numpy() == 0) == pytest.approx(HOT_ROWS, rel=0.15)


def test_one_row_of_a_hundred_has_the_hot_key():
    keys = changes(100_000, 100, same_hot_key=False).table()["k"].to_numpy()
    assert np.count_nonzero(keys == 0) == pytest.approx(1_000, rel=0.15)
