"""The queries of TPC-DS as incremental views: after every refresh they are what Spark answers, types included."""

import pytest
from support.benchmark_oracle import BenchmarkOracle, FlowViews
from support.maintained import Maintained
from support.plain_plans import plain_plans
from support.tpcds.data import TpcdsData
from support.tpcds.query_files import QUERIES
from support.tpcds.schema import SCHEMAS

# One of each kind: ROLLUP over unions, EXISTS under OR, ranks of groupings, correlated counts, HAVING over a subquery,
# running sums under a FULL JOIN, UNION of outer joins, EXCEPT.
SAMPLE = ["q05", "q10", "q36", "q44", "q75"]


def check(session, names, orders, refreshes):
    queries = {name: QUERIES[name] for name in names}
    world = TpcdsData(seed=7)
    with plain_plans(session.spark), session.flow("tpcds") as flow:
        views = Maintained(SCHEMAS, queries), FlowViews(flow, SCHEMAS, queries)
        oracle = BenchmarkOracle(session, SCHEMAS, queries, *views)
        oracle.tick(world.base(orders))
        for _ in range(refreshes):
            oracle.tick(world.refresh(inserted=8, deleted=6))
            oracle.ask()
    assert oracle.differing == []
    assert oracle.filled == set(names)


def test_a_sample_equals_spark_after_a_refresh(session):
    check(session, SAMPLE, orders=100, refreshes=1)


@pytest.mark.campaign
@pytest.mark.parametrize("tens", range(10))
def test_all_equal_spark_after_each_of_five_refreshes(session, tens):
    check(session, [name for name in QUERIES if int(name[1:3]) // 10 == tens], orders=250, refreshes=5)
