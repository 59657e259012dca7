"""Hashes: equal for equal values, different for different ones, the same in every process and at every offset."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from support.rows import MINUS_ZERO, NAN, OTHER_NAN, VALUES, ZERO, sliced

from weirflow.ivm.zset.hashing import Equality, has_floats, hash_rows

pytestmark = pytest.mark.usefixtures("either_kernel")

BOTH = list(Equality)


def hashes(array: pa.Array, equality: Equality = Equality.IDENTITY) -> list[int]:
    return hash_rows([array], len(array), equality).tolist()


@pytest.mark.parametrize("equality", BOTH)
@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_different_values_of_every_type_have_different_hashes(type_, equality):
    array = pa.array(VALUES[type_], type_)
    assert len(set(hashes(array, equality))) == len(array)


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_an_offset_changes_nothing(type_):
    array = pa.array(VALUES[type_] * 3, type_)
    assert hashes(sliced(array)) == hashes(array)
    assert hashes(array.slice(3, 2)) == hashes(array)[3:5]


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_a_hash_does_not_depend_on_the_other_values(type_):
    array = pa.array(VALUES[type_], type_)
    assert [hashes(array.slice(index, 1))[0] for index in range(len(array))] == hashes(array)


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_no_rows_have_no_hashes(type_):
    assert hashes(pa.array([], type_)) == []
    assert hashes(pa.array([None], type_).slice(1)) == []


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()], ids=str)
def test_zeros_are_equal_for_grouping_only_and_nans_always(type_):
    zeros, nans = pa.array([ZERO, MINUS_ZERO], type_), pa.array([NAN, OTHER_NAN], type_)
    assert len(set(hashes(zeros, Equality.GROUPING))) == 1
    assert len(set(hashes(zeros, Equality.IDENTITY))) == 2
    assert len(set(hashes(nans, Equality.GROUPING))) == len(set(hashes(nans, Equality.IDENTITY))) == 1


def test_floats_inside_nested_values_follow_the_equality():
    array = pa.array([[ZERO], [MINUS_ZERO]], pa.list_(pa.float64()))
    assert len(set(hashes(array, Equality.GROUPING))) == 1
    assert len(set(hashes(array, Equality.IDENTITY))) == 2
    assert has_floats(array.type)
    assert not has_floats(pa.list_(pa.int64()))


def test_the_order_of_map_entries_has_no_meaning():
    array = pa.array([[("a", 1), ("b", 2)], [("b", 2), ("a", 1)]], pa.map_(pa.string(), pa.int64()))
    assert len(set(hashes(array))) == 1


def test_what_lies_under_a_null_has_no_meaning():
    values = pa.array([1, 2, 3])
    masked = [
        pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(b"\x05"), buffer])
        for buffer in (values.buffers()[1], pa.array([1, 99, 3]).buffers()[1])
    ]
    assert hashes(masked[0]) == hashes(masked[1])


def test_columns_are_told_apart():
    one, other = pa.array([1, 2]), pa.array([2, 1])
    swapped = hash_rows([one, other], 2, Equality.IDENTITY)
    assert len({*swapped.tolist(), *hash_rows([one, one], 2, Equality.IDENTITY).tolist()}) == 4


def test_rows_without_columns_are_all_equal():
    assert len(set(hash_rows([], 5, Equality.IDENTITY).tolist())) == 1


def test_many_rows_hash_as_few_do():
    strings = pa.array([f"row {number}" * (number % 30) for number in range(70_000)])
    whole = hash_rows([strings, strings], len(strings), Equality.IDENTITY)
    part = strings.slice(40_000, 100)
    assert whole[40_000:40_100].tolist() == hash_rows([part, part], 100, Equality.IDENTITY).tolist()


def test_very_long_strings():
    text = "weirflow" * 300_000
    assert len(set(hashes(pa.array([text, text + "\0", text[:-1], "W" + text[1:], text])))) == 4


def test_hashes_are_spread_evenly():
    hashed = hash_rows([pa.array(np.arange(100_000))], 100_000, Equality.GROUPING)
    for shift in (0, 16, 32, 48):
        buckets = np.bincount(((hashed >> np.uint64(shift)) & np.uint64(255)).astype(np.int64), minlength=256)
        assert buckets.min() > 280
        assert buckets.max() < 520


def test_the_same_in_every_process():
    """State saved by one process is searched by another: these numbers never change."""
    assert hashes(pa.array([1, None, -1])) == [STABLE["one"], STABLE["null"], STABLE["minus one"]]
    assert hashes(pa.array(["weirflow", "a longer string than one word"])) == [STABLE["word"], STABLE["words"]]
    code = (
        "import pyarrow as pa\nfrom weirflow.ivm.zset.hashing import Equality, hash_rows\n"
        "print(hash_rows([pa.array(['weirflow'])], 1, Equality.IDENTITY)[0])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(printed.stdout) == STABLE["word"]


STABLE = {
    "one": 0x910A2DEC89025CC1,
    "null": 0x9E6C63D0676A9A99,
    "minus one": 0xE4D971771B652C20,
    "word": 0x3166E05CBDD12060,
    "words": 0x765E1231BEE13190,
}
