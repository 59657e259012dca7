"""After every tick the means of vectors are those of the rows that are there, each exact and rounded once."""

import math
import random
import uuid
from collections import Counter
from fractions import Fraction

import pytest
from support.vector_cases import bits

from weirflow import DeltaBatch
from weirflow.errors import DataError
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.operators.aggregate import vector_average
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow

VIEWS = {
    "by_group": ("SELECT g, vector_avg(v) AS m FROM t GROUP BY g", lambda _: True),
    "some": ("SELECT g, vector_avg(v) FILTER (WHERE id % 2 = 0) AS m, count(*) AS n FROM t GROUP BY g", None),
    "whole": ("SELECT vector_avg(v) AS m FROM t", None),
    "once": ("SELECT g, vector_avg(DISTINCT v) AS m FROM t GROUP BY g", None),
}


def mean(vectors):
    """By definition."""
    present = [one for one in vectors if one is not None]
    if not present:
        return None
    found = []
    for values in ([one for one in place if one is not None] for place in zip(*present, strict=True)):
        special = {value for value in values if not math.isfinite(value)}
        if not values:
            found.append(None)
        elif special:
            found.append(special.pop() if len(special) == 1 else math.nan)
        else:
            found.append(float(sum(map(Fraction, values))) / len(values))
    return tuple(map(bits, found))


def number(dice):
    strange = [None, 0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1e300, 2.0**-140, 0.1]
    return dice.choice(strange) if dice.random() < 0.2 else dice.gauss(0, 10.0 ** dice.randint(-20, 20))


def lived(seed, shards=None):
    dice = random.Random(seed)
    width = dice.choice([1, 2, 5, 17])
    flow = PartitionedFlow(f"memory://{uuid.uuid4().hex}", shards, InThisProcess()) if shards else IncrementalFlow()
    with flow:
        flow.register_source("t", "id BIGINT, g BIGINT, v ARRAY<DOUBLE>", key="id")
        for name, (sql, _) in VIEWS.items():
            flow.register_view(name, sql, mode="incremental")
        rows = {}
        for _ in range(6):
            gone = [one for one in rows if dice.random() < 0.3]
            new = {
                dice.randrange(30): (
                    dice.randrange(4),
                    None if dice.random() < 0.1 else tuple(number(dice) for _ in range(width)),
                )
                for _ in range(dice.choice([0, 1, 12]))
            }
            if dice.random() < 0.2:  # all go, and others come, which may have another dimension
                gone, width = list(rows), dice.choice([1, 2, 5, 17])
                new = {one: (group, vector and (1.5,) * width) for one, (group, vector) in new.items()}
            delta = [{"id": one, "_weight": -1} for one in gone if one not in new]
            for one in gone:
                rows.pop(one)
            rows |= new
            delta += [{"id": one, "g": g, "v": v, "_weight": 1} for one, (g, v) in new.items()]
            flow.tick("t", DeltaBatch.from_weighted(delta, schema=flow.schema("t")) if delta else [])
            check(flow, rows)


def check(flow, rows):
    groups = {group: {one: v for one, (g, v) in rows.items() if g == group} for group, _ in rows.values()}
    assert seen(flow, "by_group") == Counter((g, mean(own.values())) for g, own in groups.items())
    some = {g: [v for one, v in own.items() if one % 2 == 0] for g, own in groups.items()}
    assert seen(flow, "some") == Counter((g, mean(some[g]), len(own)) for g, own in groups.items())
    assert seen(flow, "whole") == Counter([(mean([v for _, v in rows.values()]),)])
    once = {g: {tuple(map(same, v)): v for v in own.values() if v is not None} for g, own in groups.items()}
    assert seen(flow, "once") == Counter((g, mean(own.values())) for g, own in once.items())


def same(value):
    """Equal for values that DISTINCT takes for one."""
    return bits(0.0 if value == 0 else value)


def seen(flow, view):
    rows = flow.snapshot(view).to_pylist()
    return Counter(
        tuple(tuple(map(bits, one)) if isinstance(one, list) else one for one in row.values()) for row in rows
    )


@pytest.mark.parametrize("seed", range(12))
def test_means_are_exact(seed, monkeypatch):
    if seed % 2:
        monkeypatch.setattr(vector_average, "_AT_ONCE", 8)
    lived(seed)


@pytest.mark.parametrize("shards", [1, 3])
def test_means_in_shards(shards):
    lived(99, shards)


@pytest.mark.campaign
def test_five_hundred_random_lives():
    for seed in range(500):
        lived(seed, (None, 1, 2, 7)[seed % 4])


def test_vectors_of_several_dimensions_have_no_mean(tmp_path):
    with IncrementalFlow(path=tmp_path) as flow:
        flow.register_source("t", "id BIGINT, g BIGINT, v ARRAY<FLOAT>", key="id")
        flow.register_view("m", "SELECT g, vector_avg(v) AS m FROM t GROUP BY g")
        flow.tick("t", [{"id": 1, "g": 1, "v": [1.0, math.inf]}, {"id": 2, "g": 2, "v": [1.0]}])
        for bad in ([{"id": 3, "g": 1, "v": [1.0]}], [{"id": one, "g": 7, "v": [1.0] * one} for one in (3, 5)]):
            with pytest.raises(DataError, match="one dimension"):
                flow.tick("t", bad)
            flow.discard()
    with IncrementalFlow(path=tmp_path) as flow:
        flow.tick("t", [{"id": 1, "g": 1, "v": [5.0]}])
        assert seen(flow, "m") == Counter([(1, (bits(5.0),)), (2, (bits(1.0),))])
