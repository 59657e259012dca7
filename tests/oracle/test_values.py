"""Functions of collections, times and JSON: views with a JVM and without hold what Spark computes.

No item is left to Spark: plans have no foreign calls.
"""

from collections import Counter

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from support.exact_values import plain
from support.spark_engine import spark_engine
from support.value_catalogue import THEMES, Theme

from weirflow import IncrementalFlow
from weirflow.errors import DataError
from weirflow.ivm.compiler.program import Program
from weirflow.ivm.compiler.resolve import resolved
from weirflow.ivm.compiler.view import View
from weirflow.sql.foreign import foreign_calls
from weirflow.sql.types import nullable

ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
RULES = "spark.sql.optimizer.excludedRules"
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@pytest.fixture
def spark(session):
    conf = session.spark.conf
    before = {name: conf.get(name) for name in (ZONE, ANSI, *COMPILED)}
    conf.set(RULES, "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation")
    yield session.spark
    for name, value in before.items():
        conf.set(name, value)
    conf.unset(RULES)


def query(items):
    return f"SELECT id, {', '.join(f'{item} AS c{at}' for at, item in enumerate(items))} FROM t"


def left_to_spark(session, theme):
    """The calls of a view of all items that Spark evaluates, as they are printed."""
    engine = spark_engine(session)
    program = Program(engine)
    program.add_source("t", theme.rows.schema)
    program.add_views(resolved(engine, {"t": theme.rows.schema}, {"v": View(query(theme.items))}, {"v"}))
    plan = program.relations["v"].plan
    return ["all of it"] if plan is None else [str(call) for call in foreign_calls(plan)]


def differences(ours, theirs, items):
    ours, theirs = (one.sort_by("id").combine_chunks() for one in (ours, theirs))
    found = []
    for at, item in enumerate(items):
        one, other = (side.column(f"c{at}").combine_chunks() for side in (ours, theirs))
        if nullable(one.type) != nullable(other.type):
            found.append((item, str(one.type), str(other.type)))
            continue
        pairs = zip(plain(one), plain(other), strict=True)
        wrong = [(row, a, b) for row, (a, b) in enumerate(pairs) if a != b]
        if wrong:
            found.append((item, *wrong[:3]))
    return found


def maintained(flow, rows, items):
    """The view of all items after a tick of half of the rows and one of the rest."""
    flow.register_source("t", rows.schema)
    flow.register_view("v", query(items), mode="incremental")
    half = rows.num_rows // 2
    flow.tick("t", rows.slice(0, half))
    flow.tick("t", rows.slice(half))
    return flow.snapshot("v")


def check(session, theme: Theme, zone: str, *, ansi: bool, compiled: bool) -> None:
    settings = {ZONE: zone, ANSI: str(ansi).lower(), **(COMPILED if compiled else {})}
    for name, value in settings.items():
        session.spark.conf.set(name, value)
    session.register("t", theme.rows)
    expected = session.sql(query(theme.items)).to_arrow()
    with IncrementalFlow(time_zone=zone, ansi=ansi) as flow:
        assert differences(maintained(flow, theme.rows, theme.items), expected, theme.items) == []
    assert left_to_spark(session, theme) == []
    with session.flow("values") as flow:
        assert differences(maintained(flow, theme.rows, theme.items), expected, theme.items) == []


@pytest.mark.parametrize("name", list(THEMES))
def test_values_are_those_of_spark(session, spark, name):
    check(session, THEMES[name], "America/New_York", ansi=True, compiled=THEMES[name].compiled)


@pytest.mark.campaign
@pytest.mark.parametrize("name", list(THEMES))
@pytest.mark.parametrize(
    ("zone", "ansi"),
    [("UTC", True), ("Asia/Kolkata", False), ("Australia/Lord_Howe", True), ("America/New_York", False)],
)
def test_values_are_those_of_compiled_spark_with_other_settings(session, spark, name, zone, ansi):
    check(session, THEMES[name], zone, ansi=ansi, compiled=True)


def test_rows_are_those_of_spark(session, spark):
    for theme in THEMES.values():
        session.register("t", theme.rows)
        for sql in theme.queries:
            expected = Counter(map(str, spark.sql(sql).toArrow().to_pylist()))
            with IncrementalFlow() as bound, session.flow("queries") as flow:
                for one in (bound, flow):
                    one.register_source("t", theme.rows.schema)
                    one.register_view("v", sql, mode="incremental")
                    one.tick("t", theme.rows)
                    assert Counter(map(str, one.snapshot("v").to_pylist())) == expected, sql


def test_columns_without_a_name_are_called_as_in_spark(session, spark):
    spark.conf.set(ZONE, "UTC")
    for theme in THEMES.values():
        session.register("t", theme.rows)
        items = theme.items[::4]
        expected = spark.sql(f"SELECT {', '.join(items)} FROM t").columns
        found = []
        for item in items:
            with IncrementalFlow() as flow:
                flow.register_source("t", theme.rows.schema)
                flow.register_view("v", f"SELECT {item} FROM t")
                found += flow.snapshot("v").schema.names
        assert found == expected


def test_some_of_what_fails_fails_as_in_spark(session, spark):
    check_failures(session, spark, every=4)


@pytest.mark.campaign
def test_what_fails_fails_as_in_spark(session, spark):
    check_failures(session, spark, every=1)


def check_failures(session, spark, *, every):
    spark.conf.set(ZONE, "UTC")
    one = pa.table({"id": pa.array([1], pa.int64())})
    session.register("t", one)
    for item in [item for theme in THEMES.values() for item in theme.failing][::every]:
        with pytest.raises(PySparkException) as theirs:
            spark.sql(query([item])).toArrow()
        with IncrementalFlow() as flow, pytest.raises(DataError) as ours:
            maintained(flow, one, [item])
        assert ours.value.condition == theirs.value.getCondition(), item
