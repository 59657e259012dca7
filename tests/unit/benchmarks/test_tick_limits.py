"""The limits of ``benchmarks/ticks.py``: which figure is held against which, and what is said when one is missing."""

import pytest
from ticking.limits import BATCH_DELTA, PEER_BASE, Limit, limits
from ticking.race import Outcome, Plan


def found(results):
    return {limit.name: (limit.figure, limit.verdict) for limit in limits(results)}


def took(**milliseconds):
    return {name: Outcome(seconds=[figure / 1000] * 3, load_s=1) for name, figure in milliseconds.items()}


@pytest.mark.parametrize(
    ("figure", "at_most", "verdict"),
    [
        (1.9, True, "ok"),
        (2.0, True, "ok"),
        (2.1, True, "not met"),
        (1.9, False, "not met"),
        (None, True, "not measured"),
    ],
)
def test_a_figure_is_met_up_to_its_bound(figure, at_most, verdict):
    assert Limit("some", figure, 2, at_most=at_most).verdict == verdict


def test_small_deltas_are_held_against_pathway_and_two_views_against_dbsp():
    measured = took(weirflow=3, dbsp=2, differential=1, pathway=12, spark=600)
    verdicts = found({Plan(view, PEER_BASE, 100): measured for view in ("group-by", "join", "top-10")})
    assert {name: verdict for name, verdict in verdicts.items() if "DBSP" in name or "Pathway" in name} == {
        "group-by: ours / Pathway": (0.25, "ok"),
        "group-by: ours / DBSP": (1.5, "ok"),
        "join: ours / Pathway": (0.25, "ok"),
        "join: ours / DBSP": (1.5, "ok"),
        "top-10: ours / Pathway": (0.25, "ok"),
    }


@pytest.mark.parametrize(
    ("peers", "expected"),
    [
        ({"dbsp": 2, "differential": 1}, (3.0, "not met")),
        ({"dbsp": 1, "differential": 6}, (3.0, "not met")),
        ({"differential": 6}, (0.5, "ok")),
        ({}, (None, "not measured")),
    ],
)
def test_larger_deltas_are_held_against_the_better_peer(peers, expected):
    results = {Plan("join", PEER_BASE, BATCH_DELTA): took(weirflow=3, **peers)}
    assert found(results) == {"join of 10,000: ours / DBSP or differential": expected}


def test_a_peer_with_a_wrong_result_is_not_measured():
    outcomes = took(weirflow=3, dbsp=2)
    outcomes["dbsp"].skipped = "wrong result"
    assert found({Plan("join", PEER_BASE, 100): outcomes})["join: ours / DBSP"] == (None, "not measured")
