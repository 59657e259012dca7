"""Groups replaced by one compiled kernel are what they are without it, and what it cannot do is done without it."""

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirflow.errors import DataError
from weirflow.ivm import compiled
from weirflow.ivm.circuit.circuit import Circuit
from weirflow.ivm.kernel.ordered import OrderedArrangement
from weirflow.ivm.operators.aggregate import groups
from weirflow.ivm.operators.aggregate.extreme import ExtremeCall
from weirflow.ivm.operators.aggregate.operator import Aggregate
from weirflow.ivm.operators.aggregate.running import RunningExtreme
from weirflow.ivm.zset.batch import Batch
from weirflow.sql.expr import AggregateCall, Call, Column, Literal

BIGINT, DOUBLE = pa.int64(), pa.float64()
COLUMNS = {
    "k": (BIGINT, st.sampled_from([1, 2, -(2**62), None])),
    "s": (pa.string(), st.sampled_from(["", "a", "123456789", None])),
    "f": (DOUBLE, st.sampled_from([0.0, -0.0, 1.5, math.nan])),
    "q": (BIGINT, st.sampled_from([0, 1, -1, 2**61, -(2**62), None])),
    "i": (pa.int32(), st.sampled_from([7, -(2**31), None])),
    "h": (pa.int16(), st.sampled_from([7, -(2**15), None])),
    "t": (pa.int8(), st.sampled_from([7, -128, None])),
    "v": (DOUBLE, st.sampled_from([0.1, -0.1, -0.0, 1e30, None])),
    "w": (pa.float32(), st.sampled_from([0.5, -2.25, None])),
    "b": (pa.bool_(), st.sampled_from([True, False, None])),
}
NAMES = list(COLUMNS)
TYPES = [kind for kind, _ in COLUMNS.values()]
ROW = st.tuples(*(values for _, values in COLUMNS.values()))
DELTAS = st.lists(st.lists(st.tuples(ROW, st.sampled_from([1, 2, 3])), min_size=1, max_size=8), min_size=1, max_size=20)


def column(name):
    return Column(NAMES.index(name), name, COLUMNS[name][0])


def call(function, name=None, where=None):
    arguments = () if name is None else (column(name),)
    kind = arguments[0].type if arguments else BIGINT
    totals = {"count": BIGINT, "sum": DOUBLE if pa.types.is_floating(kind) else BIGINT, "avg": DOUBLE}
    result = totals.get(function, kind)
    return AggregateCall(function, arguments, result, filter=None if where is None else column(where))


CALLS = [
    call("count"),
    call("count", "s"),
    call("sum", "i", "b"),
    call("avg", "q"),
    *(call(function, name) for name in "ihtvw" for function in ("sum", "avg")),
    call("avg", "v", "b"),
]


def batch(rows):
    columns = zip(*(row for row, _ in rows), strict=True)
    arrays = tuple(pa.array(values, kind) for values, kind in zip(columns, TYPES, strict=True))
    return Batch(arrays, np.array([weight for _, weight in rows], np.int64))


def one_row(weight=1, **values):
    plain = {"k": 1, "s": "a", "f": 0.0, "q": 1, "i": 1, "h": 1, "t": 1, "v": 1.0, "w": 1.0, "b": True}
    return tuple({**plain, **values}.values()), weight


def ticked(aggregate, delta):
    change = aggregate.step([delta])
    aggregate.commit()
    return [list(map(repr, column.to_pylist())) for column in change.columns], change.weights.tolist()


def pair(keys, calls):
    """The same aggregate with the kernel and without it."""
    with_kernel, without = Aggregate(keys, calls), Aggregate(keys, calls)
    assert with_kernel._fused is not None
    without._fused = None
    return with_kernel, without


@given(DELTAS, st.sampled_from([["k"], ["s"], ["f"], ["k", "s"], ["i", "b", "f"]]), st.data())
def test_a_delta_does_the_same_with_and_without_the_kernel(deltas, keys, data):
    with_kernel, without = pair([column(key) for key in keys], CALLS)
    held = Counter()
    for rows in deltas:
        taken = data.draw(st.lists(st.sampled_from(list(held)), max_size=4, unique=True)) if held else []
        changes = [*rows, *((row, -held[row]) for row in taken)]
        held = Counter({row: weight for row, weight in held.items() if row not in taken})
        held.update({row: 0 for row, _ in rows})
        for row, weight in rows:
            held[row] += weight
        assert ticked(with_kernel, batch(changes)) == ticked(without, batch(changes))


def test_the_kernel_is_used(monkeypatch):
    if compiled.kernels is None:
        pytest.skip("there is no kernel")
    made = []
    replaced = Aggregate._replaced_at_once
    monkeypatch.setattr(Aggregate, "_replaced_at_once", lambda *args: made.append(replaced(*args)) or made[-1])
    aggregate = Aggregate([column("s")], CALLS)
    for _ in range(30):
        ticked(aggregate, batch([one_row(), one_row(s="b", i=None, v=None)]))
    assert None not in made
    assert len(made) == 30


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([one_row(-1)], "does not exist"),
        ([one_row(q=2**63 - 1), one_row(q=1)], "overflows"),
        ([one_row(2**62, q=2**62)], "64-bit accumulator"),
    ],
)
def test_errors_are_those_of_the_other_way(rows, message):
    for aggregate in pair([column("k")], [call("sum", "q")]):
        with pytest.raises(DataError, match=message):
            aggregate.step([batch(rows)])


@pytest.mark.parametrize("far", [math.inf, math.nan, 1e300, 5e-324])
def test_doubles_that_escape_come_back(far):
    both = pair([column("k")], [call("sum", "v"), call("count")])
    ticks = [[one_row(v=0.5)], [one_row(v=far)], [one_row(v=0.25)], [one_row(-1, v=far)], [one_row(v=1.0)]]
    for rows in ticks:
        first, second = (ticked(one, batch(rows)) for one in both)
        assert first == second
    assert first[0] == [["1", "1"], ["0.75", "1.75"], ["2", "3"]]


def test_a_sum_that_leaves_its_type_for_a_moment_can_still_be_averaged():
    both = pair([column("k")], [call("avg", "q")])
    for rows in ([one_row(q=2**63 - 1)], [one_row(q=2**63 - 1)], [one_row(-1, q=2**63 - 1)]):
        first, second = (ticked(one, batch(rows)) for one in both)
        assert first == second


def test_aggregates_of_one_delta_group_it_once_and_nothing_is_kept_of_it(monkeypatch):
    circuit = Circuit()
    source = circuit.add_source("t", TYPES)
    for name, calls in {"a": [call("count")], "b": [call("sum", "i")], "c": [call("max", "q")]}.items():
        circuit.add_view(name, circuit.add(Aggregate([column("s")], calls), [source], "aggregate", calls))
    circuit.start()
    grouped = []
    group_rows = groups.group_rows
    monkeypatch.setattr(groups, "group_rows", lambda *args: grouped.append(args) or group_rows(*args))
    delta = batch([one_row(), one_row(s="b")])
    changed = circuit.step({"t": delta})
    circuit.commit([])
    assert len(grouped) == 1
    assert {name: len(rows) for name, rows in changed.items()} == {"a": 2, "b": 2, "c": 2}
    assert delta._found is None


def test_arguments_that_only_compare_equal_are_not_taken_for_each_other():
    """Literals of 0.0 and -0.0 are equal, but not what is computed with them."""
    literals = [Literal(zero, DOUBLE) for zero in (0.0, -0.0)]
    assert literals[0] == literals[1]
    products = [groups.GroupedInput([column("k")], [Call("multiply", (column("v"), one), DOUBLE)]) for one in literals]
    delta = batch([one_row(v=1.0)])
    assert [str(product.of(delta)[1][-1][0]) for product in products] == ["0.0", "-0.0"]


def test_of_a_group_that_is_gone_no_extreme_is_looked_for(monkeypatch):
    aggregate = Aggregate([column("k")], [call("max", "q"), call("count")])
    ticked(aggregate, batch([one_row(q=5), one_row(k=2, q=6), one_row(k=2, q=7)]))
    asked = []
    doubtful = ExtremeCall._doubtful
    monkeypatch.setattr(ExtremeCall, "_doubtful", lambda *args: asked.append(args) or doubtful(*args))
    assert ticked(aggregate, batch([one_row(-1, q=5)]))[0][1] == ["5"]
    assert asked == []
    assert ticked(aggregate, batch([one_row(-1, k=2, q=7)]))[0][1] == ["7", "6"]
    assert len(asked) == 1
    assert ticked(aggregate, batch([one_row(q=3)]))[0][1] == ["3"]


@given(DELTAS, st.sampled_from([["k"], ["s", "b"], ["f"]]), st.data())
def test_extremes_are_the_same_with_and_without_the_kernel(deltas, keys, data):
    calls = [call(function, name) for name in "fqitw" for function in ("min", "max")]
    both = [Aggregate([column(key) for key in keys], calls) for _ in range(2)]
    held = Counter()
    for rows in deltas:
        taken = data.draw(st.lists(st.sampled_from(list(held)), max_size=4, unique=True)) if held else []
        changes = batch([*rows, *((row, -held[row]) for row in taken)])
        held = Counter({row: weight for row, weight in held.items() if row not in taken})
        for row, weight in rows:
            held[row] += weight
        first = ticked(both[0], changes)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(RunningExtreme, "found", lambda *_: None)
            assert ticked(both[1], changes) == first


def test_extremes_that_are_retracted_are_found_by_the_kernel(monkeypatch):
    if compiled.kernels is None:
        pytest.skip("there is no kernel")
    aggregate = Aggregate([column("s")], [call("min", "q"), call("max", "v")])
    for number in range(200):
        ticked(aggregate, batch([one_row(q=number % 7, v=number / 4), one_row(s="b", q=number, v=-1.0)]))
    monkeypatch.setattr(OrderedArrangement, "first", None)
    gone = [one_row(-1, q=number % 7, v=number / 4) for number in range(0, 196, 7)]
    assert ticked(aggregate, batch([*gone, one_row(-1, q=3, v=199 / 4)]))[0] == [
        ["'a'", "'a'"],
        ["0", "0"],
        ["49.75", "49.5"],
    ]
    assert ticked(aggregate, batch([one_row(-1, q=0, v=196 / 4)]))[0][1] == ["0", "1"]
