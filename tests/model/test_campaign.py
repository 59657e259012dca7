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


FORMS = (
    *(" JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "SEMI JOIN", "ANTI JOIN", "USING ("),
    *(" IN (SELECT", "NOT IN (SELECT", "EXISTS (SELECT", "NOT EXISTS (SELECT", "(SELECT MAX(", "(VALUES "),
    *("GROUPING SETS", "ROLLUP", "CUBE", "FILTER (WHERE", " HAVING ", "COUNT(DISTINCT", "SELECT DISTINCT"),
    *("min_by(", "max_by(", "stddev(", "var_pop(", "bool_and(", "bool_or(", "collect_set(", "collect_list("),
    *("bit_xor(", "mode(", "listagg(", "regr_count(", "approx_count_distinct("),
    *("percentile(", "median(", ") INTERSECT (", ") INTERSECT ALL (", ") EXCEPT (", ") EXCEPT ALL (", ") UNION ("),
    *("LIMIT 2 OFFSET 1", "RANK()", "LAG(", "NTH_VALUE(", "ROWS BETWEEN 1"),
    *("RANGE BETWEEN 1", "RANGE BETWEEN INTERVAL", "RANGE BETWEEN UNBOUNDED"),
    *("explode(", "LATERAL VIEW", "WITH w1 AS", "WITH RECURSIVE", " UNION SELECT", " UNION ALL SELECT", "FROM v0"),
    *(" window(", "'10 minutes', '4 minutes')", "session_window("),
)


def missing(forms, texts):
    return [form for form in forms if not any(form in text for text in texts)]


def test_every_form_of_query_comes_up():
    assert missing(FORMS, [view.text.spark for seed in range(800) for view in make_case(seed).views]) == []


def test_windows_of_time_and_recursions_are_compared_with_duckdb():
    views = [view.text for seed in range(250) for view in make_case(seed).views]
    compared = [text.spark for text in views if isinstance(text.duck, str)]
    assert missing((" window(", "session_window(", " UNION SELECT", " UNION ALL SELECT"), compared) == []


def test_a_filter_is_in_both_dialects():
    texts = [view.text for seed in range(800) for view in make_case(seed).views if isinstance(view.text.duck, str)]
    filtered = [text for text in texts if "FILTER (WHERE" in text.spark]
    assert any("count_if" in text.spark for text in filtered)
    assert [one for one in filtered if one.spark.count("FILTER (WHERE") != one.duck.count("FILTER (WHERE")] == []


def test_random_views(model):
    assert failures(model, seeds(60)) == []
    assert model.tally.refusals.total() < model.tally.cases / 20
    assert model.tally.by_duckdb > model.tally.cases
    assert model.tally.filled > model.tally.cases


def test_what_is_wrong_is_found_and_made_small(model, monkeypatch):
    """DISTINCT that lets duplicates pass: the smallest case needs two ticks at most."""
    monkeypatch.setattr(Distinct, "step", lambda _, deltas: deltas[0])
    reports = failures(model, range(60))
    assert reports
    assert all("made small" in report for report in reports)
    assert min(report.count("views.tick(") for report in reports) <= 2


@pytest.mark.campaign
def test_many_random_views(model, capsys):
    assert failures(model, seeds(50_000), shown(capsys)) == []
