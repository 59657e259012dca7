"""Functions of numbers, bits, texts and hashes give what Spark gives, read by Spark and read by the binder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema
from support.expression_catalogue import Case
from support.exprs import first_unsupported
from support.scalar_catalogue import FAMILIES, of_all_types, rows
from support.spark_engine import spark_engine
from support.spark_values import mismatches

from weirflow.errors import QueryError
from weirflow.sql.bind.query import bind_query
from weirflow.sql.foreign import foreign_calls
from weirflow.sql.plan import Field, Project
from weirflow.sql.stored import decode_plan
from weirflow.sql.types import nullable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from weirflow import Session
    from weirflow.sql.expr import Expr
    from weirflow.sql.plan import Plan

_MODE = "spark.sql.ansi.enabled"
_ZONE = "spark.sql.session.timeZone"
_RULES = "spark.sql.optimizer.excludedRules"
IN_SHORT = 12
"""How many calls of each family the short version tries without ANSI."""


@pytest.fixture
def spark(session: Session) -> Iterator[SparkSession]:
    """Spark without its interpreter for constant tables, so that it runs the code it generates; settings are undone."""
    session.spark.conf.set(_RULES, "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation")
    yield session.spark
    session.spark.conf.unset(_RULES)
    session.spark.conf.set(_MODE, "true")
    session.spark.conf.set(_ZONE, "UTC")


def read_by_spark(session: Session, calls: list[str], schema: pa.Schema) -> list[Case]:
    """The calls as Spark reads them; none is left to it."""
    chosen = ", ".join(f"{call} AS c{number}" for number, call in enumerate(calls))
    found = spark_engine(session).resolve(f"SELECT {chosen} FROM edges", {"edges": schema})
    assert found is not None
    plan = decode_plan(found)
    assert [shown.arguments[0] for shown in foreign_calls(plan)] == []
    return [Case(call, expr) for call, expr in zip(calls, _items(plan), strict=True)]


def read_by_binder(calls: list[str], schema: pa.Schema) -> list[Case]:
    catalog = {"edges": tuple(Field(one.name, one.type) for one in schema)}
    return [Case(call, _items(bind_query(f"SELECT {call} AS x FROM edges", catalog))[0]) for call in calls]


def _items(plan: Plan) -> list[Expr]:
    assert isinstance(plan, Project)
    return list(plan.expressions)


@pytest.mark.parametrize("family", FAMILIES)
def test_calls_mean_the_same_to_spark_and_to_the_binder(session: Session, spark: SparkSession, family: str) -> None:
    calls, table = FAMILIES[family](), rows(120, seed=1)
    by_binder = read_by_binder(calls, table.schema)
    assert mismatches(spark, by_binder, table, errors=False) == []
    by_spark = read_by_spark(session, calls, table.schema)
    others = [mine for mine, theirs in zip(by_spark, by_binder, strict=True) if mine.expr != theirs.expr]
    assert mismatches(spark, others, table, errors=False) == []


def test_columns_have_the_names_that_spark_gives_them(spark: SparkSession) -> None:
    calls, table = [call for family in FAMILIES.values() for call in family()], rows(1, seed=1)
    catalog = {"edges": tuple(Field(one.name, one.type) for one in table.schema)}
    spark.createDataFrame(table).createOrReplaceTempView("edges")
    theirs = spark.sql(f"SELECT {', '.join(calls)} FROM edges").columns
    assert [bind_query(f"SELECT {call} FROM edges", catalog).fields[0].name for call in calls] == theirs


@pytest.mark.campaign
def test_what_the_binder_takes_is_what_spark_takes(spark: SparkSession) -> None:
    """Arguments of other types are cast as Spark casts them, or refused."""
    table = rows(40, seed=4)
    spark.createDataFrame(table).createOrReplaceTempView("edges")
    known, wrong = [], []
    for call in of_all_types():
        try:
            (case,) = read_by_binder([call], table.schema)
        except QueryError:
            continue
        try:
            kind = to_arrow_schema(spark.sql(f"SELECT {call} AS x FROM edges").schema).field(0).type
        except PySparkException:
            kind = None
        if kind is None or nullable(kind) != nullable(case.expr.type):
            wrong.append(f"{call}: Spark's type is {kind}, ours {case.expr.type}")
        elif first_unsupported(case.expr) is None:
            known.append(case)
    assert not wrong, "\n".join(wrong)
    assert mismatches(spark, known, table, errors=False) == []


@pytest.mark.parametrize("family", FAMILIES)
def test_a_part_of_the_calls_without_ansi(session: Session, spark: SparkSession, family: str) -> None:
    spark.conf.set(_MODE, "false")
    calls, table = FAMILIES[family](), rows(60, seed=2)
    some = calls[:: max(len(calls) // IN_SHORT, 1)]
    assert mismatches(spark, read_by_spark(session, some, table.schema), table, errors=False) == []


@pytest.mark.campaign
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_calls_over_many_rows(session: Session, spark: SparkSession, family: str, ansi: bool, zone: str) -> None:
    spark.conf.set(_MODE, str(ansi).lower())
    spark.conf.set(_ZONE, zone)
    calls, table = FAMILIES[family](), rows(400, seed=3)
    assert mismatches(spark, read_by_spark(session, calls, table.schema), table, errors=True) == []
