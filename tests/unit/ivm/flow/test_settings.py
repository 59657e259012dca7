"""Settings of flows without a Session: whose clocks, whether names tell case. Each view keeps its own."""

import datetime as dt
from collections import Counter

import pyarrow as pa
import pytest
from support.flow_engine import FlowEngine

from weirflow.errors import ColumnNotFound, ConfigError, NotIncremental, Reason
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.sql.settings import USUAL, SqlSettings

NEW_YORK, KOLKATA = SqlSettings("America/New_York"), SqlSettings("Asia/Kolkata")
EVENING = dt.datetime(2024, 3, 10, 2, tzinfo=dt.UTC)  # nine o'clock of the ninth in New York
DAY = "SELECT to_date(at) AS day FROM t"


def days(flow, view):
    return Counter(row["day"].day for row in flow.snapshot(view).to_pylist())


def settings(flow):
    return {one.name: one.settings for one in flow.describe().relations if one.kind != "source"}


def one_value(sql, zone, at=EVENING):
    with IncrementalFlow(time_zone=zone) as flow:
        flow.register_source("t", "at TIMESTAMP")
        flow.register_view("v", f"SELECT {sql} AS x FROM t")
        flow.tick("t", [{"at": at}])
        return flow.snapshot("v").to_pylist()[0]["x"]


@pytest.mark.parametrize(
    ("sql", "zone", "expected"),
    [
        ("hour(at)", "America/New_York", 21),
        ("hour(at)", "+05:30", 7),
        ("minute(at)", "Australia/Lord_Howe", 0),
        ("CAST(at AS STRING)", "Asia/Kolkata", "2024-03-10 07:30:00"),
        ("CAST(at AS STRING)", "GMT-3", "2024-03-09 23:00:00"),
        ("at + INTERVAL '1' DAY", "America/New_York", dt.datetime(2024, 3, 11, 1, tzinfo=dt.UTC)),
        ("at + INTERVAL '24' HOUR", "America/New_York", dt.datetime(2024, 3, 11, 1, tzinfo=dt.UTC)),
        ("at + INTERVAL '23' HOUR", "America/New_York", dt.datetime(2024, 3, 11, 1, tzinfo=dt.UTC)),
        ("at + INTERVAL '1' MONTH", "America/New_York", dt.datetime(2024, 4, 10, 1, tzinfo=dt.UTC)),
        ("timestampadd(HOUR, 24, at)", "America/New_York", dt.datetime(2024, 3, 11, 2, tzinfo=dt.UTC)),
        ("TIMESTAMP'2024-03-10 02:30:00'", "America/New_York", dt.datetime(2024, 3, 10, 7, 30, tzinfo=dt.UTC)),
        ("TIMESTAMP'2024-11-03 01:30:00'", "America/New_York", dt.datetime(2024, 11, 3, 5, 30, tzinfo=dt.UTC)),
        ("date_trunc('day', at)", "America/New_York", dt.datetime(2024, 3, 9, 5, tzinfo=dt.UTC)),
        ("CAST(array(at) AS ARRAY<DATE>)", "America/New_York", [dt.date(2024, 3, 9)]),
        ("at - TIMESTAMP'2024-03-10 03:00:00' < INTERVAL '-5' HOUR", "America/New_York", True),
    ],
)
def test_times_are_read_by_the_clocks_of_the_flow(sql, zone, expected):
    assert one_value(sql, zone) == expected


def test_a_view_keeps_the_settings_that_it_was_registered_with(tmp_path):
    for zone, view in (("UTC", "usual"), ("America/New_York", "there"), ("Asia/Kolkata", "last")):
        with IncrementalFlow("kept", path=tmp_path / "kept", time_zone=zone) as flow:
            flow.register_source("t", "at TIMESTAMP")
            flow.register_view(view, DAY)
            flow.register_view("usual", DAY)  # once more is nothing
            flow.tick("t", [{"at": EVENING}])
            if view == "there":
                flow.checkpoint()
            assert settings(flow)[view].time_zone == zone
    with IncrementalFlow("kept", path=tmp_path / "kept") as flow:
        flow.tick("t", [{"at": EVENING + dt.timedelta(hours=17)}])
        assert settings(flow) == {"usual": USUAL, "there": NEW_YORK, "last": KOLKATA}
        assert days(flow, "usual") == Counter({10: 4})
        assert days(flow, "there") == Counter({9: 3, 10: 1})
        assert days(flow, "last") == Counter({10: 3, 11: 1})
        assert flow.sql(DAY).to_pylist() == [{"day": dt.date(2024, 3, 10)}] * 4


def test_what_takes_a_views_place_has_the_settings_of_then(tmp_path):
    with IncrementalFlow("kept", path=tmp_path / "kept", time_zone="America/New_York") as flow:
        flow.register_source("t", "at TIMESTAMP")
        flow.register_view("v", DAY)
        flow.register_view("w", "SELECT day FROM v")
        flow.tick("t", [{"at": EVENING}])
    with IncrementalFlow("kept", path=tmp_path / "kept") as flow:
        plan = flow.replace_view("v", DAY)
        assert plan.rebuilt == ("v", "w")
        assert flow.replace_view("v", DAY).rebuilt == ()
    with IncrementalFlow("kept", path=tmp_path / "kept", time_zone="America/New_York") as flow:
        assert days(flow, "v") == days(flow, "w") == Counter([10])
        assert settings(flow) == {"v": USUAL, "w": NEW_YORK}


def test_a_checkpoint_is_restored_into_a_flow_with_its_own_settings(tmp_path):
    with IncrementalFlow(time_zone="America/New_York") as flow:
        flow.register_source("t", "at TIMESTAMP")
        flow.register_view("v", DAY)
        flow.tick("t", [{"at": EVENING}])
        flow.checkpoint(tmp_path)
    with IncrementalFlow() as other:
        other.restore(tmp_path)
        assert settings(other) == {"v": NEW_YORK}
    with IncrementalFlow() as own:
        own.register_source("t", "at TIMESTAMP")
        own.register_view("v", DAY)
        assert own.restore(tmp_path).rebuilt == ("v",)
        assert days(own, "v") == Counter([10])


class SettledFlowEngine(FlowEngine):
    """Answers queries with the settings that it is asked to, and says which those were."""

    def __init__(self, now, under=None, asked=None):
        super().__init__()
        self.now, self._under, self.asked = now, under, [] if asked is None else asked

    def settings_now(self):
        return self._under or self.now

    def under(self, settings):
        return SettledFlowEngine(self.now, settings, self.asked)

    def _result(self, sql, tables):
        self.asked.append(self.settings_now())
        with IncrementalFlow("engine", time_zone=self.settings_now().time_zone) as flow:
            for name, table in tables.items():
                flow.register_source(name, table.schema)
                flow.load(name, table)
            return flow.sql(sql)


@pytest.fixture(params=["in one process", "in shards"])
def flow_of(request, tmp_path):
    def make(engine):
        if request.param == "in shards":
            return PartitionedFlow(str(tmp_path / "flow"), 2, InThisProcess(engine))
        return IncrementalFlow(path=tmp_path / "flow", engine=engine)

    return make


def test_a_view_is_recomputed_with_its_own_settings(flow_of):
    engine = SettledFlowEngine(NEW_YORK)
    with flow_of(engine) as flow:
        flow.register_source("t", "at TIMESTAMP")
        flow.register_view("there", DAY, mode="diff")
        engine.now = USUAL
        flow.register_view("here", DAY, mode="diff")
        flow.tick("t", [{"at": EVENING}])
        assert (days(flow, "there"), days(flow, "here")) == (Counter([9]), Counter([10]))
    engine.now = KOLKATA
    engine.asked.clear()
    with flow_of(engine) as flow:
        flow.tick("t", [{"at": EVENING + dt.timedelta(hours=17)}])
        assert (days(flow, "there"), days(flow, "here")) == (Counter([9, 10]), Counter([10, 10]))
        assert set(engine.asked) == {NEW_YORK, USUAL}
        assert settings(flow) == {"there": NEW_YORK, "here": USUAL}


def test_the_settings_of_a_sessions_flow_are_the_sessions():
    with pytest.raises(ConfigError, match="those of the Session") as caught:
        IncrementalFlow(engine=SettledFlowEngine(USUAL), time_zone="Asia/Kolkata")
    assert "spark.sql.session.timeZone" in caught.value.hint


@pytest.mark.parametrize("zone", ["America/Nowhere", "+19:00", "", "../etc/passwd"])
def test_an_unknown_time_zone_is_refused(zone):
    with pytest.raises(ConfigError, match="does not know the time zone"):
        IncrementalFlow(time_zone=zone)


def test_without_ansi_what_has_no_result_is_null_or_wraps_around():
    with IncrementalFlow(ansi=False) as flow:
        flow.register_source("t", "a INT, s STRING")
        third = "element_at(array(a), 3)"
        flow.register_view("v", f"SELECT a / 0 AS x, a + 1 AS y, CAST(s AS INT) AS z, {third} AS i FROM t")
        flow.register_view("w", "SELECT SUM(a) + 9223372036854775807 AS s, MAX(a % 0) AS m FROM t")
        flow.tick("t", [{"a": 2147483647, "s": "no"}])
        assert flow.snapshot("v").to_pylist() == [{"x": None, "y": -2147483648, "z": None, "i": None}]
        assert flow.snapshot("w").to_pylist() == [{"s": -9223372034707292162, "m": None}]


@pytest.mark.parametrize(
    "condition",
    ["s = a", "s + 1 > 0", "CAST(a AS FLOAT) + a > 0", "coalesce(s, a) = '1'", "(a = 1) = 1", "s > DATE'2024-01-01'"],
)
def test_without_ansi_what_spark_casts_otherwise_is_refused(condition):
    with IncrementalFlow(ansi=False) as flow:
        flow.register_source("t", "a INT, s STRING")
        with pytest.raises(NotIncremental) as caught:
            flow.register_view("v", f"SELECT a FROM t WHERE {condition}")
    assert caught.value.reason is Reason.SETTING_NOT_SUPPORTED


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM t GROUP BY session_window(at, '1 day')",
        "SELECT session_window(at, '48 hours').end AS e FROM t",
    ],
)
def test_days_that_clocks_make_longer_are_no_fixed_lengths(sql):
    for zone in ("UTC", "+05:30"):
        with IncrementalFlow(time_zone=zone) as flow:
            flow.register_source("t", "at TIMESTAMP, n TIMESTAMP_NTZ")
            flow.register_view("v", sql)
    with IncrementalFlow(time_zone="America/New_York") as flow:
        flow.register_source("t", "at TIMESTAMP, n TIMESTAMP_NTZ")
        flow.register_view("no_zone", sql.replace("at", "n").replace("n n", "n"))
        with pytest.raises(NotIncremental, match="clocks of America/New_York"):
            flow.register_view("v", sql)


def test_names_that_differ_by_case_are_different_where_case_counts(tmp_path):
    with IncrementalFlow("kept", path=tmp_path / "kept", case_sensitive=True) as flow:
        flow.register_source("t", "a INT, A STRING, s STRUCT<x: INT, X: STRING>")
        flow.register_view("v", "SELECT A, a, s.X, s.x AS y, a AS Y FROM t")
        flow.register_view("w", "SELECT Y, COUNT(*) AS n, SUM(y) AS N FROM v GROUP BY Y")
        flow.register_view("j", "WITH c AS (SELECT a FROM t), C AS (SELECT A FROM t) SELECT * FROM c JOIN C")
        with pytest.raises(ColumnNotFound, match="No column 'N'"):
            flow.register_view("no", "SELECT N FROM t")
        flow.tick("t", [{"a": 1, "A": "q", "s": {"x": 2, "X": "u"}}])
    with IncrementalFlow("kept", path=tmp_path / "kept") as flow:
        flow.tick("t", [{"a": 1, "A": "r", "s": {"x": 3, "X": "v"}}])
        assert flow.snapshot("w").to_pylist() == [{"Y": 1, "n": 2, "N": 5}]
        assert Counter(map(str, flow.snapshot("v").to_pylist())) == Counter(
            [
                "{'A': 'q', 'a': 1, 'X': 'u', 'y': 2, 'Y': 1}",
                "{'A': 'r', 'a': 1, 'X': 'v', 'y': 3, 'Y': 1}",
            ]
        )
        assert flow.schema("j") == pa.schema([("a", pa.int32()), ("A", pa.string())])
        with pytest.raises(ConfigError, match="cannot tell apart"):
            flow.register_source("u", "b INT, B INT")
    with pytest.raises(ConfigError, match="'a' and 'a'"):
        IncrementalFlow(case_sensitive=True).register_source("t", pa.schema([("a", pa.int32()), ("a", pa.int32())]))
