"""Functions of doubles have the bits that Spark's have, for doubles of all sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from support.exprs import DOUBLE, call

from weirflow.ivm.kernel.expressions import compile_expressions
from weirflow.sql.expr import Column

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import SparkSession

    from weirflow import Session

UNARY = [
    "exp",
    "expm1",
    "ln",
    "log2",
    "log10",
    "log1p",
    "sinh",
    "cosh",
    "tanh",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
    "cbrt",
    "degrees",
    "radians",
]
BINARY = ["power", "atan2", "hypot", "log"]


def doubles(count: int, seed: int) -> NDArray[np.float64]:
    """Of all exponents, of those that people use, and around the numbers at which functions change."""
    draw = np.random.default_rng(seed)
    bits = draw.integers(-(2**63), 2**63 - 1, count, endpoint=True).view(np.float64)
    around = 2.0 ** draw.integers(-60, 66, count) * (1 + draw.integers(-3, 4, count) * 2.0**-52)
    kinds = [
        bits,
        draw.normal(size=count),
        draw.uniform(-1, 1, count),
        draw.uniform(-760, 760, count),
        np.exp(draw.uniform(-700, 700, count)),
        around * draw.choice([-1.0, 1.0], count),
        draw.integers(-50, 50, count).astype(np.float64),
        1 + draw.uniform(-1, 1, count) * 2.0 ** draw.integers(-53, 0, count),
    ]
    return np.choose(draw.integers(0, len(kinds), count), kinds)


def check(spark: SparkSession, count: int, seed: int) -> None:
    x, y = doubles(count, seed), doubles(count, seed + 1)
    table = pa.table({"id": np.arange(count), "x": x, "y": y})
    texts = [f"{name}(x)" for name in UNARY] + [f"{name}(x, y)" for name in BINARY] + ["power(abs(x), y / 50)"]
    a, b = Column(0, "x", DOUBLE), Column(1, "y", DOUBLE)
    small = call("divide", DOUBLE, b, call("add", DOUBLE, *[Column(2, "z", DOUBLE)] * 2))
    exprs = [call(name, DOUBLE, a) for name in UNARY] + [call(name, DOUBLE, a, b) for name in BINARY]
    exprs.append(call("power", DOUBLE, call("abs", DOUBLE, a), small))
    ours = compile_expressions(exprs)([pa.array(x), pa.array(y), pa.array(np.full(count, 25.0))], count)
    theirs = spark.createDataFrame(table).selectExpr("id", *texts).toArrow().sort_by("id")
    wrong = {}
    for text, mine, sparks in zip(texts, ours, theirs.columns[1:], strict=True):
        found, wanted = (one.to_numpy(zero_copy_only=False) for one in (mine, sparks.combine_chunks()))
        same = (found.view(np.int64) == wanted.view(np.int64)) | (np.isnan(found) & np.isnan(wanted))
        same &= mine.is_valid().to_numpy(zero_copy_only=False) == sparks.is_valid().to_numpy()
        if not same.all():
            row = int(np.flatnonzero(~same)[0])
            wrong[text] = (int((~same).sum()), x[row].hex(), y[row].hex(), found[row], wanted[row])
    assert wrong == {}


def test_doubles_of_all_sizes(session: Session) -> None:
    check(session.spark, 2_000, seed=1)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [10, 20])
def test_many_doubles_of_all_sizes(session: Session, seed: int) -> None:
    check(session.spark, 150_000, seed)
