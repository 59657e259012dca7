"""What Spark says of statements that are too deep for it."""

from __future__ import annotations

import pytest
from pyspark.errors import ParseException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from weirflow.errors import SqlTooComplex
from weirflow.spark.errors import translate


@pytest.mark.parametrize(
    "error",
    [
        SparkConnectGrpcException("java.lang.StackOverflowError"),
        ParseException(
            message="[FAILED_TO_PARSE_TOO_COMPLEX] The statement was too complex to parse. SQLSTATE: 54001",
            errorClass="FAILED_TO_PARSE_TOO_COMPLEX",
            messageParameters={},
        ),
    ],
    ids=["analysed", "parsed"],
)
def test_a_statement_that_is_too_deep_for_spark_is_a_typed_error(error: Exception) -> None:
    assert isinstance(translate(error), SqlTooComplex)
