"""What views over one source have in common is evaluated once, though each reads other columns of it."""

import gc
import weakref

import numpy as np
import pyarrow as pa
import pytest

from weirflow.errors import DataError
from weirflow.ivm.circuit.circuit import Circuit
from weirflow.ivm.operators.aggregate import groups
from weirflow.ivm.operators.aggregate.operator import Aggregate
from weirflow.ivm.operators.map import Filter, Project
from weirflow.ivm.zset.batch import Batch
from weirflow.ivm.zset.lazy import taken
from weirflow.sql.expr import AggregateCall, Call, Column, Literal

BIGINT, TEXT, BOOL = pa.int64(), pa.string(), pa.bool_()
TYPES = [BIGINT, TEXT, BIGINT]
COUNT = AggregateCall("count", (), BIGINT)


def batch(*rows):
    columns = zip(*(row for row, _ in rows), strict=True)
    arrays = tuple(pa.array(values, kind) for values, kind in zip(columns, TYPES, strict=True))
    return Batch(arrays, np.array([weight for _, weight in rows], np.int64))


def over(circuit, source, name, chosen, least):
    """A view that reads some columns of the source where q is greater than ``least``, grouped by s."""
    names = [("k", "s", "q")[one] for one in chosen]
    columns = [Column(one, "ksq"[one], TYPES[one]) for one in chosen]
    node = circuit.add(Project(columns), [source], "project", columns)
    here = {one: Column(place, one, columns[place].type) for place, one in enumerate(names)}
    condition = Call("greater", (here["q"], Literal(least, BIGINT)), BOOL)
    node = circuit.add(Filter([one.type for one in columns], condition), [node], "filter", condition)
    node = circuit.add(Aggregate([here["s"]], [COUNT]), [node], "aggregate", name)
    circuit.add_view(name, node)


@pytest.mark.usefixtures("either_kernel")
def test_rows_are_grouped_once_for_views_of_other_columns(monkeypatch):
    circuit = Circuit()
    source = circuit.add_source("t", TYPES)
    over(circuit, source, "narrow", [2, 1], 0)
    over(circuit, source, "wide", [0, 1, 2], 0)
    over(circuit, source, "other", [1, 2], 5)
    circuit.start()
    grouped = []
    group_rows = groups.group_rows
    monkeypatch.setattr(groups, "group_rows", lambda *args: grouped.append(args) or group_rows(*args))
    delta = batch(((1, "a", 9), 1), ((2, "a", 3), 1), ((3, "b", 0), 1), ((4, None, 1), 2))
    changed = circuit.step({"t": delta})
    circuit.commit([])
    found = {
        name: sorted(zip(*(c.to_pylist() for c in rows.columns), strict=True), key=str)
        for name, rows in changed.items()
    }
    assert found == {"narrow": [("a", 2), (None, 2)], "wide": [("a", 2), (None, 2)], "other": [("a", 1)]}
    assert len(grouped) == 2


@pytest.mark.usefixtures("either_kernel")
def test_nothing_is_kept_of_what_was_shared():
    circuit = Circuit()
    over(circuit, circuit.add_source("t", TYPES), "view", [2, 1], 0)
    circuit.start()
    delta = batch(((1, "a", 9), 1), ((3, "b", 0), 1))
    column = weakref.ref(delta.columns[0])
    gc.disable()
    try:
        changed = circuit.step({"t": delta})
        circuit.commit([])
        del delta
        assert changed["view"].origin is None
        assert column() is None
    finally:
        gc.enable()


def test_a_condition_that_cannot_be_computed_is_computed_again_for_rows_that_are_there():
    circuit = Circuit()
    source = circuit.add_source("t", TYPES)
    node = circuit.add(Project([Column(2, "q", BIGINT)]), [source], "project")
    ratio = Call("integral_divide", (Literal(1, BIGINT), Column(0, "q", BIGINT)), BIGINT)
    condition = Call("greater", (ratio, Literal(0, BIGINT)), BOOL)
    circuit.add_view("v", circuit.add(Filter([BIGINT], condition), [node], "filter"))
    circuit.start()
    assert len(circuit.step({"t": batch(((1, "a", 0), 1), ((1, "a", 0), -1), ((1, "a", 1), 1))})["v"]) == 1
    circuit.discard()
    with pytest.raises(DataError):
        circuit.step({"t": batch(((1, "a", 0), 1))})


def test_columns_are_taken_when_they_are_read():
    rows = batch(((1, "a", 9), 1), ((2, "b", 3), 1), ((3, "c", 0), 2))
    some = taken(rows, np.array([2, 0]))
    narrow = some.select([2, 1])
    assert narrow.read[0].to_pylist() == [0, 9]
    assert some.types == rows.types
    assert [column.to_pylist() for column in narrow.columns] == [[0, 9], ["c", "a"]]
    assert narrow.types == (BIGINT, TEXT)
    assert [column.to_pylist() for column in some.columns] == [[3, 1], ["c", "a"], [0, 9]]
    assert some.types == rows.types
    assert narrow.held > 0
    assert some.weights.tolist() == [2, 1]
