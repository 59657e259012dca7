"""Random views under random deltas: after every tick each equals DuckDB's recompute, or our own from scratch.

`CAMPAIGN_SEEDS=first:last` chooses the seeds, to go on with a run or to split it between processes.
"""

import pytest
from support.generator.campaign import failures, seeds, shown
from support.generator.case import make_case
from support.generator.model import Model

from weirflow.ivm.operators.distinct import Distinct


@pytest.fixture
def model():
    model = Model()
    yield model
    model.close()


def test_a_seed_is_always_the_same_case():
    assert str(make_case(11)) == str(make_case(11))
    assert str(make_case(11)) != str(make_case(12))


def test_random_views(model):
    assert failures(model, seeds(250)) == []
    assert model.tally.refusals.total() < model.tally.cases / 20
    assert model.tally.by_duckdb > model.tally.cases
    assert model.tally.filled > model.tally.cases


def test_what_is_wrong_is_found_and_made_small(model, monkeypatch):
    """DISTINCT that lets duplicates pass: the smallest case needs two ticks at most."""
    monkeypatch.setattr(Distinct, "step", lambda _, deltas: deltas[0])
    reports = failures(model, range(100))
    assert reports
    assert all("made small" in report for report in reports)
    assert min(report.count("views.tick(") for report in reports) <= 2


@pytest.mark.campaign
def test_many_random_views(model, capsys):
    assert failures(model, seeds(50_000), shown(capsys)) == []
