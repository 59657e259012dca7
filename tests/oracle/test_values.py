"""Functions of collections, times and JSON: views with a JVM and without hold what Spark computes.

No item is left to Spark: plans have no foreign calls.
"""

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from support.exact_values import plain
from support.spark_engine import spark_engine
from support.value_catalogue import THEMES, Theme

from weirflow import IncrementalFlow
from weirflow.errors import DataError, WeirflowError
from weirflow.ivm.compiler.program import Program, View
from weirflow.ivm.compiler.resolve import resolved
from weirflow.sql.foreign import foreign_calls
from weirflow.sql.types import nullable

ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@pytest.fixture
def spark(session):
    """Spark that runs the code it generates, in which some functions are others than those it interprets."""
    before = {name: session.spark.conf.get(name) for name in (ZONE, ANSI, *COMPILED)}
    for name, value in COMPILED.items():
        session.spark.conf.set(name, value)
    rule = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
    session.spark.conf.set("spark.sql.optimizer.excludedRules", rule)
    yield session.spark
    for name, value in before.items():
        session.spark.conf.set(name, value)
    session.spark.conf.unset("spark.sql.optimizer.excludedRules")


def query(items):
    return f"SELECT id, {', '.join(f'{item} AS c{at}' for at, item in enumerate(items))} FROM t"


def left_to_spark(session, rows, items):
    """Items whose plans have calls that Spark evaluates, or that are refused."""
    engine, found = spark_engine(session), []
    for item in items:
        program = Program(engine)
        program.add_source("t", rows.schema)
        program.add_views(resolved(engine, {"t": rows.schema}, {"v": View(query([item]))}, {"v"}))
        plan = program.relations["v"].plan
        if plan is None or foreign_calls(plan):
            found.append(item)
    return found


def refused_without_spark(rows, items, **settings):
    found = {}
    for item in items:
        with IncrementalFlow(**settings) as flow:
            flow.register_source("t", rows.schema)
            try:
                flow.register_view("v", query([item]), mode="incremental")
            except WeirflowError as error:
                found[item] = str(error)
    return found


def sorted_by_id(found):
    return found.sort_by("id").combine_chunks()


def differences(ours, theirs, items):
    ours, theirs = sorted_by_id(ours), sorted_by_id(theirs)
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


def check(session, theme: Theme, zone: str, *, ansi: bool) -> None:
    session.spark.conf.set(ZONE, zone)
    session.spark.conf.set(ANSI, str(ansi).lower())
    session.register("t", theme.rows)
    expected = session.sql(query(theme.items)).to_arrow()
    with IncrementalFlow(time_zone=zone, ansi=ansi) as flow:
        items = [one for one in theme.items if ansi or one not in theme.only_ansi]
        wanted = expected.select(["id", *(f"c{theme.items.index(one)}" for one in items)])
        wanted = wanted.rename_columns(["id", *(f"c{at}" for at in range(len(items)))])
        assert refused_without_spark(theme.rows, items, time_zone=zone, ansi=ansi) == {}
        assert differences(maintained(flow, theme.rows, items), wanted, items) == []
    assert left_to_spark(session, theme.rows, theme.items) == []
    with session.flow("values") as flow:
        assert differences(maintained(flow, theme.rows, theme.items), expected, theme.items) == []


@pytest.mark.parametrize("name", list(THEMES))
def test_values_are_those_of_spark(session, spark, name):
    check(session, THEMES[name], "America/New_York", ansi=True)


@pytest.mark.parametrize("name", list(THEMES))
def test_what_fails_fails_as_in_spark(session, spark, name):
    spark.conf.set(ZONE, "UTC")
    spark.conf.set(ANSI, "true")
    one = pa.table({"id": pa.array([1], pa.int64())})
    session.register("t", one)
    for item in THEMES[name].failing:
        with pytest.raises(PySparkException) as theirs:
            spark.sql(query([item])).toArrow()
        with IncrementalFlow() as flow, pytest.raises(DataError) as ours:
            maintained(flow, one, [item])
        assert ours.value.condition == theirs.value.getCondition(), item
