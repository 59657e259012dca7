"""Sorting by codes, in bulk and in small numbers."""

from __future__ import annotations

import numpy as np
import pytest

from weirflow.ivm.zset.sorting import sort_order, sorted_codes

pytestmark = pytest.mark.usefixtures("either_kernel")

LENGTHS = [0, 1, 31, 33, 1000, 65_536, 65_537, 300_000]
BITS = pytest.mark.parametrize("bits", [64, 33, 8, 0], ids=lambda bits: f"{bits} random bits")


def some_codes(length: int, bits: int) -> np.ndarray:
    high = 2**bits if bits < 64 else 2**63
    shift = np.uint64(64 - bits if bits else 0)
    return np.random.default_rng(length).integers(0, high, length, dtype=np.uint64) << shift


@pytest.mark.parametrize("length", LENGTHS)
@BITS
def test_sort_order(length, bits):
    codes = some_codes(length, bits)
    order = sort_order(codes)
    assert np.array_equal(codes[order], np.sort(codes))
    assert np.array_equal(np.sort(order), np.arange(length))


@pytest.mark.parametrize("length", LENGTHS)
@BITS
def test_sorted_codes(length, bits):
    codes = some_codes(length, bits)
    order, ordered, repeated = sorted_codes(codes)
    assert np.array_equal(order, np.argsort(codes, kind="stable"))
    assert np.array_equal(ordered, codes[order])
    assert np.array_equal(repeated, np.flatnonzero(ordered[1:] == ordered[:-1]) + 1)


@pytest.mark.parametrize("stretches", [[500], [2000, 100], [700, 3, 900, 40, 1], [1] * 100])
def test_stretches_that_are_sorted_already(stretches):
    random = np.random.default_rng(len(stretches))
    codes = np.concatenate([np.sort(random.integers(0, 500, size, dtype=np.uint64)) for size in stretches])
    assert np.array_equal(sorted_codes(codes)[0], np.argsort(codes, kind="stable"))
