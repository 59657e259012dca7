"""Percentiles by rank are those that reading every row of the group gives, whatever comes and goes."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from support.rows import batch, count_rows

from weirflow.errors import DataError
from weirflow.ivm.operators.aggregate import dispatch
from weirflow.ivm.operators.aggregate.operator import Aggregate
from weirflow.ivm.operators.aggregate.percentiles import DistinctPercentile
from weirflow.ivm.zset.batch import Batch
from weirflow.sql.expr import AggregateCall, Call, Column, Literal

pytestmark = pytest.mark.usefixtures("either_kernel")

DOUBLE, BIGINT, BOOLEAN = pa.float64(), pa.int64(), pa.bool_()
TYPES = [pa.string(), DOUBLE, BIGINT, BOOLEAN]
KEY, VALUE, TIMES, COUNTED = (Column(at, name, kind) for at, (name, kind) in enumerate(zip("kvnf", TYPES, strict=True)))
ONE, BACKWARDS = Literal(1, pa.int32()), Literal(value=True, type=BOOLEAN)
VALUES = [None, math.nan, -math.inf, math.inf, -0.0, 0.0, 1.0, 1.5, 2.0, -7.25, 1e300, 5e-324, 0.1, 0.3]


def shares(*given):
    if len(given) == 1:
        return Literal(given[0], DOUBLE)
    return Call("array", tuple(Literal(one, DOUBLE) for one in given), pa.list_(DOUBLE))


def percentile(*arguments, function="percentile", counted=None):
    return AggregateCall(function, arguments, arguments[1].type, filter=counted)


CALLS = [
    *(percentile(VALUE, shares(share)) for share in (0.0, 0.25, 0.5, 0.9, 1.0)),
    percentile(VALUE, shares(0.1, 0.5, 0.75)),
    percentile(VALUE, shares(0.3), ONE, BACKWARDS),
    percentile(VALUE, shares(0.5), TIMES),
    percentile(VALUE, shares(0.0, 0.3, 1.0), TIMES),
    percentile(VALUE, shares(0.4), counted=COUNTED),
    percentile(VALUE, shares(0.2, 0.6), TIMES, counted=COUNTED),
    *(percentile(VALUE, shares(share), function="percentile_disc") for share in (0.0, 0.1, 0.5, 1.0)),
    percentile(VALUE, shares(0.25, 0.5), ONE, BACKWARDS, function="percentile_disc"),
]


@pytest.fixture
def by_reading(monkeypatch):
    """Makes aggregates that read the groups again."""

    def made(keys, calls):
        with monkeypatch.context() as patch:
            patch.setattr(dispatch, "PercentileCall", DistinctPercentile)
            return Aggregate(keys, calls)

    return made


def rows_of(chosen, groups, count):
    return [
        (
            chosen.choice(groups),
            chosen.choice(VALUES),
            chosen.choice([None, 0, 1, 1, 2, 5]),
            chosen.choice([True, None]),
        )
        for _ in range(count)
    ]


def told_apart(row):
    """NaN equals nothing to Python, and zeros of either sign each other."""
    return repr(row)


def applied(operator, delta):
    out = operator.step([delta])
    operator.commit()
    for state in operator.states:
        state.maintain(50)
    return count_rows([out])


@pytest.mark.parametrize("keys", [[KEY], []], ids=["groups", "one group"])
@pytest.mark.parametrize("seed", range(2))
def test_percentiles_after_every_delta(keys, seed, by_reading, monkeypatch):
    monkeypatch.setattr("weirflow.ivm.kernel.runs.spine.HEAD_ROWS", 16)
    chosen = random.Random(seed)
    fast, slow = Aggregate(keys, CALLS), by_reading(keys, CALLS)
    assert count_rows([fast.start()]) == count_rows([slow.start()])
    held, row_of = Counter(), {}
    for tick in range(20):
        groups = chosen.sample(["a", "b", "c", "d", None], chosen.randint(1, 3))
        inserted = rows_of(chosen, groups, chosen.randint(0, 25))
        row_of.update((told_apart(row), row) for row in inserted)
        # Some come and go at once, and now and then a whole group goes.
        share = 1.0 if tick % 7 == 6 else 0.3
        present = [row for row in held.elements() if row_of[row][0] in groups]
        retracted = [row for row in [*present, *map(told_apart, inserted)] if chosen.random() < share]
        held.update(map(told_apart, inserted))
        held.subtract(retracted)
        changes = [*((row, 1) for row in inserted), *((row_of[row], -1) for row in retracted)]
        delta = batch(TYPES, [row for row, _ in changes], [weight for _, weight in changes])
        if tick % 5 == 4:  # what was discarded has changed nothing
            fast.step([delta])
            fast.discard()
        assert applied(fast, delta) == applied(slow, delta)
    assert min(held.values()) >= 0


def test_a_share_is_known_where_no_row_of_the_delta_counts(by_reading):
    """Where FILTER lets no row pass the share is not computed, but the group has its percentile."""
    calls = [CALLS[-6], AggregateCall("count", (), BIGINT), percentile(VALUE, shares(0.2, 0.6), counted=COUNTED)]
    fast, slow = Aggregate([KEY], calls), by_reading([KEY], calls)
    for rows in ([("a", 1.0, 1, True), ("a", 2.0, 1, True)], [("a", 9.0, 1, False)], [("a", None, 1, True)]):
        delta = batch(TYPES, rows)
        assert applied(fast, delta) == applied(slow, delta)


def test_a_negative_frequency_is_an_error_unless_the_row_is_taken_back_at_once():
    aggregate = Aggregate([KEY], [percentile(VALUE, shares(0.5), TIMES)])
    rows = [("a", 1.0, -2, True), ("a", None, -2, True), ("a", 3.0, 1, True)]
    with pytest.raises(DataError, match="frequency -2 of percentile") as failed:
        aggregate.step([batch(TYPES, rows)])
    assert failed.value.condition == "NEGATIVE_VALUES_IN_FREQUENCY_EXPRESSION"
    aggregate.discard()
    taken_back = batch(TYPES, [*rows, rows[0]], [1, 1, 1, -1])
    assert applied(aggregate, taken_back) == Counter(count_rows([batch([pa.string(), DOUBLE], [("a", 3.0)])]))


def test_many_ranks_in_large_groups(by_reading):
    """More than are sorted at once, in runs of every size, with ties and without."""
    chosen = np.random.default_rng(1)
    calls = [CALLS[2], CALLS[5], CALLS[-1]]
    fast, slow = Aggregate([KEY], calls), by_reading([KEY], calls)
    keys = np.array(["hot", "warm", "cold"])
    held = []
    for count in (4_000, 3_000, 1_000, 30, 30, 1_500):
        values = np.where(chosen.random(count) < 0.5, chosen.integers(0, 50, count), chosen.normal(0, 30, count))
        rows = pa.array(keys[chosen.choice(3, count, p=[0.8, 0.19, 0.01])]), pa.array(values)
        others = pa.array(np.ones(count, np.int64)), pa.array(np.ones(count, np.bool_))
        held.append(Batch((*rows, *others), np.ones(count, np.int64)))
        gone = [part.take(np.arange(len(part) // 4, len(part) // 2)).negate() for part in held[:1]]
        held = [
            held[0].take(np.arange(len(held[0]) // 4)),
            *held[1:],
            held[0].take(np.arange(len(held[0]) // 2, len(held[0]))),
        ]
        delta = Batch.concat([Batch((*rows, *others), np.ones(count, np.int64)), *gone])
        assert applied(fast, delta) == applied(slow, delta)
