"""Whose a statement is: a query, about flows, about what its target is, or Spark's own."""

import pytest
from support.statement_catalogue import CATALOGS, FLOWS, QUERIES, SPARKS, TARGETS

from weirflow.errors import UnsupportedError
from weirflow.sql.statements.kinds import About, is_values, kind_of, refuse_commands, split_statements
from weirflow.sql.statements.lexer import Lexer


@pytest.mark.parametrize("sql", QUERIES)
def test_a_query_can_only_read(sql):
    kind = kind_of(sql)
    assert (kind.about, kind.target, kind.reads_tables) == (About.QUERY, None, True)
    refuse_commands(sql)


@pytest.mark.parametrize("sql", FLOWS)
def test_some_words_are_about_flows_for_certain(sql):
    assert (kind_of(sql).about, kind_of(sql).target) == (About.FLOWS, None)


@pytest.mark.parametrize("sql", CATALOGS)
def test_some_words_are_about_catalogs(sql):
    assert (kind_of(sql).about, kind_of(sql).target, kind_of(sql).reads_tables) == (About.CATALOGS, None, False)


@pytest.mark.parametrize(("sql", "target"), TARGETS)
def test_others_are_about_flows_if_their_target_is(sql, target):
    assert (kind_of(sql).about, str(kind_of(sql).target)) == (About.TARGET, target)


@pytest.mark.parametrize("sql", SPARKS)
def test_all_others_are_sparks(sql):
    assert (kind_of(sql).about, kind_of(sql).target) == (About.SPARK, None)


@pytest.mark.parametrize("sql", [*FLOWS, *CATALOGS, *(sql for sql, _ in TARGETS), *SPARKS])
def test_what_may_change_something_is_not_explained(sql):
    with pytest.raises(UnsupportedError, match="Only queries can be explained"):
        refuse_commands(sql)


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("CREATE TABLE a AS SELECT 1", True),
        ("cache table a AS SELECT 1", True),
        ("(REPLACE TABLE a AS SELECT 1)", True),
        ("EXPLAIN SELECT 1", True),
        ("DESC t", True),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT 1", True),
        ("SET a = 1", False),
        ("SHOW TABLES", False),
        ("DROP TABLE a", False),
        ("REFRESH a", False),
        ("SELECTED 1", False),
        ("'SELECT'", False),
    ],
)
def test_commands_may_have_queries_in_them(sql, reads):
    assert kind_of(sql).reads_tables is reads


def test_a_list_of_values_is_known_by_its_first_word():
    assert [is_values(sql) for sql in ("VALUES 1", " ( /* x */ values (1))", "SELECT VALUES", "`VALUES` 1")] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("sql", "statements"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("A; B ;", ["A", " B "]),
        (";; -- x\n ; A", [" A"]),
        ("A ';' \";\" `;` -- ;\n /* ; /* ; */ ; */ ; B", ["A ';' \";\" `;` -- ;\n /* ; /* ; */ ; */ ", " B"]),
        ("A; 'b; c", ["A", " 'b; c"]),
        ("begin A; B; END; C", ["begin A; B; END; C"]),
        ("-- nothing;", []),
    ],
)
def test_statements_are_split_at_semicolons(sql, statements):
    assert [sql[start:end] for start, end in split_statements(sql)] == statements


def test_no_more_is_read_than_is_asked_for(monkeypatch):
    read = []
    plain = Lexer._look
    monkeypatch.setattr(Lexer, "_look", lambda self, count: (read.append(count), plain(self, count))[1])
    assert kind_of(f"SELECT {', '.join('abcdefgh')} FROM t").about is About.QUERY
    assert len(read) < 5
