"""Sums by limbs are exact: equal to Python's own exact arithmetic, whatever is added and taken away."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirflow.ivm.kernel import sums

pytestmark = pytest.mark.usefixtures("either_kernel")

int64 = st.integers(-(2**63), 2**63 - 1)
inside = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: bool(sums.in_window(np.array([x]))[0]))


def total(limbs):
    return limbs.sum(axis=0, keepdims=True)


@given(st.lists(int64, min_size=1, max_size=20))
def test_integers_add_up_exactly_and_overflow_is_seen(values):
    limbs = total(sums.split_integers(np.array(values, np.int64)))
    exact = sum(values)
    (found,), (overflow,) = sums.integer_totals(limbs)
    assert bool(overflow) == (not -(2**63) <= exact < 2**63)
    assert overflow or int(found) == exact
    assert sums.wide_totals(limbs) == [exact]


@given(st.lists(st.integers(-(2**127), 2**127 - 1), min_size=1, max_size=10))
def test_wide_integers_add_up_exactly(values):
    words = np.array([[value & (2**64 - 1), (value >> 64) & (2**64 - 1)] for value in values], np.uint64).view(np.int64)
    assert sums.wide_totals(total(sums.split_wide(words))) == [sum(values)]


@given(st.lists(inside, min_size=1, max_size=30))
def test_doubles_add_up_as_fsum_does(values):
    found = sums.double_totals(total(sums.split_doubles(np.array(values))))
    assert found[0] == math.fsum(values)


@given(st.lists(inside, min_size=1, max_size=20), st.lists(inside, max_size=20))
def test_what_is_added_can_be_taken_back(kept, gone):
    limbs = sums.split_doubles(np.array(kept)).sum(axis=0) + sums.split_doubles(np.array(gone, float)).sum(axis=0)
    limbs -= sums.split_doubles(np.array(gone, float)).sum(axis=0)
    assert sums.double_totals(limbs[None, :])[0] == math.fsum(kept)


def test_doubles_outside_the_window_are_told():
    values = np.array([0.0, -0.0, 0.1, 1e20, 1e-30, 1e30, math.nan, math.inf, 5e-324])
    assert sums.in_window(values).tolist() == [True, True, True, True, False, False, False, False, False]
