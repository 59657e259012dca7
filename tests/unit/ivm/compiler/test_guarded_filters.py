"""What can fail is computed for the rows that it is asked of, not for those that a join or a set operation drops."""

import pytest

from weirflow import IncrementalFlow

GUARDED = {
    "anti join": "SELECT t.x FROM t LEFT ANTI JOIN u ON t.x = u.x WHERE 1 / t.x > 0",
    "semi join": "SELECT t.x FROM t LEFT SEMI JOIN w ON t.x = w.x WHERE 1 / t.x > 0",
    "NOT IN": "SELECT x FROM (SELECT x FROM t WHERE x NOT IN (SELECT x FROM u)) WHERE 1 / x > 0",
    "EXCEPT": "SELECT x FROM (SELECT x FROM t EXCEPT SELECT x FROM u) WHERE 1 / x > 0",
    "INTERSECT": "SELECT x FROM (SELECT x FROM t INTERSECT SELECT x FROM w) WHERE 1 / x > 0",
    "inner join": "SELECT t.x FROM t JOIN w ON t.x = w.x WHERE 1 / t.x > 0",
    "left join": "SELECT t.x FROM w LEFT JOIN t ON t.x = w.x WHERE 1 / t.x > 0",
}


@pytest.mark.parametrize("sql", GUARDED.values(), ids=GUARDED)
def test_what_can_fail_is_not_asked_of_rows_that_are_gone(sql):
    with IncrementalFlow() as flow:
        for name in "tuw":
            flow.register_source(name, "x BIGINT")
        flow.register_view("v", sql)
        flow.tick({"t": [{"x": 0}, {"x": 1}], "u": [{"x": 0}], "w": [{"x": 1}]})
        assert flow.snapshot("v").to_pylist() == [{"x": 1}]
