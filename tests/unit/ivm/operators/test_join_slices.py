"""Joins that are made in slices give what they give in one piece: expected from the definition, pair by pair."""

import random
from collections import Counter

import pytest

from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.operators.join import pairs
from weirflow.ivm.zset.delta import DeltaBatch

INNER = "SELECT a.k, a.v, b.v AS w FROM a JOIN b ON a.k = b.k"
RESIDUAL = "SELECT a.k, a.v, b.v AS w FROM a JOIN b ON a.k = b.k AND a.v < b.v"
CROSS = "SELECT a.k, a.v, b.v AS w FROM a CROSS JOIN b"
SEMI = "SELECT a.k, a.v, 0 AS w FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND a.v < b.v)"
LEFT = "SELECT a.k, a.v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k AND a.v < b.v"


def met(left, right, condition):
    return [(k, v, w) for k, v in left for j, w in right if condition(k, v, j, w)]


def expected(view, left, right):
    def both(k, v, j, w):
        return k == j and v < w

    if view is INNER:
        return met(left, right, lambda k, _v, j, _w: k == j)
    if view is CROSS:
        return met(left, right, lambda *_: True)
    if view is SEMI:
        return [(k, v, 0) for k, v in left if any(both(k, v, j, w) for j, w in right)]
    found = met(left, right, both)
    if view is LEFT:
        found += [(k, v, None) for k, v in left if not any(both(k, v, j, w) for j, w in right)]
    return found


@pytest.mark.parametrize("most", [1, 3, 10])
@pytest.mark.parametrize("view", [INNER, RESIDUAL, CROSS, SEMI, LEFT])
def test_a_join_in_slices_is_the_join(monkeypatch, view, most):
    monkeypatch.setattr(pairs, "MOST_PAIRS", most)
    chance = random.Random(most)
    flow = IncrementalFlow()
    for name in "ab":
        flow.register_source(name, "k BIGINT, v BIGINT")
    flow.register_view("v", view)
    rows = {"a": [], "b": []}
    for _ in range(8):
        deltas = {}
        for name, own in rows.items():
            gone = [own.pop(chance.randrange(len(own))) for _ in range(min(len(own), chance.randrange(4)))]
            new = [(chance.randrange(3), chance.randrange(4)) for _ in range(chance.randrange(8))]
            own.extend(new)
            changes = [*((row, -1) for row in gone), *((row, 1) for row in new)]
            columns = {"k": [k for (k, _), _ in changes], "v": [v for (_, v), _ in changes]}
            deltas[name] = DeltaBatch.from_weighted(
                {**columns, "_weight": [weight for _, weight in changes]}, schema=flow.schema(name)
            )
        flow.tick(deltas)
        found = Counter(tuple(row.values()) for row in flow.snapshot("v").to_pylist())
        assert found == Counter(expected(view, rows["a"], rows["b"]))
