"""Constant texts that Spark reads as moments when it plans: as Spark reads them, or refused."""

import datetime as dt

import pytest
from support.maintained import Maintained
from support.view_corpus import SOURCES

from weirflow.errors import NotIncremental

DAY = dt.date(1970, 1, 1)


def one_row(items):
    views = Maintained(SOURCES, {"view": f"SELECT {items} FROM t"})
    views.tick({"t": [((1, 0, "epoch"), 1)]})
    ((row, _),) = views.views["view"].items()
    return row


def test_the_epoch_is_a_word():
    assert one_row(
        "CAST('epoch' AS DATE) AS a, to_date(' EPOCH ') AS b, DATE'epoch' AS c, try_cast('epoch' AS DATE) d"
    ) == (
        DAY,
        DAY,
        DAY,
        DAY,
    )
    assert one_row("DATE'2020-01-01' > 'epoch' AS a, CAST('epoch' AS TIMESTAMP_NTZ) AS b") == (
        True,
        dt.datetime(1970, 1, 1),  # noqa: DTZ001 - the type without a zone
    )
    assert one_row("CAST('epoch' AS TIMESTAMP) AS a") == (dt.datetime(1970, 1, 1, tzinfo=dt.UTC),)


def test_in_a_column_it_is_none():
    assert one_row("try_cast(s AS DATE) AS a") == (None,)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("CAST('now' AS TIMESTAMP)", "EXPRESSION_NOT_DETERMINISTIC"),
        ("to_date('Today')", "EXPRESSION_NOT_DETERMINISTIC"),
        ("DATE'2020-01-01' < 'tomorrow'", "EXPRESSION_NOT_DETERMINISTIC"),
        ("CAST('yesterday Europe/Paris' AS DATE)", "EXPRESSION_NOT_DETERMINISTIC"),
        ("CAST('12:30' AS TIMESTAMP)", "EXPRESSION_NOT_DETERMINISTIC"),
        ("CAST('epoch UTC' AS TIMESTAMP)", "FUNCTION_NOT_PROVEN"),
        ("CAST(concat('ep', 'och') AS DATE)", "FUNCTION_NOT_PROVEN"),
        ("TIMESTAMP'2024-02-29 12:30:15 Europe/Paris'", "FUNCTION_NOT_PROVEN"),
        ("CAST('2024-02-29 12:30:15 America/New_York' AS TIMESTAMP)", "FUNCTION_NOT_PROVEN"),
    ],
)
def test_what_cannot_be_kept_or_read_is_refused(expression, reason):
    with pytest.raises(NotIncremental) as caught:
        Maintained(SOURCES, {"view": f"SELECT {expression} AS x FROM t"})
    assert caught.value.reason == reason


def test_offsets_are_read():
    found = one_row("TIMESTAMP'2024-02-29 12:30:15 UTC' AS a, CAST('2024-02-29 12:30:15 GMT+01:00' AS TIMESTAMP) AS b")
    assert found == (
        dt.datetime(2024, 2, 29, 12, 30, 15, tzinfo=dt.UTC),
        dt.datetime(2024, 2, 29, 11, 30, 15, tzinfo=dt.UTC),
    )
