"""JSON and CSV that only Spark reads: a Session's flow has it evaluated on the delta, others refuse it."""

from collections import Counter

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from support.exact_values import plain
from support.value_catalogue import split_items
from support.written_times import DOCUMENTS, TEXTS

from weirflow import IncrementalFlow
from weirflow.errors import DataError, NotIncremental, SqlTypeError, UnsupportedError
from weirflow.sql.types import nullable

ZONE, ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
OF_SPARK = split_items("""
from_json(j, 'a INT, _corrupt_record STRING')
from_json(j, 'a INT, bad STRING', map('columnNameOfCorruptRecord', 'bad'))
from_json(j, 'a STRING', map('mode', 'PERMISSIVE'))
from_json(j, 'map<string, string>')
from_json(j, 'array<struct<a: timestamp>>')
from_json(j, 'a MAP<STRING, TIMESTAMP>')
from_json(j, 'a FLOAT, b ARRAY<BINARY>')
from_json(j, 'a STRING', map('primitivesAsString', 'true', 'allowUnquotedFieldNames', 'true'))
from_json(j, 'a DOUBLE', map('allowNonNumericNumbers', 'false', 'allowNumericLeadingZeros', 'true'))
from_json(j, 'a DECIMAL(10, 2)', map('locale', 'de-DE'))
from_json(j, 'a TIMESTAMP', map('timeZone', 'EST'))
from_json(j, 'a TIMESTAMP', map('timestampFormat', 'yyyy-MM-dd HH:mm:ss z'))
from_json(j, 'a TIMESTAMP_NTZ', map('timestampNTZFormat', 'yyyy-MM-dd'))
from_json(j, 'a DATE', map('enableDateTimeParsingFallback', 'false'))
from_csv(s, 'a TIMESTAMP, b DATE')
from_csv(s, 'a TIMESTAMP_NTZ', map('timestampNTZFormat', 'yyyy'))
schema_of_json('{"a": 01}', map('allowNumericLeadingZeros', 'true'))
""")
NOT_HERE = [one for one in TEXTS if one is not None and "EDT" not in one]
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@pytest.fixture
def spark(session):
    conf = session.spark.conf
    before = {name: conf.get(name) for name in (ZONE, ANSI)}
    yield session.spark
    for name, value in before.items():
        conf.set(name, value)


def rows(every):
    documents = DOCUMENTS[::every]
    texts = [NOT_HERE[at % len(NOT_HERE)] for at in range(len(documents))]
    return pa.table({"id": pa.array(range(len(documents)), pa.int64()), "j": documents, "s": texts})


def query(items):
    return f"SELECT id, {', '.join(f'{item} AS c{at}' for at, item in enumerate(items))} FROM t"


def counted(table):
    return Counter(zip(*(map(str, plain(column.combine_chunks())) for column in table.columns), strict=True))


def check(session, zone, *, ansi, every):
    session.spark.conf.set(ZONE, zone)
    session.spark.conf.set(ANSI, str(ansi).lower())
    given = rows(every)
    session.register("t", given)
    expected = session.sql(query(OF_SPARK)).to_arrow()
    with session.flow("documents") as flow:
        flow.register_source("t", given.schema)
        flow.register_view("v", query(OF_SPARK), mode="incremental")
        flow.tick("t", given)
        found = flow.snapshot("v")
        assert [nullable(one) for one in found.schema.types] == [nullable(one) for one in expected.schema.types]
        assert counted(found) == counted(expected)
        flow.tick("t", given.append_column("_weight", pa.array([-1] * len(given), pa.int64())))
        assert flow.snapshot("v").num_rows == 0


def test_what_spark_reads_of_json_and_csv(session, spark):
    check(session, "America/New_York", ansi=True, every=9)


@pytest.mark.campaign
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
@pytest.mark.parametrize("ansi", [True, False])
def test_all_that_spark_reads_of_json_and_csv(session, spark, zone, ansi):
    check(session, zone, ansi=ansi, every=1)


def test_what_fails_fast_fails_as_in_spark(session, spark):
    item = "from_json(j, 'a TIMESTAMP', map('mode', 'FAILFAST'))"
    good, bad = ({"id": at, "j": text} for at, text in enumerate(('{"a": "2024-01-01 00:00:00 EST"}', '{"a": "x"}')))
    schema = pa.schema([("id", pa.int64()), ("j", pa.string())])
    session.register("t", pa.Table.from_pylist([bad], schema))
    with pytest.raises(Py4JJavaError, match=r"\[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION\]"):
        session.spark.sql(query([item])).collect()
    with session.flow("documents") as flow:
        flow.register_source("t", schema)
        flow.register_view("v", query([item]), mode="incremental")
        flow.tick("t", [good])
        with pytest.raises(DataError) as ours:
            flow.tick("t", [bad])
        assert ours.value.condition == "CAST_INVALID_INPUT"  # its cause, as Spark has it
        flow.discard()
        assert flow.snapshot("v").num_rows == 1


@pytest.mark.parametrize("item", OF_SPARK)
def test_without_a_session_it_is_refused(item):
    with IncrementalFlow() as flow:
        flow.register_source("t", rows(9).schema)
        with pytest.raises((NotIncremental, SqlTypeError, UnsupportedError)):
            flow.register_view("v", query([item]), mode="incremental")


@pytest.mark.campaign
def test_times_are_read_in_every_zone_that_java_knows(session, spark):
    zones = sorted(spark._jvm.java.time.ZoneId.getAvailableZoneIds())
    names = [*zones, *(name.lower() for name in zones[::20]), *spark._jvm.java.time.ZoneId.SHORT_IDS]
    names = [name for name in names if not (name.startswith("SystemV/") and name.endswith("DT"))]
    times = ["1985-03-01 00:30:00", "2001-07-01 12:00:00", "2015-10-25 02:30:00.5", "2050-01-01 00:00:00"]
    texts = [f"{time} {name}" for time in times for name in names]
    given = pa.table({"id": pa.array(range(len(texts)), pa.int64()), "s": texts})
    session.register("t", given)
    items = ["TRY_CAST(s AS TIMESTAMP)", "from_json(to_json(struct(s AS a)), 'a TIMESTAMP')"]
    expected = session.sql(query(items)).to_arrow()
    with IncrementalFlow(time_zone=session.spark.conf.get(ZONE)) as flow:
        flow.register_source("t", given.schema)
        flow.register_view("v", query(items))
        flow.tick("t", given)
        found, expected = (one.sort_by("id").combine_chunks() for one in (flow.snapshot("v"), expected))
    pairs = zip(texts, plain(found["c0"].chunk(0)), plain(expected["c0"].chunk(0)), strict=True)
    assert [pair for pair in pairs if pair[1] != pair[2]] == []
    assert plain(found["c1"].chunk(0)) == plain(expected["c1"].chunk(0))
    assert len(texts) > 2_000
