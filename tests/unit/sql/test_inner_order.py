"""A LIMIT goes by the order of an inner query it, which the binder does not read: it refuses, and nothing else."""

from collections import Counter

import pytest
from support.maintained import Maintained
from support.view_corpus import SOURCES

from weirflow.errors import NotIncremental

ORDERED = "SELECT k, v FROM t ORDER BY v DESC, k"
BY_THE_ORDER_INSIDE = [
    f"SELECT k FROM ({ORDERED}) LIMIT 2",
    f"({ORDERED}) LIMIT 2",
    f"SELECT k FROM ({ORDERED} LIMIT 4) OFFSET 1",
    f"SELECT k FROM (SELECT k + 1 AS k FROM ({ORDERED}) WHERE v > 0) LIMIT 2",
    f"WITH o AS ({ORDERED}) SELECT k FROM o LIMIT 2",
    f"WITH o(a, b) AS ({ORDERED}) SELECT a FROM o LIMIT 2",
    "SELECT k FROM (SELECT k FROM t UNION SELECT k FROM u ORDER BY k) LIMIT 2",
    f"SELECT k FROM t WHERE k = (SELECT k FROM ({ORDERED}) LIMIT 1)",
]
ROWS = {"t": [((1, 5, "a"), 1), ((2, 4, "b"), 1), ((3, 6, "c"), 1)]}


@pytest.mark.parametrize("sql", BY_THE_ORDER_INSIDE)
def test_a_limit_by_the_order_of_a_query_inside_is_refused(sql):
    with pytest.raises(NotIncremental, match="order of an inner query"):
        Maintained(SOURCES, {"view": sql})


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (f"SELECT COUNT(*) AS n FROM ({ORDERED}) LIMIT 2", [(3,)]),
        (f"SELECT k FROM ({ORDERED}) ORDER BY k LIMIT 2", [(1,), (2,)]),
        (f"SELECT k FROM ({ORDERED}) WHERE v > 4", [(1,), (3,)]),
        (f"SELECT SUM(v) AS s FROM ({ORDERED} LIMIT 2)", [(11,)]),
    ],
)
def test_where_the_order_inside_does_not_matter_it_does_not(sql, rows):
    views = Maintained(SOURCES, {"view": sql})
    views.tick(ROWS)
    assert views.views["view"] == Counter(rows)
