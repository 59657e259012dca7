"""Spark's type names and literals."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

import weirflow.sql
from weirflow.errors import SqlSyntaxError
from weirflow.sql.bind.query import bind_query
from weirflow.sql.expr import Literal
from weirflow.sql.plan import Project
from weirflow.sql.settings import SqlSettings
from weirflow.sql.types import type_name
from weirflow.sql.typing.durations import duration_micros
from weirflow.sql.typing.type_syntax import parse_ddl, parse_type_name

MODULES = [found.name for found in pkgutil.walk_packages(weirflow.sql.__path__, "weirflow.sql.")]


@pytest.mark.parametrize(
    "name",
    [
        "boolean",
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "decimal(38,10)",
        "string",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
        "interval day to second",
        "interval year to month",
        "array<map<string,struct<a:int,b:array<date>>>>",
    ],
)
def test_a_type_is_named_as_it_is_read(name: str) -> None:
    assert type_name(parse_type_name(name)) == name


def test_ddl_is_a_schema() -> None:
    schema = parse_ddl("a INT NOT NULL, `b c` DECIMAL(10,2) COMMENT 'money', d LONG, e STRUCT<x: STRING>")

    assert schema == pa.schema(
        [
            pa.field("a", pa.int32(), nullable=False),
            pa.field("b c", pa.decimal128(10, 2)),
            pa.field("d", pa.int64()),
            pa.field("e", pa.struct([pa.field("x", pa.string())])),
        ]
    )


@pytest.mark.parametrize("text", ["", "nope", "decimal(39,0)", "decimal(5,6)", "array<", "map<int>", "int int"])
def test_what_is_no_type_is_a_syntax_error(text: str) -> None:
    with pytest.raises(SqlSyntaxError):
        parse_type_name(text)


@pytest.mark.parametrize(
    ("sql", "value", "kind"),
    [
        ("1", 1, "int"),
        ("-2147483648", -(2**31), "int"),
        ("2147483648", 2**31, "bigint"),
        ("9223372036854775808", Decimal(2**63), "decimal(19,0)"),
        ("1.50", Decimal("1.50"), "decimal(3,2)"),
        ("0.05", Decimal("0.05"), "decimal(2,2)"),
        ("1e3", 1000.0, "double"),
        ("1S", 1, "smallint"),
        ("1.5F", 1.5, "float"),
        ("2.5BD", Decimal("2.5"), "decimal(2,1)"),
        ("'a' 'b'", "ab", "string"),
        ("X'1F'", b"\x1f", "binary"),
        ("DATE '2020-02-29'", date(2020, 2, 29), "date"),
        ("TIMESTAMP '2020-01-01 10:00:00.5'", datetime(2020, 1, 1, 9, 0, 0, 500_000, tzinfo=UTC), "timestamp"),
        ("TIMESTAMP '2020-01-01 10:00:00Z'", datetime(2020, 1, 1, 10, tzinfo=UTC), "timestamp"),
        ("TIMESTAMP_NTZ '2020-01-01'", datetime(2020, 1, 1), "timestamp_ntz"),  # noqa: DTZ001 - it has no zone
        ("INTERVAL '1' DAY", timedelta(days=1), "interval day to second"),
        (
            "INTERVAL '1 02:03:04.5' DAY TO SECOND",
            timedelta(1, 4 + 3 * 60 + 2 * 3600, 500_000),
            "interval day to second",
        ),
        ("INTERVAL -2 HOURS", timedelta(hours=-2), "interval day to second"),
        ("INTERVAL '1-2' YEAR TO MONTH", pa.MonthDayNano([14, 0, 0]), "interval year to month"),
    ],
)
def test_literals_have_sparks_types(sql: str, value: object, kind: str) -> None:
    plan = bind_query(f"SELECT {sql}", {}, settings=SqlSettings("Europe/Berlin"))

    assert isinstance(plan, Project)
    assert plan.expressions == (Literal(value, parse_type_name(kind)),)


@pytest.mark.parametrize(
    ("text", "micros"),
    [("5 minutes", 300_000_000), ("1 hour 30 minutes", 5_400_000_000), ("interval 2 seconds", 2_000_000)],
)
def test_lengths_of_time(text: str, micros: int) -> None:
    assert duration_micros(text) == micros


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
