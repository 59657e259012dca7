"""Every pass keeps a query's rows: plans are run by the reference, before and after, on small random tables."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from support.sql_reference import Row, SeveralRows, Tables, run

from weirflow.sql.bind.query import bind_query
from weirflow.sql.expr import Exists, InSubquery, OuterColumn, ScalarSubquery
from weirflow.sql.passes.optimize import PASSES
from weirflow.sql.plan import Field, Plan
from weirflow.sql.traverse import expressions, nodes, parts
from weirflow.sql.types import BIGINT, INT, STRING

CATALOG = {
    "p": (Field("a", INT), Field("b", INT), Field("c", STRING)),
    "q": (Field("a", INT), Field("d", INT), Field("e", BIGINT)),
    "r": (Field("x", INT), Field("y", INT)),
}

SUBQUERIES = """
select a from p where exists (select 1 from q where q.a = p.a)
select a from p where not exists (select 1 from q where q.a = p.a)
select a from p where exists (select 1 from q)
select a from p where not exists (select 1 from q where d > 100)
select a from p where exists (select 1 from q where q.a > p.a and q.d = p.b)
select a from p where exists (select 1 from q where q.a > p.a)
select a from p where a in (select a from q)
select a from p where a not in (select a from q)
select a from p where a not in (select a from q where a is not null)
select a from p where a not in (select a from q where d > 100)
select a from p where a not in (select d from q where q.a = p.b)
select a from p where a in (select d from q where q.a = p.b)
select a from p where a in (select d from q where q.e > p.b)
select a from p where (a, b) in (select a, d from q)
select a from p where (a, b) not in (select a, d from q)
select a from p where not (a in (select a from q))
select a from p where not (not exists (select 1 from q where q.a = p.a))
select a from p where a in (select a from q) or b in (select d from q)
select a from p where not (a in (select a from q) and b > 1)
select a, a in (select a from q) from p
select a, a not in (select a from q) from p
select a, a in (select d from q where q.a = p.b) from p
select a, a in (select d from q where q.e > p.b) from p
select a, a in (select d from q where false) from p
select a, a not in (select d from q where false) from p
select a, a not in (select d from q where q.a = p.b) from p
select a, a not in (select d from q where q.e > p.b) from p
select a, (a, b) in (select a, d from q) from p
select a, (a in (select a from q)) is null from p
select a, not (a in (select a from q) or b > 1) from p
select a from p where not (a in (select a from q) and b > 1 and exists (select 1 from r where r.x = p.a))
select a, exists (select 1 from q where q.a = p.a) from p
select a, exists (select 1 from q) from p
select a, exists (select 1 from q where q.a < p.a) from p
select a from p where b > 1 or exists (select 1 from q where q.a = p.a)
select a from p where a = (select max(a) from q)
select a from p where b < (select avg(d) from q where q.a = p.a)
select a, (select count(*) from q where q.a = p.a) from p
select a, (select count(*) from q where q.a > p.a) from p
select a, (select count(d) + 1 from q where q.a = p.a) from p
select a, (select coalesce(sum(d), -1) from q where q.a = p.a) from p
select a, (select sum(d) from q where q.a = p.a) from p
select a, (select max(d) from q) from p
select a, (select sum(d) from q where q.a = p.a having count(*) < 2) from p
select a, (select count(*) from q where q.a = p.a having count(*) > 1) from p
select a, (select count(*) from q where q.a = p.a and q.d > p.b) from p
select a, (select sum(q.d + p.b) from q where q.a = p.a) from p
select a, (select max(d) + p.b from q where q.a = p.a) from p
select a, (select max(d) from q where q.a = p.a or q.d = p.b) from p
select a, (select sum(n) from (select count(*) as n from q where q.a = p.a) z) from p
select a, (select count(*) from (select distinct d from q where q.a = p.a) z) from p
select a, (select count(*) from (select d from q where q.a = p.a union all select y from r where r.x = p.b) z) from p
select a, (select count(*) from (select d from q where q.a = p.a except select y from r where r.x = p.b) z) from p
select a, (select d from q where q.a = p.a order by d, e limit 1) from p
select a from p where b in (select d from q where q.a = p.a order by d limit 2)
select a, (select count(*) from q join r on q.d = r.x where q.a = p.a and r.y > p.b) from p
select a, (select count(r.y) from q left join r on q.d = r.x and r.y > p.b where q.a = p.a) from p
select a from p where exists (select 1 from q left join r on q.d = r.x where q.a = p.a and r.y is null)
select a from p where exists (select 1 from q where q.a = p.a and exists (select 1 from r where r.x = q.d))
select a from p where exists (select 1 from q where q.a = p.a and not exists (select 1 from r where r.x = p.b))
select a from p where exists (select 1 from q where q.d in (select y from r where r.x = p.a))
select a from p where exists (select 1 from q where q.d not in (select y from r where r.x = p.a))
select a, (select count(*) from q where q.d > (select min(y) from r where r.x = p.a)) from p
select a, (select count(*) from q where q.a = p.a and q.d > (select min(y) from r where r.x = q.a)) from p
select a, sum(b) from p group by a having sum(b) > (select max(d) from q)
select a, count(*) from p group by a having exists (select 1 from q where q.a = p.a)
select a, (select count(*) from q where q.a = p.a) from p group by a
select sum((select max(d) from q where q.a = p.a)) from p
select (select max(d) from q where q.a = p.a) as m, count(*) from p group by 1
select p.a from p join q on p.a = q.a and q.d > (select min(y) from r)
select p.a from p join q on p.a = q.a where exists (select 1 from r where r.x = p.b and r.y = q.d)
select a from p where a in (select x from r where y in (select d from q where q.a = r.x))
select a, case when exists (select 1 from q where q.a = p.a) then 1 else 0 end from p
select a from p where exists (select count(*) from q where q.a = p.a)
select a from p where exists (select sum(d) from q where q.a = p.a having sum(d) > 2)
select a from p where exists (select 1 from q where q.a <=> p.a)
select a, (select count(*) from q where q.a <=> p.a) from p
select a from p where 2 > (select count(*) from q where q.a = p.a)
select a, (select sum(s) from (select sum(d) over (partition by e) s from q where q.a = p.a) z) from p
""".strip().splitlines()

JOINS = """
select p.a, q.d from p, q where p.a = q.a and p.b > 1 and q.d < 3
select p.a, q.d, r.y from p, r, q where p.a = q.a and q.d = r.x
select p.a, q.d from p left join q on p.a = q.a where q.d > 1
select p.a, q.d from p left join q on p.a = q.a where p.b > 1
select p.a, q.d from p left join q on p.a = q.a and q.d > 1 and p.b > 0
select p.a, q.d from p left join q on p.a = q.a where q.d is null
select p.a, q.d from p left join q on p.a = q.a where coalesce(q.d, 0) = 0
select p.a, q.d from p right join q on p.a = q.a where p.b > 1
select p.a, q.d from p right join q on p.a = q.a and q.d > 1 where q.e > 0
select p.a, q.d from p full join q on p.a = q.a where p.b > 1
select p.a from p left semi join q on p.a = q.a and q.d > 1 and p.b > 0
select p.a from p left anti join q on p.a = q.a and q.d > 1 and p.b > 0
select p.a, q.d from p join q on p.a <=> q.a
select * from p full join q using (a)
select * from p natural join q
select a, n from (select a, count(*) as n, sum(b) as s from p group by a) z where a > 1 and n > 1
select a from (select a, b from p union all select a, d from q) z where b > 1
select a from (select distinct a, b from p) z where b > 1
select a from (select a, b from p except select a, d from q) z where b > 1
select a, n from (select a, b, row_number() over (partition by a order by b, c) n from p) z where a > 1 and n = 1
select x.a from p x, p y, p z where x.a = y.b and y.a = z.b and (x.b = 1 and z.a > 1 or x.b = 1 and z.a is null)
select p.a from p, q, r where (p.a = q.a and q.d = r.x and p.b > 1) or (p.a = q.a and q.d = r.x and r.y > 1)
select a + 1 from (select a + b as a from p) z where a > 2
select p.a from p join (select a, sum(d) as s from q group by a) z on p.a = z.a where z.s > 2
select count(*) from p, q
select a from p order by b desc, a, c limit 3
select a from (select a, b from p order by b, a, c limit 4) z where a > 1
select a from p where b <> 0 and a / b > 1
select p.a from p join q on p.a = q.a where q.d <> 0 and p.b / q.d >= 1
select a, sum(b) from p group by rollup(a)
select a, c, grouping(a), grouping_id(), count(*) from p group by cube(a, c)
select case when 1 = 1 then p.c end from p left join r on p.a = r.x
""".strip().splitlines()


def tables(seed: int) -> Tables:
    random_ = random.Random(seed)

    def number() -> int | None:
        return random_.choice([None, 0, 1, 1, 2, 2, 3])

    def some(make: object, most: int) -> list[Row]:
        return [make() for _ in range(random_.randint(0, most))]

    return {
        "p": some(lambda: (number(), number(), random_.choice(["x", "y", None])), 6),
        "q": some(lambda: (number(), number(), number()), 6),
        "r": some(lambda: (number(), number()), 5),
    }


def rows(plan: Plan, data: Tables) -> Counter[Row] | str:
    try:
        return Counter(run(plan, data))
    except SeveralRows:
        return "several rows"


@pytest.mark.parametrize("sql", [*SUBQUERIES, *JOINS])
def test_passes_keep_the_rows(sql: str) -> None:
    bound = bind_query(sql, CATALOG)
    for seed in range(40):
        data = tables(seed)
        expected = rows(bound, data)
        plan = bound
        for one in PASSES:
            plan = one(plan)
            assert plan.fields == bound.fields
            assert rows(plan, data) == expected, f"{one.__name__} on seed {seed}"


@pytest.mark.parametrize("sql", SUBQUERIES)
def test_decorrelated_plans_have_no_subqueries(sql: str) -> None:
    plan = PASSES[0](bind_query(sql, CATALOG))

    found = [part for node in nodes(plan) for expr in expressions(node) for part in parts(expr)]
    assert not [part for part in found if isinstance(part, ScalarSubquery | Exists | InSubquery | OuterColumn)]


def test_a_scalar_subquery_of_several_rows_fails_when_it_is_asked_for() -> None:
    plan = PASSES[0](bind_query("select (select d from q where q.a = p.a) from p", CATALOG))
    twice = [(1, 5, 0), (1, 6, 0)]

    assert rows(plan, {"p": [(2, 0, "x")], "q": twice}) == Counter([(None,)])
    assert rows(plan, {"p": [(1, 0, "x")], "q": twice}) == "several rows"
