"""Functions whose first argument is a unit of time, and what is refused beside them."""

import pytest

from weirflow.errors import NotIncremental, Reason, SqlTypeError
from weirflow.sql.passes.optimize import logical_plan
from weirflow.sql.plan import Field
from weirflow.sql.types import BIGINT, DATE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ

CATALOG = {
    "t": (
        Field("i", INT),
        Field("s", STRING),
        Field("d", DATE),
        Field("ts", TIMESTAMP),
        Field("ntz", TIMESTAMP_NTZ),
        Field("day", INT),
    )
}


@pytest.mark.parametrize(
    ("expression", "name", "kind"),
    [
        ("datediff(DAY, d, ts)", "timestampdiff(DAY, d, ts)", BIGINT),
        ("date_diff(minute, s, ntz)", "timestampdiff(minute, s, ntz)", BIGINT),
        ("TIMESTAMPDIFF(Year, d, d)", "timestampdiff(Year, d, d)", BIGINT),
        ("dateadd(MONTH, i, d)", "timestampadd(MONTH, i, d)", TIMESTAMP),
        ("date_add(day, day, d)", "timestampadd(day, day, d)", TIMESTAMP),
        ("timestampadd(HOUR, 3, ntz)", "timestampadd(HOUR, 3, ntz)", TIMESTAMP_NTZ),
        ("timestampadd(DAYOFYEAR, '3', s)", "timestampadd(DAYOFYEAR, 3, s)", TIMESTAMP),
        ("datediff(d, d)", "datediff(d, d)", INT),
        ("dateadd(d, day)", "date_add(d, day)", DATE),
    ],
)
def test_units_are_no_columns(expression, name, kind):
    assert logical_plan(f"SELECT {expression} FROM t", CATALOG).fields == (Field(name, kind),)


@pytest.mark.parametrize(
    "expression",
    [
        "timestampadd('HOUR', 3, ts)",
        "timestampadd(HOURS, 3, ts)",
        "timestampadd(upper(s), 3, ts)",
        "datediff(DAYOFYEAR, d, ts)",
        "timestampadd(HOUR, true, ts)",
        "timestampadd(HOUR, 1, i)",
    ],
)
def test_what_is_no_unit_or_does_not_fit(expression):
    with pytest.raises(SqlTypeError):
        logical_plan(f"SELECT {expression} FROM t", CATALOG)


@pytest.mark.parametrize(
    "expression",
    [
        "approx_percentile(i, 0.5)",
        "extract(DAY FROM (ts - ts))",
        "convert_timezone('UTC', ts)",
        "date_part('EPOCH', d)",
    ],
)
def test_what_spark_has_and_views_do_not(expression):
    with pytest.raises(NotIncremental) as caught:
        logical_plan(f"SELECT {expression} FROM t", CATALOG)
    assert caught.value.reason is Reason.FUNCTION_NOT_PROVEN
