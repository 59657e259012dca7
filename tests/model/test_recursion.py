"""After every tick of random deltas a recursive view equals its fixed point computed the naive way, or DuckDB's."""

import duckdb
import pytest
from support.graphs import EDGES, RandomGraph, fixed_point
from support.maintained import Maintained, duckdb_rows

REACHABLE = """
    WITH RECURSIVE reach AS (
        SELECT src, dst FROM edges
        UNION
        SELECT reach.src, edges.dst FROM reach JOIN edges ON reach.dst = edges.src
    ) SELECT src, dst FROM reach
"""
DISTANCES = """
    WITH RECURSIVE reach AS (
        SELECT dst AS node, 1 AS hops FROM edges WHERE src = 0
        UNION
        SELECT edges.dst, hops + 1 FROM reach JOIN edges ON node = edges.src WHERE hops < 5
    ) SELECT node, hops FROM reach
"""
BOTH_WAYS = """
    WITH RECURSIVE linked AS (
        SELECT src AS node FROM edges WHERE src = 0
        UNION (
            SELECT dst FROM linked JOIN edges ON node = src
            UNION ALL
            SELECT DISTINCT src FROM edges JOIN linked ON node = dst
        )
    ) SELECT node FROM linked
"""
DEAD_ENDS = """
    WITH RECURSIVE reach AS (
        SELECT 0L AS node
        UNION
        SELECT dst FROM reach LEFT JOIN edges ON node = src
    ) SELECT node FROM reach
"""
WALLS = """
    WITH RECURSIVE reach AS (
        SELECT 0L AS node
        UNION
        SELECT dst FROM reach JOIN edges ON node = src
        WHERE NOT EXISTS (SELECT 1 FROM edges loops WHERE loops.src = edges.dst AND loops.dst = edges.dst)
          AND edges.dst NOT IN (SELECT loops.src + 1 FROM edges loops WHERE loops.src = loops.dst)
    ) SELECT node FROM reach
"""
FOUND_IN = """
    WITH RECURSIVE reach AS (
        SELECT src, dst FROM edges WHERE src = 0
        UNION
        SELECT src, dst FROM edges WHERE src IN (SELECT dst FROM reach)
    ) SELECT src, dst FROM reach
"""


def after(edges, node):
    return [dst for src, dst in edges if src == node and node is not None]


def before(edges, node):
    return [src for src, dst in edges if dst == node and node is not None]


def walls(edges):
    loops = {src for src, dst in edges if src == dst}
    closed = loops | {node + 1 for node in loops}
    return fixed_point([(0,)], lambda row: [(dst,) for dst in after(edges, row[0]) if dst not in closed])


REFERENCES = {
    "reachable": (
        REACHABLE,
        lambda edges: fixed_point(edges, lambda row: [(row[0], dst) for dst in after(edges, row[1])]),
    ),
    "distances": (
        DISTANCES,
        lambda edges: fixed_point(
            [(dst, 1) for dst in after(edges, 0)],
            lambda row: [(dst, row[1] + 1) for dst in after(edges, row[0]) if row[1] < 5],
        ),
    ),
    "both_ways": (
        BOTH_WAYS,
        lambda edges: fixed_point(
            [(src,) for src, _ in edges if src == 0],
            lambda row: [(node,) for node in after(edges, row[0]) + before(edges, row[0])],
        ),
    ),
    "dead_ends": (
        DEAD_ENDS,
        lambda edges: fixed_point([(0,)], lambda row: [(dst,) for dst in after(edges, row[0]) or [None]]),
    ),
    "walls": (WALLS, walls),
    "found_in": (
        FOUND_IN,
        lambda edges: fixed_point(
            [edge for edge in edges if edge[0] == 0],
            lambda row: [edge for edge in edges if edge[0] == row[1] and row[1] is not None],
        ),
    ),
}
VIEWS = {name: sql for name, (sql, _) in REFERENCES.items()}


@pytest.mark.parametrize("nodes", [5, 12])
@pytest.mark.parametrize("seed", range(4))
def test_fixed_points_over_cycles_equal_the_naive_ones_after_every_tick(seed, nodes):
    graph = RandomGraph(seed, nodes)
    views = Maintained(EDGES, VIEWS)
    for tick in range(15):
        views.tick(graph.changes(most=5))
        for name, (_, reference) in REFERENCES.items():
            assert views.views[name] == reference(graph.edges), (tick, name)


PATHS = """
    WITH RECURSIVE walks AS (
        SELECT src, dst, 1 AS hops FROM edges
        UNION ALL
        SELECT walks.src, edges.dst, hops + 1 FROM walks JOIN edges ON walks.dst = edges.src
    )
"""
UNION_ALL = {
    "paths": PATHS + "SELECT src, dst, hops FROM walks",
    "filtered": PATHS + "SELECT src, dst FROM walks WHERE hops > 1 AND src < 3",
    "counted": PATHS + "SELECT src, COUNT(*) AS n, MAX(hops) AS longest FROM walks GROUP BY src",
    "joined": PATHS + "SELECT p.src, p.dst, e.dst AS next FROM walks p JOIN edges e ON p.dst = e.src",
    "with_itself": PATHS + "SELECT p.src, q.dst FROM walks p JOIN walks q ON p.dst = q.src AND p.hops = q.hops",
    "padded": """
        WITH RECURSIVE r AS (
            SELECT 0 AS node UNION ALL SELECT CAST(dst AS INT) FROM r LEFT JOIN edges ON node = src
            WHERE node IS NOT NULL
        ) SELECT node FROM r
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
            UNION ALL (SELECT src, dst FROM edges WHERE src IN (SELECT dst FROM r))
        ) SELECT src, dst FROM r
    """,
    "alone": """
        WITH RECURSIVE r AS (
            SELECT src AS node, 0 AS hops FROM edges
            UNION ALL (
                SELECT dst, hops + 1 FROM r JOIN edges ON node = src
                WHERE NOT EXISTS (SELECT 1 FROM r other WHERE other.node < r.node)
            )
        ) SELECT node, hops FROM r
    """,
    "several_parts": """
        WITH RECURSIVE r AS (
            SELECT src AS node, 0 AS hops FROM edges
            UNION ALL (
                SELECT dst, hops + 1 FROM r JOIN edges ON node = src
                UNION ALL
                SELECT node + 100, hops + 10 FROM r WHERE node < 2
            )
        ) SELECT node, hops FROM r
    """,
    "doubled": """
        WITH RECURSIVE r AS (
            SELECT src, dst FROM edges
            UNION ALL (SELECT a.src, b.dst FROM r a JOIN r b ON a.dst = b.src)
        ) SELECT src, dst FROM r
    """,
    "on_view": "SELECT src, COUNT(*) AS n FROM paths GROUP BY src",
    "recursion_on_view": """
        WITH RECURSIVE r AS (
            SELECT src, dst FROM paths WHERE hops = 2
            UNION ALL
            SELECT r.src, p.dst FROM r JOIN paths p ON r.dst = p.src AND p.hops = 2
        ) SELECT src, dst FROM r
    """,
    "two": """
        WITH RECURSIVE up AS (
            SELECT src AS node FROM edges WHERE dst = 6 UNION ALL SELECT src FROM up JOIN edges ON node = dst
        ), down AS (
            SELECT dst AS node FROM edges WHERE src = 0 UNION ALL SELECT dst FROM down JOIN edges ON node = src
        ) SELECT up.node FROM up JOIN down ON up.node = down.node
    """,
    "recursion_on_recursion": """
        WITH RECURSIVE down AS (
            SELECT dst AS node FROM edges WHERE src = 0 UNION ALL SELECT dst FROM down JOIN edges ON node = src
        ), counting AS (
            SELECT node, 0 AS n FROM down UNION ALL SELECT node, n + 1 FROM counting WHERE n < node
        ) SELECT node, n FROM counting
    """,
}


@pytest.mark.parametrize("seed", range(3))
def test_union_all_over_acyclic_edges_equals_duckdb_after_every_tick(seed):
    graph = RandomGraph(seed, 7, acyclic=True)
    views = Maintained(EDGES, UNION_ALL)
    for tick in range(8):
        views.tick(graph.changes(most=4))
        with duckdb.connect() as connection:
            connection.register("edge_rows", views.table("edges"))
            connection.execute("CREATE TABLE edges AS SELECT * FROM edge_rows")
            connection.execute(f"CREATE VIEW paths AS {UNION_ALL['paths']}")
            for name, sql in UNION_ALL.items():
                assert views.views[name] == duckdb_rows(connection, sql), (tick, name)
