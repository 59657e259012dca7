"""Recursive CTEs: what is bound and refused as Spark does, and that every pass keeps their rows."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from support.sql_reference import Row, Tables, run

from weirflow.errors import NotIncremental, QueryError, SqlTypeError
from weirflow.sql.bind.query import bind_query
from weirflow.sql.bind.recursive_reference import reads
from weirflow.sql.passes.optimize import PASSES
from weirflow.sql.plan import Field, Recursive, Scan
from weirflow.sql.traverse import nodes
from weirflow.sql.types import BIGINT, INT, STRING

CATALOG = {
    "e": (Field("a", INT), Field("b", INT), Field("s", STRING)),
    "q": (Field("a", INT), Field("d", BIGINT)),
}
STEP = "with recursive r as (select a, b from e where a = 1 union all {}) select * from r"

REFUSED_PLACES = {
    "select max(r.a), max(e.b) from r join e on r.b = e.a": "inside an aggregate",
    "select r.a, count(*) from r group by r.a": "inside an aggregate",
    "select z.a, e.b from (select a, max(b) as b from r group by a) z join e on z.b = e.a": "inside an aggregate",
    "select a, b from e where a = (select max(b) from r)": "inside an aggregate",
    "select r.a, row_number() over (order by r.a) from r": "under a window function",
    "(select a, b from r order by a limit 1)": "under ORDER BY",
    "select r.a, e.b from e left join r on r.b = e.a": "on the right side of a left outer join",
    "select r.a, e.b from r right join e on r.b = e.a": "on the left side of a right outer join",
    "select r.a, e.b from r full join e on r.b = e.a": "in a full outer join",
    "select e.a, e.b from e left semi join r on r.b = e.a": "on the right side of a left semi join",
    "select e.a, e.b from e left anti join r on r.b = e.a": "on the right side of a left anti join",
}
REFUSED_FORMS = [
    "with recursive r as (select a, b from r) select * from r",
    "with recursive r as (select a, b from r union all select a, b from e) select * from r",
    STEP.format("select a, b from r union all select a, b from r"),
    STEP.format("select a, b from r order by 1"),
    STEP.format("select a, b from r limit 1"),
    STEP.format("select a, b from r offset 1"),
]
REFUSED_TYPES = [
    ("with recursive r as (select 1 as x union all select x + 1L from r) select * from r", "gives bigint for 'x'"),
    ("with recursive r as (select 'a' as x union all select 1 from r) select * from r", "its base string"),
    ("with recursive r as (select null as x union all select 1 from r) select * from r", "its base void"),
    ("with recursive r as (select 1.5 as x union all select x * 2.5 from r) select * from r", "gives decimal"),
    ("with recursive r as (select 1 as x union all select x, x from r) select * from r", "2 columns, its base 1"),
]
QUERIES = """
with recursive r as (select a, b from e {union} select r.a, e.b from r join e on r.b = e.a) select * from r where b > 1
with recursive r as (select a, b from e {union} select r.a, e.b from r join e on r.b = e.a) select b from r where a = 0
with recursive r as (select a, b from e {union} select r.a, e.b from r, e where r.b = e.a and r.a < 3) select a from r
with recursive r as (select a, b, 7 as c from e {union} select r.a, e.b, c from r join e on r.b = e.a) select a from r
with recursive r as (select 0 as x, a as y from e {union} select x + 1, y from r where x < 3) select x from r where x=2
with recursive r as (select 0 as x, a as y from e {union} select x + 1, y from r where x < 3) select y from r
with recursive r as (select 0 as x {union} select x + 1 from r where x < 3) select 1 from r
with recursive r as (select 0 as x {union} select x + 1 from r where x < 3) select r.x, d from r join q on r.x = q.a
with recursive r as (select 0 as x {union} select x + 1 from r where x < 3) select r.x from r left join q on x = d
with recursive r as (select 0 as x {union} select x + 1 from r where x < 3) select p.x from r p, r s where p.x = s.x + 1
with recursive r as (select a, b from e {union} select a, b from e where a in (select b from r)) select a from r
with recursive r as (select a from e {union} select b from r left join e using (a) where a > 0) select a from r
with recursive r as (select a from e {union} select r.a + 1 from r where r.a < (select max(d) from q)) select a from r
with recursive r as (select a from e {union} select a + 1 from r where a < 3 and a in (select d from q)) select a from r
select a from e where a in (with recursive r as (select 0 as x {union} select x + 1 from r where x < 1) select x from r)
select a, (with recursive r as (select 0 as x {union} select x + 1 from r where x < 3) select max(x) from r) from e
""".strip().splitlines()


@pytest.mark.parametrize("step", REFUSED_PLACES)
def test_the_recursion_is_read_only_where_spark_allows_it(step: str) -> None:
    with pytest.raises(QueryError, match=REFUSED_PLACES[step]) as raised:
        bind_query(STEP.format(step), CATALOG)

    assert type(raised.value) is QueryError
    assert raised.value.condition == "INVALID_RECURSIVE_REFERENCE.PLACE"
    assert raised.value.position is not None


@pytest.mark.parametrize("sql", REFUSED_FORMS)
def test_a_recursion_is_a_base_and_a_step(sql: str) -> None:
    with pytest.raises(QueryError, match=r"base UNION \[ALL\] step") as raised:
        bind_query(sql, CATALOG)

    assert raised.value.condition == "INVALID_RECURSIVE_CTE"


def test_a_cte_inside_a_recursive_one_is_not_overlooked() -> None:
    sql = "with recursive r as (with e as (select 1 as a) select a from e union all select a from r) select a from r"

    with pytest.raises(NotIncremental, match="WITH inside a recursive CTE"):
        bind_query(sql, CATALOG)


def test_parentheses_around_a_recursion_change_nothing() -> None:
    sql = "with recursive r as {} select x from r"
    bare = "(select 1 as x union all select x + 1 from r where x < 3)"

    assert bind_query(sql.format(f"(({bare}))"), CATALOG) == bind_query(sql.format(bare), CATALOG)


@pytest.mark.parametrize(("sql", "says"), REFUSED_TYPES)
def test_the_step_has_the_types_of_the_base(sql: str, says: str) -> None:
    with pytest.raises(SqlTypeError, match=says):
        bind_query(sql, CATALOG)


@pytest.mark.parametrize("narrower", ["1", "null", "cast(x as tinyint)"])
def test_a_narrower_step_takes_the_type_of_the_base(narrower: str) -> None:
    sql = f"with recursive r as (select 1L as x union all select {narrower} from r) select * from r"

    assert bind_query(sql, CATALOG).fields == (Field("x", BIGINT),)


def test_a_recursion_of_the_same_name_inside_is_another_one() -> None:
    inner = "with recursive r as (select a from e union select a + 1 from r where a < 5) select a from r"
    outer = (
        f"with recursive z as ({inner}), r as (select 1 as x union select x + 1 from r join z on x = a) select x from r"
    )

    (recursion, *inside) = (node for node in nodes(bind_query(outer, CATALOG)) if isinstance(node, Recursive))

    assert [one.name for one in (recursion, *inside)] == ["r", "r"]
    assert reads(recursion.step, "r")
    assert not reads(inside[0], "r")
    assert reads(Scan("r", ()), "r")


def tables(seed: int) -> Tables:
    dice = random.Random(seed)
    pairs = [sorted(dice.sample(range(5), 2)) for _ in range(dice.randint(0, 5))]
    return {
        "e": [(low, high, dice.choice("xy")) for low, high in pairs],
        "q": [(dice.choice([None, 0, 1, 2]), dice.randint(0, 3)) for _ in range(dice.randint(0, 4))],
    }


@pytest.mark.parametrize("union", ["union all", "union"])
@pytest.mark.parametrize("sql", QUERIES)
def test_passes_keep_the_rows(sql: str, union: str) -> None:
    bound = bind_query(sql.format(union=union), CATALOG)
    for seed in range(20):
        data = tables(seed)
        expected: Counter[Row] = Counter(run(bound, data))
        plan = bound
        for one in PASSES:
            plan = one(plan)
            assert plan.fields == bound.fields
            assert Counter(run(plan, data)) == expected, f"{one.__name__} on seed {seed}"


def test_union_keeps_the_columns_that_tell_its_rows_apart() -> None:
    sql = "with recursive r as (select a, b from e union select r.a, e.b from r join e on r.b = e.a) select a from r"
    data: Tables = {"e": [(1, 2, "x"), (1, 3, "x")], "q": []}
    plan = bind_query(sql, CATALOG)
    for one in PASSES:
        plan = one(plan)

    assert Counter(run(plan, data)) == Counter({(1,): 2})
