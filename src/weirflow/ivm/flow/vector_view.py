"""Vector views: the nearest documents to standing queries, as users declare them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated

from weirflow.arguments import AtLeast, AtMost, MoreThan, Name, NotEmpty, Sql, checked
from weirflow.errors import ColumnNotFound, ConfigError, NotIncremental, QueryError, SqlTypeError, did_you_mean
from weirflow.ivm.compiler.view import FRAME, Mode, View
from weirflow.sql.functions.vectors import DISTANCE, is_vector
from weirflow.sql.quoting import quoted
from weirflow.sql.types import FLOAT, INT, type_name
from weirflow.types import VectorIndexKind, VectorMetric, one_of

if TYPE_CHECKING:
    import pyarrow as pa

    from weirflow.sql.plan import Plan, VectorIndex
    from weirflow.sql.settings import SqlSettings

_AtLeastOne = Annotated[int, AtLeast(1), AtMost(2**31 - 1)]
_Size = Annotated[int, AtLeast(1), AtMost(10**6)]
_Share = Annotated[float, MoreThan(0), AtMost(1)]


@checked
@dataclass(frozen=True)
class IvfIndex:
    """An index of lists of vectors around centres; the nearest lists are searched (faiss).

    Attributes:
        lists: how many; None for about 4 times the square root of the number of documents.
        probes: how many lists are searched for a query; None for as many as ``recall`` needs.
        recall: the share of the nearest documents that must be found.
        sample: after how many ticks the recall of one query is measured against an exact search.
    """

    lists: _Size | None = None
    probes: _Size | None = None
    recall: _Share = 0.95
    sample: _AtLeastOne = 8

    kind = VectorIndexKind.IVF


@checked
@dataclass(frozen=True)
class HnswIndex:
    """An index that follows a graph of near vectors (usearch).

    Attributes:
        connectivity: how many neighbours a vector has in the graph.
        expansion_add: how many candidates are examined to find these neighbours.
        expansion_search: how many candidates are examined for a query; None for as many as ``recall`` needs.
        recall: as of ``IvfIndex``.
        sample: as of ``IvfIndex``.
    """

    connectivity: _Size = 16
    expansion_add: _Size = 128
    expansion_search: _Size | None = None
    recall: _Share = 0.95
    sample: _AtLeastOne = 8

    kind = VectorIndexKind.HNSW


_INDEXES = {VectorIndexKind.IVF: IvfIndex, VectorIndexKind.HNSW: HnswIndex}


@checked
@dataclass(frozen=True)
class VectorViewSpec:
    """The ``k`` documents nearest to each standing query.

    The view has the columns of the query, each with ``query_`` before its name, the columns of the document,
    ``distance``, and ``rank``, which begins at 1. Vectors are left out. Documents without a distance come last.

    >>> spec = VectorViewSpec("docs", "embedding", k=10, metric="cosine", queries="questions", filter="lang = 'en'")
    >>> spec.index is None
    True

    Attributes:
        source: the source or view of the documents.
        column: their vectors, of type ARRAY<FLOAT> or ARRAY<DOUBLE>.
        k: how many documents are listed for each query.
        metric: ``cosine``, ``l2`` or ``inner``; the smaller a distance, the nearer.
        queries: the source or view of the queries; each row is one query.
        query_column: their vectors; None for a column of the same name as the documents'.
        query: instead of ``queries``, the vector of a single query.
        filter: which documents are searched: an SQL condition over their columns.
        payload: the columns of documents that the view has; None for all but the vector.
        key: columns that decide between documents at the same distance; None for the key of the source, or the payload.
        dimension: the dimension of all vectors: a tick with a vector of another dimension fails. If None, vectors of
            another dimension than the query's have no distance.
        index: None for exact results; ``"ivf"``, ``"hnsw"``, or an ``IvfIndex`` or ``HnswIndex``, for approximate ones.
    """

    source: Name
    column: Name
    k: _AtLeastOne
    metric: VectorMetric | str = VectorMetric.COSINE
    queries: Name | None = None
    query_column: Name | None = None
    query: Sequence[float] | None = None
    filter: Annotated[Sql, NotEmpty()] | None = None
    payload: Annotated[Sequence[Name], NotEmpty()] | None = None
    key: Sequence[Name] | None = None
    dimension: _Size | None = None
    index: IvfIndex | HnswIndex | VectorIndexKind | str | None = None

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        metric = one_of(VectorMetric, self.metric, "There is no metric")
        object.__setattr__(self, "metric", metric)
        if (self.queries is None) == (self.query is None):
            raise ConfigError(
                "VectorViewSpec(): give either queries= (a source or view of queries) or query= (one vector).",
                hint="pass queries='name of a source', or query=[0.1, ...]",
            )
        if self.query is not None:
            _require_numbers(self.query)
        if isinstance(self.index, str):
            kind = one_of(VectorIndexKind, self.index, "There is no index")
            object.__setattr__(self, "index", _INDEXES[kind]())


def _require_numbers(query: Sequence[float]) -> None:
    if not len(query) or any(isinstance(one, bool) or not math.isfinite(one) for one in query):
        raise ConfigError(
            "VectorViewSpec(): query must be a vector of finite numbers.", hint="pass it as a list of floats"
        )


def vector_view(
    spec: VectorViewSpec,
    schema: Callable[[str], pa.Schema],
    keys: Mapping[str, Sequence[str]],
    settings: SqlSettings,
    *,
    stored: bool,
) -> View:
    """The view that a spec describes, over relations of these columns and keys.

    Raises:
        ColumnNotFound: a relation has no such column.
        SqlTypeError: a column is no vector.
        ConfigError: the filter is no condition over the columns of the source.
        NotIncremental: the filter has no delta rule.
    """
    # The binder is slow to import, and needed by those who register views.
    from weirflow.sql.bind.query import bind_query  # noqa: PLC0415
    from weirflow.sql.plan import Field  # noqa: PLC0415
    from weirflow.sql.stored import encode_plan  # noqa: PLC0415

    read = {name: schema(name) for name in dict.fromkeys([spec.source, *([spec.queries] if spec.queries else [])])}
    catalog = {name: tuple(Field(one.name, one.type) for one in columns) for name, columns in read.items()}
    if spec.filter is not None:
        _require_filter(spec.filter, spec.source, lambda sql: bind_query(sql, catalog, settings=settings))
    sql = vector_sql(spec, read, keys)
    plan = _completed(bind_query(sql, catalog, settings=settings), spec)
    return View(FRAME + sql, Mode.INCREMENTAL, stored=stored, plan=encode_plan(plan), settings=settings)


def _require_filter(condition: str, source: str, bind: Callable[[str], object]) -> None:
    """Refuse a filter that is not one condition by itself, or reads anything but columns of the source."""
    from weirflow.sql.syntax.condition import require_condition  # noqa: PLC0415 - as above

    try:
        require_condition(condition)
        bind(f"SELECT 1 AS one FROM {quoted(source)} d WHERE ({condition})")  # noqa: S608 - it is one expression
    except NotIncremental:
        raise
    except QueryError as error:
        raise ConfigError(
            f"VectorViewSpec(): filter is not a condition over the columns of {source!r}: {error.message}",
            hint=error.hint or "write one condition in SQL, such as lang = 'en' AND year > 2020",
        ) from None


def vector_sql(spec: VectorViewSpec, read: Mapping[str, pa.Schema], keys: Mapping[str, Sequence[str]]) -> str:
    """The query that a spec stands for, but for the rank."""
    documents = read[spec.source]
    vector = _vector(spec.source, documents, spec.column)
    payload = [_column(spec.source, documents, one) for one in spec.payload or _others(documents, vector)]
    key = [_column(spec.source, documents, one) for one in spec.key or keys.get(spec.source) or payload]
    asked, shown = _queries(spec, read, documents.field(vector).type.value_type)
    listed = ", ".join([*(f"d.{quoted(one)}" for one in payload), _distance(spec, vector) + " AS distance"])
    chosen = f" WHERE ({spec.filter})" if spec.filter is not None else ""
    order = ", ".join(["distance NULLS LAST", *(f"d.{quoted(one)}" for one in key)])
    near = f"SELECT {listed} FROM {quoted(spec.source)} d{chosen} ORDER BY {order} LIMIT {spec.k}"  # noqa: S608 - names are quoted, the filter is SQL
    wanted = ", ".join([*shown, *(f"n.{quoted(one)}" for one in payload), "n.distance"])
    return f"SELECT {wanted} FROM {asked} JOIN LATERAL ({near}) n ON true"  # noqa: S608 - as above


def _distance(spec: VectorViewSpec, vector: str) -> str:
    own = "query" if spec.queries is None else spec.query_column or vector
    return f"{DISTANCE}(q.{quoted(own)}, d.{quoted(vector)}, '{spec.metric}')"


def _queries(spec: VectorViewSpec, read: Mapping[str, pa.Schema], element: pa.DataType) -> tuple[str, list[str]]:
    """Where the queries come from, and what of them is shown."""
    if spec.query is not None:
        numbers = ", ".join(f"{float(one)!r}D" for one in spec.query)
        kind = "FLOAT" if element == FLOAT else "DOUBLE"
        return f"(SELECT CAST(ARRAY({numbers}) AS ARRAY<{kind}>) AS query) q", []
    assert spec.queries is not None, "a spec has one or the other"
    schema = read[spec.queries]
    vector = _vector(spec.queries, schema, spec.query_column or spec.column)
    shown = [f"q.{quoted(one)} AS {quoted('query_' + one)}" for one in _others(schema, vector)]
    return f"{quoted(spec.queries)} q", shown


def _others(schema: pa.Schema, vector: str) -> list[str]:
    return [one for one in schema.names if one != vector]


def _column(relation: str, schema: pa.Schema, name: str) -> str:
    folded = {one.casefold(): one for one in schema.names}
    found = name if name in schema.names else folded.get(name.casefold())
    if found is None:
        raise ColumnNotFound(f"{relation!r} has no column {name!r}.", hint=did_you_mean(name, schema.names))
    return found


def _vector(relation: str, schema: pa.Schema, name: str) -> str:
    found = _column(relation, schema, name)
    kind = schema.field(found).type
    if not is_vector(kind):
        raise SqlTypeError(
            f"The column {found!r} of {relation!r} is {type_name(kind)}, which is not a vector.",
            hint="declare it as ARRAY<FLOAT> or ARRAY<DOUBLE>",
        )
    return found


def _completed(plan: Plan, spec: VectorViewSpec) -> Plan:
    """The plan of the query with the rank, and with what SQL does not say."""
    from weirflow.sql.expr import Column  # noqa: PLC0415 - as above
    from weirflow.sql.plan import Field, Nearest, Project  # noqa: PLC0415 - as above
    from weirflow.sql.traverse import map_plan, nodes  # noqa: PLC0415 - as above

    def complete(node: Plan) -> Plan:
        """Projections above the nearest get the rank as their last column."""
        if isinstance(node, Nearest):
            return replace(node, ranked=True, dimension=spec.dimension, index=_index(spec))
        if isinstance(node, Project) and isinstance(node.input, Project | Nearest) and _is_ranked(node.input):
            rank = Column(len(node.input.fields) - 1, "rank", INT)
            return Project(node.input, (*node.expressions, rank), (*node.fields, Field("rank", INT)))
        return node

    assert any(isinstance(node, Nearest) for node in nodes(plan)), "the filter reads columns of documents alone"
    return map_plan(plan, complete)


def _is_ranked(plan: Plan) -> bool:
    return plan.fields[-1].name in ("rank", "_rank") and plan.fields[-1].type == INT


def _index(spec: VectorViewSpec) -> VectorIndex | None:
    from weirflow.sql.plan import VectorIndex  # noqa: PLC0415 - as above

    if not isinstance(spec.index, IvfIndex | HnswIndex):
        return None
    given = {one.name: getattr(spec.index, one.name) for one in fields(spec.index)}
    given["recall"] = round(1000 * spec.index.recall)  # in thousandths: parameters are whole numbers
    return VectorIndex(spec.index.kind, tuple((name, value) for name, value in given.items() if value is not None))
