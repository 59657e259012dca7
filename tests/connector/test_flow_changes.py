"""INSERT, UPDATE, DELETE and MERGE of a source do what Spark does to an Iceberg table."""

import random
from collections import Counter

import pytest
from support.connectors import require_connectors

from weirflow.errors import QueryError

FEW = 6
COLUMNS = "k INT, g STRING, x BIGINT, d DECIMAL(6,2)"
STATEMENTS = [
    "UPDATE {t} SET x = x + {n}, d = x WHERE k % 3 = {m}",
    "UPDATE {t} AS a SET a.g = CASE WHEN a.k > {n} THEN 'big' WHEN a.g IS NULL THEN 'none' END",
    "UPDATE {t} SET x = (SELECT MAX(x) FROM news) WHERE g IN (SELECT g FROM news WHERE k > {m})",
    "UPDATE {t} SET d = x / 3, x = k * 1.6 WHERE x < {n}",
    "UPDATE {t} SET g = soundex(g) WHERE k = {n}",
    "DELETE FROM {t} WHERE x > {n} OR g = 'b'",
    "DELETE FROM {t} WHERE k = {n} AND g IS NOT NULL",
    "DELETE FROM {t} WHERE NOT EXISTS (SELECT 1 FROM news n WHERE n.k >= {m})",
    "INSERT INTO {t} SELECT k + {n}, g, x, d FROM news WHERE k > {m}",
    "INSERT INTO {t} (x, k) VALUES ({n}, {m}), (NULL, 2.7)",
    "MERGE INTO {t} t USING news n ON t.k = n.k WHEN MATCHED THEN UPDATE SET *",
    """
    MERGE INTO {t} t USING (SELECT DISTINCT k, 'n' AS g FROM news) n ON t.k = n.k
    WHEN MATCHED AND t.x > {n} THEN DELETE
    WHEN MATCHED AND t.g = 'a' THEN UPDATE SET x = t.x * 2, g = n.g
    WHEN NOT MATCHED AND n.k > {m} THEN INSERT (k, g, d) VALUES (n.k, n.g, n.k + 0.125)
    """,
    """
    MERGE INTO {t} t USING (SELECT k, MAX(x) AS x, MIN(g) AS g, SUM(d) AS d FROM news GROUP BY k) n
    ON t.k = n.k AND t.g = n.g
    WHEN NOT MATCHED THEN INSERT *
    WHEN NOT MATCHED BY SOURCE AND t.k < {n} THEN DELETE
    WHEN NOT MATCHED BY SOURCE THEN UPDATE SET x = -t.k
    """,
    "MERGE INTO {t} t USING news n ON t.k = n.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
    "MERGE INTO {t} t USING news n ON t.k > n.k AND n.k = {m} WHEN MATCHED AND n.x > 3 THEN UPDATE SET x = n.x",
    "UPDATE {t} SET x = 1 / (k - {m})",
]


@pytest.fixture(autouse=True)
def _connectors():
    require_connectors("iceberg")


def random_rows(chosen):
    columns = (range(6), ("'a'", "'b'", "'c'"), range(9), ("1.5", "2", "-3.25"))
    rows = [f"({', '.join(str(chosen.choice(['NULL', *values])) for values in columns)})" for _ in range(8)]
    return ", ".join([*rows, *rows[:2]])


def outcome(session, statement):
    """The error condition that a statement ends with, or None."""
    try:
        session.sql(statement)
    except QueryError as error:
        return error.condition
    return None


def rows(session, table):
    return Counter(map(repr, session.sql(f"SELECT * FROM {table}").to_arrow().to_pylist()))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.campaign) for seed in range(1, 10))])
def test_changes_are_those_of_spark(session, seed):
    chosen = random.Random(seed)
    table, source = f"iceberg.db.t{seed}", f"mirror.t{seed}"
    session.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg")
    session.sql(f"CREATE SOURCE {source} ({COLUMNS})")
    news = f"VALUES {random_rows(chosen)}"
    session.sql(f"CREATE OR REPLACE TEMP VIEW news AS SELECT * FROM ({news}) AS v(k, g, x, d)")
    refused, held = set(), Counter()
    for statement in chosen.sample(STATEMENTS, len(STATEMENTS)):
        if held.total() < FEW:
            data = random_rows(chosen)
            for name in (table, source):
                session.sql(f"INSERT INTO {name} VALUES {data}")
        written = statement.format(t="{t}", n=chosen.randrange(1, 7), m=chosen.randrange(3))
        expected = outcome(session, written.format(t=table))
        refused.add(expected)
        found = outcome(session, written.format(t=source))
        assert (found is None) == (expected is None), (written, found, expected)
        if expected == "MERGE_CARDINALITY_VIOLATION":
            assert found == expected
        held = rows(session, source)
        assert held == rows(session, table), written
    assert {None, "MERGE_CARDINALITY_VIOLATION"} <= refused
