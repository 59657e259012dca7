"""``vector_distance``, ``vector_norm`` and ``vector_avg`` in Spark sessions: Spark has no such functions of its own.

The first two are defined by Spark's own higher-order functions, one element after the other in DOUBLE, so that a batch
query gives the same bits as a view.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from weirflow.spark.vector_average import spark_aggregate
from weirflow.sql.functions.vectors import AVERAGE, DISTANCE, NORM

_SUM = "aggregate({terms}, 0D, (total, one) -> total + one)"
_PRODUCTS = _SUM.format(terms="zip_with(a, b, (x, y) -> x * y)")
_SQUARES = _SUM.format(terms="zip_with(a, b, (x, y) -> (x - y) * (x - y))")


def _norm(vector: str) -> str:
    return f"sqrt({_SUM.format(terms=f'transform({vector}, x -> x * x)')})"


_DEFINE_DISTANCE = (
    f"CREATE OR REPLACE TEMPORARY FUNCTION {DISTANCE}(a ARRAY<DOUBLE>, b ARRAY<DOUBLE>, metric STRING) RETURNS DOUBLE "
    f"RETURN CASE lower(metric) WHEN 'l2' THEN sqrt({_SQUARES}) WHEN 'inner' THEN 0D - {_PRODUCTS} "
    f"WHEN 'cosine' THEN 1D - try_divide({_PRODUCTS}, {_norm('a')} * {_norm('b')}) "
    "ELSE raise_error(concat('There is no metric ', metric)) END"
)
_DEFINE_NORM = f"CREATE OR REPLACE TEMPORARY FUNCTION {NORM}(a ARRAY<DOUBLE>) RETURNS DOUBLE RETURN {_norm('a')}"
_defined: WeakSet[Any] = WeakSet()


def calls_vector_functions(sql: str) -> bool:
    """Whether a text may call one of them."""
    folded = sql.casefold()
    return any(name in folded for name in (AVERAGE, DISTANCE, NORM))


def define_vector_functions(native: Any) -> None:
    """Have a session know them; once for each."""
    if native in _defined:
        return
    for definition in (_DEFINE_DISTANCE, _DEFINE_NORM):
        native.sql(definition)
    native.udf.register(AVERAGE, spark_aggregate())
    _defined.add(native)


def know_vector_functions(native: Any, sql: str) -> None:
    """Have a session know them if a text may call them."""
    if calls_vector_functions(sql):
        define_vector_functions(native)
