"""Compiled kernels that read rows of several columns do what NumPy does, and leave to it what they cannot."""

from __future__ import annotations

import pickle
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weirflow.ivm import compiled
from weirflow.ivm.kernel.additive import AdditiveArrangement
from weirflow.ivm.kernel.arrangement import Arrangement
from weirflow.ivm.kernel.codes import RowCodes
from weirflow.ivm.kernel.runs.gathered import LazyRun, merged
from weirflow.ivm.kernel.runs.merge import CodeOrder
from weirflow.ivm.kernel.runs.run import BLOCK, Run
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.hashing import Equality, hash_rows
from weirflow.ivm.zset.layout import Layout
from weirflow.ivm.zset.rows import consolidate, equal_rows_at, group_rows

KINDS = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-2, 2),
    pa.int16(): st.integers(-300, 300),
    pa.int32(): st.integers(-3, 3),
    pa.int64(): st.sampled_from([0, 1, -1, 2**62, -(2**63)]),
    pa.date32(): st.integers(0, 2),
    pa.timestamp("us", "UTC"): st.integers(-2, 2),
    pa.float32(): st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("-inf")]),
    pa.float64(): st.sampled_from([0.0, -0.0, 0.1, float("nan"), float("inf")]),
    pa.decimal128(38, 2): st.sampled_from([Decimal("1.25"), Decimal("-9e30"), Decimal("9e30"), Decimal(0)]),
    pa.string(): st.sampled_from(["", "a", "12345678", "123456789", "Zoë", "a\0b"]),
    pa.binary(): st.sampled_from([b"", b"\0", b"abcdefgh", b"abcdefghi" * 9]),
}
TYPES = st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=4)


@pytest.fixture(autouse=True)
def loaded():
    compiled.load()


def without(function, *arguments, **named):
    """What the function returns on NumPy alone."""
    kept, compiled.kernels = compiled.kernels, None
    try:
        return function(*arguments, **named)
    finally:
        compiled.kernels = kept


@st.composite
def columns(draw, kinds, length):
    """Columns of these types, with and without NULLs, some of them slices."""
    made = []
    for kind in kinds:
        values = KINDS[kind] if draw(st.booleans()) else st.none() | KINDS[kind]
        before = draw(st.integers(0, 9))
        array = pa.array(draw(st.lists(values, min_size=before + length, max_size=before + length)), kind)
        made.append(array.slice(before))
    return tuple(made)


@st.composite
def batches(draw, kinds=None, *, most=12):
    kinds = draw(TYPES) if kinds is None else kinds
    length = draw(st.integers(1, most))
    weights = draw(st.lists(st.integers(-2, 3), min_size=length, max_size=length))
    return Batch(draw(columns(kinds, length)), np.array(weights, np.int64))


def same_runs(one: Run, other: Run) -> bool:
    return (
        np.array_equal(one.codes, other.codes)
        and np.array_equal(one.values, other.values)
        and all(equal_rows_at([a], rows, [b], rows, Equality.IDENTITY).all() for a, b, rows in _pairs(one, other))
        and [column.type for column in one.columns] == [column.type for column in other.columns]
    )


def _pairs(one: Run, other: Run):
    rows = np.arange(len(one))
    return [(a, b, rows) for a, b in zip(one.columns, other.columns, strict=True)]


@pytest.mark.parametrize("equality", Equality)
@given(batches())
def test_hashes_and_groups(equality, batch):
    assert np.array_equal(
        hash_rows(batch.columns, len(batch), equality), without(hash_rows, batch.columns, len(batch), equality)
    )
    ours = group_rows(batch.columns, len(batch), equality)
    theirs = without(group_rows, batch.columns, len(batch), equality)
    assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


@given(batches(), st.data())
def test_codes_of_rows_with_a_key(batch, data):
    keys = data.draw(st.integers(0, len(batch.columns)))
    codes = RowCodes(batch.types, keys, hash_rows)
    assert np.array_equal(codes(batch.columns, len(batch)), without(codes, batch.columns, len(batch)))


@pytest.mark.parametrize("equality", Equality)
@given(batches(), st.data())
def test_equal_pairs(equality, batch, data):
    places = st.lists(st.integers(0, len(batch) - 1), min_size=6, max_size=6)
    left, right = (np.array(data.draw(places), np.int64) for _ in range(2))
    again = tuple(pa.concat_arrays([column, column]).slice(len(batch)) for column in batch.columns)
    arguments = (batch.columns, left, again, right, equality)
    assert np.array_equal(equal_rows_at(*arguments), without(equal_rows_at, *arguments))


@given(TYPES, st.data())
def test_consolidated_rows(kinds, data):
    batch = data.draw(batches(kinds))
    ours, theirs = consolidate(batch), without(consolidate, Batch(batch.columns, batch.weights))
    assert np.array_equal(ours.weights, theirs.weights)
    rows = np.arange(len(ours))
    assert equal_rows_at(ours.columns, rows, theirs.columns, rows, Equality.IDENTITY).all()


@pytest.mark.parametrize("equality", Equality)
@given(TYPES, st.data())
def test_merged_runs(equality, kinds, data):
    order = CodeOrder(equality)
    made = [data.draw(batches(kinds)) for _ in range(3)]
    parts = [
        Run(hash_rows(one.columns, len(one), equality), one.columns, np.stack([one.weights, one.weights * 2], 1))
        for one in made
    ]
    parts[0], *_ = without(order.sort, parts[0].codes, parts[0].columns, parts[0].values)
    parts = [part for part in parts if len(part)]
    if parts:
        ours, theirs = order.merge_unsorted(parts), without(order.merge_unsorted, parts)
        assert isinstance(ours, LazyRun)
        assert same_runs(ours, theirs)
        assert same_runs(order.merge_unsorted([ours, *parts]), without(order.merge_unsorted, [theirs, *parts]))


@pytest.mark.parametrize("equality", Equality)
@given(TYPES, st.data())
def test_sorted_runs_merged(equality, kinds, data):
    order = CodeOrder(equality)
    parts = []
    for _ in range(data.draw(st.integers(2, 9))):
        one = data.draw(batches(kinds))
        codes = hash_rows(one.columns, len(one), equality)
        parts += without(order.sort, codes, one.columns, np.stack([one.weights, -one.weights], 1))
    parts = [part for part in parts if len(part)]
    if len(parts) > 1:
        ours, theirs = order.merge(parts), without(order.merge, parts)
        assert isinstance(ours, LazyRun)
        assert same_runs(ours, theirs)


def run_of(codes, values, weights=None):
    values = pa.array(values, pa.int64())
    weights = np.ones(len(values), np.int64) if weights is None else np.array(weights)
    return Run(np.array(codes, np.uint64), (values,), weights.reshape(-1, 1))


def test_rows_that_differ_but_have_one_code_are_merged_by_numpy():
    parts = [run_of([7, 7], [1, 2]), run_of([7], [1])]
    assert merged(parts, grouping=False) is None
    assert merged([run_of([7, 7], [1, 2]), run_of([7], [1])], grouping=False, in_order=True) is None
    found = CodeOrder(Equality.IDENTITY).merge_unsorted(parts)
    assert sorted(zip(found.columns[0].to_pylist(), found.values[:, 0].tolist(), strict=True)) == [(1, 2), (2, 1)]


def test_rows_that_get_other_values_alone_stay_where_they_are():
    order = CodeOrder(Equality.IDENTITY)
    head = order.merge_unsorted([run_of([3, 5], [10, 20]), run_of([4], [15])])
    same = order.merge_unsorted([head, run_of([5, 3], [20, 10], [-3, 1])])
    assert same.layout.address == head.layout.address
    assert same_runs(same, run_of([3, 4, 5], [10, 15, 20], [2, 1, -2]))
    for other in (run_of([4], [15], [-1]), run_of([9], [1]), run_of([4, 9], [15, 1], [-1, 1])):
        changed = order.merge_unsorted([head, other])
        assert changed.layout.address != head.layout.address
        assert same_runs(changed, without(order.merge_unsorted, [head, other]))


def test_sums_that_leave_64_bits_are_merged_by_numpy():
    for in_order in (False, True):
        parts = [run_of([7], [1], [2**63 - 1]), run_of([7], [1], [1])]
        assert merged(parts, grouping=False, in_order=in_order) is None


def test_types_that_kernels_do_not_read_are_left_to_numpy():
    assert Layout.of([pa.array([[1], [2]])]) is None
    assert Layout.of([pa.array([], pa.int64())]) is None
    assert Layout.of([]) is None


def test_rows_are_found_behind_others_with_their_code():
    run = run_of([5, 7, 7, 7, 9], [0, 1, 2, 3, 4], [1, 10, 20, 30, 1])
    places = np.array([run.place], np.int64)
    asked = pa.array([3, 1, 2, 8], pa.int64())
    layout, codes = Layout.of([asked]), np.array([7, 7, 7, 7], np.uint64)
    totals = np.zeros((4, 1), np.int64)
    compiled.kernels.add_found(places, BLOCK, layout.address, codes, 1, False, totals)
    assert totals[:, 0].tolist() == [30, 10, 20, 0]
    weights = np.array([-30, -11, 5, -1], np.int64)
    assert compiled.kernels.overdrawn(places, places[:0], BLOCK, layout.address, codes, 1, weights).tolist() == [1, 3]
    probe, rows, held = compiled.kernels.find_rows(places, BLOCK, layout.address, codes, np.uint64(0), 1, 100)
    assert sorted(zip(probe.tolist(), rows.tolist(), held.tolist(), strict=True)) == [
        (0, 3, 30),
        (1, 1, 10),
        (2, 2, 20),
    ]


@given(TYPES, st.data())
@settings(max_examples=60)
def test_arrangements_answer_alike(kinds, data):
    keys = data.draw(st.integers(0, len(kinds)))
    fast, slow = Arrangement(kinds, keys), Arrangement(kinds, keys)
    for number in range(3):
        batch = data.draw(batches(kinds))
        fast.insert(batch)
        without(slow.insert, Batch(batch.columns, batch.weights))
        if number == 0:
            assert fast.row_count == without(lambda: slow.row_count)  # what came so far is sorted, the rest waits
    asked = consolidate(data.draw(batches(kinds)))
    if not len(asked):
        return
    wanted = sorted(without(slow.overdrawn, asked).tolist())
    assert sorted(fast.overdrawn(asked).tolist()) == wanted
    assert np.array_equal(fast.weights_of(asked), without(slow.weights_of, asked))
    assert sorted(fast.overdrawn(asked).tolist()) == wanted
    some = data.draw(st.lists(st.integers(0, len(kinds) - 1)))
    for options in ({}, {"consolidated": True}, {"columns": some}, {"columns": some, "layout": asked.layout}):
        ours = fast.probe(asked.columns[:keys], count=len(asked), **options)
        theirs = without(slow.probe, asked.columns[:keys], count=len(asked), **options)
        assert _counted(ours) == _counted(theirs)


def test_rows_are_missed_in_what_is_sorted_and_in_what_waits():
    arrangement = Arrangement([pa.int64(), pa.string()], 1)
    rows = (pa.array([1, 1, 2, 2]), pa.array(["a", None, "b", "b"]))
    arrangement.insert(Batch(rows, np.array([1, 1, 2, 1])))
    assert arrangement.row_count == 3
    arrangement.insert(Batch(rows, np.array([-1, 1, 1, -2])))
    asked = Batch((pa.array([1, 1, 2, 3]), pa.array(["a", None, "b", "c"])), np.array([-1, -2, -3, -1]))
    assert arrangement.overdrawn(asked).tolist() == [0, 2, 3]
    assert arrangement._spine.content.inserted  # they were not sorted for that


def _counted(found):
    columns = (pa.array(found.probe_index), *found.batch.columns)
    summed = without(consolidate, Batch(columns, found.batch.weights))
    return sorted(
        repr(row)
        for row in zip(*(column.to_pylist() for column in summed.columns), summed.weights.tolist(), strict=True)
    )


@given(TYPES, st.data())
@settings(max_examples=60)
def test_accumulators_answer_alike(kinds, data):
    fast, slow = AdditiveArrangement(kinds, 2), AdditiveArrangement(kinds, 2)
    for _ in range(3):
        batch = data.draw(batches(kinds))
        values = np.stack([batch.weights, batch.weights * 3], 1)
        fast.add(batch.columns, values)
        without(slow.add, batch.columns, values)
    asked = data.draw(batches(kinds))
    assert np.array_equal(fast.lookup(asked.columns), without(slow.lookup, asked.columns))


def test_probes_of_runs_with_texts_take_from_each_run():
    """Of a large run with texts only the rows that are asked for are copied."""
    arrangement = Arrangement([pa.int64(), pa.string()], 1)
    numbers = np.arange(10_000)
    arrangement.insert(
        Batch((pa.array(numbers), pa.array([f"row {one}" for one in numbers])), np.ones(10_000, np.int64))
    )
    arrangement.insert(Batch((pa.array([7, 10_001]), pa.array(["again", None])), np.array([2, 1])))
    found = arrangement.probe([pa.array([10_001, 7, 9_999])])
    rows = zip(
        found.probe_index.tolist(), found.batch.columns[1].to_pylist(), found.batch.weights.tolist(), strict=True
    )
    assert sorted(rows, key=repr) == [(0, None, 1), (1, "again", 2), (1, "row 7", 1), (2, "row 9999", 1)]


def test_what_holds_addresses_is_sent_without_them():
    batch = Batch((pa.array([1, 2]),), np.array([1, 1]))
    assert batch.layout is not None
    assert pickle.loads(pickle.dumps(batch)).columns == batch.columns
    run = CodeOrder(Equality.IDENTITY).merge_unsorted([run_of([1], [5]), run_of([2], [6])])
    assert run.place is not None
    assert pickle.loads(pickle.dumps(run)).columns[0].to_pylist() == [5, 6]
    with pytest.raises(TypeError):
        pickle.dumps(batch.layout)


@pytest.mark.parametrize("length", [1, 63, 64, 65, 129, 1_000, 5_000, 600_000])
@pytest.mark.parametrize("kind", ["spread", "few", "stretches", "one", "low"])
def test_orders_of_codes(length, kind):
    random = np.random.default_rng(length)
    codes = random.integers(0, 2**63, length).astype(np.uint64) * np.uint64(2)
    if kind == "few":
        codes = codes[random.integers(0, max(length // 50, 1), length)]
    elif kind == "stretches":
        codes = np.concatenate([np.sort(part) for part in np.array_split(codes, 5)])
    elif kind == "one":
        codes[:] = 7
    elif kind == "low":
        codes %= np.uint64(1000)
    assert np.array_equal(compiled.kernels.code_order(codes), np.argsort(codes, kind="stable"))
