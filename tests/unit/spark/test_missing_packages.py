"""What PySpark lacks is named with the command that installs it."""

import sys

import pytest
from pyspark.errors import PySparkImportError
from pyspark.sql.pandas.utils import require_minimum_pandas_version

from weirflow.errors import DependencyMissing
from weirflow.spark.errors import translated


def test_pandas_that_is_not_there_says_the_pip_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(DependencyMissing, match="pandas") as caught, translated():
        require_minimum_pandas_version()
    assert caught.value.hint == "pip install 'weirflow[pandas]'"
    assert isinstance(caught.value.__cause__, PySparkImportError)
