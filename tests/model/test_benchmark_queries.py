"""All queries of TPC-DS and Nexmark are read without Spark and kept by deltas through refreshes with deletions."""

from support.maintained import Maintained
from support.nexmark import data as nexmark
from support.nexmark.query_files import QUERIES as NEXMARK
from support.tpcds.data import TpcdsData
from support.tpcds.query_files import QUERIES as TPCDS
from support.tpcds.schema import SCHEMAS


def filled(sources, queries, ticks):
    """Those that have had a row with a value in it."""
    views = Maintained(sources, queries)
    found = set()
    for tick in ticks:
        views.tick(tick)
        found |= {name for name, rows in views.views.items() if any(value is not None for row in rows for value in row)}
    return found


def test_tpcds():
    world = TpcdsData(seed=7)
    assert {int(name[1:3]) for name in TPCDS} == set(range(1, 100))
    found = filled(SCHEMAS, TPCDS, [world.base(orders=150), world.refresh(inserted=8, deleted=6)])
    assert len(set(TPCDS) - found) <= 5, sorted(set(TPCDS) - found)


def test_nexmark():
    world = nexmark.NexmarkData(seed=3)
    assert {int(name[1:]) for name in NEXMARK} == set(range(23))
    assert filled(nexmark.SCHEMAS, NEXMARK, [world.base(bids=200), world.refresh(bids=20)]) == set(NEXMARK)
