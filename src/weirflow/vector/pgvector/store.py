"""``PgVectorStore``: the rows of a view in a table of PostgreSQL, with its vectors as pgvector has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, TypeVar

from typing_extensions import override

from weirflow.arguments import AtLeast, AtMost, Hint, Name, Positive, Secret, checked
from weirflow.errors import ConfigError, DependencyMissing, FlowError, did_you_mean
from weirflow.types import VectorMetric, one_of
from weirflow.vector.choices import VectorIndex
from weirflow.vector.pgvector.columns import require_identifier
from weirflow.vector.store import VectorStore

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.vector.pgvector.connection import Connection, PgConnection
    from weirflow.vector.pgvector.table import PgTable
    from weirflow.vector.store import VectorChanges, VectorLayout

Result = TypeVar("Result")

_LONGEST_INDEXED = 2000
_OPTIONS = {
    VectorIndex.NONE: (),
    VectorIndex.HNSW: ("ef_construction", "m"),
    VectorIndex.IVFFLAT: ("lists",),
}


@checked
class PgVectorStore(VectorStore):
    """A PostgreSQL table with a column ``vector(dimension)``; created with its primary key when it is first opened.

    Rows and position are committed together, so that the table has every change of the view exactly once. It does not
    connect before a sink is made. Needs the extra ``postgresql``, and in the database the extension ``vector``.

    >>> store = PgVectorStore("postgresql://ann@db.example/shop", "chunks", dimension=384, index="hnsw")
    >>> store
    <PgVectorStore the table chunks of postgresql://db.example/shop, vector(384), hnsw for cosine>

    Args:
        uri: ``postgresql://user:password@host:port/database``; the password is shown nowhere.
        table: the name of the table, as it is: it may have any characters, and upper and lower case differ.
        dimension: how many numbers a vector has.
        schema: the PostgreSQL schema of the table; None for the first one in the connection's ``search_path``.
        metric: the distance by which the index searches: ``cosine``, ``l2`` or ``inner``.
        index: ``hnsw``, ``ivfflat`` or ``none``. It is built when the table has its first rows.
        index_options: parameters of the index: ``m`` and ``ef_construction`` of hnsw, ``lists`` of ivfflat.

    Raises:
        ConfigError: an argument cannot be used.
        DependencyMissing: PostgreSQL's driver is not installed.
    """

    def __init__(
        self,
        uri: Annotated[str, Secret(), Hint("write postgresql://user:password@host:port/database")],
        table: Name,
        *,
        dimension: Annotated[int, AtLeast(1), AtMost(16_000)],
        schema: Name | None = None,
        metric: VectorMetric | str = VectorMetric.COSINE,
        index: VectorIndex | str = VectorIndex.NONE,
        index_options: Mapping[str, Positive] | None = None,
    ) -> None:
        self._name = require_identifier(table, "a table")
        self._wanted_schema = None if schema is None else require_identifier(schema, "a schema")
        self._dimension = dimension
        self._metric = one_of(VectorMetric, metric, "No metric of vectors is called")
        self._index = one_of(VectorIndex, index, "No index of vectors is called")
        self._options = dict(index_options or {})
        self._require_options()
        if not uri.startswith(("postgresql://", "postgres://")):
            raise ConfigError(
                "The address of a PgVectorStore begins with postgresql://.",
                hint="write postgresql://user:password@host:port/database",
            )
        self._connection = _connection(uri)
        self._owner = ""
        self._table: PgTable | None = None

    @property
    @override
    def dimension(self) -> int:
        return self._dimension

    @override
    def describe(self) -> str:
        indexed = "" if self._index is VectorIndex.NONE else f", {self._index} for {self._metric}"
        return f"the table {self._name} of {self._connection.shown}, vector({self._dimension}){indexed}"

    @override
    def open(self, owner: str, layout: VectorLayout) -> None:
        from weirflow.vector.pgvector.table import PgTable, current_schema, find_extension  # noqa: PLC0415 - an extra

        def prepare(connection: Connection) -> PgTable:
            extension = find_extension(connection, self._connection.shown)
            schema = current_schema(connection, self._wanted_schema)
            table = PgTable(schema, self._name, layout, self._dimension, extension)
            table.prepare(connection)
            return table

        if self._table is not None:
            raise FlowError(
                f"The store is in use by another sink: {self.describe()}.",
                hint="make a store for each view, or close() the other sink first",
            )
        try:
            self._table = self._run("prepare", prepare)
        except BaseException:
            self.close()
            raise
        self._owner = owner

    @override
    def position(self) -> int | None:
        table = self._opened()

        def read(connection: Connection) -> int | None:
            found = table.position(connection, self._owner)
            if found is not None:
                table.index(connection, self._index, self._metric, self._options)
            return found

        return self._run("read the position of", read)

    @override
    def apply(self, after: int, upto: int, changes: VectorChanges) -> None:
        table = self._opened()
        self._run("write to", lambda connection: table.apply(connection, self._owner, after, upto, changes))

    @override
    def backfill(self, epoch: int, rows: pa.Table) -> None:
        table = self._opened()

        def fill(connection: Connection) -> None:
            table.fill(connection, self._owner, epoch, rows)
            table.index(connection, self._index, self._metric, self._options)

        self._run("fill", fill)

    @override
    def close(self) -> None:
        self._table = None
        self._connection.close()

    def __repr__(self) -> str:
        return f"<PgVectorStore {self.describe()}>"

    def _opened(self) -> PgTable:
        if self._table is None:
            raise FlowError(
                "The store was not opened.", hint="make a sink with it: spawn_vector_view(flow, view, store)"
            )
        return self._table

    def _run(self, what: str, work: Callable[[Connection], Result]) -> Result:
        return self._connection.transact(f"{what} the table {self._name}", work)

    def _require_options(self) -> None:
        known = _OPTIONS[self._index]
        for name in self._options:
            if name not in known:
                raise ConfigError(
                    f"The index {self._index} has no option {name!r}.",
                    hint=did_you_mean(name, known) or f"it has {', '.join(known) or 'none'}",
                )
        if self._index is not VectorIndex.NONE and self._dimension > _LONGEST_INDEXED:
            raise ConfigError(
                f"pgvector indexes vectors of at most {_LONGEST_INDEXED} numbers, not of {self._dimension}.",
                hint="use index='none', or shorter vectors",
            )


def _connection(uri: str) -> PgConnection:
    try:
        from weirflow.vector.pgvector.connection import PgConnection  # noqa: PLC0415 - needs an extra
    except ImportError:
        raise DependencyMissing.extra("postgresql", needed_for="A vector store in PostgreSQL") from None  # noqa: S610 - not Django
    return PgConnection(uri)
