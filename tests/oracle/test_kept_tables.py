"""Tables of a durable Session are there again when it is opened after a ``kill -9``, with their rows and properties."""

import os
import signal
import subprocess
import sys

import pytest
from support.shared_session import SETTINGS

from weirflow import Session
from weirflow.errors import AlreadyExists, TableNotFound

STATEMENTS = """
CREATE TABLE plain (id INT COMMENT 'which', name VARCHAR(9) DEFAULT 'none') USING parquet COMMENT 'all of them'
INSERT INTO plain VALUES (1, 'a'), (2, DEFAULT)
CREATE TABLE split (id INT, day DATE) USING json PARTITIONED BY (day) TBLPROPERTIES ('owner of' = 'me')
INSERT INTO split VALUES (1, DATE'2024-01-01'), (2, DATE'2024-01-02')
CREATE TABLE lines (a STRING, b INT) USING csv OPTIONS (header 'true', sep ';')
INSERT INTO lines VALUES ('x;y', 3)
CREATE TABLE selected USING parquet AS SELECT 7L AS n
CREATE TABLE beside (a INT) USING parquet LOCATION '{beside}'
INSERT INTO beside VALUES (5)
CREATE SCHEMA other COMMENT 'another one'
CREATE TABLE other.bucketed (k INT, v STRING) USING parquet CLUSTERED BY (k) SORTED BY (k) INTO 2 BUCKETS
INSERT INTO other.bucketed VALUES (1, 'one')
CREATE TABLE other.grown (a INT) USING parquet
ALTER TABLE other.grown ADD COLUMNS (b STRING COMMENT 'later')
INSERT INTO other.grown VALUES (1, 'b')
ALTER TABLE other.grown RENAME TO other.renamed
ALTER TABLE other.renamed SET TBLPROPERTIES ('k' = 'v')
CREATE VIEW seen (name, n) AS SELECT name, count(*) AS c FROM plain GROUP BY name
CREATE TABLE gone (a INT) USING parquet
DROP TABLE gone
CREATE SCHEMA dropped
CREATE TABLE dropped.t (a INT) USING parquet
DROP SCHEMA dropped CASCADE
"""

CHILD = """
import os, sys
from support.shared_session import SETTINGS
from weirflow import Session
session = Session.single_node(sys.argv[1], **SETTINGS)
for statement in sys.argv[2].strip().splitlines():
    session.sql(statement).collect()
session.sql("SELECT 8L AS n").write.saveAsTable("saved")  # not by SQL
print("done", flush=True)
os.kill(os.getpid(), 9)
"""

ROWS = {
    "plain": [(1, "a"), (2, "none")],
    "split": [(1, "2024-01-01"), (2, "2024-01-02")],
    "lines": [("x;y", 3)],
    "selected": [(7,)],
    "saved": [(8,)],
    "beside": [(5,)],
    "other.bucketed": [(1, "one")],
    "other.renamed": [(1, "b")],
    "seen": [("a", 1), ("none", 1)],
}


@pytest.fixture
def killed(exclusive_spark, tmp_path):
    """The folder of a Session that made tables and was killed."""
    folder = tmp_path / "a session"
    statements = STATEMENTS.format(beside=(tmp_path / "beside").as_posix())
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder), statements],
        capture_output=True, text=True, timeout=300, env=env, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "done\n"), done.stderr
    moved = tmp_path / "moved"  # what is in the Session's folder goes with it
    folder.rename(moved)
    return moved


def rows(session, table):
    return sorted(
        tuple(str(one) if hasattr(one, "year") else one for one in row)
        for row in session.sql(f"TABLE {table}").collect()
    )


def about(session, table):
    return {row[0]: row[1] for row in session.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()}


def test_tables_survive(killed):
    with Session.single_node(killed, **SETTINGS) as session:
        assert {table: rows(session, table) for table in ROWS} == ROWS
        for table in ("gone", "dropped.t", "other.grown"):
            with pytest.raises(TableNotFound):
                session.sql(f"TABLE {table}")
        assert about(session, "plain")["Comment"] == "all of them"
        assert about(session, "other.renamed")["Table Properties"] == "[k=v]"
        assert session.sql("DESCRIBE plain").collect()[0]["comment"] == "which"
        assert session.sql("DESCRIBE SCHEMA other").collect()[2][1] == "another one"
        # They are tables like any other.
        with pytest.raises(AlreadyExists):
            session.sql("CREATE TABLE plain (a INT) USING parquet")
        for statement in (
            "INSERT INTO plain (id) VALUES (3)",
            "INSERT INTO split VALUES (3, DATE'2024-01-03')",
            "INSERT OVERWRITE split PARTITION (day = DATE'2024-01-01') VALUES (9)",
            "INSERT INTO other.bucketed VALUES (2, 'two')",
            "DROP TABLE selected",
            "CREATE TABLE selected (m INT) USING parquet",
        ):
            session.sql(statement).collect()
        assert rows(session, "plain") == [(1, "a"), (2, "none"), (3, "none")]
        assert rows(session, "split") == [(2, "2024-01-02"), (3, "2024-01-03"), (9, "2024-01-01")]
        assert rows(session, "other.bucketed") == [(1, "one"), (2, "two")]
        assert rows(session, "seen") == [("a", 1), ("none", 2)]
        assert rows(session, "selected") == []
