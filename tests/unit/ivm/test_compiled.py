"""Compiled kernels return the bits that NumPy returns, and come by themselves to circuits that step often."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirflow.errors import ConfigError, DependencyMissing
from weirflow.ivm import compiled
from weirflow.ivm.kernel import sums
from weirflow.ivm.zset.batch import add_rows, magnitude, sum_groups
from weirflow.ivm.zset.hashing import Equality, hash_rows
from weirflow.ivm.zset.rows import equal_rows_at

doubles = st.floats(width=64)
weights = st.integers(-(2**20), 2**20)
words = st.integers(-(2**63), 2**63 - 1)
COLUMNS = {
    "strings": st.lists(st.none() | st.text(max_size=40)).map(lambda values: pa.array(values, pa.string())),
    "bytes": st.lists(st.binary(max_size=90)).map(lambda values: pa.array(values, pa.binary())),
    "integers": st.lists(st.none() | words).map(lambda values: pa.array(values, pa.int64())),
    "doubles": st.lists(st.none() | doubles).map(lambda values: pa.array(values, pa.float64())),
    "timestamps": st.lists(words).map(lambda values: pa.array(values, pa.timestamp("us"))),
}


def without(function, *arguments):
    """What the function returns on NumPy alone."""
    kept, compiled.kernels = compiled.kernels, None
    try:
        return function(*arguments)
    finally:
        compiled.kernels = kept


def sliced(array: pa.Array) -> pa.Array:
    """The same values at an offset into larger buffers."""
    return pa.concat_arrays([array, array]).slice(len(array))


@pytest.mark.parametrize("equality", Equality)
@pytest.mark.parametrize("kind", COLUMNS)
def test_hashes(kind, equality):
    @given(COLUMNS[kind])
    def check(array):
        expected = without(hash_rows, [array], len(array), equality)
        assert np.array_equal(hash_rows([array], len(array), equality), expected)
        assert np.array_equal(hash_rows([sliced(array)], len(array), equality), expected)

    check()


@pytest.mark.parametrize("kind", COLUMNS)
def test_equality(kind):
    @given(COLUMNS[kind], st.data())
    def check(array, data):
        if not len(array):
            return
        places = st.lists(st.integers(0, len(array) - 1), min_size=5, max_size=5)
        left, right = (np.array(data.draw(places), np.int64) for _ in range(2))
        arguments = ([array], left, [sliced(array)], right, Equality.IDENTITY)
        assert np.array_equal(equal_rows_at(*arguments), without(equal_rows_at, *arguments))

    check()


@given(st.lists(st.tuples(doubles, weights), min_size=1, max_size=20))
def test_doubles_as_limbs_and_back(rows):
    values, weight = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], np.int64)
    limbs = [np.full((len(rows), 1 + sums.VALUES.limbs), 7, np.int64)[:, 1:] for _ in range(2)]
    inside = sums.encode_doubles(values, weight, limbs[0])
    assert inside == without(sums.encode_doubles, values, weight, limbs[1]) == sums.in_window(values).all()
    assert np.array_equal(*limbs)
    totals = np.cumsum(limbs[0], axis=0)
    found, expected = sums.double_totals(totals), without(sums.double_totals, totals)
    assert [math.copysign(1, one) * one for one in found] == [math.copysign(1, one) * one for one in expected]


@given(st.lists(st.tuples(words, words), min_size=1, max_size=20), st.data())
def test_sums_of_groups_that_fit(rows, data):
    count = data.draw(st.integers(1, len(rows)))
    starts = np.sort(data.draw(st.permutations(range(1, len(rows))))[: count - 1]).astype(np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), starts])
    order = np.array(data.draw(st.permutations(range(len(rows)))), np.int64)
    values = np.array(rows, np.int64) >> 8
    assert np.array_equal(sum_groups(values, order, starts), without(sum_groups, values, order, starts))


def test_a_sum_that_leaves_64_bits_on_its_way_and_comes_back():
    values = np.array([[2**62], [2**62], [2**62], [-(2**62)], [-(2**62)]], np.int64)
    assert sum_groups(values, np.arange(5), np.zeros(1, np.int64)).tolist() == [[2**62]]


@given(st.lists(st.tuples(words, words), max_size=20))
def test_the_greatest_magnitude(rows):
    values = np.array(rows, np.int64).reshape(len(rows), 2)
    greatest = max((abs(value) for row in rows for value in row), default=0)
    assert magnitude(values) == without(magnitude, values) == greatest
    assert magnitude(values[:, :1]) == without(magnitude, values[:, :1])  # not one piece of memory


def test_add_rows():
    rows = np.arange(12).reshape(6, 2)
    totals = [np.ones((3, 2), np.int64) for _ in range(2)]
    into, at = np.array([2, 0]), np.array([5, 1])
    add_rows(totals[0], into, rows, at)
    without(add_rows, totals[1], into, rows, at)
    assert totals[0].tolist() == totals[1].tolist() == [[3, 4], [1, 1], [11, 12]]


def run(program: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return result.stdout.strip()


PROGRAM = """
import sys, threading, weirflow
from weirflow.ivm import compiled
flow = weirflow.IncrementalFlow()
flow.register_source("numbers", "x BIGINT")
flow.register_view("total", "SELECT SUM(x) AS total FROM numbers")
for x in range({ticks}):
    flow.tick("numbers", [{{"x": x}}])
for thread in threading.enumerate():
    if thread.name == "weirflow-compile":
        thread.join()
print(compiled.kernels is not None, "numba" in sys.modules, flow.snapshot("total").to_pylist())
"""


@pytest.mark.parametrize(
    ("ticks", "mode", "printed"),
    [
        (3, "auto", "False False [{'total': 3}]"),
        (30, "auto", "True True [{'total': 435}]"),
        (1, "on", "True True [{'total': 0}]"),
        pytest.param(30, "on", "True True [{'total': 435}]", marks=pytest.mark.campaign),
        (30, "off", "False False [{'total': 435}]"),
    ],
)
def test_they_are_loaded_by_circuits_that_step_often(ticks, mode, printed):
    assert run(PROGRAM.format(ticks=ticks), WEIRFLOW_COMPILED=mode) == printed


def test_they_are_loaded_by_a_large_step():
    program = PROGRAM.format(ticks=1).replace('[{"x": x}]', '[{"x": n} for n in range(100_000)]')
    assert run(program, WEIRFLOW_COMPILED="auto") == "True True [{'total': 4999950000}]"


def test_an_unknown_mode_and_a_missing_numba_are_typed_errors(monkeypatch):
    monkeypatch.setenv("WEIRFLOW_COMPILED", "yes")
    with pytest.raises(ConfigError, match="WEIRFLOW_COMPILED is 'yes'"):
        compiled.offer(1, 1)
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(DependencyMissing, match="compiled"):
        compiled.load()
