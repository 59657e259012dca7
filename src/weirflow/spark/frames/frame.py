"""``DataFrame``: a PySpark DataFrame with every method unchanged, plus Arrow in, Arrow out and honest writes.

PySpark's methods are not listed here: they are looked up on the native frame, run as tracked operations with
errors translated, and their frames are wrapped again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame as NativeFrame

from weirflow.arguments import Name, Place, checked
from weirflow.errors import did_you_mean
from weirflow.rows.libraries import pandas_frame, polars_frame
from weirflow.spark.compat import ending_quietly
from weirflow.spark.frames.arrow import frame_schema, stream_batches
from weirflow.spark.streaming.read import StreamRead, as_stream
from weirflow.types import SaveMode, one_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    StreamingDataFrame = Any  # a layer above this one
    Derive = Callable[[NativeFrame], "DataFrame"]

T = TypeVar("T")
P = ParamSpec("P")

AnyFrame: TypeAlias = NativeFrame
"""A frame of PySpark's."""

# PySpark modules whose objects lead on to frames or to Spark work: writers, grouped data, na and stat functions.
_LEADING_MODULES = frozenset({"dataframe", "group", "group_ops", "merge", "readwriter"})
# Methods whose Spark work goes on while their result is read.
_DRAINED = frozenset({"toLocalIterator"})
# Methods that compute just the rows of their frame, by its own plan.
_COMPUTING = frozenset({"collect", "toArrow", "toLocalIterator", "toPandas"})
_HTML_ROWS = 20


class Runner(Protocol):
    """Runs Spark work as operations of a Session."""

    def run(self, description: str, call: Callable[[], T], frame: Any = None) -> T:
        """Run ``call``, which may compute the rows of ``frame``, as one operation, errors translated."""

    def drain(self, description: str, items: Callable[[], Iterator[T]], frame: Any = None) -> Iterator[T]:
        """Like ``run`` for work that goes on while its iterator is read."""

    @property
    def streams(self) -> Any:
        """What starts streaming queries: the Session's ``StreamingQueryManager``."""


class DataFrame:
    """The result of a query, which is computed when you ask for it.

    Every method and attribute of ``pyspark.sql.DataFrame`` works as PySpark documents it; frames they return
    are ``DataFrame`` again. It can be used wherever a PySpark frame is expected.

    >>> df = session.sql("SELECT 1 AS one")          # doctest: +SKIP
    >>> df.withColumn("two", df.one + 1).to_arrow()  # doctest: +SKIP
    """

    def __init__(self, native: NativeFrame | Callable[[], NativeFrame], runner: Runner) -> None:
        self._native = native
        self._runner = runner
        self._computed: pa.Table | None = None
        self._read: StreamRead | None = None

    @classmethod
    def of_read(cls, native: NativeFrame, runner: Runner, read: StreamRead) -> DataFrame:
        """A frame of exactly what was read, so that the same can be read as a stream."""
        frame = cls(native, runner)
        frame._read = read
        return frame

    @classmethod
    def of_result(cls, table: pa.Table, native: Callable[[], NativeFrame], runner: Runner) -> DataFrame:
        """A frame whose rows are known already; Spark gets them only when a PySpark method needs them."""
        frame = cls(native, runner)
        frame._computed = table
        return frame

    @property
    def spark(self) -> NativeFrame:
        """The native PySpark frame."""
        if not isinstance(self._native, NativeFrame):
            self._native = self._native()
        return self._native

    # Arrow

    def to_arrow(self) -> pa.Table:
        """Compute all rows and return them as one Arrow table."""
        if self._computed is not None:
            return self._computed
        return self._runner.run("to_arrow", self.spark.toArrow, self.spark)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Compute the rows as a stream of record batches, in order, with one or two partitions in memory at a time.

        Spark works while you read the iterator; closing or dropping the iterator stops Spark.
        """
        if self._computed is not None:
            return iter(self._computed.to_batches())
        return self._runner.drain("to_batches", lambda: stream_batches(self.spark), self.spark)

    def to_pylist(self) -> list[dict[str, Any]]:
        """Compute all rows and return them as dicts, with Python's values."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def to_pandas(self) -> pd.DataFrame:
        """Compute all rows and return them as a pandas frame; needs ``weirflow[pandas]``."""
        return pandas_frame(self.to_arrow(), "DataFrame.to_pandas()")

    def to_polars(self) -> pl.DataFrame:
        """Compute all rows and return them as a Polars frame; needs Polars."""
        return polars_frame(self.to_arrow(), "DataFrame.to_polars()")

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface: ``pa.table(df)``, ``polars.DataFrame(df)``, ``duckdb`` and others."""
        schema = self._computed.schema if self._computed is not None else frame_schema(self.spark)
        reader = pa.RecordBatchReader.from_batches(schema, self.to_batches())
        return reader.__arrow_c_stream__(requested_schema)

    # Writing

    @checked
    def write_parquet(
        self, path: Place, *, mode: SaveMode | str = SaveMode.ERROR, partition_by: Sequence[str] = ()
    ) -> None:
        """Write Parquet files under ``path``."""
        self._write("parquet", mode, partition_by, lambda writer: writer.parquet(str(path)))

    @checked
    def write_csv(
        self,
        path: Place,
        *,
        mode: SaveMode | str = SaveMode.ERROR,
        partition_by: Sequence[str] = (),
        header: bool = True,
    ) -> None:
        """Write CSV files under ``path``, by default with a header line in each."""
        self._write("csv", mode, partition_by, lambda writer: writer.csv(str(path), header=header))

    @checked
    def write_json(
        self, path: Place, *, mode: SaveMode | str = SaveMode.ERROR, partition_by: Sequence[str] = ()
    ) -> None:
        """Write JSON-lines files under ``path``."""
        self._write("json", mode, partition_by, lambda writer: writer.json(str(path)))

    @checked
    def write_table(
        self,
        name: Name,
        *,
        mode: SaveMode | str = SaveMode.ERROR,
        format: Name = "parquet",  # noqa: A002 - PySpark's own name for it
        partition_by: Sequence[str] = (),
    ) -> None:
        """Write a catalog table in the given format (``parquet``, ``delta``, ``iceberg``, ...)."""
        self._write(f"table {name}", mode, partition_by, lambda writer: writer.format(format).saveAsTable(name))

    def _write(self, what: str, mode: SaveMode | str, partition_by: Sequence[str], save: Callable[[Any], None]) -> None:
        chosen = one_of(SaveMode, mode, "No write mode is called")

        def write() -> None:
            writer = self.spark.write.mode(chosen)
            save(writer.partitionBy(*partition_by) if partition_by else writer)

        self._runner.run(f"write {what}", write)

    # Streaming

    def to_streaming(self) -> StreamingDataFrame:
        """The same data as a stream: the rows that are there now, and those that come later.

        Works only on frames as returned by ``read_*`` and ``table``; filter, select and join afterwards.
        """
        streams = self._runner.streams
        if self._computed is None and self.spark.isStreaming:
            return streams.frame(self.spark)
        session = self.spark.sparkSession
        return streams.frame(self._runner.run("to_streaming", lambda: as_stream(self._read, session)))

    # Everything else is PySpark's

    @checked
    def transform(self, func: Callable[Concatenate[DataFrame, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call ``func`` with this frame, as PySpark's ``transform`` does."""
        return func(self, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy, pickle and the like probe for these; none is a column
            raise AttributeError(name)
        native = self.spark
        if name.startswith("_"):  # PySpark's own code asks for these
            return getattr(native, name)
        if inspect.isfunction(inspect.getattr_static(type(native), name, None)):
            return _wrap(getattr(native, name), self._runner, name, self._derived)
        # A property or a column, for which Spark may have to analyse the query.
        return _wrap(self._runner.run(name, lambda: self._value(name)), self._runner, name, self._derived)

    def _derived(self, native: NativeFrame) -> DataFrame:
        """A frame that a PySpark method of this one returned."""
        return DataFrame(native, self._runner)

    def _value(self, name: str) -> Any:
        native = self.spark
        if name not in vars(native) and not hasattr(type(native), name) and name not in native.columns:
            methods = {one for kind in (type(native), type(self)) for one in dir(kind) if not one.startswith("_")}
            near = did_you_mean(name, [*native.columns, *sorted(methods)])
            raise AttributeError(f"a DataFrame has no column or method {name!r}" + (f"; {near}" if near else ""))
        return getattr(native, name)

    def __getitem__(self, item: Any) -> Any:
        return _wrap(self.spark.__getitem__, self._runner, "[]", self._derived)(item)

    def __dir__(self) -> Iterable[str]:
        return sorted({*dir(DataFrame), *dir(self.spark)})

    def __repr__(self) -> str:
        return self._runner.run("repr", lambda: repr(self.spark))

    @property  # type: ignore[misc]  # object's is writable; ours only answers isinstance(df, pyspark.sql.DataFrame)
    def __class__(self) -> type:
        return type(self._native) if isinstance(self._native, NativeFrame) else NativeFrame

    def _repr_html_(self) -> str:
        """The first rows as an HTML table, for notebooks."""
        shown = self._head()
        names = "".join(f"<th>{escape(name)}</th>" for name in shown.column_names)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in row) + "</tr>"
            for row in zip(*(column.to_pylist()[:_HTML_ROWS] for column in shown.columns), strict=True)
        )
        more = f"<p>only the first {_HTML_ROWS} rows</p>" if shown.num_rows > _HTML_ROWS else ""
        return f"<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table>{more}"

    def _head(self) -> pa.Table:
        if self._computed is not None:
            return self._computed
        return self._runner.run("show", lambda: self.spark.limit(_HTML_ROWS + 1).toArrow())


class Delegate:
    """A PySpark object that leads on to frames or Spark work (a writer, grouped data), wrapped like a frame."""

    def __init__(self, native: Any, runner: Runner, derive: Derive) -> None:
        self._native = native
        self._runner = runner
        self._derive = derive

    @property
    def spark(self) -> Any:
        """The native PySpark object."""
        return self._native

    def __getattr__(self, name: str) -> Any:
        return _wrap(getattr(self._native, name), self._runner, name, self._derive)

    def __dir__(self) -> Iterable[str]:
        return dir(self._native)

    def __repr__(self) -> str:
        return repr(self._native)


def is_frame(value: Any) -> bool:
    """Whether this is a PySpark frame, native or ours."""
    return isinstance(value, NativeFrame)


def frame_of_java(session: Any, made: Any) -> Any:
    """The native frame of a classic session that its JVM has made."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame  # noqa: PLC0415 - Spark Connect does without

    return ClassicFrame(made, session)


def unwrap(value: Any) -> Any:
    """What PySpark should see: the native frame of ours, also inside lists, tuples and dicts."""
    kind = type(value)  # not isinstance: our frames pass as native ones
    if issubclass(kind, DataFrame) or kind is Delegate:
        return value.spark
    if kind is list or kind is tuple:
        return kind(unwrap(item) for item in value)
    if kind is dict:
        return {key: unwrap(item) for key, item in value.items()}
    return value


def _wrap(value: Any, runner: Runner, name: str, derive: Derive) -> Any:
    """A PySpark value as the user sees it: frames and what leads to them wrapped, methods tracked."""
    if isinstance(value, NativeFrame):
        return derive(value)
    if isinstance(value, list) and value and isinstance(value[0], NativeFrame):
        return [derive(item) for item in value]
    if _leads_on(value):
        return Delegate(value, runner, derive)
    if callable(value) and hasattr(value, "__self__"):
        return _wrap_method(value, runner, name, derive)
    return value


def _wrap_method(method: Callable[..., Any], runner: Runner, name: str, derive: Derive) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        native_args = [unwrap(arg) for arg in args]
        native_kwargs = {key: unwrap(arg) for key, arg in kwargs.items()}
        frame = method.__self__ if name in _COMPUTING else None  # type: ignore[attr-defined]  # it is a bound method
        if name in _DRAINED:
            return runner.drain(name, lambda: ending_quietly(method(*native_args, **native_kwargs)), frame)
        return _wrap(runner.run(name, lambda: method(*native_args, **native_kwargs), frame), runner, name, derive)

    return call


def _leads_on(value: Any) -> bool:
    module = type(value).__module__
    return module.startswith("pyspark.sql.") and module.rpartition(".")[2] in _LEADING_MODULES
