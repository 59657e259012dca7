"""``Session``: one object for batch SQL on Spark, wherever Spark runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self, cast, overload

import pyarrow as pa

from weirflow.arguments import AtMost, Count, Folder, MoreThan, Name, NotEmpty, Secret, Shards, Sql, Uri, checked
from weirflow.client.address import is_server
from weirflow.errors import ConfigError, SessionClosed
from weirflow.session.shuffle import shuffle_place
from weirflow.session.tables import Tables
from weirflow.spark.launch.endpoint import parse_endpoint
from weirflow.sql.statements.catalogs import CreateCatalog, described, read_catalog_statement
from weirflow.sql.statements.kinds import About, StatementKind, kind_of, refuse_commands
from weirflow.types import ExplainMode, Placement, Profile, one_of

if TYPE_CHECKING:
    import os

    from weirflow.client import RemoteSession
    from weirflow.flows.host import Params
    from weirflow.flows.local import SessionFlow
    from weirflow.flows.sharded import PartitionedIncrementalFlow
    from weirflow.flows.sql.front import FlowSql
    from weirflow.ivm.flow.outputs.subscription import Subscription
    from weirflow.materialized.view import MaterializedView
    from weirflow.session.catalogs import CatalogInfo
    from weirflow.session.inspection import Inspection
    from weirflow.session.operation import Submitted
    from weirflow.session.operations import Operations
    from weirflow.session.profiles import Stores
    from weirflow.spark.frames.frame import DataFrame
    from weirflow.spark.frames.stages import Stage
    from weirflow.state import StateDescriptor

    Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_DESCRIPTION_LENGTH = 60


@dataclass(frozen=True)
class SessionInfo:
    """What a Session is: where it runs and what it keeps where. Holds no secrets."""

    placement: Placement
    profile: Profile
    spark: str
    stores: Stores
    packages: tuple[str, ...]
    catalogs: tuple[CatalogInfo, ...] = ()
    shuffle: str = ""

    def __str__(self) -> str:
        lines = [
            ("placement", self.placement),
            ("spark", self.spark),
            ("packages", ", ".join(self.packages) or "none"),
            ("catalogs", ", ".join(map(str, self.catalogs)) or "none"),
            ("profile", self.profile),
            ("keyed state", self.stores.keyed_state),
            ("Spark state", self.stores.spark_state),
            ("shuffle", self.shuffle),
            ("checkpoints", self.stores.checkpoints),
            ("metadata", self.stores.metadata),
        ]
        return "\n".join(f"{name:<12} {value}" for name, value in lines)


@checked
class Session(Tables):
    """The front door to Spark.

    Spark starts on the first call that needs it. A Session is safe to use from several threads, and must be
    closed (or used in a ``with`` block) to leave nothing behind.

    >>> from weirflow import Session
    >>> with Session.embedded() as session:  # doctest: +SKIP
    ...     session.sql("SELECT 1 AS one").to_arrow().to_pylist()
    [{'one': 1}]
    """

    @classmethod
    def embedded(cls, **settings: Any) -> Self:
        """Local Spark in a JVM that lives and dies with this process."""
        return cls(placement=Placement.EMBEDDED, **settings)

    @classmethod
    def single_node(cls, path: Folder, **settings: Any) -> Self:
        """Local Spark, with durable stores under the folder ``path``."""
        return cls(placement=Placement.SINGLE_NODE, path=path, **settings)

    @classmethod
    def distributed(
        cls, endpoint: Annotated[str, NotEmpty()], token: Annotated[str, Secret()] | None = None, **settings: Any
    ) -> Self | RemoteSession:
        """The Spark at ``endpoint``: ``sc://host:port`` (Spark Connect) or ``spark://host:port`` (standalone).

        For a Weirflow server, ``weirflow://host:port`` or ``weirflow+tls://host:port``, it returns a ``RemoteSession``,
        which has its own settings and needs neither Java nor pyspark.

        ``token`` is the server's bearer token, or the cluster's shared secret. If the endpoint cannot be used, the
        first call that needs Spark fails within seconds; there is never a local fallback.
        """
        if is_server(endpoint):
            from weirflow.client import RemoteSession  # noqa: PLC0415 - imports the kernel and Flight

            return RemoteSession(endpoint, token, **settings)
        return cls(placement=Placement.DISTRIBUTED, endpoint=endpoint, token=token, **settings)

    @classmethod
    def from_env(cls) -> Self:
        """A Session with the settings of the ``WEIRFLOW_*`` environment variables."""
        return cls()

    def sql(self, query: Sql, params: Params | None = None) -> DataFrame:
        """The result of a SQL query, computed when you ask for it. Commands (CREATE, INSERT, ...) run at once.

        In addition to Spark's statements, there are statements about incremental flows (see ``flow``) and about
        catalogs (see ``add_catalog``). ``SUBSCRIBE TO view`` has no end, and returns what ``subscribe`` does.

        Args:
            query: Spark SQL.
            params: values for ``:name`` markers (a mapping) or ``?`` markers (a sequence).
        """
        kind = kind_of(query)
        if kind.about is About.SUBSCRIPTION:
            return cast("DataFrame", self.subscribe(query, params))  # who writes SUBSCRIBE knows what it returns
        return self._sql(query, kind, params)

    def subscribe(self, query: Sql, params: Params | None = None) -> Subscription:
        """The changes of a view of a flow, for as long as you read them: rows with their epoch and weight.

        Args:
            query: ``SUBSCRIBE TO view [AS OF epoch] [WITH (SNAPSHOT = false, PROGRESS = true, UPSERT = (key))]``.
            params: values for the markers in it.

        Raises:
            HistoryGone: the changes after the epoch are not kept any more.
        """
        if kind_of(query).about is not About.SUBSCRIPTION:
            raise ConfigError("This statement does not begin with SUBSCRIBE TO.", hint="use sql() for other statements")
        return self._flows_sql().subscribe(query, params)

    def _sql(self, query: str, kind: StatementKind, params: Params | None) -> DataFrame:
        answer = self._answer(query, kind, params)
        return self.from_arrow(answer) if isinstance(answer, pa.Table) else answer

    def _answer(
        self,
        query: str,
        kind: StatementKind,
        params: Params | None,
        inspection: Inspection | None = None,
    ) -> pa.Table | DataFrame:
        """What a statement returns: the rows of those that are not Spark's, a frame of those that are.

        Args:
            query: the statement.
            kind: what it is.
            params: values for its markers.
            inspection: looks at what Spark is about to get, and at what it has analyzed; either may raise.
        """
        if kind.about is About.MATERIALIZED:
            from weirflow.materialized.statements import MaterializedStatements  # noqa: PLC0415 - imports the kernel

            return MaterializedStatements(self).run(query, params)
        if kind.about is About.CATALOGS:
            return self._about_catalogs(query, params)
        sees = None if inspection is None else inspection.sees_flow
        if kind.about is About.FLOWS or (kind.about is About.TARGET and self._has_flows()):
            done = self._flows_sql().run(query, kind, params, sees=sees)
            if done is not None:
                return done

        from weirflow.spark.vector_functions import know_vector_functions  # noqa: PLC0415 - beside what imports pyspark

        def run(text: str) -> DataFrame:
            if inspection is not None:
                inspection.text(text)
            if kind.about is not About.QUERY:
                return self._frame(_shorten(query), lambda spark: spark.sql(text, args=_spark_params(params)))
            spark = self.spark
            with self._translated():  # planning a query runs nothing that would have to be stopped
                know_vector_functions(spark, text)
                native = spark.sql(text, args=_spark_params(params))
            frame = self._wrapped(native)
            if inspection is not None:
                inspection.query(frame)
            return frame

        if not kind.reads_tables:
            return run(query)
        return self._reading(query, run, repeats=kind.about is About.QUERY, sees=sees)

    def sql_with_timeout(
        self, query: Sql, timeout_ms: Annotated[float, MoreThan(0), AtMost(10**12)], params: Params | None = None
    ) -> DataFrame:
        """Run a query now and return its rows; at the deadline stop its Spark jobs and raise ``OperationTimeout``."""

        def run() -> tuple[pa.Table, Any]:
            frame = self.sql(query, params)
            return frame.to_arrow(), frame.schema

        table, schema = self.operations.run_with_timeout(_shorten(query), run, timeout_ms / 1000)
        from weirflow.spark.frames.arrow import without_empty_batches  # noqa: PLC0415 - imports pyspark
        from weirflow.spark.frames.frame import DataFrame  # noqa: PLC0415 - as above

        rows = without_empty_batches(table)
        return DataFrame.of_result(rows, lambda: self.spark.createDataFrame(rows, schema), self.operations)

    def submit(self, query: Annotated[Sql, NotEmpty()], params: Params | None = None) -> Submitted:
        """Run a query in the background. The job returned has its state, progress, ``cancel()`` and ``result()``."""
        return self.operations.submit(_shorten(query), lambda: self.sql(query, params).to_arrow())

    def operation_registry(self) -> Operations:
        """The same as ``operations``, as a method."""
        return self.operations

    def explain(
        self, query: Sql | DataFrame, mode: ExplainMode | str = ExplainMode.PHYSICAL, params: Params | None = None
    ) -> str:
        """How Spark would run a query: its ``logical`` or ``physical`` plan, or the ``stages`` that it consists of.

        Nothing is executed. A statement that is not a query is refused, because Spark would execute it.
        """
        chosen = one_of(ExplainMode, mode, "No explain mode is called")
        from weirflow.spark.frames.explain import explain_text  # noqa: PLC0415 - imports pyspark

        frame = self._planned(query, params)
        return self.operations.run("explain", lambda: explain_text(frame.spark, chosen))

    def stages(self, query: Sql | DataFrame, params: Params | None = None) -> tuple[Stage, ...]:
        """The stages that ``explain(mode="stages")`` prints, as objects."""
        from weirflow.spark.frames.explain import plan_stages  # noqa: PLC0415 - imports pyspark

        frame = self._planned(query, params)
        return self.operations.run("explain", lambda: plan_stages(frame.spark))

    def _planned(self, query: Sql | DataFrame, params: Params | None) -> DataFrame:
        if not isinstance(query, str):
            return query
        return self._sql(query, refuse_commands(query), params)

    @overload
    def flow(self, name: str = "flow", *, partitions: None = None, **options: Any) -> SessionFlow: ...

    @overload
    def flow(self, name: str = "flow", *, partitions: int, **options: Any) -> PartitionedIncrementalFlow: ...

    def flow(
        self, name: Name = "flow", *, partitions: Shards | None = None, **options: Any
    ) -> SessionFlow | PartitionedIncrementalFlow:
        """The incremental flow with this name. It is created if there is none; a durable Session reopens it as it was.

        ``sql`` can read its views as tables. Spark recomputes and compares views without a rule for deltas.

        Args:
            name: the name of the flow, under which a durable Session keeps it.
            partitions: over how many Spark tasks it is spread. None runs it in this process; in a distributed Session,
                it spreads it over as many tasks as Spark runs at a time.
            options: those of ``IncrementalFlow``, or of ``PartitionedIncrementalFlow``.
        """
        return self._flows_sql().flows.open(name, partitions=partitions, options=options)

    def materialized(self, name: Name) -> MaterializedView:
        """The materialized view with this name: refresh it, or ask how fresh it is.

        ``sql("CREATE MATERIALIZED VIEW ...")`` makes one.

        Raises:
            TableNotFound: there is no such table.
            ConfigError: the table is not a materialized view.
        """
        from weirflow.materialized.view import materialized_view  # noqa: PLC0415 - imports the kernel

        return materialized_view(self, name)

    def add_catalog(self, name: Name, address: Annotated[str, NotEmpty()], **options: str) -> None:
        """Add a catalog under a name, as ``CREATE CATALOG`` does; one that does not answer is not added.

        Args:
            name: its name in SQL, such as ``lake`` in ``lake.sales.orders``.
            address: its kind and where it is, such as ``iceberg-rest+https://host/path``; see docs/catalogs.md.
            options: those of its kind (``warehouse``, ``token``, ...), and Iceberg's own with a dot in their names. A
                secret may be given as ``env:VARIABLE``; a durable Session stores the catalog, so it accepts no other
                form.
        """
        self._catalogs.prepare(name, address, options)
        self.operations.run(f"add the catalog {name}", lambda: self._catalogs.add(name, address, options))

    def drop_catalog(self, name: Name) -> None:
        """Forget a catalog that was added; its tables stay."""
        self.operations.run(f"drop the catalog {name}", lambda: self._catalogs.drop(name))

    def catalogs(self) -> tuple[CatalogInfo, ...]:
        """The catalogs that SQL can name, including Spark's own."""
        return self.operations.run("list catalogs", self._catalogs.all)

    def _about_catalogs(self, query: str, params: Params | None) -> pa.Table:
        statement = read_catalog_statement(query, params)
        if isinstance(statement, CreateCatalog) and not (
            statement.if_not_exists and self._catalogs.has(statement.name)
        ):
            self._catalogs.prepare(statement.name, statement.address, statement.options)
        return self.operations.run(described(query), lambda: self._catalogs.run(statement))

    def metrics(self) -> str:
        """What the flows of this process have done and hold, in Prometheus' text format; starts nothing.

        The metrics of a flow with its own registry are there instead.
        """
        from weirflow.observability.metrics import metrics_text  # noqa: PLC0415 - imports an HTTP server

        return metrics_text()

    def query_state(
        self,
        job: Uri,
        operator: Name | Count,
        slot: Name | StateDescriptor,
        key: Any,
        *,
        at: Count | Name | None = None,
    ) -> Any:
        """What a slot of keyed state holds for a key, as last saved: a value or None, a list, or a dict.

        Args:
            job: the place of checkpoints or savepoints of keyed state, or the checkpoint of a Spark query.
            operator: the operator that has the state; for a Spark query the operator's number, 0 for the first.
            slot: its name, to get plain values; or its descriptor, to get values of the declared types, migrated if
                necessary.
            key: a plain value, or a tuple.
            at: the epoch of a checkpoint, the name of a savepoint, or the batch of a Spark query.

        Raises:
            ObjectNotFound: nothing was saved there, or not at that time.
            StateError: there is no such operator, slot or type of key.
        """
        from weirflow.session.query_state import StateQueries  # noqa: PLC0415 - only those who ask need it

        return StateQueries(job, at, self._run).value(operator, slot, key)

    def state_table(
        self,
        job: Uri,
        operator: Name | Count,
        slot: Name | StateDescriptor,
        *,
        at: Count | Name | None = None,
    ) -> DataFrame:
        """A slot of keyed state as a table, as last saved; see ``query_state``.

        Its columns are those of the key, then ``position`` for lists or ``entry`` for maps, and ``value``. This process
        reads the state.
        """
        from weirflow.session.query_state import StateQueries  # noqa: PLC0415 - only those who ask need it

        return self.from_arrow(StateQueries(job, at, self._run).table(operator, slot))

    def describe(self) -> SessionInfo:
        """Where this Session runs and which stores it uses; starts nothing."""
        engine = self._engine
        target = parse_endpoint(self._settings.endpoint).url if self._settings.endpoint else "local"
        return SessionInfo(
            placement=self._settings.placement,
            profile=self._stores.profile,
            spark=f"{engine.version} at {engine.where}" if engine else f"not started, will be at {target}",
            stores=self._stores,
            packages=self._packages,
            catalogs=self._catalogs.infos(),
            shuffle=shuffle_place(self._settings),
        )

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<Session {self._settings.placement} {self._stores.profile} {state}>"

    def _reading(
        self,
        query: str,
        run: Callable[[str], DataFrame],
        *,
        repeats: bool = True,
        sees: Callable[[str], bool] | None = None,
    ) -> DataFrame:
        """Sources and views of flows are tables, too."""
        if not self._has_flows():
            return run(query)
        return self._flows_sql().reading(query, run, repeats=repeats, sees=sees)

    def _has_flows(self) -> bool:
        """Whether flows are open, or kept and not open yet."""
        if self._flow_sql is not None or self._stores.profile is Profile.DISTRIBUTED_DURABLE:
            return True
        path = self._settings.path
        return path is not None and any((path / folder).is_dir() for folder in ("flows", "partitioned"))

    def _shows(self, table: str) -> bool:
        """See ``FlowSession``."""
        return self._flow_sql is not None and self._flow_sql.shows(table)

    def _flows_sql(self) -> FlowSql:
        known = self._flow_sql
        if known is not None and not self._closed:  # while Spark starts, somebody holds the lock for long
            return known
        with self._lock:
            if self._closed:
                raise SessionClosed("This Session is closed.", hint="open another one")
            if self._flow_sql is None:
                from weirflow.flows.sql.front import FlowSql  # noqa: PLC0415 - imports the kernel

                self._flow_sql = FlowSql(self)
            return self._flow_sql


def _spark_params(params: Params | None) -> dict[str, Any] | list[Any] | None:
    if params is None:
        return None
    return dict(params) if hasattr(params, "keys") else list(params)


def _shorten(query: str) -> str:
    is_secretive = kind_of(query).about is About.CATALOGS
    line = described(query) if is_secretive else " ".join(query.split())
    return line if len(line) <= _DESCRIPTION_LENGTH else line[: _DESCRIPTION_LENGTH - 1] + "…"
