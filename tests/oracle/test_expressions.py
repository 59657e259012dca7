"""Every expression the evaluator takes gives what Spark gives: values, types, and the conditions of errors."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.expression_catalogue import FAMILIES
from support.expression_data import SCHEMA, edge_table, from_values, named_pool
from support.spark_values import mismatches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from weirflow import Session

IN_SHORT = 30
"""How many cases of each family the short version tries."""

pytestmark = pytest.mark.filterwarnings(
    # DataFrame.collect() leaves its socket to the garbage collector.
    "ignore:unclosed <socket:ResourceWarning",
)


@pytest.fixture
def spark(session: Session) -> Any:
    """Spark without its interpreter for constant tables, so that it runs the code it generates."""
    rule = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
    session.spark.conf.set("spark.sql.optimizer.excludedRules", rule)
    yield session.spark
    session.spark.conf.unset("spark.sql.optimizer.excludedRules")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_part_of_the_catalogue_over_edge_cases(spark: SparkSession, family: str) -> None:
    cases = FAMILIES[family]()
    assert mismatches(spark, cases[:: max(len(cases) // IN_SHORT, 1)], edge_table(60, seed=2), errors=False) == []


@pytest.mark.campaign
@pytest.mark.parametrize("family", FAMILIES)
def test_catalogue_over_edge_cases(spark: SparkSession, family: str) -> None:
    assert mismatches(spark, FAMILIES[family](), edge_table(150, seed=1), errors=True) == []


@pytest.mark.campaign
@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=1, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_catalogue_over_generated_data(spark: SparkSession, family: str, data: st.DataObject) -> None:
    assert mismatches(spark, FAMILIES[family](), data.draw(tables()), errors=False) == []


def tables(rows: int = 40) -> st.SearchStrategy[pa.Table]:
    """Tables of the catalogue's schema: edge cases, and what hypothesis thinks of."""

    def table(columns: list[list[Any]]) -> pa.Table:
        arrays = [from_values(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
        arrays[0] = pa.array(range(rows), pa.int64())
        return pa.table(arrays, schema=SCHEMA)

    columns = [st.lists(st.none() | values(field), min_size=rows, max_size=rows) for field in SCHEMA]
    return st.tuples(*columns).map(table)


def values(field: pa.Field) -> st.SearchStrategy[Any]:
    edges = st.sampled_from(named_pool(field.name, field.type))
    generated = _generated(field.type)
    return edges if generated is None or field.name in ("snum", "sdate", "small") else edges | generated


def _generated(kind: pa.DataType) -> st.SearchStrategy[Any] | None:
    if pa.types.is_integer(kind):
        bound = 1 << (kind.bit_width - 1)
        return st.integers(-bound, bound - 1)
    if pa.types.is_floating(kind):
        return st.floats(width=kind.bit_width, allow_nan=False)
    if pa.types.is_decimal(kind):
        bound = 10**kind.precision - 1
        return st.integers(-bound, bound).map(lambda value: Decimal(f"{value}e-{kind.scale}"))
    if kind == pa.string():
        return st.text(st.characters(codec="utf-8"), max_size=12)
    if kind == pa.binary():
        return st.binary(max_size=6)
    if kind == pa.date32():
        return st.integers(-1_000_000, 3_000_000)
    if pa.types.is_timestamp(kind):
        return st.integers(-(10**17), 10**17)
    return None
