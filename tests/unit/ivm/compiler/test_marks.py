"""Marks tell what holds the same rows, however it is planned, and tell apart what does not."""

import pyarrow as pa

from weirflow.ivm.compiler.marks import marks_of
from weirflow.ivm.compiler.program import Program
from weirflow.ivm.compiler.view import View
from weirflow.ivm.operators.aggregate.operator import Aggregate
from weirflow.ivm.operators.arrange import Arrange
from weirflow.ivm.operators.distinct import Distinct

COLUMNS = pa.schema([("k", pa.int64()), ("v", pa.int64())])


def program(*views, everywhere=False, order=()):
    made = Program()
    for name in ("t", "u"):
        made.add_source(name, COLUMNS, everywhere=everywhere, order=order)
    made.add_views({f"view {number}": View(sql) for number, sql in enumerate(views)})
    return made


def held(made):
    """The marks of what has state."""
    return {mark for mark, node in zip(marks_of(made), made.circuit.nodes, strict=True) if node.operator.states}


def test_it_is_no_matter_where_rows_are_and_how_they_meet():
    views = (
        "SELECT t.k, SUM(u.v) AS s FROM t JOIN u ON t.k = u.k GROUP BY t.k",
        "SELECT COUNT(*) AS n FROM t LEFT JOIN u ON t.k = u.k AND t.v < u.v",
        "SELECT v, MAX(s) AS s FROM `view 0` x JOIN t ON x.k = t.k WHERE t.k IN (SELECT k FROM u) GROUP BY v",
        "SELECT COUNT(*) AS n FROM t WHERE k NOT IN (SELECT k FROM u)",
    )
    plain = program(*views)
    assert held(program(*views, everywhere=True)) == held(plain)


def test_joins_make_the_same_of_sources_that_they_read_where_these_keep_their_rows():
    views = ("SELECT t.v, COUNT(*) AS n FROM t JOIN u ON t.k = u.k GROUP BY t.v", "SELECT DISTINCT n FROM `view 0`")
    plain, ordered = program(*views), program(*views, order=(0,))
    assert len(ordered.circuit.nodes) < len(plain.circuit.nodes)
    assert aggregates(ordered) == aggregates(plain)


def aggregates(made):
    found = zip(marks_of(made), made.circuit.nodes, strict=True)
    return [mark for mark, node in found if isinstance(node.operator, Aggregate | Distinct)]


def test_rows_with_and_without_a_match_have_other_marks():
    exists = "EXISTS (SELECT 1 FROM u WHERE u.k = t.k)"
    yes, no = (f"SELECT COUNT(*) AS n FROM t WHERE {word} {exists}" for word in ("", "NOT"))
    assert aggregates(program(yes))[-1] != aggregates(program(no))[-1]


def test_the_sides_of_a_join_have_other_marks():
    one, other = (f"SELECT {side}.v, COUNT(*) AS n FROM t a JOIN t b ON a.k = b.k GROUP BY 1" for side in "ab")
    assert len(set(aggregates(program(one, other)))) == 2


def test_sides_of_a_join_without_rows_that_nothing_meets_are_told_from_those_with_them():
    made = program("SELECT a.v, b.v AS w FROM t a JOIN t b ON a.k = b.k")
    by_key = [
        mark
        for mark, node in zip(marks_of(made), made.circuit.nodes, strict=True)
        if isinstance(node.operator, Arrange) and node.operator.key_count == 1
    ]
    assert len(by_key) == 2
    assert len(set(by_key)) == 2


def test_other_queries_have_other_marks():
    one, other = program("SELECT SUM(v) AS s FROM t"), program("SELECT MAX(v) AS s FROM t")
    assert marks_of(one)[-1] != marks_of(other)[-1]
