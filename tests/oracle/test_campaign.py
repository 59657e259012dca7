"""Random views under random deltas equal what Spark SQL returns on the same tables, types and data errors included.

`CAMPAIGN_SEEDS=first:last` chooses the seeds, to go on with a run or to split it between processes.
"""

import pytest
from support.generator.campaign import failures, seeds, shown
from support.generator.oracle import Oracle

_FAST = {
    # Each query runs once over a handful of rows: compiling it would take longer than interpreting it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}

pytestmark = pytest.mark.filterwarnings(
    # toArrow() leaves its socket to the garbage collector.
    "ignore:unclosed <socket:ResourceWarning",
)


@pytest.fixture
def oracle(session):
    before = {name: session.spark.conf.get(name, None) for name in _FAST}
    for name, value in _FAST.items():
        session.spark.conf.set(name, value)
    yield Oracle(session.spark)
    for name, value in before.items():
        if value is None:
            session.spark.conf.unset(name)
        else:
            session.spark.conf.set(name, value)


def test_random_views(oracle):
    assert failures(oracle, seeds(20)) == []
    assert oracle.tally.refusals.total() < oracle.tally.cases / 10
    assert oracle.tally.filled > oracle.tally.cases / 2


@pytest.mark.campaign
def test_many_random_views(oracle, capsys):
    assert failures(oracle, seeds(2_000), shown(capsys)) == []
