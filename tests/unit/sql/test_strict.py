"""Whatever of a query nobody reads is refused, in the words of SQL."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest
from sqlglot import exp
from support import binder_catalogue as catalogue

from weirflow.errors import NotIncremental, QueryError
from weirflow.sql.bind import strict
from weirflow.sql.bind.query import bind_query
from weirflow.sql.bind.strict import check_syntax
from weirflow.sql.plan import Field
from weirflow.sql.syntax.parse import parse_query
from weirflow.sql.syntax.positions import TextPositions

CATALOG = {name: tuple(Field(field.name, field.type) for field in schema) for name, schema in catalogue.SOURCES.items()}
EVERYTHING = """
with x as (select a, b from t) select distinct a, -b as y, cast(a as string), case when p then 1 else 2 end,
count(*) filter (where p) over (partition by a order by b rows 1 preceding), c like 'x' escape '/', m[0], s.x,
a in (1, 2), a between 1 and 2, trim(both 'x' from c), substring(c, 1, 2), position('a' in c), interval '1' day,
(select max(a) from u), extract(year from date '2020-01-01'), not p is null, x'1f', r'a', a || b, (a, b)
from t join u using (a) lateral view explode(m) v as z where exists (select 1) group by grouping sets ((a), ())
having true window w as (order by a) order by a desc nulls last limit 1 offset 1
"""
OWN_WORDS = {"TableSample", "PreWhere", "match_condition"}
"""Which are words of SQL, here or in other databases."""


def names_of(sql: str) -> list[str]:
    return [field.name for field in bind_query(sql, CATALOG).fields]


KINDS = [
    kind
    for kind in vars(exp).values()
    if isinstance(kind, type) and issubclass(kind, exp.Expression) and kind is not exp.Expression
]


def node_names() -> set[str]:
    """Names of the parser's classes and arguments that are no words of SQL or English."""
    classes = {kind.__name__ for kind in KINDS if re.search(r"[a-z][A-Z]", kind.__name__)}
    parts = {part for kind in KINDS for part in kind.arg_types if "_" in part}
    return {name.casefold() for name in (classes | parts) - OWN_WORDS}


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z_]+", text.casefold()))


def refusal(sql: str) -> QueryError | None:
    try:
        bind_query(sql, CATALOG)
    except QueryError as error:
        return error
    return None


def test_a_part_that_no_release_has_had_so_far_is_refused() -> None:
    text = EVERYTHING.replace("\n", " ")
    kinds = {type(node) for node in parse_query(text).walk()}
    assert len(kinds) > 50
    for kind in kinds:
        tree = parse_query(text)
        check_syntax(tree, TextPositions(text, tree))
        next(node for node in tree.walk() if type(node) is kind).args["brand_new"] = exp.true()
        with pytest.raises(NotIncremental, match="is not supported in an incremental view") as raised:
            check_syntax(tree, TextPositions(text, tree))
        assert "brand" not in str(raised.value)


def test_no_message_has_the_names_of_the_parser() -> None:
    foreign = node_names()
    refused = [(sql, error) for _, sql in catalogue.texts() if (error := refusal(sql)) is not None]
    assert len(refused) > 500
    for sql, error in refused:
        assert not (words(error.message) - words(sql)) & foreign, (sql, str(error))
        assert not re.search(r"<class|<Token|sqlglot|TokenType", error.message), (sql, str(error))


def test_no_kind_of_node_is_called_by_its_name() -> None:
    foreign = node_names()
    refused = []
    for kind in KINDS:
        refused.append(strict.refusal(kind(), None))
        for part in kind.arg_types:
            tree = kind(**{part: exp.true()})
            with suppress(QueryError):
                check_syntax(tree, TextPositions("", tree))
                continue
            with pytest.raises(QueryError) as raised:
                check_syntax(tree, TextPositions("", tree))
            refused.append(raised.value)
    assert len(refused) > len(KINDS) + 300
    assert not [error.message for error in refused if words(error.message) & foreign]


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("a || 2 + 3", "(concat(a, 2) + 3)"),
        ("2 + 3 || a", "concat((2 + 3), a)"),
        ("a & b | a ^ b", "((a & b) | (a ^ b))"),
        ("a | b & a ^ b", "(a | ((b & a) ^ b))"),
        ("- a ^ b", "((- a) ^ b)"),
        ("a div b * a", "((a div b) * a)"),
        ("a + 1 << 2 & 3", "(((a + 1) << 2) & 3)"),
        ("NOT a = b", "(NOT (a = b))"),
        ("!p AND q", "((NOT p) AND q)"),
        ("a = b IS NULL", "((a = b) IS NULL)"),
        ("a < b = q", "((a < b) = q)"),
        ("q = p IS NOT DISTINCT FROM p", "((q = p) <=> p)"),
        ("-1::string", "CAST(-1 AS STRING)"),
        ("-a::string", "(- CAST(a AS STRING))"),
        ("NOT p IS NULL", "(NOT (p IS NULL))"),
        ("p IS NOT NULL", "(p IS NOT NULL)"),
        ("p IS DISTINCT FROM q = p", "(NOT (p <=> (q = p)))"),
        ("s.x + t.s.x", "(s.x + s.x)"),
        ("'a''b' 'c'", "a'bc"),
        ("DATE'2024-2-9' + 1", "date_add(DATE '2024-02-09', 1)"),
    ],
)
def test_operators_are_nested_as_in_spark(expression: str, name: str) -> None:
    assert names_of(f"SELECT {expression} FROM t") == [name]


@pytest.mark.parametrize("after", ["a IS NULL = q", "a IN (1) IS NULL", "p = NOT q", "1 + NOT p", "a < < 1", "a !p"])
def test_what_spark_cannot_nest_is_a_syntax_error(after: str) -> None:
    with pytest.raises(QueryError, match="cannot be read as SQL"):
        bind_query(f"SELECT {after} FROM t", CATALOG)


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ("t.*", ["b", "a", "c", "d", "p", "q", "s", "m"]),
        ("u.*", ["b", "a", "e"]),
        ("*", ["b", "a", "c", "d", "p", "q", "s", "m", "e"]),
        ("* EXCEPT (t.b, e)", ["a", "c", "d", "p", "q", "s", "m"]),
    ],
)
def test_shared_columns_come_first_in_the_order_of_using(items: str, names: list[str]) -> None:
    assert names_of(f"SELECT {items} FROM t JOIN u USING (b, a)") == names
