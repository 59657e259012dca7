"""An expression is computed for the rows that Spark computes it for, not for those that a condition takes away."""

import random

import duckdb
import pyarrow as pa
import pytest
from support.maintained import Maintained, duckdb_rows

AB = {"ab": pa.schema([("a", pa.int64()), ("b", pa.int64()), ("g", pa.int64())])}
GUARDED = """
SELECT a / b AS r FROM ab WHERE b <> 0
SELECT a FROM ab WHERE b <> 0 AND a / b > 1
SELECT a FROM ab WHERE b = 0 OR a / b > 1
SELECT r FROM (SELECT a / b AS r, b FROM ab) WHERE b <> 0
SELECT r FROM (SELECT a / b AS r, b FROM ab WHERE b <> 0) WHERE r > 1
SELECT x.a / y.b AS r FROM ab x JOIN ab y ON x.g = y.g WHERE y.b <> 0
SELECT x.a / y.b AS r FROM ab x, ab y, ab z WHERE x.g = y.g AND y.g = z.g AND y.b <> 0 AND z.a / y.b > 0
SELECT x.a FROM ab x JOIN ab y ON x.g = y.g AND y.b <> 0 WHERE y.a / y.b > 0
SELECT x.a FROM ab x JOIN ab y ON x.g = y.g AND x.b <> 0 JOIN ab z ON z.g = y.g AND z.a / x.b > 1
SELECT x.a FROM ab x JOIN (SELECT g, b FROM ab WHERE b <> 0) y ON x.a / y.b > 1
SELECT x.a, y.b FROM ab x LEFT JOIN ab y ON x.g = y.g AND y.b <> 0 AND y.a / y.b > 0
SELECT x.a, y.b FROM ab x RIGHT JOIN ab y ON x.g = y.g AND x.b <> 0 AND y.a / x.b > 0
SELECT x.a, y.b FROM ab x FULL JOIN ab y ON x.g = y.g AND x.b <> 0 AND y.a / x.b > 0
SELECT x.a, y.b FROM (SELECT * FROM ab WHERE b <> 0) x LEFT JOIN ab y ON y.a / x.b > 1
SELECT y.g, 10 / y.b AS r FROM ab x LEFT JOIN (SELECT g, b FROM ab WHERE b <> 0) y ON x.g = y.g
SELECT a FROM ab WHERE b <> 0 AND EXISTS (SELECT 1 FROM ab y WHERE y.g = ab.g AND y.a / ab.b > 0)
SELECT a FROM ab WHERE b <> 0 AND a IN (SELECT a FROM ab) AND a / b > 1
SELECT SUM(a / b) AS s FROM ab WHERE b <> 0
SELECT g, MAX(a / b) FILTER (WHERE b <> 0) AS s FROM ab GROUP BY g
SELECT g, COUNT(*) AS n FROM ab GROUP BY g HAVING SUM(b) <> 0 AND SUM(a) / SUM(b) > 0
SELECT g, SUM(a) / SUM(b) AS r FROM ab GROUP BY g HAVING SUM(b) <> 0
SELECT g, 10 / m AS r FROM (SELECT g, MIN(b) AS m FROM ab GROUP BY g) WHERE m > 0
SELECT CASE WHEN b = 0 THEN 7 WHEN a / b > 1 THEN 8 END AS s FROM ab
SELECT COALESCE(a, 1 / b) AS s FROM ab WHERE a IS NOT NULL
SELECT a, ROW_NUMBER() OVER (PARTITION BY g ORDER BY a / b NULLS FIRST, a, b) AS n FROM ab WHERE b <> 0
""".strip().splitlines()
CHAINED = """
SELECT x.g, y.a FROM ab x LEFT JOIN ab y ON x.g = y.g + 1 AND x.a / y.b > 0
SELECT x.g, y.a FROM ab x RIGHT JOIN ab y ON x.g = y.g + 1 AND y.a / x.b > 0
SELECT x.g, y.a FROM ab x FULL JOIN ab y ON x.g = y.g + 1 AND x.a / y.b > 0
SELECT x.g, y.a FROM ab x JOIN ab y ON x.g = y.g + 1 AND x.a / y.b > 0
SELECT x.g FROM ab x WHERE EXISTS (SELECT 1 FROM ab y WHERE x.g = y.g + 1 AND x.a / y.b > 0)
SELECT x.g FROM ab x WHERE NOT EXISTS (SELECT 1 FROM ab y WHERE x.g < y.g AND x.a / y.b > 0)
""".strip().splitlines()


def check(views, sql):
    with duckdb.connect() as connection:
        connection.register("ab", views.table("ab"))
        assert views.views["view"] == duckdb_rows(connection, sql)


@pytest.mark.parametrize("sql", GUARDED)
def test_rows_behind_a_condition(sql):
    dice = random.Random(1)
    views = Maintained(AB, {"view": sql})
    present = []
    for _ in range(6):
        gone = [present.pop(dice.randrange(len(present))) for _ in range(min(3, len(present)))]
        come = [(dice.choice([None, 1, 2, 6]), dice.choice([None, 0, 0, 2, 4]), dice.randrange(2)) for _ in range(5)]
        present += come
        views.tick({"ab": [(row, -1) for row in gone] + [(row, 1) for row in come]})
        check(views, sql)


@pytest.mark.parametrize("sql", CHAINED)
def test_rows_that_are_not_there_at_the_same_time(sql):
    """Each tick replaces the only row: no two rows ever meet, so nothing is divided."""
    dice = random.Random(2)
    views = Maintained(AB, {"view": sql})
    row = (1, 0, 0)
    views.tick({"ab": [(row, 1)]})
    for _ in range(8):
        new = (dice.randrange(3), dice.randrange(2), row[2] + dice.choice([-1, 1]))
        views.tick({"ab": [(new, 1), (row, -1)]})
        row = new
        check(views, sql)
