"""What Spark's analyzer and the binder read in one text is the same view, or the binder refuses the text."""

import pytest
from support import text_corpus
from support.binder_catalogue import SPARK_REFUSES
from support.generator.campaign import shown
from support.query_grid import ROWS, SOURCES
from support.text_corpus import there_and_back
from support.two_readings import Texts, TwoReadings

SAMPLE = 100
"""How many texts are read each time; a campaign reads all."""
MISREAD = {
    "grouping sets of all rows": "SELECT s, p, COUNT(*) AS n FROM (SELECT * FROM t UNION ALL SELECT * FROM t) "
    "GROUP BY s, p GROUPING SETS ((s), (p))",
    "all but windows of aggregates": "SELECT s, SUM(SUM(v)) OVER () AS a FROM t GROUP BY ALL",
    "arguments to leave out": "SELECT array_join(array(s, NULL), '-', '?') AS a, trim(BOTH 'a' FROM s) b FROM t",
    "words for moments": "SELECT CAST('epoch' AS DATE) AS a, to_timestamp(' Epoch') AS b, d > 'epoch' AS c FROM t",
    "the NULL of nullif": "SELECT nullif(v, 2) AS a, nullif(s, s) AS b, v / nullif(v, 0) AS c FROM t",
}
"""Texts that the two once read in different ways."""
RECURSIVE_UNION = "UNION_NOT_SUPPORTED_IN_RECURSIVE_CTE"


@pytest.fixture
def readings(session):
    return TwoReadings(session.spark.newSession)


def require_same(outcome):
    """No differences; and what Spark rejects and the binder reads is known."""
    assert outcome.differences == []
    unknown = {text for text, why in outcome.rejected.items() if RECURSIVE_UNION not in why}
    assert unknown <= SPARK_REFUSES


@pytest.mark.parametrize("name", MISREAD)
def test_a_text_that_was_misread_is_read_alike(readings, name):
    readings.check(Texts(SOURCES, {"v": MISREAD[name]}, there_and_back(ROWS)))
    assert readings.outcome.differences == []
    assert readings.outcome.same_plans + readings.outcome.same_rows == 1


def test_a_sample_of_all_texts_is_read_alike(readings):
    everything = [*text_corpus.catalogues(), text_corpus.grid(), text_corpus.expressions()]
    step = sum(len(texts.queries) for texts in everything) // SAMPLE
    for texts in everything:
        readings.check(texts if texts.chained else texts.every(step))
    require_same(readings.outcome)
    assert readings.outcome.same_plans + readings.outcome.same_rows > SAMPLE / 2


@pytest.mark.campaign
def test_all_texts_are_read_alike(readings, capsys):
    everything = [*text_corpus.catalogues(), text_corpus.grid(), text_corpus.expressions()]
    everything += text_corpus.random_texts(range(700))
    for texts in everything:
        readings.check(texts)
    shown(capsys)(str(readings.outcome))
    require_same(readings.outcome)
    assert readings.outcome.same_plans + readings.outcome.same_rows > 3_000
