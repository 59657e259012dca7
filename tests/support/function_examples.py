"""The examples of Spark's own documentation of its functions, as queries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXAMPLE = re.compile(r"> (SELECT .*?);", re.DOTALL)


def examples(spark: SparkSession) -> list[str]:
    """All that Spark's functions are documented with, each once, whether or not it runs."""
    jvm, catalog = spark._jvm, spark._jsparkSession.sessionState().catalog()
    assert jvm is not None
    found: dict[str, None] = {}
    for (name,) in spark.sql("SHOW ALL FUNCTIONS").collect():
        identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name)
        if not catalog.functionExists(identifier):  # CASE is none
            continue
        found |= dict.fromkeys(_EXAMPLE.findall(catalog.lookupFunctionInfo(identifier).getExamples()))
    return list(found)
