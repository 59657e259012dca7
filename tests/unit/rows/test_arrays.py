import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirflow.rows.arrays import from_numpy, from_short_list, scalar

VALUES = {
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"])),
}


def bits_of(array):
    return [struct.pack("d", value) if isinstance(value, float) else value for value in array.to_pylist()]


@given(st.sampled_from(list(VALUES)).flatmap(lambda kind: st.tuples(st.just(kind), st.lists(st.none() | VALUES[kind]))))
def test_short_lists_become_what_pyarrow_makes_of_them(case):
    kind, values = case
    array = from_short_list(values, kind)
    array.validate(full=True)
    assert array.type == kind
    assert bits_of(array) == bits_of(pa.array(values, kind))
    assert array.null_count == values.count(None)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], pa.float64()),
        ([True], pa.int64()),
        ([1], pa.bool_()),
        ([np.int64(1)], pa.int64()),
        ([b"a"], pa.string()),
        ([2**31], pa.int32()),
        ([1.5], pa.float32()),
        (["a"] * 1001, pa.string()),
        ([None], pa.null()),
        ([[1]], pa.list_(pa.int64())),
    ],
)
def test_other_values_are_left_to_pyarrow(values, kind):
    assert from_short_list(values, kind) is None


def test_what_fits_no_array_is_refused_as_by_pyarrow():
    with pytest.raises(OverflowError):
        from_short_list([2**63], pa.int64())
    with pytest.raises(UnicodeEncodeError):
        from_short_list(["\ud800"], pa.string())


def test_a_scalar_keeps_its_sign_and_its_type():
    assert math.copysign(1, scalar(-0.0, pa.float64()).as_py()) == -1
    assert scalar(None, pa.string()) == pa.scalar(None, pa.string())
    assert scalar(7, pa.int16()) == pa.scalar(7, pa.int16())


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint64", "float32", "float64", "bool"])
@pytest.mark.parametrize("null", [None, [False] * 9, [True, False, True, False, True, False, True, False, True]])
def test_numbers_of_numpy_become_what_pyarrow_makes_of_them(dtype, null):
    values = np.arange(-4, 5).astype(dtype)
    mask = None if null is None else np.array(null)
    for given_ in (values, np.repeat(values, 2)[::2]):
        array = from_numpy(given_, mask)
        array.validate(full=True)
        assert array.equals(pa.array(values, mask=mask))
    assert from_numpy(values[:0]).equals(pa.array(values[:0]))


def test_numbers_that_lie_side_by_side_are_not_copied():
    values = np.arange(5)
    assert from_numpy(values).buffers()[1].address == values.ctypes.data
