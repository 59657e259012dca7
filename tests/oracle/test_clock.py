"""Views that follow the clock, read by Spark: at chosen moments they have the rows that Spark finds at a fixed time."""

import datetime as dt
import threading
import time

import pytest
from support.clock_cases import ATOMS, SCHEMA, ClockCase, delta, told
from support.maintained import comparable

UNITS = ("HOUR", "DAY", "MONTH")
MOMENTS = ("2025-03-09T06:59:59.999999", "2025-03-10T07:30:00", "2025-11-02T05:30:00", "2025-11-02T06:30:00")


def rows_of(table):
    columns = [[comparable(value) for value in column.to_pylist()] for column in table.columns]
    return sorted(zip(*columns, strict=True), key=repr)


@pytest.mark.parametrize(
    ("zone", "ansi", "moments"),
    [
        ("America/New_York", "true", MOMENTS),
        ("UTC", "true", MOMENTS[:2]),
        ("America/New_York", "false", MOMENTS[2:]),
        pytest.param("UTC", "true", MOMENTS, marks=pytest.mark.campaign),
        pytest.param("America/New_York", "false", MOMENTS, marks=pytest.mark.campaign),
    ],
    ids=lambda one: f"{len(one)} moments" if isinstance(one, tuple) else one,
)
def test_views_have_the_rows_that_spark_finds_at_a_fixed_time(session, zone, ansi, moments):
    settings = {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}
    before = {name: session.spark.conf.get(name) for name in settings}
    for name, value in settings.items():
        session.spark.conf.set(name, value)
    case = ClockCase(7)
    # Without ANSI integers wrap around, and what is computed of them neither rises nor falls.
    followed = [atom for atom in ATOMS if ansi == "true" or "unix_timestamp" not in atom]
    atoms = [
        atom.format(n=(1, 24, 30)[at % 3], m=(1, 12)[at % 2], unit=UNITS[at % 3]) for at, atom in enumerate(followed)
    ]
    sql = f"SELECT id, {', '.join(f'{atom} AS x{at}' for at, atom in enumerate(atoms))} FROM t"
    grouped = "SELECT k, COUNT(*) FILTER (WHERE at > now() - INTERVAL 1 DAY) AS n FROM t GROUP BY k"
    framed = "SELECT id FROM t WHERE at > now() - INTERVAL 1 DAY"
    try:
        with session.flow(f"clock {zone} {ansi}", clock="manual") as flow:
            flow.register_source("t", SCHEMA)
            flow.register_view("v", sql, mode="incremental")
            flow.register_view("g", grouped, mode="incremental")
            flow.register_view("f", flow.table("t").where("at > now() - INTERVAL 1 DAY").select("id"))
            for text in moments:
                now = dt.datetime.fromisoformat(f"{text}+00:00")
                case.dice.seed(text)
                flow.tick("t", delta({case.row(now): 1 for _ in range(25)}))
                flow.advance(now)
                session.register("clock_rows", flow.snapshot("t"))
                for view, query in (("v", sql), ("g", grouped), ("f", framed)):
                    fixed = told(query, now).replace(" FROM t", " FROM clock_rows")
                    assert rows_of(flow.snapshot(view)) == rows_of(session.sql(fixed).toArrow()), (view, text)
    finally:
        for name, value in before.items():
            session.spark.conf.set(name, value)


def test_what_is_not_followed_is_recomputed(session):
    with session.flow("clock shown") as flow:
        flow.register_source("t", "id INT")
        flow.register_view("v", "SELECT id, now() AS at FROM t")
        assert "diff-based" in flow.explain("v")
        assert flow.clock is None


def test_time_passes_by_itself_in_a_session(session):
    with session.flow("clock itself", clock_every=0.05) as flow:
        flow.register_source("t", "id INT, at TIMESTAMP")
        flow.register_view("plain", "SELECT id FROM t")
        assert not [one for one in threading.enumerate() if one.name == "weirflow-clock-clock itself"]
        flow.register_view("v", "SELECT id FROM t WHERE at > now() - INTERVAL 1 SECOND")
        assert [one for one in threading.enumerate() if one.name == "weirflow-clock-clock itself"]
        flow.tick("t", [{"id": 1, "at": dt.datetime.now(dt.UTC) + dt.timedelta(seconds=1)}])
        assert flow.snapshot("v").num_rows == 1
        epoch, deadline = flow.epoch, time.monotonic() + 30
        while flow.snapshot("v").num_rows and time.monotonic() < deadline:
            time.sleep(0.02)
        assert flow.snapshot("v").num_rows == 0
        assert flow.epoch == epoch + 1  # nobody ticks while nothing is due
    assert not [one for one in threading.enumerate() if one.name == "weirflow-clock-clock itself"]
