"""What ``explain`` says of how windows are maintained."""

import pytest

from weirflow.ivm.flow import IncrementalFlow

OVER = "OVER (PARTITION BY k ORDER BY v)"


@pytest.mark.parametrize(
    ("sql", "course"),
    [
        (f"SELECT * FROM (SELECT k, rank() {OVER} AS r FROM t) WHERE 3 >= r", "the first 3 of each partition"),
        (f"SELECT k, lag(v) {OVER} AS b FROM t", "the stretch that changes"),
        (
            f"SELECT k, SUM(v) {OVER} AS s FROM t",
            "the stretch that changes, which may be all that follows in its partition",
        ),
        (f"SELECT k, ntile(2) {OVER} AS n FROM t", "partitions that change, whole; only rows that differ come out"),
    ],
)
def test_explain_says_how_much_of_a_partition_is_computed(sql, course):
    with IncrementalFlow("f") as flow:
        flow.register_source("t", "k BIGINT, v BIGINT")
        flow.register_view("w", sql)
        flow.tick("t", [{"k": 1, "v": 2}])
        assert f"window, {course}, 1 rows in " in flow.explain("w")
