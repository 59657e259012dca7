"""``SessionCore``: a Session's Spark, started when it is needed, and what runs in it."""

from __future__ import annotations

import atexit
import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from weirflow.config import Settings, load_settings
from weirflow.errors import ConfigError, SessionClosed
from weirflow.observability.progress import make_display
from weirflow.session.catalogs import SessionCatalogs
from weirflow.session.operations import Operations
from weirflow.session.profiles import resolve_stores
from weirflow.spark.launch.endpoint import parse_endpoint
from weirflow.types import Placement, Profile

if TYPE_CHECKING:
    import os

    from weirflow.flows.functions import SessionFunctions
    from weirflow.flows.sql.front import FlowSql
    from weirflow.session.kept_tables import KeptTables
    from weirflow.spark.catalogs.attached import AttachedCatalogs
    from weirflow.spark.engine import Engine
    from weirflow.spark.frames.frame import DataFrame
    from weirflow.streaming.query.manager import StreamingQueryManager

    Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
    Params = Mapping[str, Any] | Sequence[Any]

_STOP_SECONDS = 5.0
_INNER_TABLE = "_weirflow_"


class SessionCore:
    """What all parts of a Session share."""

    def __init__(self, **settings: Any) -> None:
        """Build a Session from any of the settings in ``weirflow.config.Settings``; starts nothing."""
        self._settings = load_settings(**settings)
        _check_placement(self._settings)
        self._stores = resolve_stores(self._settings)
        self._lock = threading.RLock()
        is_kept = self._stores.profile is Profile.SINGLE_NODE_DURABLE and self._settings.path is not None
        store = self._settings.path / "metadata.db" if self._settings.path and is_kept else None
        self._catalogs = SessionCatalogs(self._settings.catalogs, store, self._attached_catalogs, self._lock)
        self._engine: Engine | None = None
        self._kept_tables: KeptTables | None = None
        self._closed = False
        self._display = make_display(self._settings.progress)
        self.operations = Operations(
            control=lambda: self._started().control,
            translated=self._translated,
            display=self._display,
            streams=lambda: self.streams,
        )
        """Everything that runs in this Session now; see ``Operations``."""
        self._flow_sql: FlowSql | None = None
        self._functions: SessionFunctions | None = None
        self._streams: StreamingQueryManager | None = None
        _open_sessions.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything that runs, and Spark. Waits until no process, thread or temporary file is left.

        Closing twice does nothing.

        Raises:
            SinkFailed: a sink of a flow could not write what it still had; the Session is closed nevertheless.
        """
        try:
            if self._streams is not None:
                self._streams.close()  # whose last batches may go to flows
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
        if self._kept_tables is not None:
            self._kept_tables.close()
        if engine is not None:
            engine.close()

    @property
    def spark(self) -> Any:
        """The native ``SparkSession``; it is started now if it is not running yet."""
        return self._started().session

    @property
    def streams(self) -> StreamingQueryManager:
        """The streaming queries of this Session; see ``StreamingQueryManager``."""
        with self._lock:
            if self._closed:
                raise SessionClosed("This Session is closed.", hint="open another one")
            if self._streams is None:
                from weirflow.session.stream_host import SessionStreams  # noqa: PLC0415 - knows this class
                from weirflow.streaming.query.manager import StreamingQueryManager  # noqa: PLC0415 - rarely needed

                self._streams = StreamingQueryManager(SessionStreams(self, self._stores))
            return self._streams

    @property
    def settings(self) -> Settings:
        """The settings this Session was built with."""
        return self._settings

    def _started(self) -> Engine:
        with self._lock:
            if self._closed:
                raise SessionClosed("This Session is closed.", hint="open another one")
            if self._engine is None:
                from weirflow.spark.engine import start_engine  # noqa: PLC0415 - imports pyspark

                path = self._settings.path
                engine = start_engine(
                    self._launch_settings(),
                    profile_conf=self._stores.spark_conf,
                    warehouse=path / "warehouse" if path else None,
                )
                try:
                    self._prepare(engine.session)
                    self._catalogs.attach_all(self._attaching(engine))
                    self._kept_tables = self._tables_of(engine)
                except BaseException:
                    engine.close()
                    raise
                self._engine = engine
            return self._engine

    def _prepare(self, native: Any) -> None:
        """Called with the native session as soon as it is there, before anyone else has it."""

    @property
    def _packages(self) -> tuple[str, ...]:
        """Those of the settings, and those that catalogs need of a driver of our own."""
        if (self._settings.endpoint or "").startswith("sc:"):
            return self._settings.packages
        return tuple(dict.fromkeys([*self._settings.packages, *self._catalogs.packages]))

    def _launch_settings(self) -> Settings:
        packages = self._packages
        is_same = packages == self._settings.packages
        return self._settings if is_same else self._settings.model_copy(update={"packages": packages})

    def _attached_catalogs(self) -> AttachedCatalogs:
        return self._attaching(self._started())

    def _attaching(self, engine: Engine) -> AttachedCatalogs:
        from weirflow.spark.catalogs.attached import AttachedCatalogs  # noqa: PLC0415 - imports pyspark

        return AttachedCatalogs(engine.session, self._settings.connect_timeout)

    def _tables_of(self, engine: Engine) -> KeptTables | None:
        """The tables that were there when the last Spark of this Session ended; None where nothing keeps them."""
        path = self._settings.path
        in_memory = "spark.sql.catalogImplementation", "in-memory"
        if self._stores.profile is not Profile.SINGLE_NODE_DURABLE or path is None:
            return None
        if engine.session.conf.get(*in_memory) != in_memory[1]:  # another one, which keeps what is in it
            return None
        from weirflow.session.kept_tables import KeptTables  # noqa: PLC0415 - opens databases
        from weirflow.spark.catalog.catalog import SparkCatalog  # noqa: PLC0415 - imports pyspark

        return KeptTables(SparkCatalog(engine.session), path / "metadata.db")

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
        from weirflow.spark.frames.frame import DataFrame, unwrap  # noqa: PLC0415 - imports pyspark

        return DataFrame(unwrap(native), self.operations)

    def _reading(
        self,
        query: str,
        run: Callable[[str], DataFrame],
        *,
        repeats: bool = True,  # noqa: ARG002 - for Sessions with flows
        sees: Callable[[str], bool] | None = None,  # noqa: ARG002 - as above
    ) -> DataFrame:
        """Run what may read tables; it is given the text to run, maybe more than once if it ``repeats``.

        ``sees`` says of which flows, by their names, it may read something; None for all.
        """
        return run(query)

    def _table_names(self) -> list[str]:
        # Not catalog.listTables(), which looks into each table and fails if one goes meanwhile.
        names = [row.tableName for row in self.spark.sql("SHOW TABLES").collect()]
        return [name for name in names if not name.startswith(_INNER_TABLE)]


_open_sessions: weakref.WeakSet[SessionCore] = weakref.WeakSet()


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
