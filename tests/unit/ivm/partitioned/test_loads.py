"""Many rows at once, in which most are there several times: as if they had come a few at a time."""

from collections import Counter

import pyarrow as pa
import pytest

from weirflow.errors import DataError
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow

MANY = 150_000
VIEWS = {
    "plain": "SELECT k, v FROM t",
    "counted": "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM t GROUP BY k",
    "distinct": "SELECT DISTINCT v FROM t",
    "top": "SELECT k, v FROM t ORDER BY v DESC, k LIMIT 3",
    "without": "SELECT v FROM t WHERE k = 1 EXCEPT ALL SELECT v FROM t WHERE k = 2",
}


class Frame:
    """What a Spark frame is to flows in this process."""

    def __init__(self, table):
        self._table = table

    def mapInArrow(self):  # noqa: N802 - Spark's name
        raise NotImplementedError

    def to_batches(self):
        return self._table.to_batches(max_chunksize=10_000)


@pytest.fixture(params=["one piece", "shards", "shards, frames"])
def flow(request, tmp_path):
    pieces = request.param == "one piece"
    with IncrementalFlow() if pieces else PartitionedFlow(str(tmp_path), 3, InThisProcess()) as flow:
        flow.given = Frame if request.param.endswith("frames") else lambda table: table
        flow.register_source("t", "k BIGINT, v BIGINT")
        for name, sql in VIEWS.items():
            flow.register_view(name, sql)
        yield flow


def loaded(weights=None):
    columns = {"k": [at % 7 for at in range(MANY)], "v": [at % 1001 for at in range(MANY)]}
    return pa.table(columns if weights is None else {**columns, "_weight": pa.array(weights, pa.int64())})


def expected(rows):
    rows = +rows
    by_key = {key: [(v, n) for (k, v), n in rows.items() if k == key] for key in {k for k, _ in rows}}
    one, two = [Counter(dict(by_key.get(key, ()))) for key in (1, 2)]
    top = sorted(rows.elements(), key=lambda row: (-row[1], row[0]))[:3]
    return {
        "plain": rows,
        "counted": Counter((k, sum(n for _, n in own), sum(v * n for v, n in own)) for k, own in by_key.items()),
        "distinct": Counter((v,) for v in {v for _, v in rows}),
        "top": Counter(top),
        "without": Counter({(v,): n for v, n in (one - two).items()}),
    }


def found(flow):
    tables = {name: flow.snapshot(name) for name in VIEWS}
    return {name: Counter(zip(*table.to_pydict().values(), strict=True)) for name, table in tables.items()}


def test_rows_that_are_there_several_times(flow):
    watch = flow.watch_output("plain")
    summary = flow.tick("t", flow.given(loaded()))
    rows = Counter(zip(*loaded().to_pydict().values(), strict=True))
    assert (summary.rows_in, summary.views["plain"]) == (MANY, len(rows))
    delta = watch.get(timeout=0)[1].to_arrow().to_pydict()
    assert {(k, v): n for k, v, n in zip(*delta.values(), strict=True)} == rows
    assert found(flow) == expected(rows)
    # A third of them goes, and comes back twice.
    for sign in (-1, 2):
        weights = [sign if at % 3 == 0 else 0 for at in range(MANY)]
        flow.tick("t", flow.given(loaded(weights)))
        for at in range(0, MANY, 3):
            rows[at % 7, at % 1001] += sign
        assert found(flow) == expected(rows)


def test_a_retraction_of_what_is_not_there_is_found_among_many(flow):
    flow.tick("t", [{"k": 1, "v": 1}])
    weights = [1] * (MANY - 1) + [-MANY]
    with pytest.raises(DataError, match="retracts a row"):
        flow.tick("t", flow.given(loaded(weights)))
    assert not flow.pending
    assert found(flow) == expected(Counter({(1, 1): 1}))
