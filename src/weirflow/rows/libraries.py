"""Arrow data as frames of other libraries, which need not be installed until one is asked for."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from weirflow.errors import DependencyMissing

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


def pandas_frame(rows: pa.Table | pa.RecordBatch, needed_for: str) -> pd.DataFrame:
    """The rows as a pandas frame; ``DependencyMissing`` says what needs pandas if it is not installed."""
    _require("pandas", DependencyMissing.extra("pandas", needed_for=needed_for))  # noqa: S610 - no Django
    return rows.to_pandas()


def polars_frame(rows: pa.Table | pa.RecordBatch, needed_for: str) -> pl.DataFrame:
    """The rows as a Polars frame; ``DependencyMissing`` says what needs Polars if it is not installed."""
    missing = DependencyMissing(f"{needed_for} needs Polars.", hint="pip install polars")
    frame: pl.DataFrame = _require("polars", missing).from_arrow(rows)
    return frame


def _require(module: str, missing: DependencyMissing) -> Any:
    if find_spec(module) is None:
        raise missing
    return import_module(module)
