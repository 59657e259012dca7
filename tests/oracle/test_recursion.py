"""After every tick a recursive view equals what Spark SQL returns for it, types included; Spark's limits are ours."""

from collections import Counter

import pyarrow as pa
import pytest
from support.graphs import EDGES, RandomGraph
from support.maintained import Maintained, comparable

from weirflow.errors import DataError, QueryError
from weirflow.sql.bind.query import bind_query
from weirflow.sql.plan import Field

WALKS = """
    WITH RECURSIVE walks AS (
        SELECT src, dst, 1L AS hops, CAST(dst AS STRING) AS path FROM edges
        UNION ALL
        SELECT walks.src, edges.dst, CAST(hops AS INT) + 1, concat(path, '/', edges.dst)
        FROM walks JOIN edges ON walks.dst = edges.src
    )
"""
VIEWS = {
    "walked": WALKS + "SELECT src, dst, hops, path FROM walks",
    "counted": WALKS + "SELECT src, COUNT(*) AS n, MAX(hops) AS longest FROM walks WHERE hops > 1 GROUP BY src",
    "joined": WALKS + "SELECT w.src, e.dst FROM walks w JOIN edges e ON w.dst = e.src WHERE w.hops > 1",
    "padded": """
        WITH RECURSIVE r AS (
            SELECT 0L AS node, CAST(1 AS DECIMAL(5,2)) AS share
            UNION ALL
            SELECT dst, CAST(share / 2 AS DECIMAL(5,2)) FROM r LEFT JOIN edges ON node = src WHERE node IS NOT NULL
        ) SELECT node, share FROM r
    """,
    "semi_joined": """
        WITH RECURSIVE r AS ((
            SELECT 0L AS node, 'root' AS name
            UNION ALL
            SELECT node + 1, NULL FROM r LEFT SEMI JOIN edges ON node = src WHERE node < 9
        )) SELECT node, name FROM r
    """,
    "distinct_step": """
        WITH RECURSIVE r AS (
            SELECT src AS node, 0 AS hops FROM edges
            UNION ALL (SELECT DISTINCT dst, hops + 1 FROM r JOIN edges ON node = src)
        ) SELECT node, hops FROM r
    """,
    "found_in": """
        WITH RECURSIVE r AS (
            SELECT src, dst FROM edges WHERE src = 0
            UNION ALL
            SELECT src, dst FROM edges WHERE src IN (SELECT dst FROM r)
        ) SELECT src, dst FROM r
    """,
    "with_itself": """
        WITH RECURSIVE r AS (
            SELECT src, dst FROM edges UNION ALL SELECT a.src, b.dst FROM r a JOIN r b ON a.dst = b.src
        ) SELECT src, dst FROM r
    """,
    "exploded": """
        WITH RECURSIVE r AS (
            SELECT src AS node FROM edges
            UNION ALL (SELECT x FROM r LATERAL VIEW explode(array(node + 1, node + 2)) AS x WHERE node BETWEEN 5 AND 6)
        ) SELECT node FROM r
    """,
    "on_recursion": """
        WITH RECURSIVE down AS (
            SELECT dst AS node FROM edges WHERE src = 0 UNION ALL SELECT dst FROM down JOIN edges ON node = src
        ), counting AS (
            SELECT node, 0 AS n FROM down UNION ALL SELECT node, n + 1 FROM counting WHERE n < node
        ) SELECT node, n FROM counting
    """,
}
STEP = "WITH RECURSIVE r AS (SELECT src, dst FROM edges UNION ALL {}) SELECT src FROM r"
REFUSED = [
    STEP.format("SELECT max(src), max(dst) FROM r"),
    STEP.format("SELECT src, row_number() OVER (ORDER BY dst) FROM r"),
    STEP.format("SELECT e.src, e.dst FROM edges e LEFT JOIN r ON r.src = e.dst"),
    STEP.format("SELECT e.src, e.dst FROM r RIGHT JOIN edges e ON r.src = e.dst"),
    STEP.format("SELECT e.src, e.dst FROM r FULL JOIN edges e ON r.src = e.dst"),
    STEP.format("SELECT e.src, e.dst FROM edges e LEFT SEMI JOIN r ON r.src = e.dst"),
    STEP.format("SELECT e.src, e.dst FROM edges e LEFT ANTI JOIN r ON r.src = e.dst"),
    STEP.format("SELECT src, dst FROM edges WHERE src = (SELECT max(dst) FROM r)"),
    STEP.format("SELECT src, dst FROM r LIMIT 1"),
    STEP.format("SELECT src, dst FROM r UNION ALL SELECT src, dst FROM r"),
    STEP.format("SELECT src, dst + 0.5D FROM r"),
    STEP.format("SELECT src, true FROM r"),
]


def spark_result(session, sql):
    table = session.sql(sql).to_arrow()
    rows = zip(*([comparable(value) for value in column.to_pylist()] for column in table.columns), strict=True)
    return Counter(rows), table.schema.types


def test_recursive_views_equal_spark_after_ticks(session):
    graph = RandomGraph(3, 6, acyclic=True)
    views = Maintained(EDGES, VIEWS)
    for _ in range(8):
        views.tick(graph.changes(most=5))
    session.register("edges", views.table("edges"))
    for name, sql in VIEWS.items():
        rows, types = spark_result(session, sql)
        assert rows, name
        assert views.views[name] == rows, name
        assert views.schemas[name].types == types, name


@pytest.mark.parametrize("sql", REFUSED)
def test_what_spark_refuses_is_refused(session, sql):
    schema = EDGES["edges"]
    session.register("edges", pa.Table.from_batches([], schema))
    with pytest.raises(QueryError):
        session.sql(sql).to_arrow()
    with pytest.raises(QueryError) as raised:
        bind_query(sql, {"edges": tuple(Field(field.name, field.type) for field in schema)})
    assert raised.value.code != "NOT_INCREMENTAL"


LEVELS = "WITH RECURSIVE r AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM r WHERE n < {}) SELECT COUNT(*) AS n FROM r"
ROWS = """
    WITH RECURSIVE r AS (
        SELECT n, 0 AS level FROM numbers
        UNION ALL
        SELECT other.n, level + 1 FROM r JOIN numbers other ON level = 0 AND {}
    ) SELECT COUNT(*) AS n FROM r
"""
NUMBERS = pa.schema([("n", pa.int64())])


def numbered(sql):
    views = Maintained({"numbers": NUMBERS}, {"view": sql})
    views.tick({"numbers": [((n,), 1) for n in range(1000)]})
    return views.views["view"]


@pytest.mark.parametrize(
    ("sql", "count"), [(LEVELS.format(99), 100), (ROWS.format("r.n < 999 AND r.n + other.n > 0"), 999_999)]
)
def test_what_is_within_the_limits_of_spark_is_within_ours(session, sql, count):
    session.register("numbers", pa.table({"n": range(1000)}, NUMBERS))
    assert numbered(sql) == Counter({(count,): 1}) == spark_result(session, sql)[0]


@pytest.mark.parametrize("sql", [LEVELS.format(100), ROWS.format("r.n < 999")])
def test_what_is_beyond_the_limits_of_spark_is_beyond_ours(session, sql):
    session.register("numbers", pa.table({"n": range(1000)}, NUMBERS))
    with pytest.raises(QueryError) as theirs:
        session.sql(sql).to_arrow()
    with pytest.raises(DataError) as ours:
        numbered(sql)
    assert ours.value.condition == theirs.value.condition
