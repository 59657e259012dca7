"""Random views under random deltas equal what Spark SQL returns on the same tables, types and data errors included.

`CAMPAIGN_SEEDS=first:last` chooses the seeds, to go on with a run or to split it between processes.
"""

import pytest
from support.generator.campaign import failures, seeds, shown
from support.generator.case import SETTINGS, make_session_case
from support.generator.oracle import Oracle
from support.generator.session_flow import SessionOracle
from support.plain_plans import plain_plans

pytestmark = pytest.mark.filterwarnings(
    # toArrow() leaves its socket to the garbage collector.
    "ignore:unclosed <socket:ResourceWarning",
)


@pytest.fixture
def plain_spark(session):
    with plain_plans(session.spark):
        yield session


@pytest.fixture
def oracle(plain_spark):
    return Oracle(plain_spark.spark)


@pytest.fixture
def session_oracle(plain_spark):
    return SessionOracle(plain_spark)


def require_mostly_kept(oracle):
    """Recomputed views are what Spark says by nature: a campaign of them would prove nothing."""
    kept = oracle.kept.total()
    assert kept > 4 * oracle.recomputed.total(), str(oracle)
    assert sum(count for (form, _), count in oracle.kept.items() if form == "frames") > kept / 5, str(oracle)
    assert oracle.rejected.total() < kept / 10, str(oracle)
    assert oracle.tally.unanswered <= oracle.tally.cases / 100, str(oracle)


def test_random_views(oracle):
    assert failures(oracle, seeds(8)) == []
    assert oracle.tally.refusals.total() < oracle.tally.cases / 10
    assert oracle.tally.filled > oracle.tally.cases / 2


@pytest.mark.campaign
def test_many_random_views(oracle, capsys):
    assert failures(oracle, seeds(2_000), shown(capsys)) == []


def test_random_views_of_sessions_with_other_settings(session_oracle):
    """All settings, each twice; texts and frames."""
    assert failures(session_oracle, seeds(2 * len(SETTINGS)), make=make_session_case) == []
    require_mostly_kept(session_oracle)
    assert session_oracle.tally.filled > session_oracle.tally.cases / 2


@pytest.mark.campaign
def test_many_random_views_of_sessions_with_other_settings(session_oracle, capsys):
    assert failures(session_oracle, seeds(1_100), shown(capsys), make_session_case) == []
    shown(capsys)(str(session_oracle))
    require_mostly_kept(session_oracle)
    assert session_oracle.kept.total() > 1_800
    assert {settings for _, settings in session_oracle.kept} == {"/".join(one.values()) for one in SETTINGS}
