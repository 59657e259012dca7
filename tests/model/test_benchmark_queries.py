"""All queries of TPC-DS and Nexmark are read without Spark and kept by deltas through refreshes with deletions."""

import pytest
from nexmark_world.events import EVENTS_OF_A_PERSON, Events
from nexmark_world.query_files import QUERIES as NEXMARK
from nexmark_world.schemas import SCHEMAS as AUCTIONS
from support.maintained import Maintained
from support.nexmark_data import NexmarkData
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
    world = NexmarkData(seed=3)
    assert {int(name[1:]) for name in NEXMARK} == set(range(23))
    assert filled(AUCTIONS, NEXMARK, [world.base(bids=200), world.refresh(bids=20)]) == set(NEXMARK)


def weighted_rows(tables):
    return {
        name: [(row, 1) for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)]
        for name, rows in tables.items()
    }


def test_nexmark_over_events_of_the_benchmark():
    events = Events()
    ticks = [events.side_input(), events.between(0, 1000), events.between(1000, 3000)]
    assert filled(AUCTIONS, NEXMARK, [weighted_rows(tick) for tick in ticks]) == set(NEXMARK)


@pytest.mark.parametrize("cut", [1, 7, EVENTS_OF_A_PERSON, 777])
def test_nexmark_events_are_the_same_however_they_are_cut(cut):
    events = Events()
    first, second = weighted_rows(events.between(0, cut)), weighted_rows(events.between(cut, 1000))
    whole = weighted_rows(events.between(0, 1000))
    assert {name: first[name] + second[name] for name in whole} == whole
