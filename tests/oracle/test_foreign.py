"""What Spark knows and the kernel does not is evaluated by Spark on the rows of the delta."""

import datetime as dt
from collections import Counter

import pytest
from support.maintained import comparable

from weirflow import IncrementalFlow
from weirflow.errors import DataError, EngineMissing, NotIncremental, Reason, TickTimeout
from weirflow.ivm.zset.delta import DeltaBatch
from weirflow.spark.frames.arrow import relation_frame

DDL = "id BIGINT, name STRING, n INT, d DATE, at TIMESTAMP, words ARRAY<STRING>, pair STRUCT<x: INT, y: STRING>"
VIEWS = {
    "projected": "SELECT id, printf(name) AS s, cos(id + pair.x) AS h FROM t",
    "filtered": "SELECT id FROM t WHERE printf(name) = 'Ann'",
    "key_of_a_join": "SELECT a.id, b.id AS other FROM t a JOIN t b ON printf(a.name) = printf(b.name)",
    "key_of_groups": "SELECT url_encode(printf(name)) AS s, COUNT(*) AS n FROM t GROUP BY printf(name)",
    "key_and_above": "SELECT printf(upper(name)) AS s, COUNT(*) AS n FROM t GROUP BY upper(name)",
    "in_and_over_aggregates": "SELECT MAX(printf(name)) AS inside, printf(MAX(name)) AS over FROM t",
    "partition": "SELECT id, ROW_NUMBER() OVER (PARTITION BY printf(name) ORDER BY id) AS r FROM t",
    "order": "SELECT id FROM t ORDER BY sin(id) LIMIT 2",
    "correlated": "SELECT id, (SELECT COUNT(*) FROM t b WHERE printf(b.name) = printf(a.name)) AS c FROM t a",
    "of_a_subquery": "SELECT id, printf((SELECT MAX(name) FROM t)) AS s FROM t",
    "json": "SELECT id, from_json(name, 'x INT, y STRING', map('mode', 'PERMISSIVE')) AS j, to_json(pair) AS p FROM t",
    "field_of_json": "SELECT id, from_json(name, 'x INT').x + 1 AS x FROM t",
    "lambdas": "SELECT id, transform(words, (x, i) -> concat(x, name, i)) AS a FROM t",
    "filtered_words": "SELECT id, filter(words, x -> x > name) AS b, exists(words, x -> x IS NULL) AS c FROM t",
    "variants": "SELECT id, variant_get(try_parse_json(name), '$.x', 'int') AS x FROM t",
    "nested_lambdas": "SELECT id, transform(words, x -> transform(words, y -> x || y || n)) AS a FROM t",
    "folded": "SELECT id, aggregate(words, 0, (acc, x) -> acc + length(x)) AS a FROM t",
    "exploded": "SELECT id, x FROM t LATERAL VIEW explode(transform(words, x -> printf(x))) e AS x",
    "formats": "SELECT id, date_format(at, 'yyyy-MM-dd HH') AS a, date_format(d, 'E') AS b FROM t",
    "zones": "SELECT id, date_format(at, 'HH z VV') AS a, try_to_timestamp(concat(d, ' Z'), 'y-MM-dd VV') AS b FROM t",
    "json_with_zones": "SELECT id, to_json(named_struct('at', at), map('timestampFormat', 'HH zzzz')) AS j FROM t",
    "constant": "SELECT id, sin(1) AS s FROM t",
    "chosen": "SELECT id, CASE WHEN n > 0 THEN printf(name) ELSE date_format(d, 'yyyy') END AS c FROM t",
    "guarded": "SELECT id, CASE WHEN n <> 0 THEN sin(1 / n) END AS c FROM t",
    "guarded_by_and": "SELECT id FROM t WHERE n <> 0 AND sin(1 / n) > 0",
    "guarded_by_a_lambda": "SELECT id, transform(words, x -> IF(n <> 0, 10 / n, 0)) AS a FROM t",
    "kernel_above": "SELECT id, upper(printf(name)) || '!' AS s FROM t",
    "no_evaluator": "SELECT id, name RLIKE '(?=A)A' AS r, sin(n) AS s FROM t",
    "texts_like_ours": "SELECT id, printf(concat(name, ' it''s a \\\\ \\n \"quote\" ')) AS s FROM t",
}
NAMES = ["Ann", "Bob", None, '{"x": 1, "y": "z"}', "Anne", "", "Rob", "Ann"]


def row(number, **others):
    at = dt.datetime(2024, 3, 10, 6, 30, tzinfo=dt.UTC) + dt.timedelta(hours=number)
    name = NAMES[number % len(NAMES)]
    return {
        "id": number,
        "name": name,
        "n": number % 3,
        "d": at.date(),
        "at": at,
        "words": ["x", name],
        "pair": {"x": number, "y": name},
        **others,
    }


@pytest.fixture
def flow(session):
    with session.flow("foreign") as flow:
        flow.register_source("t", DDL, key=["id"])
        yield flow


def check(session, flow, views):
    relation_frame(session.spark, flow.snapshot("t")).createOrReplaceTempView("t")
    for name, sql in views.items():
        expected = session.spark.sql(sql).toArrow()
        found = flow.snapshot(name).select(expected.column_names)
        rows = [
            Counter(tuple(map(comparable, one.values())) for one in table.to_pylist()) for table in (found, expected)
        ]
        assert rows[0] == rows[1], sql
    session.spark.catalog.dropTempView("t")


def test_views_are_incremental_and_hold_what_spark_says(session, flow):
    for name, sql in VIEWS.items():
        flow.register_view(name, sql, mode="incremental")
    flow.tick("t", [row(number) for number in range(8)])
    check(session, flow, VIEWS)
    flow.tick("t", [row(1, name="Anna"), row(3, n=0), row(9)])
    flow.tick("t", DeltaBatch.from_deletes([{"id": 0}]))
    check(session, flow, VIEWS)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_settings_are_those_of_the_view_whatever_they_are_later(session, flow, zone):
    sql = "SELECT id, date_format(at, 'yyyy-MM-dd HH:mm') AS a, try_to_timestamp(name, 'HH') AS b FROM t"
    session.spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        flow.register_view("v", sql, mode="incremental")
        session.spark.conf.set("spark.sql.session.timeZone", "UTC")
        flow.tick("t", [row(number) for number in range(4)])
        session.spark.conf.set("spark.sql.session.timeZone", zone)
        check(session, flow, {"v": sql})
    finally:
        session.spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_what_fails_for_a_row_fails_the_tick_and_nothing_else(session, flow):
    flow.register_view("v", "SELECT id, hash(1 / n) AS h FROM t", mode="incremental")
    flow.tick("t", [row(1)])
    with pytest.raises(DataError, match="Division by zero"):
        flow.tick("t", [row(2), row(3)])
    flow.discard()
    flow.tick("t", [row(2)])
    check(session, flow, {"v": "SELECT id, hash(1 / n) AS h FROM t"})


def test_a_tick_that_takes_too_long_is_stopped(flow):
    slow = "size(filter(sequence(1, 5000 * n), x -> size(sentences(concat(name, x))) > 0))"
    flow.register_view("v", f"SELECT id, {slow} AS s FROM t")
    assert "evaluated by Spark" in flow.explain("v")
    with pytest.raises(TickTimeout):
        flow.tick("t", [row(1, n=1500)], timeout=0.2)
    flow.discard()
    assert flow.snapshot("v").num_rows == 0


def test_explain_says_what_spark_evaluates(flow):
    flow.register_view("v", "SELECT id, printf(upper(name)) AS s, upper(name) AS u FROM t")
    assert "  evaluated by Spark on the delta: printf(upper(name))\n" in flow.explain("v")


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT id, printf(uuid()) AS s FROM t", Reason.EXPRESSION_NOT_DETERMINISTIC),
        ("SELECT id, date_format(current_timestamp(), 'HH') AS s FROM t", Reason.EXPRESSION_NOT_DETERMINISTIC),
        ("SELECT id, printf(CAST(rand() AS STRING)) AS s FROM t", Reason.EXPRESSION_NOT_DETERMINISTIC),
        ("SELECT id, hex(aes_encrypt(name, '0000111122223333')) AS s FROM t", Reason.EXPRESSION_NOT_DETERMINISTIC),
        ("SELECT percentile_approx(n, 0.5) AS p FROM t", Reason.FUNCTION_NOT_PROVEN),
    ],
)
def test_what_must_not_be_evaluated_by_row_is_not(flow, sql, reason):
    with pytest.raises(NotIncremental) as refused:
        flow.register_view("v", sql, mode="incremental")
    assert refused.value.reason == reason


def test_a_durable_flow_opens_without_spark_until_a_tick_needs_it(session, tmp_path):
    with session.flow("kept", path=tmp_path / "kept") as flow:
        flow.register_source("t", "id BIGINT, name STRING", key=["id"])
        flow.register_source("u", "id BIGINT")
        flow.register_view("v", "SELECT id, printf(name) AS s FROM t", mode="incremental")
        flow.register_view("w", "SELECT COUNT(*) AS n FROM u", mode="incremental")
        flow.tick("t", [{"id": 1, "name": "Ann"}])
        flow.checkpoint()
    with IncrementalFlow("kept", path=tmp_path / "kept") as flow:
        assert flow.snapshot("v").to_pylist() == [{"id": 1, "s": "Ann"}]
        flow.tick("u", [{"id": 7}])
        with pytest.raises(EngineMissing, match="printf"):
            flow.tick("t", [{"id": 2, "name": "Bob"}])
        flow.discard()
        assert flow.snapshot("w").to_pylist() == [{"n": 1}]
    with session.flow("kept", path=tmp_path / "kept") as flow:
        flow.tick("t", [{"id": 1, "name": "Bob"}])
        assert flow.snapshot("v").to_pylist() == [{"id": 1, "s": "Bob"}]


def test_names_that_look_like_placeholders_do_no_harm(session):
    sql = "SELECT printf(s.`_wf0`) AS a, printf(s.`_wf1`) AS b, printf(transform(s.l, x -> x.`_wf0`)[0]) AS c FROM t"
    with session.flow("names") as flow:
        flow.register_source("t", "s STRUCT<`_wf0`: STRING, `_wf1`: STRING, l: ARRAY<STRUCT<`_wf0`: STRING>>>")
        flow.register_view("v", sql)
        flow.tick("t", [{"s": {"_wf0": "Ann", "_wf1": "Bob", "l": [{"_wf0": "Cy"}]}}])
        check(session, flow, {"v": sql})


def test_a_frame_is_maintained_the_same_way(session, flow):
    from pyspark.sql import functions as F  # noqa: N812, PLC0415  PySpark's own convention

    frame = flow.table("t").select("id", F.transform("words", lambda word: F.printf(word)).alias("w"))  # noqa: PLW0108 - it takes more
    flow.register_view("v", frame)
    flow.tick("t", [row(number) for number in range(4)])
    check(session, flow, {"v": "SELECT id, transform(words, x -> printf(x)) AS w FROM t"})


def test_in_shards_such_views_are_recomputed_and_say_so(session):
    with session.flow("in shards", partitions=2) as flow:
        flow.register_source("t", "id BIGINT, name STRING", key=["id"])
        with pytest.raises(NotIncremental, match="flow in shards") as refused:
            flow.register_view("v", "SELECT id, printf(name) AS s FROM t", mode="incremental")
        assert refused.value.reason == Reason.SPARK_NOT_ON_EXECUTORS
        flow.register_view("v", "SELECT id, printf(name) AS s FROM t")
        flow.tick("t", [{"id": 1, "name": "Ann"}])
        assert flow.snapshot("v").to_pylist() == [{"id": 1, "s": "Ann"}]
