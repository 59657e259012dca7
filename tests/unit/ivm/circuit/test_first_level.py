"""A row is found at the first level at which it is derived, and moves when that changes."""

import random
from collections import Counter

import pyarrow as pa
import pytest
from support.rows import batch, count_rows

from weirflow.ivm.circuit.first_level import FirstLevels

TYPES = (pa.string(),)


class Levels:
    """Ticks of changes by level; each returns what changes at each level."""

    def __init__(self):
        self.first = FirstLevels(TYPES)

    def step(self, derived):
        changed = {}
        derived = dict(derived)
        while levels := [*derived, *self.first.due]:
            level = min(levels)
            rows = derived.pop(level, {})
            change = self.first.change(level, batch(TYPES, [(row,) for row in rows], rows.values()))
            changed[level] = {row[0].decode(): weight for row, weight in count_rows([change]).items()}
        return {level: change for level, change in changed.items() if change}

    def tick(self, derived):
        changed = self.step(derived)
        self.first.keep()
        return changed


@pytest.fixture
def levels():
    return Levels()


def test_a_row_is_found_once_however_often_it_is_derived(levels):
    assert levels.tick({0: {"a": 2}, 1: {"a": 1, "b": 3}, 4: {"b": 1}}) == {0: {"a": 1}, 1: {"b": 1}}


def test_a_derivation_more_or_less_is_no_change(levels):
    levels.tick({0: {"a": 2}})
    assert levels.tick({0: {"a": -1}, 3: {"a": 1}}) == {}


def test_a_row_that_is_lost_is_found_at_its_next_level(levels):
    levels.tick({0: {"a": 1}, 2: {"a": 1}, 5: {"a": 1}})
    assert levels.tick({0: {"a": -1}}) == {0: {"a": -1}, 2: {"a": 1}}


def test_a_row_is_not_found_where_it_was_derived_until_this_tick(levels):
    levels.tick({0: {"a": 1}, 2: {"a": 1}, 5: {"a": 1}})
    assert levels.tick({0: {"a": -1}, 2: {"a": -1}}) == {0: {"a": -1}, 5: {"a": 1}}


def test_a_row_that_is_found_earlier_leaves_its_old_level(levels):
    levels.tick({5: {"a": 1}})
    assert levels.tick({3: {"a": 1}}) == {3: {"a": 1}, 5: {"a": -1}}


def test_a_row_can_move_to_a_level_where_it_was_not_derived_before(levels):
    levels.tick({1: {"a": 1}, 6: {"a": 1}})
    assert levels.tick({1: {"a": -1}, 4: {"a": 1}}) == {1: {"a": -1}, 4: {"a": 1}}


def test_a_row_that_is_derived_nowhere_is_gone(levels):
    levels.tick({1: {"a": 1}, 6: {"a": 1}})
    assert levels.tick({1: {"a": -1}, 6: {"a": -1}}) == {1: {"a": -1}}
    assert levels.tick({2: {"a": 1}}) == {2: {"a": 1}}


def test_a_tick_that_ends_between_levels_is_forgotten(levels):
    levels.tick({1: {"a": 1}, 6: {"a": 1}})
    levels.first.change(1, batch(TYPES, [("a",)], [-1]))
    assert list(levels.first.due) == [6]

    levels.first.forget()

    assert list(levels.first.due) == []
    assert levels.step({1: {"a": -1}}) == {1: {"a": -1}, 6: {"a": 1}}


def test_first_levels_equal_the_naive_ones(levels):
    dice = random.Random(5)
    counts = Counter()
    for _ in range(60):
        before = first_of(counts)
        changes = {}
        for level in range(4):
            row = dice.choice("abc")
            changes[level] = {row: 1 if counts[row, level] == 0 else dice.choice([-1, 1])}
            counts[row, level] += changes[level][row]
        after = first_of(counts)
        expected = {}
        for row in "abc":
            if before.get(row) != after.get(row):
                for level, weight in ((before.get(row), -1), (after.get(row), 1)):
                    expected.setdefault(level, {})[row] = weight
        expected.pop(None, None)
        assert levels.tick(changes) == expected


def first_of(counts):
    """The lowest level of each row that is derived at all."""
    return {row: level for (row, level), count in sorted(counts.items(), reverse=True) if count}
