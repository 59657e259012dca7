"""Errors of ours that cross from Spark's executors in the text of a traceback."""

import pytest
from pyspark.errors import PythonException

from weirflow.errors import DataError, SqlTypeError, UserCodeError
from weirflow.spark.errors import translate
from weirflow.spark.jobs.relayed_errors import relayed, relayed_error

TRACE = "Traceback (most recent call last):\n  File 'worker.py', line 1\n{}\n"


def raised(error):
    """What Spark makes of an error on an executor."""
    return PythonException(TRACE.format(f"{type(error).__name__}: {error}"))


@pytest.mark.parametrize(
    "error",
    [
        DataError("A value 'ü\n' does not fit.", hint="cast it", condition="CAST_OVERFLOW"),
        SqlTypeError("No."),
    ],
)
def test_an_error_comes_out_as_it_was(error):
    found = translate(raised(relayed(error)))
    assert (type(found), found.message, found.hint) == (type(error), error.message, error.hint)
    assert found.condition == error.condition


def test_other_errors_are_those_of_the_users_code():
    assert relayed_error("weirflow-error: nothing") is None
    assert type(translate(raised(ValueError("weirflow")))) is UserCodeError
