"""Plain values that are collected by sorting are those, in that order, that reading them one by one gives."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from support.rows import VALUES, batch, count_rows

from weirflow.ivm.operators.aggregate import dispatch
from weirflow.ivm.operators.aggregate.collected import CollectCall
from weirflow.ivm.operators.aggregate.operator import Aggregate
from weirflow.ivm.operators.aggregate.recompute import FoldCall
from weirflow.sql.expr import AggregateCall, Column

pytestmark = pytest.mark.usefixtures("either_kernel")
TAKEN = [kind for kind in VALUES if CollectCall.takes(kind)]


def calls(kind):
    value, result = Column(1, "v", kind), pa.list_(kind)
    passes = Column(2, "f", pa.bool_())
    return [
        AggregateCall(function, (value,), result, distinct=distinct, filter=condition)
        for function in ("collect_list", "collect_set")
        for distinct, condition in ((False, None), (True, None), (False, passes))
    ]


@pytest.mark.parametrize("kind", TAKEN, ids=str)
@pytest.mark.parametrize("key_count", [0, 1])
def test_lists_and_sets_after_every_delta(kind, key_count, monkeypatch):
    chosen, types = random.Random(str(kind)), [pa.string(), kind, pa.bool_()]
    keys = [Column(0, "k", pa.string())][:key_count]
    fast = Aggregate(keys, calls(kind))
    with monkeypatch.context() as patch:
        patch.setattr(dispatch, "CollectCall", type("Never", (), {"takes": staticmethod(lambda _: False)}))
        slow = Aggregate(keys, calls(kind))
    assert {type(call) for call in fast._calls} == {CollectCall}
    assert {type(call) for call in slow._calls} == {FoldCall}
    assert count_rows([fast.start()]) == count_rows([slow.start()])
    held = []
    for _ in range(12):
        inserted = [
            (chosen.choice("ab"), chosen.choice(VALUES[kind]), chosen.choice([True, False, None]))
            for _ in range(chosen.randrange(8))
        ]
        chosen.shuffle(held)
        gone, held = held[: chosen.randrange(len(held) + 1)], [*held, *inserted]
        for row in gone:
            held.remove(row)
        delta = batch(types, [*inserted, *gone], [1] * len(inserted) + [-1] * len(gone))
        outputs = []
        for aggregate in (fast, slow):
            outputs.append(count_rows([aggregate.step([delta])]))
            aggregate.commit()
        assert outputs[0] == outputs[1]
