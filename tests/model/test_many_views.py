"""What registering costs without Spark, in time of the processor: a second for 20 subqueries, a minute for 1,000 views.

The limits are generous; what grows with the square of what is registered does not keep them.
"""

import time
from contextlib import contextmanager

import pytest
from support.many_subqueries import COUNT, FORMS
from support.view_corpus import SOURCES

from weirflow import IncrementalFlow

MANY = 1_000
TEXTS = (
    "SELECT k, v + {n} AS x, s FROM t WHERE v > {n}",
    "SELECT k, COUNT(*) AS n, SUM(v + {n}) AS s FROM t WHERE v <> {n} GROUP BY k",
    "SELECT t.k, v, w FROM t JOIN u ON t.k = u.k AND v < w + {n}",
    "SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v + {n}) AS r FROM t",
    "SELECT k, (SELECT MAX(w) + {n} FROM u WHERE u.k = t.k) AS m FROM t",
)


@pytest.fixture
def flow():
    with IncrementalFlow() as flow:
        for name, schema in SOURCES.items():
            flow.register_source(name, schema)
        yield flow


@contextmanager
def within(seconds):
    start = time.process_time()
    yield
    assert time.process_time() - start < seconds


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_view_of_many_subqueries_is_registered_and_ticks_in_a_second(flow, form):
    with within(3):  # a third of that on a machine that has nothing else to do
        flow.register_view("view", form(COUNT))
        flow.tick({"t": [{"k": 1, "v": 2, "s": "a"}], "u": [{"k": 1, "w": 3}]})


def register(flow, count):
    for n in range(count):
        flow.register_view(f"v{n}", TEXTS[n % len(TEXTS)].format(n=n))
    flow.tick({"t": [{"k": 1, "v": 2, "s": "a"}], "u": [{"k": 1, "w": 3}]})
    assert flow.snapshot("v4").to_pylist() == [{"k": 1, "m": 7}]


def test_some_different_views_are_registered_in_no_time(flow):
    with within(60 / 5):
        register(flow, MANY // 5)


@pytest.mark.campaign
def test_many_different_views_are_registered_in_a_minute(flow):
    with within(60):
        register(flow, MANY)
