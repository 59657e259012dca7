"""Windows of time, sessions, frames and LIMIT equal Spark's, types included; and they fail where Spark fails."""

import datetime as dt
from collections import Counter

import pyarrow as pa
import pytest
from support.maintained import Maintained, comparable
from support.time_corpus import SOURCES, VIEWS, RandomEvents

from weirflow.errors import DataError, QueryError
from weirflow.sql.types import nullable

T, MOST = pa.timestamp("us", "UTC"), 2**63 - 1
FAR = [
    (pa.int8(), [126, 127], "1 PRECEDING AND 1 FOLLOWING"),
    (pa.int8(), [125, 127], "1 PRECEDING AND 1 FOLLOWING"),
    (pa.int8(), [-128, -127], "1 PRECEDING AND CURRENT ROW"),
    (pa.int16(), [-32768, None], "CURRENT ROW AND 1 FOLLOWING"),
    (pa.int32(), [2**31 - 2, 2**31 - 1], "1 FOLLOWING AND 2 FOLLOWING"),
    (pa.int64(), [MOST - 1, MOST], "1 FOLLOWING AND UNBOUNDED FOLLOWING"),
    (pa.int64(), [MOST - 1, MOST], "1 PRECEDING AND 1 FOLLOWING"),
    (pa.int64(), [1 - MOST, MOST], "1 PRECEDING AND UNBOUNDED FOLLOWING"),
    (pa.int64(), [-MOST - 1, MOST], "UNBOUNDED PRECEDING AND 1 PRECEDING"),
    (pa.int64(), [MOST - 9, MOST - 1, MOST], "UNBOUNDED PRECEDING AND 5 FOLLOWING"),
    (pa.int64(), [None, None], "1 PRECEDING AND 1 FOLLOWING"),
    (T, [0, MOST], "INTERVAL 1 SECOND PRECEDING AND INTERVAL 1 SECOND FOLLOWING"),
    (T, [MOST - 10, MOST], "INTERVAL 1 SECOND PRECEDING AND CURRENT ROW"),
]


def register(session, table):
    """The table as Spark has it: Arrow's timestamps without a zone arrive as ones with, which are the same in UTC."""
    session.register("arrived", table)
    columns = ["CAST(ntz AS TIMESTAMP_NTZ) AS ntz" if name == "ntz" else name for name in table.column_names]
    session.register("e", session.sql(f"SELECT {', '.join(columns)} FROM arrived"))


def spark_result(session, sql):
    table = session.sql(sql).to_arrow()
    rows = zip(*([comparable(value) for value in column.to_pylist()] for column in table.columns), strict=True)
    return Counter(rows), [nullable(kind) for kind in table.schema.types]


def test_views_equal_spark_after_every_tick(session):
    check_ticks(session, RandomEvents(seed=2), [40])


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(8))
def test_views_equal_spark_after_many_ticks(session, seed):
    check_ticks(session, RandomEvents(seed), [80, 20, 5, 20, 40])


def check_ticks(session, events, ticks):
    views = Maintained(SOURCES, VIEWS)
    for most in ticks:
        views.tick(events.changes(most))
        register(session, views.table("e"))
        for name, sql in VIEWS.items():
            rows, types = spark_result(session, sql)
            assert views.views[name] == rows, name
            assert [nullable(kind) for kind in views.schemas[name].types] == types, name


def outcome(run):
    """What a query returns, or the condition of its error."""
    try:
        return run()
    except (DataError, QueryError) as error:
        return getattr(error, "condition", None) or "ARITHMETIC_OVERFLOW"  # Java's own errors have none


def compare(session, kind, values, sql):
    """Our outcome of a query over the column ``o`` of the table ``far`` is Spark's."""
    table = pa.table({"o": pa.array(values, kind)})
    session.register("far", table)

    def ours():
        views = Maintained({"far": table.schema}, {"view": sql})
        views.tick({"far": [((value,), 1) for value in values]})
        return views.views["view"]

    assert outcome(ours) == outcome(lambda: spark_result(session, sql)[0])


@pytest.mark.parametrize(("kind", "values", "frame"), FAR)
@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_frames_at_the_ends_of_a_type(session, kind, values, frame, direction):
    # Python has no such moments: only whether there is one is returned.
    returned = "o IS NULL" if kind == T else "o"
    sql = f"SELECT {returned} AS o, COUNT(*) OVER (ORDER BY o {direction} RANGE BETWEEN {frame}) AS n FROM far"
    compare(session, kind, values, sql)


@pytest.mark.parametrize(
    "window", ["window(o, '10 minutes')", "window(o, '10 minutes', '3 minutes')", "session_window(o, '1 minute')"]
)
@pytest.mark.parametrize("time", [MOST, MOST - 10**9, -MOST, 10**9 - MOST])
def test_windows_at_the_ends_of_time(session, window, time):
    name = window.split("(", maxsplit=1)[0]
    sql = f"SELECT unix_micros({name}.start) AS a, unix_micros({name}.end) AS z, COUNT(*) AS n FROM far "
    compare(session, T, [time], f"{sql} GROUP BY {window}")


def test_limit_without_an_order_keeps_as_many_of_the_rows_as_spark(session):
    views = Maintained(SOURCES, {"view": "SELECT * FROM e LIMIT 7", "all": "SELECT * FROM e"})
    views.tick(RandomEvents(3).changes(60))
    register(session, views.table("e"))
    rows, types = spark_result(session, "SELECT * FROM e LIMIT 7")
    assert views.views["view"].total() == rows.total() == 7
    assert views.views["view"] <= views.views["all"]
    assert views.schemas["view"].types == types


def test_time_zones_of_the_data_do_not_matter(session):
    """A moment is in the same window whatever zone it was written in."""
    zone = dt.timezone(dt.timedelta(hours=5, minutes=45))
    moments = [dt.datetime(2024, 3, 31, hour, 50, tzinfo=zone) for hour in range(5)]
    sql = "SELECT window, COUNT(*) AS n FROM far GROUP BY window(o, '1 hour')"
    compare(session, T, moments, sql)
