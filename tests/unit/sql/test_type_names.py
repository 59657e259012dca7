"""Types that are none, or none that a flow has: the message says what is meant and what to write instead."""

import pytest

from weirflow import IncrementalFlow
from weirflow.errors import SqlSyntaxError
from weirflow.sql.typing.type_syntax import parse_type_name


@pytest.mark.parametrize(
    ("columns", "message", "hint"),
    [
        ("x TIME", "TIME is not a type that tables of a flow can have.", "use TIMESTAMP_NTZ with a date"),
        ("x TIME(6)", "TIME is not a type that tables of a flow can have.", "use TIMESTAMP_NTZ with a date"),
        ("a INT, x ARRAY<TIME>", "TIME is not a type that tables of a flow can have.", "use TIMESTAMP_NTZ with a date"),
        ("x VARIANT", "VARIANT is not a type that tables of a flow can have.", "use STRING with from_json"),
        ("x DATETIME", "DATETIME is not a type that tables of a flow can have.", "use TIMESTAMP_NTZ, or TIMESTAMP"),
        ("x INT64", "INT64 is not a type that tables of a flow can have.", "use BIGINT"),
        ("x INTT", "INTT is not a Spark type.", "did you mean 'INT'"),
        ("a BIGINT, x MAP<STRING, DUBLE>", "DUBLE is not a Spark type.", "did you mean 'DOUBLE'"),
        ("a STRUCT<b: STRNG> NOT NULL", "STRNG is not a Spark type.", "did you mean 'STRING'"),
        ("x STRUCT<a INT", "'x STRUCT<a INT' cannot be read as columns or a type.", "every bracket"),
        ("x MAP<INT>", "MAP<INT> is not a Spark type.", "write MAP<STRING, INT>"),
    ],
)
def test_the_message_says_what_is_meant(columns, message, hint):
    with pytest.raises(SqlSyntaxError) as caught:
        IncrementalFlow().register_source("t", columns)
    assert caught.value.message == message
    assert caught.value.hint.startswith(hint) or hint in caught.value.hint


@pytest.mark.parametrize(
    "columns", ["x TIME", "x VARIANT", "x DATETIME", "x JSON", "x UUID", "x GEOMETRY", "x HUGEINT"]
)
def test_what_the_hint_recommends_is_a_type(columns):
    with pytest.raises(SqlSyntaxError) as caught:
        IncrementalFlow().register_source("t", columns)
    recommended = [word.strip(",():") for word in caught.value.hint.split() if word.strip(",():").isupper()]
    names = [name for name in recommended if name not in ("WKB", "WKT", "STRUCT", "DECIMAL(38")]
    assert all(parse_type_name(name) is not None for name in names)
    assert names or "DECIMAL(38" in recommended


def test_a_cast_to_no_type_says_what_is_meant():
    flow = IncrementalFlow()
    flow.register_source("t", "x INT")
    with pytest.raises(SqlSyntaxError, match="INTT is not a Spark type") as caught:
        flow.register_view("v", "SELECT CAST(x AS INTT) AS y FROM t")
    assert caught.value.hint == "did you mean 'INT' or 'BIGINT'?"
    assert (caught.value.position.column, caught.value.position.fragment) == (18, "INTT")
