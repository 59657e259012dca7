"""Settings are part of a view: by the clocks of any zone it holds what Spark computes there, with a JVM and without."""

import datetime as dt
from collections import Counter
from functools import partial

import pyarrow as pa
import pytest
from support.exact_values import plain
from support.expression_data import edge_table
from support.mode_catalogue import LEGACY

from weirflow import IncrementalFlow
from weirflow.errors import ConfigError, NotIncremental, Reason
from weirflow.sql.settings import SqlSettings
from weirflow.sql.types import nullable

ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]
_utc = partial(dt.datetime, tzinfo=dt.UTC)
MOMENTS = [
    moment + dt.timedelta(minutes=minutes)
    for moment in (
        _utc(2024, 3, 10, 7),  # New York's clocks are put forward
        _utc(2024, 11, 3, 6),  # and back
        _utc(2024, 10, 5, 15, 30),  # Lord Howe's are put forward, by half an hour
        _utc(2024, 4, 6, 15),  # and back
        _utc(1945, 10, 14, 17, 30),  # Kolkata's, after the war
        _utc(1883, 11, 18, 17),  # before, noon was when the sun said so
        _utc(2050, 3, 13, 7),  # by the rule
        _utc(2024, 2, 29, 18, 30),
    )
    for minutes in (-1470, -1441, -1440, -90, -31, -1, 0, 29, 31, 90, 1440)
]
SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us", "UTC")),
        ("later", pa.timestamp("us", "UTC")),
        ("d", pa.date32()),
        ("text", pa.string()),
        ("i", pa.duration("us")),
    ]
)
ROWS = pa.table(
    [
        pa.array(MOMENTS),
        pa.array([MOMENTS[(7 * number) % len(MOMENTS)] for number in range(len(MOMENTS))]),
        pa.array([moment.date() for moment in MOMENTS]),
        pa.array([str(moment.replace(tzinfo=None)) for moment in MOMENTS]),
        pa.array([dt.timedelta(hours=number % 61 - 30) for number in range(len(MOMENTS))], pa.duration("us")),
    ],
    schema=SCHEMA,
)
PARTS = """
to_date(at), hour(at), minute(at), second(at), year(at), dayofweek(at), weekofyear(at), extract(HOUR FROM at),
date_trunc('year', at), date_trunc('quarter', at), date_trunc('month', at), date_trunc('week', at),
date_trunc('day', at), date_trunc('hour', at), date_trunc('minute', at), date_trunc('second', at),
date_trunc('day', d), hour(d), unix_micros(at), datediff(at, d)
"""
CASTS = """
CAST(at AS STRING), CAST(at AS DATE), CAST(at AS TIMESTAMP_NTZ), CAST(d AS TIMESTAMP), CAST(text AS TIMESTAMP),
CAST(CAST(text AS TIMESTAMP_NTZ) AS TIMESTAMP), TRY_CAST(text AS TIMESTAMP), TRY_CAST('nope' AS TIMESTAMP),
TRY_CAST(at AS DATE), CAST(at AS BIGINT), CAST(array(at, NULL) AS ARRAY<STRING>), CAST(array(text) AS ARRAY<TIMESTAMP>),
CAST(named_struct('a', d, 'b', at) AS STRUCT<a: TIMESTAMP, b: DATE>), CAST(map(1, at) AS MAP<INT, STRING>),
to_timestamp(text), TIMESTAMP'2024-03-10 02:30:00', TIMESTAMP'2024-11-03 01:30:00', TIMESTAMP'2024-04-07 01:45:00',
TIMESTAMP'2024-10-06 02:15:00', CAST('2024-11-03 01:30:00+02:00' AS TIMESTAMP), at > TIMESTAMP'2024-03-10 02:30:00',
at >= DATE'2024-11-03', at > '2024-03-10', at = d, at BETWEEN d AND date_add(d, 1), at || '', text = at
"""
INTERVALS = """
at + INTERVAL '90' MINUTE, at - INTERVAL '5' SECOND, at + INTERVAL '1' DAY, at - INTERVAL '1' DAY,
at + INTERVAL '25' HOUR, at - INTERVAL '25' HOUR, at + INTERVAL '2 03:04:05.6' DAY TO SECOND, at + INTERVAL '1' MONTH,
at - INTERVAL '1' YEAR, at + INTERVAL '-1' MONTH, at + i, at - i, d + INTERVAL '1' HOUR, d + INTERVAL '1' DAY,
at - INTERVAL '7' DAY > TIMESTAMP'2024-03-03 02:30:00', CAST(CAST(text AS TIMESTAMP_NTZ) + INTERVAL '1' DAY AS STRING),
at - later > INTERVAL '0' SECOND, at - later = INTERVAL '23' HOUR,
at - later < INTERVAL '1' DAY, at - d > INTERVAL '12' HOUR, later - at = i
"""
UNITS = """
timestampadd(DAY, 1, at), timestampadd(DAY, -1, at), timestampadd(HOUR, 24, at), timestampadd(MONTH, 5, at),
timestampadd(WEEK, 2, at), timestampadd(MINUTE, -90, at), timestampadd(YEAR, 1, at), timestampdiff(DAY, at, later),
timestampdiff(HOUR, at, later), timestampdiff(MONTH, at, later), timestampdiff(SECOND, later, at)
"""
WHOLE = {
    "windows": "SELECT window.start AS a, window.end AS z, COUNT(*) AS n FROM t GROUP BY window(at, '1 day')",
    "sliding": "SELECT window, COUNT(*) AS n FROM t GROUP BY window(at, '2 hours', '30 minutes')",
    "window of dates": "SELECT window, COUNT(*) AS n FROM t GROUP BY window(d, '1 day', '1 day', '3 hours')",
    "window of texts": "SELECT hour(window.start) AS h, COUNT(*) AS n FROM t "
    "GROUP BY window(CAST(text AS TIMESTAMP), '1 hour')",
    "sessions": "SELECT session_window, COUNT(*) AS n FROM t GROUP BY session_window(at, '45 minutes')",
    "session alone": "SELECT at, session_window(at, '5 hours').end AS z FROM t",
    "frames": "SELECT at, COUNT(*) OVER (ORDER BY at RANGE BETWEEN INTERVAL '3' HOUR PRECEDING AND CURRENT ROW) AS n "
    "FROM t",
    "frames of days": """
        SELECT at, COUNT(*) OVER (ORDER BY at RANGE BETWEEN INTERVAL '1' DAY PRECEDING AND CURRENT ROW) AS a,
               COUNT(*) OVER (ORDER BY at DESC RANGE BETWEEN INTERVAL '25' HOUR PRECEDING AND INTERVAL '1' HOUR
                              FOLLOWING) AS b,
               MIN(later) OVER (PARTITION BY hour(at) % 2 ORDER BY at RANGE BETWEEN INTERVAL '2' HOUR FOLLOWING
                                AND INTERVAL '48' HOUR FOLLOWING) AS c,
               MAX(later) OVER (ORDER BY at RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '1' DAY PRECEDING) AS d,
               COUNT(*) OVER (ORDER BY nullif(at, later) DESC NULLS FIRST RANGE BETWEEN CURRENT ROW
                              AND INTERVAL '1' DAY FOLLOWING) AS e
        FROM t
    """,
    "days": "SELECT to_date(at) AS day, COUNT(*) AS n, MAX(hour(at)) AS h FROM t GROUP BY to_date(at)",
    "subqueries": "SELECT at FROM t WHERE date_trunc('day', at) IN (SELECT CAST(d AS TIMESTAMP) FROM t) "
    "AND EXISTS (SELECT 1 FROM t AS o WHERE to_date(o.later) = to_date(t.at)) "
    "AND hour(at) < (SELECT MAX(hour(later)) FROM t)",
    "constants": "SELECT * FROM VALUES (TIMESTAMP'2024-11-03 01:30:00', CAST('2024-03-10 02:30:00' AS TIMESTAMP)) "
    "AS c(a, b)",
    "joined": "SELECT t.at, o.d FROM t JOIN t AS o ON to_date(t.at) = o.d AND hour(t.later) = hour(o.later)",
}
VIEWS = {
    "parts": f"SELECT at, {PARTS} FROM t",
    "casts": f"SELECT at, {CASTS} FROM t",
    "intervals": f"SELECT at, {INTERVALS} FROM t",
    "units": f"SELECT at, {UNITS} FROM t",
    **WHOLE,
}


@pytest.fixture
def with_conf(session):
    """Sets what SQL means in the Session, until the test is over."""
    before = {}

    def switch(**conf):
        names = {"zone": "session.timeZone", "ansi": "ansi.enabled", "case": "caseSensitive", "kind": "timestampType"}
        for short, value in conf.items():
            name = f"spark.sql.{names[short]}"
            before.setdefault(name, session.spark.conf.get(name))
            session.spark.conf.set(name, value)

    yield switch
    for name, value in before.items():
        session.spark.conf.set(name, value)


def rows(table):
    return Counter(map(str, table.to_pylist()))


def check(found, expected, name):
    assert found.schema.names == expected.schema.names, name
    assert [str(kind) for kind in found.schema.types] == [str(kind) for kind in expected.schema.types], name
    assert rows(found) == rows(expected), name


WITHOUT_ANSI_REFUSED = {"casts"}
"""Texts are cast to times unasked, which the binder leaves to Spark without ANSI."""


@pytest.mark.parametrize(
    ("zone", "ansi"),
    [
        ("Australia/Lord_Howe", True),
        ("America/New_York", False),
        *(pytest.param(zone, True, marks=pytest.mark.campaign) for zone in ZONES[:3]),
    ],
)
def test_views_are_what_spark_computes_in_the_zone(session, with_conf, zone, ansi):
    with_conf(zone=zone, ansi=str(ansi).lower())
    refused = set() if ansi else WITHOUT_ANSI_REFUSED
    session.register("t", ROWS)
    with session.flow("zones") as flow, IncrementalFlow(time_zone=zone, ansi=ansi) as bound:
        for one, left_out in ((flow, set()), (bound, refused)):
            one.register_source("t", SCHEMA)
            for number, (name, sql) in enumerate(VIEWS.items()):
                if name not in left_out:
                    one.register_view(f"v{number}", sql, mode="incremental")
            one.tick("t", ROWS)
        for number, (name, sql) in enumerate(VIEWS.items()):
            expected = session.sql(sql).to_arrow()
            check(flow.snapshot(f"v{number}"), expected, name)
            if name in refused:
                with pytest.raises(NotIncremental) as caught:
                    bound.register_view(f"v{number}", sql)
                assert caught.value.reason is Reason.SETTING_NOT_SUPPORTED
            else:
                check(bound.snapshot(f"v{number}"), expected, name)


EVERY = 16
"""Of how many expressions that mean something else without ANSI one is tried."""


@pytest.mark.parametrize("family", LEGACY)
def test_without_ansi_the_binder_reads_what_spark_reads_or_refuses(session, with_conf, family):
    with_conf(ansi="false")
    check_without_ansi(session, LEGACY[family]()[::EVERY])


@pytest.mark.campaign
@pytest.mark.parametrize("family", LEGACY)
def test_all_that_the_binder_reads_without_ansi(session, with_conf, family):
    with_conf(ansi="false")
    check_without_ansi(session, LEGACY[family]())


def check_without_ansi(session, expressions):
    table = edge_table(60, seed=4).drop_columns(["dur", "ntz", "ntz2"])
    session.register("edges", table)
    expressions = [one for one in expressions if "ntz" not in one]
    found = {}
    with IncrementalFlow(ansi=False) as flow:
        flow.register_source("edges", table.schema)
        flow.tick("edges", table)
        for one in expressions:
            try:
                found[one] = flow.sql(f"SELECT id, {one} AS c FROM edges").sort_by("id")["c"]
            except NotIncremental:
                continue
    read = list(found)
    listed = ", ".join(f"{one} AS c{number}" for number, one in enumerate(read))
    theirs = session.sql(f"SELECT id, {listed} FROM edges").to_arrow().sort_by("id")
    assert len(read) > len(expressions) / 2
    for number, one in enumerate(read):
        ours, sparks = (column.combine_chunks() for column in (found[one], theirs[f"c{number}"]))
        assert nullable(ours.type) == nullable(sparks.type), one
        assert plain(ours) == plain(sparks), one


MIDNIGHT = _utc(2024, 3, 10, 2)  # nine in the evening of the ninth in New York
NEW_YORK = SqlSettings("America/New_York")
DAY = "SELECT to_date(at) AS day, COUNT(*) AS n FROM t GROUP BY to_date(at)"
NAMED = "SELECT soundex('x') AS s, to_date(at) AS day FROM t"


# These show it where shards do the work themselves; the others are the same code for both kinds of flows.
IN_SHARDS = (
    "test_statements_that_change_a_flow_mean_what_they_mean_in_the_session",
    "test_what_is_read_anew_is_read_as_when_it_was_registered",
)


def pytest_generate_tests(metafunc):
    if "flow" in metafunc.fixturenames:
        marks = () if metafunc.function.__name__ in IN_SHARDS else pytest.mark.campaign
        kinds = [pytest.param({}, id="in one process"), pytest.param({"partitions": 2}, id="in shards", marks=marks)]
        metafunc.parametrize("flow", kinds, indirect=True)


@pytest.fixture
def flow(session, request):
    with session.flow("settings", **request.param) as flow:
        yield flow


def days(flow, view):
    return Counter(row["day"].day for row in flow.snapshot(view).to_pylist())


def settings(flow):
    return {one.name: one.settings for one in flow.describe().relations if one.kind != "source"}


def test_each_view_keeps_the_settings_of_its_own_registration(session, flow, with_conf):
    flow.register_source("t", "at TIMESTAMP")
    for name, zone in (("here", "UTC"), ("there", "America/New_York")):
        with_conf(zone=zone)
        flow.register_view(name, DAY)
        flow.register_view(f"{name}_recomputed", NAMED, mode="diff")
    with_conf(zone="Asia/Kolkata", ansi="false")
    flow.tick("t", [{"at": MIDNIGHT}])
    for name, day in (("here", 10), ("there", 9)):
        assert days(flow, name) == days(flow, f"{name}_recomputed") == Counter([day])
    usual = SqlSettings()
    assert settings(flow) == {
        "here": usual,
        "here_recomputed": usual,
        "there": NEW_YORK,
        "there_recomputed": NEW_YORK,
    }
    assert "read with: time zone America/New_York, ANSI, names not case sensitive" in flow.explain("there")
    assert "read with" not in flow.explain("here")
    described = session.sql("DESCRIBE settings.there").to_arrow().to_pylist()
    assert {
        "col_name": "Settings",
        "data_type": "time zone America/New_York, ANSI, names not case sensitive",
    } in described


def test_what_is_read_anew_is_read_as_when_it_was_registered(session, flow, with_conf):
    flow.register_source("t", "at TIMESTAMP, v INT")
    with_conf(zone="America/New_York")
    flow.register_view("below", "SELECT at, v FROM t")
    flow.register_view("above", "SELECT to_date(at) AS day, v / 2 AS half FROM below")
    flow.register_view("waits", "SELECT to_date(at) AS day FROM later")
    with_conf(zone="UTC", ansi="false")
    flow.replace_view("below", "SELECT at, v + 1 AS v FROM t")
    flow.register_view("later", "SELECT at, hour(at) AS h FROM t")
    flow.tick("t", [{"at": MIDNIGHT, "v": 1}])
    assert flow.snapshot("above").to_pylist() == [{"day": dt.date(2024, 3, 9), "half": 1.0}]
    assert days(flow, "waits") == Counter([9])
    assert flow.snapshot("later").to_pylist() == [{"at": MIDNIGHT, "h": 2}]
    assert {name: one.time_zone for name, one in settings(flow).items()} == {
        "below": "UTC",
        "above": "America/New_York",
        "waits": "America/New_York",
        "later": "UTC",
    }
    assert settings(flow)["below"].ansi is False


def test_a_frame_is_read_as_when_it_was_made(session, flow, with_conf):
    flow.register_source("t", "at TIMESTAMP")
    with_conf(zone="America/New_York")
    frame = flow.table("t").selectExpr("to_date(at) AS day")
    with_conf(zone="UTC")
    flow.register_view("v", frame)
    flow.tick("t", [{"at": MIDNIGHT}])
    assert days(flow, "v") == Counter([9])
    assert settings(flow) == {"v": NEW_YORK}


@pytest.mark.parametrize("partitions", [None, pytest.param(2, marks=pytest.mark.campaign)])
def test_settings_survive_a_restart(session, with_conf, tmp_path, partitions):
    options = {"path": tmp_path / "kept"} | ({} if partitions is None else {"partitions": partitions})
    with_conf(zone="America/New_York")
    with session.flow("kept", **options) as flow:
        flow.register_source("t", "at TIMESTAMP")
        flow.register_view("deltas", DAY)
        flow.register_view("recomputed", NAMED, mode="diff")
        flow.register_view("windows", "SELECT to_date(window.start) AS day FROM t GROUP BY window(at, '1 hour')")
        flow.tick("t", [{"at": MIDNIGHT}])
    with_conf(zone="UTC")
    with session.flow("kept", **options) as flow:
        flow.tick("t", [{"at": MIDNIGHT + dt.timedelta(hours=1)}])
        flow.replace_view("windows", "SELECT to_date(window.start) AS day FROM t GROUP BY window(at, '3 hours')")
        assert flow.snapshot("deltas").to_pylist() == [{"day": dt.date(2024, 3, 9), "n": 2}]
        assert days(flow, "recomputed") == Counter({9: 2})
        assert days(flow, "windows") == Counter({10: 2})
        assert settings(flow) == {"deltas": NEW_YORK, "recomputed": NEW_YORK, "windows": SqlSettings()}


CHANGES = [
    "INSERT INTO t VALUES (1, TIMESTAMP'2024-03-10 02:30:00', DATE'2024-03-09'), (2, DATE'2024-03-10', NULL)",
    "INSERT INTO t SELECT 3, CAST('2024-11-03 01:30:00' AS TIMESTAMP), TIMESTAMP'2024-11-03 23:30:00'",
    "INSERT INTO t SELECT 4, TIMESTAMP_NTZ'2024-03-09 21:00:00', DATE'2024-01-01'",
    "UPDATE t SET d = at + INTERVAL '1' DAY WHERE to_date(at) = DATE'2024-03-10'",
    "UPDATE t SET at = d WHERE hour(at) = 21",
    """MERGE INTO t USING (
        SELECT 3 AS id, CAST(date_trunc('day', TIMESTAMP'2024-11-03 12:00:00') AS TIMESTAMP_NTZ) AS n
    ) AS s ON t.id = s.id AND hour(t.at) = 1
    WHEN MATCHED THEN UPDATE SET at = s.n, d = s.n + INTERVAL '90' MINUTE""",
    "DELETE FROM t WHERE at = DATE'2024-03-10'",
]


def test_statements_that_change_a_flow_mean_what_they_mean_in_the_session(session, flow, with_conf):
    with_conf(zone="America/New_York")
    flow.register_source("t", "id INT, at TIMESTAMP, d DATE")
    found = []
    for sql in CHANGES:
        session.sql(sql)
        found.append(Counter(tuple(row.values()) for row in flow.snapshot("t").to_pylist()))
    one = (1, _utc(2024, 3, 10, 7, 30), dt.date(2024, 3, 9))
    two = (2, _utc(2024, 3, 10, 5), None)
    three = (3, _utc(2024, 11, 3, 5, 30), dt.date(2024, 11, 3))
    four = (4, _utc(2024, 3, 10, 2), dt.date(2024, 1, 1))
    assert found[:3] == [Counter([one, two]), Counter([one, two, three]), Counter([one, two, three, four])]
    one, two = (*one[:2], dt.date(2024, 3, 11)), (*two[:2], dt.date(2024, 3, 11))
    assert found[3] == Counter([one, two, three, four])
    four = (4, _utc(2024, 1, 1, 5), four[2])
    assert found[4] == Counter([one, two, three, four])
    three = (3, _utc(2024, 11, 3, 4), dt.date(2024, 11, 3))
    assert found[5] == Counter([one, two, three, four])
    assert found[6] == Counter([one, three, four])


def test_a_query_of_a_flow_means_what_it_means_in_the_session(session, flow, with_conf):
    flow.register_source("t", "at TIMESTAMP, v INT")
    flow.tick("t", [{"at": MIDNIGHT, "v": 0}])
    query = "SELECT to_date(at) AS day, v AS n FROM t"
    assert flow.sql(query).to_pylist() == [{"day": dt.date(2024, 3, 10), "n": 0}]
    with_conf(zone="America/New_York")
    assert flow.sql(query).to_pylist() == [{"day": dt.date(2024, 3, 9), "n": 0}]
    assert "read with: time zone America/New_York" in flow.explain_query(query)


def test_names_tell_case_where_the_session_says_so(session, flow, with_conf):
    with_conf(case="true")
    flow.register_source("t", "a INT, A STRING")
    flow.register_view("deltas", "SELECT A, SUM(a) AS a FROM t GROUP BY A", mode="incremental")
    flow.register_view("recomputed", "SELECT soundex(A) AS A, a FROM t", mode="diff")
    with_conf(case="false")
    flow.tick("t", [{"a": 1, "A": "x"}, {"a": 2, "A": "x"}])
    assert flow.snapshot("deltas").to_pylist() == [{"A": "x", "a": 3}]
    assert rows(flow.snapshot("recomputed")) == Counter(["{'A': 'X000', 'a': 1}", "{'A': 'X000', 'a': 2}"])
    assert settings(flow) == dict.fromkeys(("deltas", "recomputed"), SqlSettings(case_sensitive=True))
    with pytest.raises(ConfigError, match="cannot tell apart"):
        flow.register_source("u", "b INT, B INT")
