"""Aggregates that are stepped together do what each does by itself, and what the kernel cannot do is done otherwise."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirflow.errors import DataError, TickTimeout
from weirflow.ivm import compiled
from weirflow.ivm.circuit.circuit import Circuit
from weirflow.ivm.kernel.deadline import Deadline
from weirflow.ivm.kernel.runs.spine import Spine
from weirflow.ivm.operators.aggregate.operator import Aggregate
from weirflow.ivm.operators.arrange import Arrange
from weirflow.ivm.operators.map import Filter
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.hashing import Equality, hash_rows
from weirflow.ivm.zset.layout import Layout
from weirflow.sql.expr import AggregateCall, Call, Column, Literal

BIGINT, DOUBLE, TEXT, BOOL = pa.int64(), pa.float64(), pa.string(), pa.bool_()
TYPES = [BIGINT, TEXT, BIGINT, DOUBLE]
K, S, Q, V = (Column(place, name, kind) for place, (name, kind) in enumerate(zip("ksqv", TYPES, strict=True)))
CALLS = {
    "n": [AggregateCall("count", (), BIGINT)],
    "q": [AggregateCall("sum", (Q,), BIGINT), AggregateCall("avg", (Q,), DOUBLE)],
    "v": [AggregateCall("sum", (V,), DOUBLE), AggregateCall("count", (V,), BIGINT)],
}
FAR = 1e300
"""No double that fits the totals of a sum."""
ROW = st.tuples(
    st.sampled_from([1, 2, 3, None]),
    st.sampled_from(["", "a", "123456789", None]),
    st.sampled_from([0, 1, -7, None]),
    st.sampled_from([0.5, -0.0, 0.0, FAR, None]),
)


def circuit():
    """Twelve aggregates over a source, half of them behind a filter, and what they give arranged by all columns."""
    made = Circuit()
    source = made.add_source("t", TYPES)
    chosen = made.add(Filter(TYPES, Call("greater", (Q, Literal(-5, BIGINT)), BOOL)), [source], "filter")
    for place, of in {"all": source, "some": chosen}.items():
        for keys in ([K], [K, S]):
            for name, calls in CALLS.items():
                aggregate = Aggregate(keys, calls)
                node = made.add(aggregate, [of], "aggregate", (place, tuple(keys), tuple(calls)))
                made.add(Arrange(aggregate.types, 0), [node], "arrange", 0)
                made.add_view(f"{place} {name} {len(keys)}", node)
    made.start()
    return made


def batch(rows):
    columns = zip(*(row for row, _ in rows), strict=True)
    arrays = tuple(pa.array(values, kind) for values, kind in zip(columns, TYPES, strict=True))
    return Batch(arrays, np.array([weight for _, weight in rows], np.int64))


def row(k=1, s="a", q=1, v=0.5, weight=1):
    return (k, s, q, v), weight


def ticked(made, rows):
    changed = made.step({"t": batch(rows)})
    made.commit([])
    made.maintain(len(rows))
    return {name: told(delta) for name, delta in changed.items()}


def told(delta):
    rows = zip(*(map(repr, column.to_pylist()) for column in delta.columns), delta.weights.tolist(), strict=True)
    return Counter(rows)


def held(made):
    """What lies in each arrangement and in the totals of each aggregate."""
    found = []
    for node in made.nodes:
        if isinstance(node.operator, Arrange):
            found.append(sum((told(rows) for rows in node.operator.arrangement.rows()), Counter()))
        elif isinstance(node.operator, Aggregate):
            parts = node.operator.states[0].rows()
            found.append(
                Counter(
                    (*map(repr, keys), tuple(values))
                    for columns, rows in parts
                    for *keys, values in zip(*(column.to_pylist() for column in columns), rows.tolist(), strict=True)
                )
            )
    return found


@pytest.fixture(scope="module")
def kernels():
    kept = compiled.kernels
    compiled.load()
    yield
    compiled.kernels = kept


@given(st.lists(st.lists(ROW, min_size=1, max_size=8), min_size=1, max_size=20), st.data())
@pytest.mark.usefixtures("kernels")
def test_circuits_do_the_same_with_and_without_kernels(deltas, data):
    fast, slow = circuit(), circuit()
    there = Counter()
    for rows in deltas:
        gone = data.draw(st.lists(st.sampled_from(list(there)), max_size=6, unique=True)) if there else []
        changes = [*((one, 1) for one in rows), *((one, -there[one]) for one in gone)]
        there = Counter({one: many for one, many in there.items() if one not in gone}) + Counter(rows)
        ours = ticked(fast, changes)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(compiled, "kernels", None)
            assert ours == ticked(slow, changes)
    assert held(fast) == held(slow)


@pytest.mark.usefixtures("kernels")
def test_one_call_does_them_all(monkeypatch):
    calls, replace = [], compiled.kernels.replace_groups
    monkeypatch.setattr(
        compiled.kernels, "replace_groups", lambda jobs, block: calls.append(len(jobs)) or replace(jobs, block)
    )
    made = circuit()
    for tick in range(5):
        assert len(ticked(made, [row(q=tick), row(2, None, tick)])) == 12
    assert calls == [12] * 5


@pytest.mark.usefixtures("kernels")
def test_rows_that_are_told_have_the_hashes_of_their_columns():
    made = circuit()
    for rows in ([row(), row(2, v=None, q=None)], [row(v=-0.0), row(v=-0.5), row(3, None, None, None)]):
        for delta in made.step({"t": batch(rows)}).values():
            expected = hash_rows(delta.columns, len(delta), Equality.IDENTITY)
            assert delta.layout.identities.tolist() == expected.tolist()
            own, again = delta.layout.table, Layout.of(delta.columns).table
            assert own[:, 0].tolist() == again[:, 0].tolist()
            assert (own[:, 1] != 0).tolist() == (again[:, 1] != 0).tolist()
        made.commit([])


@pytest.mark.usefixtures("kernels")
def test_totals_of_few_groups_are_updated_where_they_are(monkeypatch):
    aggregate = Aggregate([K], CALLS["q"])
    made = Circuit()
    made.add_view("v", made.add(aggregate, [made.add_source("t", TYPES)], "aggregate"))
    made.start()
    ticked(made, [row(number, q=number) for number in range(50)])
    ticked(made, [row(0)])
    (before,) = aggregate.states[0].runs
    monkeypatch.setattr(Spine, "_tidied", None)  # nothing is merged
    for _ in range(30):
        ticked(made, [row(3, q=5), row(4), row(4, weight=-1)])
    (after,) = aggregate.states[0].runs
    assert after.layout is before.layout
    assert ticked(made, [row(3, q=5)]) == {
        "v": Counter({("3", "153", "4.935483870967742", -1): 1, ("3", "158", "4.9375", 1): 1})
    }


@pytest.mark.usefixtures("kernels")
def test_groups_come_and_go_beside_those_that_are_updated():
    made = circuit()
    ticked(made, [row(number) for number in range(20)])
    for number in range(20):
        ticked(made, [row(number, weight=-1), row(100 + number)])
        ticked(made, [row(100 + number, q=3)])
    keys = {name[0] for name in held(made)[1]}
    assert keys == {repr(100 + number) for number in range(20)}


@pytest.mark.usefixtures("kernels")
def test_a_commit_that_was_interrupted_is_taken_back(monkeypatch):
    made = circuit()
    for _ in range(2):
        ticked(made, [row(), row(2, v=None)])
    before = held(made)
    marks, commit = [], Arrange.commit
    calls = []

    def interrupted(operator):
        calls.append(operator)
        if len(calls) == 3:
            raise KeyboardInterrupt
        commit(operator)

    made.step({"t": batch([row(), row(3)])})
    monkeypatch.setattr(Arrange, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made.commit(marks)
    made.rewind(marks)
    monkeypatch.undo()
    assert held(made) == before
    made.step({"t": batch([row(), row(3)])})
    made.commit(again := [])
    assert held(made) != before
    made.rewind(again)
    assert held(made) == before


@pytest.mark.parametrize(
    ("rows", "message"),
    [([row(7, weight=-1)], "does not exist"), ([row(q=2**63 - 1), row(q=2**63 - 1)], "overflows")],
)
@pytest.mark.usefixtures("either_kernel")
def test_what_fails_in_one_fails_the_tick_and_changes_nothing(rows, message):
    made = circuit()
    ticked(made, [row(), row(2)])
    before = held(made)
    with pytest.raises(DataError, match=message):
        made.step({"t": batch(rows)})
    made.discard()
    assert held(made) == before


@pytest.mark.usefixtures("kernels")
def test_a_deadline_is_kept():
    made = circuit()
    with pytest.raises(TickTimeout), Deadline(0):
        made.step({"t": batch([row()])})
