"""Vector views as users declare them: what they refuse, how they evolve, and that they live through failures."""

import math
import random

import pyarrow as pa
import pytest

from weirflow import DeltaBatch, HnswIndex, IncrementalFlow, IvfIndex, VectorViewSpec
from weirflow.errors import ColumnNotFound, ConfigError, DataError, DependencyMissing, SqlTypeError
from weirflow.ivm.kernel.runs.spine import Spine
from weirflow.ivm.operators.nearest import approximate, indexes
from weirflow.ivm.operators.nearest import operator as nearest
from weirflow.ivm.operators.nearest.takebacks import Takebacks
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow

DOCS = [{"id": i, "tag": "a" if i % 2 else "b", "v": [float(i), 1.0]} for i in range(10)]


def made(flow=None):
    flow = flow or IncrementalFlow()
    flow.register_source("docs", "id BIGINT, tag STRING, v ARRAY<FLOAT>", key="id")
    flow.register_source("asked", "id BIGINT, v ARRAY<FLOAT>", key="id")
    flow.tick({"docs": DOCS, "asked": [{"id": 1, "v": [3.1, 1.0]}]})
    return flow


def spec(**changes):
    return VectorViewSpec(**{"source": "docs", "column": "v", "k": 3, "metric": "l2", "queries": "asked", **changes})


def ids(flow, view="near"):
    return [(row["rank"], row["id"]) for row in flow.snapshot(view).sort_by("rank").to_pylist()]


def test_results_carry_rank_distance_and_payload():
    flow = made()
    flow.register_vector_view("near", spec(k=1, payload=["tag", "id"]))
    (row,) = flow.snapshot("near").to_pylist()
    assert row == {"query_id": 1, "tag": "a", "id": 3, "distance": pytest.approx(0.1), "rank": 1}


def test_k_metric_and_filter_evolve_and_survive(tmp_path):
    flow = made(IncrementalFlow(path=tmp_path))
    flow.register_vector_view("near", spec())
    assert ids(flow) == [(1, 3), (2, 4), (3, 2)]
    flow.replace_vector_view("near", spec(k=2))
    assert ids(flow) == [(1, 3), (2, 4)]
    flow.replace_vector_view("near", spec(filter="tag = 'b'", k=2))
    assert ids(flow) == [(1, 4), (2, 2)]
    flow.replace_vector_view("near", spec(metric="inner", k=2))
    assert ids(flow) == [(1, 9), (2, 8)]
    flow.checkpoint()
    flow.close()
    with IncrementalFlow(path=tmp_path) as again:
        assert ids(again) == [(1, 9), (2, 8)]
        again.tick("docs", DeltaBatch.from_deletes([DOCS[9]], schema=again.schema("docs")))
        assert ids(again) == [(1, 8), (2, 7)]


def test_a_checkpoint_goes_on_elsewhere(tmp_path):
    flow = made()
    flow.register_vector_view("near", spec())
    flow.checkpoint(str(tmp_path))
    other = IncrementalFlow()
    other.restore(str(tmp_path))
    other.tick("docs", [{"id": 3, "tag": "a", "v": [30.0, 1.0]}])
    assert ids(other) == [(1, 4), (2, 2), (3, 5)]


def test_a_declared_dimension_fails_the_tick_whole():
    flow = made()
    flow.register_vector_view("near", spec(dimension=2))
    before = ids(flow)
    for name, row in (("docs", {"id": 3, "tag": "a", "v": [1.0]}), ("asked", {"id": 1, "v": [1.0, 2.0, 3.0]})):
        with pytest.raises(DataError, match="numbers; the view was declared for vectors of 2"):
            flow.tick(name, [row])
        flow.discard()
    assert ids(flow) == before
    flow.tick("docs", [{"id": 3, "tag": "a", "v": None}])
    assert ids(flow) == [(1, 4), (2, 2), (3, 5)]


def test_a_tick_that_fails_elsewhere_changes_no_list():
    flow = made()
    flow.register_vector_view("near", spec())
    flow.register_view("checked", "SELECT 1 / (id - 100) AS one FROM docs")
    with pytest.raises(DataError):
        flow.tick("docs", [{"id": 100, "tag": "a", "v": [3.1, 1.0]}])
    flow.discard()
    assert ids(flow) == [(1, 3), (2, 4), (3, 2)]
    flow.tick("docs", [{"id": 101, "tag": "a", "v": [3.1, 1.0]}])
    assert ids(flow) == [(1, 101), (2, 3), (3, 4)]


@pytest.mark.parametrize("shards", [None, 3])
def test_a_query_without_documents_stays_if_the_join_is_outer(shards):
    flow = PartitionedFlow("memory://outer", shards, InThisProcess()) if shards else IncrementalFlow()
    with flow:
        flow.register_source("docs", "id BIGINT, tag STRING, v ARRAY<FLOAT>", key="id")
        flow.register_source("asked", "id BIGINT, v ARRAY<FLOAT>", key="id")
        flow.register_view(
            "near",
            "SELECT q.id AS query, n.id AS doc, n.dist FROM asked q LEFT JOIN LATERAL ("
            "SELECT d.id, vector_distance(q.v, d.v, 'l2') AS dist FROM docs d WHERE d.tag = 'a' "
            "ORDER BY dist NULLS LAST, d.id LIMIT 1) n ON true",
        )

        def rows():
            return sorted(tuple(row.values()) for row in flow.snapshot("near").to_pylist())

        assert "nearest 1 by l2" in flow.explain("near")
        flow.tick("asked", [{"id": 1, "v": [3.0, 1.0]}, {"id": 2, "v": None}])
        flow.tick("docs", DOCS[:1])  # which the filter leaves out
        assert rows() == [(1, None, None), (2, None, None)]
        flow.tick("docs", DOCS[3:4])
        assert rows() == [(1, 3, 0.0), (2, 3, None)]
        flow.tick("asked", [{"id": 3, "v": [3.0, 2.0]}])
        flow.tick("docs", DeltaBatch.from_deletes(DOCS[3:4], schema=flow.schema("docs")))
        assert rows() == [(1, None, None), (2, None, None), (3, None, None)]


def test_a_listed_document_may_be_farther_than_floats_go():
    flow = made()
    flow.tick("docs", DeltaBatch.from_deletes(DOCS, schema=flow.schema("docs")))
    flow.tick("docs", [{"id": one, "tag": "a", "v": [1e30, 0.0]} for one in range(20)])
    flow.register_vector_view("near", spec(k=1))
    flow.tick("docs", [{"id": 20, "tag": "a", "v": [5.0, 1.0]}])
    assert ids(flow) == [(1, 20)]


def test_what_was_listed_once_is_not_the_last_of_a_list(tmp_path, monkeypatch):
    monkeypatch.setattr(nearest.NearestSpec, "_margin", property(lambda _: 1))
    monkeypatch.setattr(Spine, "maintain", lambda *_: 0)  # so that what is taken back stays beside what was

    def docs(*numbers):
        return [{"id": one, "tag": "a", "v": [1.0, 1.0]} for one in numbers]

    with IncrementalFlow(path=tmp_path) as flow:
        flow.register_source("docs", "id BIGINT, tag STRING, v ARRAY<FLOAT>", key="id")
        flow.register_source("asked", "id BIGINT, v ARRAY<FLOAT>", key="id")
        flow.tick({"docs": docs(4, 12), "asked": [{"id": 1, "v": [1.0, 1.0]}]})
        flow.register_vector_view("near", spec(k=1))
        flow.checkpoint()
    with IncrementalFlow(path=tmp_path) as flow:
        schema = flow.schema("docs")
        flow.tick(
            "docs",
            DeltaBatch.from_inserts(docs(2, 3, 8, 9), schema=schema) + DeltaBatch.from_deletes(docs(4), schema=schema),
        )
        assert ids(flow) == [(1, 2)]
        flow.tick(
            "docs",
            DeltaBatch.from_inserts(docs(10, 11), schema=schema) + DeltaBatch.from_deletes(docs(2, 3), schema=schema),
        )
        assert ids(flow) == [(1, 8)]


def test_one_vector_asks():
    flow = made()
    flow.register_vector_view("near", spec(queries=None, query=[7.4, 1.0], k=2))
    assert ids(flow) == [(1, 7), (2, 8)]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"k": 0}, ConfigError),
        ({"metric": "manhattan"}, ConfigError),
        ({"index": "flat"}, ConfigError),
        ({"queries": None}, ConfigError),
        ({"query": [1.0]}, ConfigError),
        ({"queries": None, "query": [math.nan]}, ConfigError),
        ({"queries": None, "query": []}, ConfigError),
        ({"filter": "q.id = 1"}, ConfigError),
        ({"column": "w"}, ColumnNotFound),
        ({"column": "tag"}, SqlTypeError),
        ({"payload": ["nothing"]}, ColumnNotFound),
        ({"dimension": 0}, ConfigError),
    ],
)
def test_what_cannot_be_is_refused(changes, error):
    flow = made()
    with pytest.raises(error):
        flow.register_vector_view("near", spec(**changes))
    assert flow.views == ()


@pytest.mark.parametrize(
    "condition",
    [
        "tag = 'b') OR (1 = 1",
        "tag = 'b') OR 1 = 1 --",
        "tag = 'b') ORDER BY id LIMIT 1 --",
        "tag = 'b' -- and so on",
        "tag = 'b' /* and */ OR true",
        "/* all */ true",
        "/*+ BROADCAST(d) */ true",
        "-- nothing",
        " ",
        "tag = 'b';",
        "true; DROP TABLE docs",
        "true true",
        "tag = 'b' AS x",
        "tag = 'b', true",
        "tag = 'b' ORDER BY id",
        "tag = 'b' LIMIT 1",
        "tag = 'b' UNION SELECT 1",
        "id IN (SELECT id FROM asked)",
        "EXISTS (SELECT 1 FROM asked)",
        "(SELECT true)",
        "SELECT true",
        "VALUES (true)",
        "tag = 'b",
        "((tag = 'b')",
        "q.id = 1",
        "asked.id = 1",
        "nothing = 1",
        "id",
        "count(*) > 1",
        "row_number() OVER (ORDER BY id) = 1",
        "no_such_function(id)",
    ],
)
def test_a_filter_is_one_condition_over_documents(condition):
    flow = made()
    with pytest.raises(ConfigError, match="filter"):
        flow.register_vector_view("near", spec(filter=condition))
    assert flow.views == ()


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("tag = 'b' OR id = 3", [3, 4, 2]),
        ("tag = 'b' OR true", [3, 4, 2]),
        ("d.`tag` = 'b' AND NOT id BETWEEN 4 AND 5", [2, 6, 0]),
        ("tag <> ') -- ;' AND id <> 3", [4, 2, 5]),
        ("\n tag IN ('b', \"c\")\t", [4, 2, 6]),
        ("exists(v, x -> x = 7F) OR element_at(v, 1) > 8.5D", [7, 9]),
        ("CASE WHEN tag = 'a' THEN id % 3 = 0 ELSE false END", [3, 9]),
    ],
)
def test_a_filter_means_what_it_says(condition, found):
    flow = made()
    flow.register_vector_view("near", spec(filter=condition))
    assert [one for _, one in ids(flow)] == found


@pytest.mark.parametrize(
    "call", ["vector_distance(v, v)", "vector_distance(v, v, 'l1')", "vector_distance(v, v, tag)", "vector_norm(tag)"]
)
def test_calls_that_mean_nothing_are_refused(call):
    with pytest.raises(SqlTypeError):
        made().register_view("bad", f"SELECT {call} AS far FROM docs", mode="incremental")


def test_an_index_needs_its_extra(monkeypatch):
    flow = made()
    monkeypatch.setattr(indexes, "find_spec", lambda _: None)
    with pytest.raises(DependencyMissing) as missing:
        flow.register_vector_view("near", spec(index="hnsw"))
    assert missing.value.hint == "pip install 'weirflow[vector]'"


def test_flows_in_shards_have_no_approximate_views():
    with PartitionedFlow("memory://vectors-in-shards", 2, InThisProcess()) as flow:
        made(flow)
        with pytest.raises(ConfigError, match="no approximate vector views"):
            flow.register_vector_view("near", spec(index="ivf"))
        flow.register_vector_view("near", spec())
        assert ids(flow) == [(1, 3), (2, 4), (3, 2)]


@pytest.mark.parametrize("index", [IvfIndex(lists=8), HnswIndex(expansion_add=32)])
@pytest.mark.parametrize("metric", ["l2", "cosine", "inner"])
def test_an_approximate_view_says_so_and_how_good_it_is(index, metric, monkeypatch):
    monkeypatch.setattr(approximate, "_LEAST", 100)
    dice = random.Random(5)
    rows = gaussian(dice, range(600))
    asked = [{"id": row["id"], "v": row["v"]} for row in gaussian(dice, range(40))]
    flow = IncrementalFlow()
    flow.register_source("docs", "id BIGINT, tag STRING, v ARRAY<FLOAT>", key="id")
    flow.register_source("asked", "id BIGINT, v ARRAY<FLOAT>", key="id")
    flow.tick({"docs": rows[:500], "asked": asked[:30]})
    flow.register_vector_view("near", spec(index=index, metric=metric, k=5))
    flow.register_vector_view("exact", spec(metric=metric, k=5))
    for step in range(10):
        flow.tick("docs", rows[500 + 10 * step : 510 + 10 * step])
        flow.tick("docs", DeltaBatch.from_deletes(rows[20 * step : 20 * step + 20], schema=flow.schema("docs")))
        flow.tick("asked", asked[30 + step : 31 + step])
    found, wanted = (
        {(row["query_id"], row["id"]) for row in flow.snapshot(view).to_pylist()} for view in ("near", "exact")
    )
    assert len(found) == len(wanted) == 200
    assert len(found & wanted) >= 0.95 * len(wanted)
    assert f"approximate by {index.kind.value}" in flow.explain("near")
    assert "recall" in flow.explain("near")
    assert flow.gauges().recall["near"] >= 0.9
    assert "weirflow_vector_recall" in flow.metrics()
    assert "approximate" not in flow.explain("exact")


def gaussian(dice, rows, width=8):
    return [{"id": i, "tag": "a", "v": [dice.gauss(0, 1) for _ in range(width)]} for i in rows]


@pytest.mark.parametrize("index", [IvfIndex(lists=32, sample=1), HnswIndex(expansion_add=32, sample=1)])
def test_a_discarded_tick_leaves_no_measurement(index, monkeypatch):
    monkeypatch.setattr(approximate, "_LEAST", 100)
    dice = random.Random(5)
    asked = [{"id": row["id"], "v": row["v"]} for row in gaussian(dice, range(60))]
    flow = IncrementalFlow()
    flow.register_source("docs", "id BIGINT, tag STRING, v ARRAY<FLOAT>", key="id")
    flow.register_source("asked", "id BIGINT, v ARRAY<FLOAT>", key="id")
    flow.tick({"docs": gaussian(dice, range(500)), "asked": asked[:20]})
    flow.register_vector_view("near", spec(index=index, k=5))
    flow.register_view("checked", "SELECT 1 / (id - 1000) AS one FROM docs")
    flow.tick("docs", gaussian(dice, range(500, 505)))
    (line,) = [one for one in flow.explain("near").splitlines() if "approximate" in one]
    assert "measured" in line
    with monkeypatch.context() as patch:
        patch.setattr(approximate, "_ABOVE", 1.0)  # no recall is good enough: all is searched
        with pytest.raises(DataError):
            flow.tick({"docs": gaussian(dice, [1000]), "asked": asked[20:]})
        flow.discard()
        assert line in flow.explain("near").splitlines()
        flow.tick({"docs": gaussian(dice, [1001]), "asked": asked[20:]})
        assert line not in flow.explain("near").splitlines()


def test_lists_are_refilled_from_their_margin_and_searched_when_it_is_used_up(monkeypatch):
    made_ones = []
    begin = nearest.Nearest.__init__

    def noted(self, *arguments):
        begin(self, *arguments)
        made_ones.append(self)

    monkeypatch.setattr(nearest.Nearest, "__init__", noted)
    flow = made()
    rows = [{"id": 100 + i, "tag": "a", "v": [100.0 + i, 1.0]} for i in range(100)]
    flow.tick("docs", rows)
    flow.register_vector_view("near", spec(k=2))
    schema = flow.schema("docs")
    for gone in DOCS[:6]:
        flow.tick("docs", DeltaBatch.from_deletes([gone], schema=schema))
    assert (made_ones[-1].counters.refilled, made_ones[-1].counters.searched) == (6, 0)
    for gone in (*DOCS[6:], *rows[:5]):
        flow.tick("docs", DeltaBatch.from_deletes([gone], schema=schema))
    assert made_ones[-1].counters.searched == 1
    assert ids(flow) == [(1, 105), (2, 106)]


def test_values_are_those_of_the_definition():
    flow = IncrementalFlow()
    flow.register_source("t", "a ARRAY<FLOAT>, b ARRAY<DOUBLE>")
    table = pa.table({"a": pa.array([[3.0, 4.0]], pa.list_(pa.float32())), "b": pa.array([[0.0, 0.5]])})
    flow.tick("t", table)
    query = (
        "SELECT vector_distance(a, b, 'l2') x, vector_distance(a, b, 'inner') y, vector_distance(a, b, 'Cosine') z, "
    )
    (row,) = flow.sql(query + "vector_norm(a) n, vector_norm(array(1, 2, 2)) m FROM t").to_pylist()
    assert row == {"x": math.sqrt(9 + 12.25), "y": -2.0, "z": 1 - 2 / (5 * 0.5), "n": 5.0, "m": 3.0}


def test_documents_are_made_ready_for_the_next_query_while_queries_come(monkeypatch):
    searches = []
    among = Takebacks.among
    monkeypatch.setattr(Takebacks, "among", lambda self, runs: (searches.append(len(runs)), among(self, runs))[1])
    flow = IncrementalFlow()
    for name in ("docs", "queries"):
        flow.register_source(name, "id BIGINT, v ARRAY<FLOAT>", key="id")
    rows = [{"id": one, "v": [float(one), 1.0]} for one in range(100)]
    flow.tick("docs", rows)
    flow.register_vector_view("near", VectorViewSpec("docs", "v", k=2, metric="l2", queries="queries"))

    def looked(source, delta):
        searches.clear()
        flow.tick(source, delta)
        return len(searches)

    assert looked("docs", [{"id": 100, "v": [100.0, 1.0]}]) == 0, "nobody has asked"
    assert looked("queries", [{"id": 1, "v": [7.2, 1.0]}]) == 1
    assert looked("docs", DeltaBatch.from_updates([rows[7]], [{"id": 7, "v": [50.0, 1.0]}])) == 1
    assert looked("queries", [{"id": 2, "v": [7.2, 1.0]}]) == 0, "all was ready"
    assert [row["id"] for row in flow.sql("SELECT id FROM near WHERE query_id = 2 ORDER BY rank").to_pylist()] == [8, 6]
    for one in range(200, 264):
        flow.tick("docs", [{"id": one, "v": [float(one), 1.0]}])
    assert looked("docs", [{"id": 300, "v": [0.0, 1.0]}]) == 0, "the last query was long ago"
