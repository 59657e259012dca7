"""``Tables``: what a Session reads and registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weirflow.arguments import Name, Place, checked, runs_later, shown
from weirflow.errors import ConfigError, TableNotFound, did_you_mean
from weirflow.session.core import SessionCore
from weirflow.spark.frames.source_options import require_known_options
from weirflow.sql.quoting import quoted

if TYPE_CHECKING:
    from weirflow.flows.functions import SessionFunctions
    from weirflow.spark.frames.frame import DataFrame
    from weirflow.spark.streaming.read import StreamRead
    from weirflow.streaming.frame import StreamingDataFrame

    Paths = Place | Sequence[Place]
    Params = Mapping[str, Any] | Sequence[Any]

_VIEWS = frozenset({"TEMPORARY", "VIEW"})


@checked
class Tables(SessionCore):
    """Files and data as frames, and the names they have in SQL."""

    def read_parquet(self, path: Paths, **options: Any) -> DataFrame:
        """Read Parquet files; ``options`` are those of PySpark's reader."""
        return self._read("parquet", path, options)

    def read_csv(self, path: Paths, *, header: bool = True, infer_schema: bool = True, **options: Any) -> DataFrame:
        """Read CSV files; by default with a header line, and with types inferred from the data.

        Pass ``schema="a int, b string"`` to set the types instead.
        """
        infer = infer_schema and "schema" not in options
        return self._read("csv", path, {"header": header, "inferSchema": infer, **options})

    def read_json(self, path: Paths, **options: Any) -> DataFrame:
        """Read JSON-lines files; ``options`` are those of PySpark's reader."""
        return self._read("json", path, options)

    def read_stream(
        self,
        format: Name | None = None,  # noqa: A002 - PySpark's own name for it
        path: Paths | None = None,
        *,
        table: Name | None = None,
        schema: Any = None,
        **options: Any,
    ) -> StreamingDataFrame:
        """Read a source as a stream: files, a table, or any of Spark's sources (``kafka``, ``rate``, ...).

        Args:
            format: the source; for a table it may be left out.
            path: folders in which files arrive, or files.
            table: the name of a table, in place of a path.
            schema: the columns, such as ``"a INT, b STRING"``; for files, by default inferred from the existing ones.
            options: the source's options; pass those with dots as ``**{"kafka.bootstrap.servers": ...}``.
        """
        from weirflow.spark.streaming.read import StreamRead  # noqa: PLC0415 - beside what imports pyspark

        if (format is None) == (table is None):
            raise ConfigError(
                "A stream is read from a source or from a table.", hint="give a format such as 'kafka', or table="
            )
        require_known_options(format, options)
        named = None if table is None else _quoted(table)
        read = StreamRead(format, () if path is None else _paths(path), named, schema, options)
        spark = self.spark
        return self.streams.frame(self.operations.run(f"read a stream of {table or format}", lambda: read.open(spark)))

    def read_table(self, name: Name) -> DataFrame:
        """A registered table or view, or one in a catalog, by its name."""

        def read(_: str) -> DataFrame:
            from weirflow.spark.streaming.read import StreamRead  # noqa: PLC0415 - beside what imports pyspark

            return self._remembering(
                f"read {name}", lambda spark: spark.table(_quoted(name)), StreamRead(table=_quoted(name))
            )

        return self._reading(name, read)

    table = read_table

    def register(self, name: Name, data: Any) -> DataFrame:
        """Make data available to SQL under ``name``, replacing what had the name, and return it as a frame.

        Args:
            name: any name; a dot separates schema and table, unless the name is quoted with backticks as in SQL.
            data: an Arrow, pandas or Polars table, anything with the Arrow PyCapsule interface, a list of dicts,
                or a Spark frame.
        """
        frame = data if self._is_frame(data) else self.from_arrow(data)
        frame.createOrReplaceTempView(_quoted(name))
        return self.read_table(name)

    def from_arrow(self, data: Any) -> DataFrame:
        """Tabular Python data as a frame, without giving it a name; see ``register`` for the accepted kinds."""
        if self._is_frame(data):
            return self._frame("frame", lambda _: data)
        from weirflow.spark.frames.arrow import arrow_frame  # noqa: PLC0415 - imports pyspark

        return self._frame("from_arrow", lambda spark: arrow_frame(spark, data))

    def tables(self) -> list[str]:
        """The names SQL can use without qualification: registered ones and tables of the current schema."""
        return self.operations.run("list tables", self._table_names)

    def drop(self, name: Name) -> None:
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

    def udf(
        self,
        name: Name | None,
        function: Callable[..., Any] | str,
        returns: Any = "string",
        *,
        deterministic: bool = False,
        version: Name = "1",
    ) -> Callable[..., Any]:
        """Register a function for SQL and views under ``name`` and return it for use on columns.

        A view that calls the function is maintained by deltas if the function is declared ``deterministic``, and
        recomputed otherwise. For the rows that change, a Python function of plain values runs in this process, and
        others run in Spark. Views store the name and the version, so register the function before you open a durable
        flow again.

        Args:
            name: its name in SQL; an existing function with that name is replaced. None gives it no name: only frames
                can call it, by what is returned, but not views of durable flows.
            function: a Python function, what PySpark's ``udf``, ``pandas_udf`` or ``arrow_udf`` returned, or the name
                of a Java class.
            returns: the Spark type of its result, such as ``"int"``; a function that is a PySpark UDF already brings
                its own.
            deterministic: your promise that it returns the same value for the same arguments, at any time and in any
                process.
            version: change it when the function returns something else for the same arguments. A view uses the version
                that it was made with until you replace the view.
        """
        is_udf = hasattr(function, "evalType")
        if not is_udf and not isinstance(function, str) and runs_later(function):
            raise ConfigError(
                f"udf(): function is {shown(function)}; it must be a function, neither async nor a generator."
            )
        is_type = bool(returns.strip()) if isinstance(returns, str) else hasattr(type(returns), "jsonValue")
        if not is_udf and not is_type:
            raise ConfigError(f"udf(): returns is {shown(returns)}; it must be a type, such as 'int'.")
        functions = self._user_functions
        registered: Callable[..., Any] = self._run(
            f"udf {name or 'without a name'}",
            lambda _: functions.declare(name, function, returns, deterministic=deterministic, version=version),
        )
        return registered

    @property
    def _user_functions(self) -> SessionFunctions:
        """The functions that ``udf`` has registered."""
        with self._lock:
            if self._functions is None:
                from weirflow.flows.functions import SessionFunctions  # noqa: PLC0415 - imports the kernel

                self._functions = SessionFunctions(lambda: self.spark)
            return self._functions

    def _read(self, source: str, path: Paths, options: dict[str, Any]) -> DataFrame:
        from weirflow.spark.streaming.read import StreamRead  # noqa: PLC0415 - beside what imports pyspark

        paths = _paths(path)
        schema = options.pop("schema", None)
        require_known_options(source, options)
        return self._remembering(
            f"read {source} {paths[0]}",
            lambda spark: spark.read.load(list(paths), format=source, schema=schema, **options),
            StreamRead(source, paths, None, schema, options),
        )

    def _remembering(self, description: str, make: Callable[[Any], Any], read: StreamRead) -> DataFrame:
        """A frame that knows what it was read from."""
        native = self._run(description, make)
        from weirflow.spark.frames.frame import DataFrame  # noqa: PLC0415 - imports pyspark

        return DataFrame.of_read(native, self.operations, read)

    def _is_frame(self, data: Any) -> bool:
        self._started()  # a frame implies Spark, and the module below needs pyspark
        from weirflow.spark.frames.frame import is_frame  # noqa: PLC0415 - imports pyspark

        return is_frame(data)


def _paths(path: Paths) -> tuple[str, ...]:
    paths = (str(path),) if isinstance(path, str) or hasattr(path, "__fspath__") else tuple(str(part) for part in path)
    if not paths:
        raise ConfigError("No path is given to read from.")
    return paths


def _quoted(name: str) -> str:
    """A name as SQL reads it whatever characters it has; one with backticks is taken to be quoted already."""
    parts = name.split(".")
    # What names nothing is for Spark to refuse.
    return name if "`" in name or not all(parts) else ".".join(quoted(part) for part in parts)
