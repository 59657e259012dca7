"""``Session``: one object for batch SQL on Spark, wherever Spark runs."""

from __future__ import annotations

import atexit
import contextlib
import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from weirflow.config import Settings, load_settings
from weirflow.errors import ConfigError, SessionClosed, TableNotFound, did_you_mean
from weirflow.observability.progress import make_display
from weirflow.session.operations import Operations, Submitted
from weirflow.session.profiles import Stores, resolve_stores
from weirflow.spark.endpoint import parse_endpoint
from weirflow.sql.statements import is_about_flows, is_query, may_be_about_flows, reads_tables, refuse_commands
from weirflow.types import ExplainMode, Placement, Profile

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    import pyarrow as pa

    from weirflow.session.flow_sql import FlowSql
    from weirflow.session.flows import SessionFlow
    from weirflow.spark.engine import Engine
    from weirflow.spark.frame import DataFrame
    from weirflow.spark.stages import Stage

    Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
    Params = Mapping[str, Any] | Sequence[Any]

_DESCRIPTION_LENGTH = 60
_STOP_SECONDS = 5.0
_INNER_TABLE = "_weirflow_"
_VIEWS = frozenset({"TEMPORARY", "VIEW"})


@dataclass(frozen=True)
class SessionInfo:
    """What a Session is: where it runs and what it keeps where. Holds no secrets."""

    placement: Placement
    profile: Profile
    spark: str
    stores: Stores
    packages: tuple[str, ...]

    def __str__(self) -> str:
        lines = [
            ("placement", self.placement),
            ("spark", self.spark),
            ("packages", ", ".join(self.packages) or "none"),
            ("profile", self.profile),
            ("keyed state", self.stores.keyed_state),
            ("Spark state", self.stores.spark_state),
            ("checkpoints", self.stores.checkpoints),
            ("metadata", self.stores.metadata),
        ]
        return "\n".join(f"{name:<12} {value}" for name, value in lines)


class Session:
    """The front door to Spark.

    Spark starts on the first call that needs it. A Session is safe to use from several threads, and must be
    closed (or used in a ``with`` block) to leave nothing behind.

    >>> from weirflow import Session
    >>> with Session.embedded() as session:  # doctest: +SKIP
    ...     session.sql("SELECT 1 AS one").to_arrow().to_pylist()
    [{'one': 1}]
    """

    def __init__(self, **settings: Any) -> None:
        """Build a Session from any of the settings in ``weirflow.config.Settings``; starts nothing."""
        self._settings = load_settings(**settings)
        _check_placement(self._settings)
        self._stores = resolve_stores(self._settings)
        self._lock = threading.RLock()
        self._engine: Engine | None = None
        self._closed = False
        self._display = make_display(self._settings.progress)
        self.operations = Operations(
            control=lambda: self._started().control,
            translated=self._translated,
            display=self._display,
        )
        """Everything that runs in this Session now; see ``Operations``."""
        self._flow_sql: FlowSql | None = None
        _open_sessions.add(self)

    # Opening and closing

    @classmethod
    def embedded(cls, **settings: Any) -> Self:
        """Local Spark in a JVM that lives and dies with this process."""
        return cls(placement=Placement.EMBEDDED, **settings)

    @classmethod
    def single_node(cls, path: str | os.PathLike[str], **settings: Any) -> Self:
        """Local Spark, with durable stores under the folder ``path``."""
        return cls(placement=Placement.SINGLE_NODE, path=path, **settings)

    @classmethod
    def distributed(cls, endpoint: str, token: str | None = None, **settings: Any) -> Self:
        """The Spark at ``endpoint``: ``sc://host:port`` (Spark Connect) or ``spark://host:port`` (standalone).

        ``token`` is the server's bearer token, or the cluster's shared secret. If the endpoint cannot be used
        the first call that needs Spark says so within seconds; there is never a local fallback.
        """
        return cls(placement=Placement.DISTRIBUTED, endpoint=endpoint, token=token, **settings)

    @classmethod
    def from_env(cls) -> Self:
        """A Session as the ``WEIRFLOW_*`` environment variables say."""
        return cls()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop what runs, and Spark with it. Waits until no process, thread or temporary file is left.

        Closing twice does nothing.

        Raises:
            SinkFailed: a sink of a flow could not write what it still had; the Session is closed all the same.
        """
        try:
            if self._flow_sql is not None:
                self._flow_sql.flows.close()  # whose sinks may have something to write, with Spark
        finally:
            self._stop()

    def _stop(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            engine, self._engine = self._engine, None
        _open_sessions.discard(self)
        self.operations.stop_all(timeout=_STOP_SECONDS)
        self._display.close()
        if engine is not None:
            engine.close()

    # Batch SQL

    def sql(self, query: str, params: Params | None = None) -> DataFrame:
        """The result of a SQL query, computed when it is asked for. Commands (CREATE, INSERT, ...) run at once.

        Beside Spark's statements there are those about incremental flows; see ``flow``.

        Args:
            query: Spark SQL.
            params: values for ``:name`` markers (a mapping) or ``?`` markers (a sequence).
        """
        if is_about_flows(query) or (may_be_about_flows(query) and self._has_flows()):
            done = self._flows_sql().run(query, params)
            if done is not None:
                return self.from_arrow(done)

        def run(text: str) -> DataFrame:
            if not is_query(query):
                return self._frame(_shorten(query), lambda spark: spark.sql(text, args=_spark_params(params)))
            spark = self.spark
            with self._translated():  # planning a query runs nothing that would have to be stopped
                native = spark.sql(text, args=_spark_params(params))
            return self._wrapped(native)

        return self._flows_sql().reading(query, run) if reads_tables(query) and self._has_flows() else run(query)

    def sql_with_timeout(self, query: str, timeout_ms: float, params: Params | None = None) -> DataFrame:
        """Run a query now and return its rows; at the deadline stop its Spark jobs and raise ``OperationTimeout``."""
        if timeout_ms <= 0:
            raise ConfigError(f"A timeout of {timeout_ms} ms leaves no time to run.", hint="give milliseconds above 0")

        def run() -> tuple[pa.Table, Any]:
            frame = self.sql(query, params)
            return frame.to_arrow(), frame.schema

        table, schema = self.operations.run_with_timeout(_shorten(query), run, timeout_ms / 1000)
        # Deferred: importing the frame imports pyspark.
        from weirflow.spark.frame import DataFrame  # noqa: PLC0415

        return DataFrame.of_result(table, lambda: self.spark.createDataFrame(table, schema), self.operations)

    def submit(self, query: str, params: Params | None = None) -> Submitted:
        """Run a query in the background. The job returned has its state, progress, ``cancel()`` and ``result()``."""
        return self.operations.submit(_shorten(query), lambda: self.sql(query, params).to_arrow())

    def explain(
        self, query: str | DataFrame, mode: ExplainMode | str = ExplainMode.PHYSICAL, params: Params | None = None
    ) -> str:
        """How Spark would run a query: its ``logical`` or ``physical`` plan, or the ``stages`` it falls into.

        Nothing runs; a statement that is not a query is refused, because Spark runs commands as it reads them.
        """
        try:
            chosen = ExplainMode(mode)
        except ValueError:
            raise ConfigError(
                f"No explain mode is called {mode!r}; there are {', '.join(ExplainMode)}.",
                hint=did_you_mean(str(mode), ExplainMode),
            ) from None
        from weirflow.spark.explain import explain_text  # noqa: PLC0415 - imports pyspark

        frame = self._planned(query, params)
        return self.operations.run("explain", lambda: explain_text(frame.spark, chosen))

    def stages(self, query: str | DataFrame, params: Params | None = None) -> tuple[Stage, ...]:
        """The stages that ``explain(mode="stages")`` prints, as objects."""
        from weirflow.spark.explain import plan_stages  # noqa: PLC0415 - imports pyspark

        frame = self._planned(query, params)
        return self.operations.run("explain", lambda: plan_stages(frame.spark))

    def _planned(self, query: str | DataFrame, params: Params | None) -> DataFrame:
        if not isinstance(query, str):
            return query
        refuse_commands(query)
        return self.sql(query, params)

    # Tables

    def read_parquet(self, path: Paths, **options: Any) -> DataFrame:
        """Read Parquet files; ``options`` are those of PySpark's reader."""
        return self._read("parquet", path, options)

    def read_csv(self, path: Paths, *, header: bool = True, infer_schema: bool = True, **options: Any) -> DataFrame:
        """Read CSV files; by default with a header line and types found by looking at the data.

        Give ``schema="a int, b string"`` to say the types instead.
        """
        infer = infer_schema and "schema" not in options
        return self._read("csv", path, {"header": header, "inferSchema": infer, **options})

    def read_json(self, path: Paths, **options: Any) -> DataFrame:
        """Read JSON-lines files; ``options`` are those of PySpark's reader."""
        return self._read("json", path, options)

    def read_table(self, name: str) -> DataFrame:
        """A registered table or view, or one in a catalog, by its name."""

        def read(_: str) -> DataFrame:
            return self._frame(f"read {name}", lambda spark: spark.table(_quoted(name)))

        return self._flows_sql().reading(name, read) if self._has_flows() else read(name)

    table = read_table

    def register(self, name: str, data: Any) -> DataFrame:
        """Make data known to SQL under ``name``, replacing what had the name, and return it as a frame.

        Args:
            name: any name; a dot separates schema and table, unless the name is quoted with backticks as in SQL.
            data: an Arrow, pandas or Polars table, anything with the Arrow PyCapsule interface, a list of dicts,
                or a Spark frame.
        """
        frame = data if self._is_frame(data) else self.from_arrow(data)
        frame.createOrReplaceTempView(_quoted(name))
        return self.read_table(name)

    def from_arrow(self, data: Any) -> DataFrame:
        """Tabular Python data as a frame, without giving it a name; see ``register`` for what is taken."""
        if self._is_frame(data):
            return self._frame("frame", lambda _: data)
        from weirflow.spark.arrow import spark_table  # noqa: PLC0415 - imports pyspark

        table = spark_table(data)
        return self._frame("from_arrow", lambda spark: spark.createDataFrame(table))

    def tables(self) -> list[str]:
        """The names SQL can use without qualification: registered ones and tables of the current schema."""
        return self.operations.run("list tables", self._table_names)

    def drop(self, name: str) -> None:
        """Forget a registered name, or drop the table of that name. ``TableNotFound`` if there is neither."""
        quoted = _quoted(name)

        def dropped(spark: Any) -> bool:
            if not spark.catalog.tableExists(quoted):
                return False
            kind = "VIEW" if spark.catalog.getTable(quoted).tableType in _VIEWS else "TABLE"
            spark.sql(f"DROP {kind} IDENTIFIER(:name)", args={"name": quoted})
            return True

        if not self._run(f"drop {name}", dropped):
            known = self.tables()
            raise TableNotFound(
                f"No table or view is called {name!r}.",
                hint=did_you_mean(name, known) or (f"the tables are {', '.join(known)}" if known else None),
            )

    def udf(self, name: str, function: Callable[..., Any], returns: Any = "string") -> Callable[..., Any]:
        """Register a Python function for SQL under ``name`` and return it for use on columns.

        ``returns`` is the Spark type of its result, such as ``"int"``; a function that is already a PySpark UDF
        (``pandas_udf``, ``udf``) brings its own.
        """
        is_udf = hasattr(function, "evalType")
        registered: Callable[..., Any] = self._run(
            f"udf {name}",
            lambda spark: spark.udf.register(name, function) if is_udf else spark.udf.register(name, function, returns),
        )
        return registered

    # Flows

    def flow(self, name: str = "flow", *, partitions: int | None = None, **options: Any) -> SessionFlow:
        """The incremental flow of this name, made if there is none; a durable Session reopens it as it was.

        Its views are tables for ``sql``, and what has no delta rule is recomputed by Spark and compared.

        Args:
            name: what the flow is called, and in a durable Session where it is kept.
            partitions: over how many tasks of Spark it is spread; None runs it in this process.
            options: those of ``IncrementalFlow``.
        """
        return self._flows_sql().flows.open(name, partitions=partitions, options=options)

    # Looking inside

    def metrics(self) -> str:
        """What the flows of this process have done and hold, in Prometheus' text format; starts nothing.

        A flow that was given a registry of its own is measured there.
        """
        from weirflow.observability.metrics import metrics_text  # noqa: PLC0415 - imports an HTTP server

        return metrics_text()

    @property
    def spark(self) -> Any:
        """The native ``SparkSession``, started now if it was not yet."""
        return self._started().session

    @property
    def settings(self) -> Settings:
        """The settings this Session was built with."""
        return self._settings

    def describe(self) -> SessionInfo:
        """Where this Session runs and which stores it uses; starts nothing."""
        engine = self._engine
        target = parse_endpoint(self._settings.endpoint).url if self._settings.endpoint else "local"
        return SessionInfo(
            placement=self._settings.placement,
            profile=self._stores.profile,
            spark=f"{engine.version} at {engine.where}" if engine else f"not started, will be at {target}",
            stores=self._stores,
            packages=self._settings.packages,
        )

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<Session {self._settings.placement} {self._stores.profile} {state}>"

    # Inner workings

    def _has_flows(self) -> bool:
        """Whether flows are open, or kept and not open yet."""
        path = self._settings.path
        return self._flow_sql is not None or (path is not None and (path / "flows").is_dir())

    def _flows_sql(self) -> FlowSql:
        with self._lock:
            if self._closed:
                raise SessionClosed("This Session is closed.", hint="open another one")
            if self._flow_sql is None:
                from weirflow.session.flow_sql import FlowSql  # noqa: PLC0415 - imports the kernel

                self._flow_sql = FlowSql(self)
            return self._flow_sql

    def _started(self) -> Engine:
        with self._lock:
            if self._closed:
                raise SessionClosed("This Session is closed.", hint="open another one")
            if self._engine is None:
                from weirflow.spark.engine import start_engine  # noqa: PLC0415 - imports pyspark

                path = self._settings.path
                self._engine = start_engine(
                    self._settings,
                    profile_conf=self._stores.spark_conf,
                    warehouse=path / "warehouse" if path else None,
                )
            return self._engine

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        from weirflow.spark.errors import translated  # noqa: PLC0415 - imports pyspark

        with translated(self._table_names):
            yield

    def _run(self, description: str, call: Callable[[Any], Any]) -> Any:
        """Run ``call`` with the native session, as an operation."""
        spark = self.spark
        return self.operations.run(description, lambda: call(spark))

    def _frame(self, description: str, make: Callable[[Any], Any]) -> DataFrame:
        return self._wrapped(self._run(description, make))

    def _wrapped(self, native: Any) -> DataFrame:
        from weirflow.spark.frame import DataFrame, unwrap  # noqa: PLC0415 - imports pyspark

        return DataFrame(unwrap(native), self.operations)

    def _read(self, source: str, path: Paths, options: dict[str, Any]) -> DataFrame:
        paths = [str(path)] if isinstance(path, str) or hasattr(path, "__fspath__") else [str(part) for part in path]
        if not paths:
            raise ConfigError("No path is given to read from.")
        schema = options.pop("schema", None)
        return self._frame(
            f"read {source} {paths[0]}",
            lambda spark: spark.read.load(paths, format=source, schema=schema, **options),
        )

    def _table_names(self) -> list[str]:
        names = [table.name for table in self.spark.catalog.listTables()]
        return [name for name in names if not name.startswith(_INNER_TABLE)]

    def _is_frame(self, data: Any) -> bool:
        self._started()  # a frame implies Spark, and the module below needs pyspark
        from weirflow.spark.frame import is_frame  # noqa: PLC0415 - imports pyspark

        return is_frame(data)


_open_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


@atexit.register
def _close_forgotten_sessions() -> None:
    for session in list(_open_sessions):
        session.close()


def _check_placement(settings: Settings) -> None:
    """Refuse arguments that the placement would silently ignore."""
    if settings.placement is Placement.DISTRIBUTED:
        if settings.endpoint is None:
            raise ConfigError(
                "A distributed Session needs an endpoint.",
                hint="pass endpoint= or set WEIRFLOW_ENDPOINT to sc://host:port or spark://host:port",
            )
        parse_endpoint(settings.endpoint)
        return
    for name, value in (("endpoint", settings.endpoint), ("token", settings.token)):
        if value is not None:
            raise ConfigError(
                f"{name} is given, but the placement is {settings.placement}, which uses local Spark.",
                hint="use Session.distributed(endpoint, token=...), or leave it out",
            )
    if settings.placement is Placement.SINGLE_NODE and settings.path is None:
        raise ConfigError("A single-node Session needs a folder.", hint="pass path= or set WEIRFLOW_PATH")


def _spark_params(params: Params | None) -> dict[str, Any] | list[Any] | None:
    if params is None:
        return None
    return dict(params) if hasattr(params, "keys") else list(params)


def _quoted(name: str) -> str:
    """A name as SQL reads it whatever characters it has; one with backticks is taken to be quoted already."""
    parts = name.split(".")
    # What names nothing is for Spark to refuse.
    return name if "`" in name or not all(parts) else ".".join(f"`{part}`" for part in parts)


def _shorten(query: str) -> str:
    line = " ".join(query.split())
    return line if len(line) <= _DESCRIPTION_LENGTH else line[: _DESCRIPTION_LENGTH - 1] + "…"
