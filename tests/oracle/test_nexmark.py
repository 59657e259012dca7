"""The queries of Nexmark as incremental views: after every refresh they are what Spark answers, types included."""

import pytest
from nexmark_world.query_files import QUERIES
from nexmark_world.schemas import SCHEMAS
from support.benchmark_oracle import BenchmarkOracle, FlowViews
from support.maintained import Maintained
from support.nexmark_data import NexmarkData
from support.plain_plans import plain_plans

# Hopping, tumbling and session windows, a row frame over winners, days as texts, and ranks.
SAMPLE = ["q05", "q06", "q08", "q11", "q16", "q19"]


def check(session, names, bids, refreshes):
    queries = {name: QUERIES[name] for name in names}
    world = NexmarkData(seed=3)
    with plain_plans(session.spark), session.flow("nexmark") as flow:
        views = Maintained(SCHEMAS, queries), FlowViews(flow, SCHEMAS, queries)
        oracle = BenchmarkOracle(session, SCHEMAS, queries, *views)
        oracle.tick(world.base(bids))
        for _ in range(refreshes):
            oracle.tick(world.refresh(bids // 10))
            oracle.ask()
    assert oracle.differing == []
    assert oracle.filled == set(names)


def test_a_sample_equals_spark_after_a_refresh(session):
    check(session, SAMPLE, bids=200, refreshes=1)


@pytest.mark.campaign
def test_all_equal_spark_after_each_of_five_refreshes(session):
    check(session, QUERIES, bids=500, refreshes=5)
