"""Statements about flows: what is read from their text, what is left to Spark, what is refused and where."""

import datetime as dt
from decimal import Decimal

import pytest

from weirflow.errors import SqlPosition, SqlSyntaxError, UnsupportedError
from weirflow.ivm.compiler.view import Mode
from weirflow.sql.statements.changes import (
    Assignment,
    Delete,
    Insert,
    Merge,
    MergeClause,
    MergeDelete,
    MergeInsert,
    MergeUpdate,
    Target,
    Update,
    When,
)
from weirflow.sql.statements.composed import ComposedSql, Fragment
from weirflow.sql.statements.flows import (
    MODES,
    CreateFlow,
    CreateSource,
    CreateView,
    Describe,
    Drop,
    Explain,
    Kind,
    Refresh,
    Show,
    read_statement,
)
from weirflow.sql.statements.kinds import About, kind_of, split_statements
from weirflow.sql.statements.parameters import with_literals
from weirflow.sql.statements.relation_name import RelationName
from weirflow.sql.typing.type_syntax import parse_ddl

T = RelationName(None, "t")


def part(sql, text):
    return Fragment(text, sql.index(text))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE FLOW shop", CreateFlow("shop")),
        ("create flow if not exists `my shop` with (partitions = 8)", CreateFlow("my shop", 8, if_not_exists=True)),
        ("CREATE SOURCE t (a INT)", CreateSource(T, parse_ddl("a INT"))),
        ("CREATE SOURCE t (a INT) WITH (spread = 'evenly')", CreateSource(T, parse_ddl("a INT"), spread="evenly")),
        (
            "CREATE SOURCE t (a INT) WITH (dedup = 'content')",
            CreateSource(T, parse_ddl("a INT"), dedup="content"),
        ),
        (
            "create source if not exists f.`t` (a INT NOT NULL, b MAP<STRING, INT>, primary key (A)) with (dedup=3);",
            CreateSource(
                RelationName("f", "t"),
                parse_ddl("a INT NOT NULL, b MAP<STRING, INT>"),
                ("a",),
                dedup=3,
                if_not_exists=True,
            ),
        ),
        (
            "CREATE SOURCE t (a DECIMAL(9,2) PRIMARY KEY, at DATE) WITH (dedup=true, event_time='at', lateness='1 h')",
            CreateSource(T, parse_ddl("a DECIMAL(9,2), at DATE"), ("a",), 1, ("at", "1 h")),
        ),
        ("DROP SOURCE t", Drop(Kind.SOURCE, T)),
        ("DROP INCREMENTAL VIEW IF EXISTS f.t", Drop(Kind.VIEW, RelationName("f", "t"), if_exists=True)),
        ("SHOW SOURCES", Show(Kind.SOURCE)),
        ("SHOW INCREMENTAL VIEWS IN `my flow`", Show(Kind.VIEW, "my flow")),
        ("DESCRIBE t", Describe(None, T)),
        ("DESC SOURCE t", Describe(Kind.SOURCE, T)),
        ("DESC source", Describe(None, RelationName(None, "source"))),
        ("DESCRIBE INCREMENTAL VIEW t", Describe(Kind.VIEW, T)),
        ("REFRESH t", Refresh(None, T)),
        ("/* now */ REFRESH INCREMENTAL VIEW t -- please", Refresh(Kind.VIEW, T)),
        ("EXPLAIN INCREMENTAL t", Explain(T)),
        ("EXPLAIN INCREMENTAL SELECT 1", Explain(Fragment("SELECT 1", 20))),
    ],
)
def test_statements_are_read(sql, expected):
    assert read_statement(sql) == expected
    kind = kind_of(sql)
    assert kind.about is About.FLOWS or kind.target == expected.name


def test_the_query_of_a_view_is_cut_out_as_it_was_written():
    sql = (
        "-- first\nCREATE OR REPLACE INCREMENTAL VIEW t WITH (mode = 'DIFF', materialized = false) AS\nSELECT ';' AS x;"
    )
    query = part(sql, "SELECT ';' AS x")
    assert read_statement(sql) == CreateView(T, query, "diff", materialized=False, replace=True)


def test_modes_are_those_of_views():
    assert set(MODES) == set(Mode)


def test_insert():
    sql = "INSERT INTO TABLE t (a, `b c`) VALUES (1, 2)"
    assert read_statement(sql) == Insert(T, ("a", "b c"), part(sql, "VALUES (1, 2)"))
    sql = "INSERT INTO t (SELECT 1)"
    assert read_statement(sql) == Insert(T, None, part(sql, "(SELECT 1)"))


def test_delete_and_update():
    sql = "DELETE FROM shop.t AS x WHERE x.a IN (SELECT b FROM u WHERE c)"
    target = Target(RelationName("shop", "t"), "x")
    assert read_statement(sql) == Delete(target, part(sql, "x.a IN (SELECT b FROM u WHERE c)"))
    assert read_statement("DELETE FROM t") == Delete(Target(T, "t"), None)
    sql = "UPDATE t x SET x.a = CASE WHEN b THEN 1 END, b = DEFAULT, c = f(1, 2) WHERE a > 1"
    assert read_statement(sql) == Update(
        Target(T, "x"),
        (
            Assignment(part(sql, "x.a"), part(sql, "CASE WHEN b THEN 1 END")),
            Assignment(Fragment("b", sql.index("b = DEFAULT")), None),
            Assignment(Fragment("c", sql.index("c = f")), part(sql, "f(1, 2)")),
        ),
        part(sql, "a > 1"),
    )


def test_merge():
    sql = (
        "MERGE INTO t USING (SELECT 1 AS a) s ON t.a = s.a WHEN MATCHED AND CASE WHEN p THEN q END THEN UPDATE SET "
        "t.a = CASE WHEN y THEN 2 END WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE "
        "WHEN NOT MATCHED AND s.b THEN INSERT (a) VALUES (s.a + 1) WHEN NOT MATCHED BY TARGET THEN INSERT *"
    )
    assert read_statement(sql) == Merge(
        Target(T, "t"),
        part(sql, "(SELECT 1 AS a) s"),
        part(sql, "t.a = s.a"),
        (
            MergeClause(
                When.MATCHED,
                part(sql, "CASE WHEN p THEN q END"),
                MergeUpdate(
                    (Assignment(Fragment("t.a", sql.index("t.a = CASE")), part(sql, "CASE WHEN y THEN 2 END")),)
                ),
            ),
            MergeClause(When.MATCHED, None, MergeDelete()),
            MergeClause(When.NOT_MATCHED_BY_SOURCE, None, MergeDelete()),
            MergeClause(When.NOT_MATCHED, part(sql, "s.b"), MergeInsert(("a",), (part(sql, "s.a + 1"),))),
            MergeClause(When.NOT_MATCHED, None, MergeInsert(None, None)),
        ),
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "CREATE TABLE source (a INT)",
        "CREATE OR REPLACE VIEW incremental AS SELECT 1",
        "SHOW TABLES",
        "SHOW VIEWS",
        "DESCRIBE TABLE t",
        "DESCRIBE EXTENDED t",
        "DESCRIBE QUERY SELECT 1",
        "REFRESH TABLE t",
        "REFRESH '/some/path'",
        "EXPLAIN SELECT 1",
        "DROP TABLE t",
        "DROP VIEW source",
        "",
        "-- nothing",
    ],
)
def test_what_is_sparks_is_left_to_it(sql):
    assert kind_of(sql).about in (About.QUERY, About.SPARK)
    assert kind_of(sql).target is None


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("INSERT INTO t PARTITION (a = 1) SELECT 1", "t"),
        ("INSERT OVERWRITE TABLE a.t SELECT 1", "a.t"),
        ("UPDATE `a b`.t SET x = 1", "a b.t"),
        ("DELETE FROM t", "t"),
        ("MERGE WITH SCHEMA EVOLUTION INTO t USING s ON 1 = 1", "t"),
        ("DESCRIBE t", "t"),
    ],
)
def test_what_a_statement_is_about_is_known_before_it_is_read(sql, name):
    assert str(kind_of(sql).target) == name


@pytest.mark.parametrize(
    ("sql", "message", "position"),
    [
        ("CREATE FLOW a.b", "Expected the end", SqlPosition(1, 14, ".")),
        ("CREATE FLOW t WITH (partitions = 0)", "a whole number above 0", SqlPosition(1, 34, "0")),
        ("CREATE FLOW t WITH (partitions = true)", "a whole number above 0", SqlPosition(1, 34, "true")),
        ("CREATE SOURCE t", "Expected (, the statement ends", SqlPosition(1, 16, "")),
        ("CREATE SOURCE t (a STRNG)", "not a Spark type", SqlPosition(1, 20, "STRNG")),
        ("CREATE SOURCE t (a INT, A INT)", "Two columns are called 'A'", SqlPosition(1, 25, "A")),
        ("CREATE SOURCE t (a INT COMMENT 'x')", "Expected )", SqlPosition(1, 24, "COMMENT")),
        ("CREATE SOURCE t (a INT, PRIMARY KEY (b))", "names 'b'", SqlPosition(1, 25, "PRIMARY KEY")),
        (
            "CREATE SOURCE t (a INT) WITH (dedupe = 1)",
            "there are dedup, dimensions, event_time",
            SqlPosition(1, 31, "dedupe"),
        ),
        ("CREATE SOURCE t (a INT) WITH (dedup = 'x')", "true, false, a number or 'content'", SqlPosition(1, 39, "'x'")),
        ("CREATE SOURCE t (a INT) WITH (lateness = '1 day')", "go together", SqlPosition(1, 42, "'1 day'")),
        ("CREATE INCREMENTAL VIEW t\nWITH (mode = 'fast') AS SELECT 1", "No mode", SqlPosition(2, 14, "'fast'")),
        ("CREATE INCREMENTAL VIEW t SELECT 1", "Expected AS", SqlPosition(1, 27, "SELECT")),
        ("CREATE INCREMENTAL VIEW a.b.t AS SELECT 1", "too many parts", SqlPosition(1, 25, "a")),
        ("CREATE INCREMENTAL VIEW t AS", "Expected a query", SqlPosition(1, 29, "")),
        ("DROP SOURCE t CASCADE", "Expected the end", SqlPosition(1, 15, "CASCADE")),
        ("UPDATE t SET a", "Expected =", SqlPosition(1, 15, "")),
        ("UPDATE t SET a == 1", "Expected =, the statement ends", SqlPosition(1, 20, "")),
        ("INSERT INTO t VALUES ('a", "not closed", SqlPosition(1, 23, "'")),
        ("INSERT INTO t SELECT 1 /* a", "not closed", SqlPosition(1, 24, "/*")),
        ("DELETE FROM t WHERE", "Expected a condition", SqlPosition(1, 20, "")),
        ("MERGE INTO t USING s ON t.a = s.a", "Expected WHEN", SqlPosition(1, 34, "")),
        ("MERGE INTO t USING s ON 1 WHEN NOT MATCHED THEN DELETE", "Expected INSERT", SqlPosition(1, 49, "DELETE")),
        (
            "MERGE INTO t USING s ON 1 WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)",
            "1 values for 2 columns",
            SqlPosition(1, 70, "("),
        ),
    ],
)
def test_a_syntax_error_says_where(sql, message, position):
    with pytest.raises(SqlSyntaxError) as caught:
        read_statement(sql)
    assert message in caught.value.message
    assert caught.value.position == position


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT OVERWRITE t SELECT 1",
        "INSERT INTO t PARTITION (a = 1) SELECT 1",
        "INSERT INTO t BY NAME SELECT 1",
        "MERGE WITH SCHEMA EVOLUTION INTO t USING s ON 1 = 1 WHEN MATCHED THEN DELETE",
        "CREATE OR REPLACE SOURCE t (a INT)",
    ],
)
def test_forms_that_sources_do_not_have_are_refused(sql):
    with pytest.raises(UnsupportedError):
        read_statement(sql)


def test_composed_sql_knows_where_its_parts_were():
    statement = "UPDATE t\nSET a = wrong"
    made = ComposedSql(["SELECT 1,\n(", part(statement, "wrong"), ")"]).around("WITH x AS (TABLE y)\n")
    assert made.text == "WITH x AS (TABLE y)\nSELECT 1,\n(wrong)"
    assert made.position_in(statement, SqlPosition(3, 2, "wrong")) == SqlPosition(2, 9, "wrong")
    assert made.position_in(statement, SqlPosition(1, 1, "WITH")) is None
    assert made.position_in(statement, SqlPosition(3, 2, "of another text")) is None
    edited = made.replaced([(0, 4, "with"), (made.text.index("1,"), made.text.index("1,") + 1, "12345")])
    assert edited.text == "with x AS (TABLE y)\nSELECT 12345,\n(wrong)"
    assert edited.position_in(statement, SqlPosition(3, 2, "wrong")) == SqlPosition(2, 9, "wrong")


def test_parameters_become_literals():
    moment = dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    values = [
        None,
        True,
        -3,
        0.1,
        "it's \\ here",
        Decimal("1.50"),
        Decimal("1E+2"),
        moment,
        moment.date(),
        b"\x00",
        [1],
    ]
    assert with_literals("VALUES (" + ", ".join("?" * len(values)) + ", '?')", values).text == (
        "VALUES (NULL, TRUE, (-3), CAST('0.1' AS DOUBLE), 'it\\'s \\\\ here', CAST('1.50' AS DECIMAL(3,2)), "
        "CAST('100' AS DECIMAL(3,0)), TIMESTAMP '2024-02-29 10:30:00+00:00', DATE '2024-02-29', X'00', array(1), '?')"
    )
    assert with_literals("SELECT :a, ':a', :b", {"a": 1}).text == "SELECT 1, ':a', :b"
    with pytest.raises(SqlSyntaxError, match="2 values"):
        with_literals("SELECT ?", [1, 2])
    with pytest.raises(UnsupportedError, match="dict"):
        with_literals("SELECT :a", {"a": {}})


@pytest.mark.parametrize(
    ("sql", "statements"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT ';' AS `;` -- ;\n; SELECT 2 /* ; */;\n;", ["SELECT ';' AS `;` -- ;", "SELECT 2 /* ; */"]),
        ("BEGIN SELECT 1; SELECT 2; END", ["BEGIN SELECT 1; SELECT 2; END"]),
        (" ; -- nothing\n", []),
    ],
)
def test_statements_end_at_semicolons_that_are_code(sql, statements):
    assert [sql[start:end].strip() for start, end in split_statements(sql)] == statements
