"""Names and types of what the binder returns are those of Spark's analyzer, and what Spark refuses is refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from support.tpch import QUERIES as TPCH
from support.tpch import SCHEMAS as TPCH_SCHEMAS

from weirflow.errors import QueryError
from weirflow.sql.bind.query import bind_query
from weirflow.sql.passes.optimize import logical_plan
from weirflow.sql.plan import Field
from weirflow.sql.types import type_name
from weirflow.sql.typing.type_syntax import parse_ddl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from weirflow import Session

Columns = list[tuple[str, str]]

SCHEMAS = {
    "t": (
        "id INT, a INT, b BIGINT, amount DECIMAL(10,2), name STRING, ts TIMESTAMP, d DATE, arr ARRAY<INT>, "
        "m MAP<STRING, INT>, s STRUCT<x: INT, y: STRUCT<z: STRING>>, f DOUBLE, ok BOOLEAN"
    ),
    "u": "id INT, k INT, v STRING",
    "n": "x INT",
    "w": (
        "ty TINYINT, sh SMALLINT, i INT, l BIGINT, fl FLOAT, db DOUBLE, d1 DECIMAL(10,2), d2 DECIMAL(38,10), "
        "d3 DECIMAL(20,0), d4 DECIMAL(38,0), st STRING, bi BINARY, bo BOOLEAN, da DATE, ts TIMESTAMP, "
        "nt TIMESTAMP_NTZ, ar ARRAY<INT>, al ARRAY<BIGINT>, ma MAP<STRING, INT>, su STRUCT<x: INT>, "
        "sv STRUCT<x: BIGINT>"
    ),
    **TPCH_SCHEMAS,
}
CATALOG = {name: tuple(Field(part.name, part.type) for part in parse_ddl(ddl)) for name, ddl in SCHEMAS.items()}

EXPRESSIONS = r"""
a + b
a + amount
amount * amount
amount / amount
amount / 3
amount % 3
amount + 1
amount + 1.5
amount * 1L
a / b
a / 2
a div b
amount div 2
a % 2
f + a
f * amount
a + '1'
f + '1'
amount + '1'
-a
-amount
- f
a = b
a = '1'
name = 1
amount > 5
amount > f
d > '2020-01-01'
d = ts
ts > '2020-01-01'
d < ts
a between 1 and b
a not between 1 and 2
a in (1, 2L)
a in (1, '2')
name in ('a', 'b')
a not in (1,2)
a is null
a is not null
ok is true
ok is not false
a <=> b
a is distinct from b
a is not distinct from b
a <> b
a != b
not ok
!ok
ok and a > 1 or f < 2
name like 'a%'
name not like 'a%'
name rlike 'a'
name ilike 'A%'
name like 'a!%' escape '!'
case when a > 1 then 1 else 2L end
case a when 1 then 'x' when 2 then 'y' end
case when ok then amount else a end
case when ok then 1 else 1.5 end
coalesce(a, b, 0)
coalesce(amount, 0)
coalesce(name, 'x')
coalesce(a, '1')
nvl(a, 1)
nvl2(a, b, 1)
ifnull(a, b)
nullif(a, 1)
if(ok, a, b)
greatest(a, b, 1.5)
least(a, f)
cast(a as bigint)
cast(a as string)
cast(name as int)
cast(name as decimal(10,2))
cast(d as timestamp)
try_cast(name as int)
a::bigint
cast(a as date)
cast(ok as int)
cast(f as timestamp)
abs(a)
abs(amount)
abs(f)
ceil(f)
ceil(amount)
ceil(a)
floor(f)
floor(amount)
round(f)
round(f, 2)
round(amount, 1)
round(amount)
round(a)
round(a, -1)
round(amount, -1)
bround(amount, 1)
sqrt(a)
sign(a)
sign(amount)
signum(f)
pmod(a, 3)
pmod(amount, 3)
mod(a, 3)
power(a, 2)
pow(a, 2)
exp(a)
ln(a)
log(a)
log(2, a)
log10(a)
log2(a)
sin(f)
atan2(f, a)
factorial(a)
a & 1
a | b
a ^ b
~a
shiftleft(a, 1)
negative(a)
positive(a)
isnan(f)
upper(name)
ucase(name)
lower(name)
length(name)
char_length(name)
octet_length(name)
trim(name)
ltrim(name)
rtrim(name)
trim(both 'x' from name)
trim(leading 'x' from name)
trim('x' from name)
ltrim('x', name)
btrim(name)
substring(name, 1, 2)
substring(name, 2)
substr(name, 1, 2)
substring(name from 1 for 2)
concat(name, a)
concat(name, 'x', 'y')
name || 'x'
name || a
concat_ws(',', name, 'x')
concat_ws(',', arr)
replace(name, 'a', 'b')
replace(name, 'a')
lpad(name, 5, '0')
lpad(name, 5)
rpad(name, 5, '0')
left(name, 2)
right(name, 2)
instr(name, 'a')
locate('a', name)
locate('a', name, 2)
position('a' in name)
startswith(name, 'a')
endswith(name, 'a')
contains(name, 'a')
reverse(name)
repeat(name, 2)
initcap(name)
split(name, ',')
split(name, ',', 2)
split_part(name, ',', 1)
translate(name, 'a', 'b')
ascii(name)
chr(a)
regexp_replace(name, 'a', 'b')
regexp_extract(name, '(a)', 1)
regexp_extract(name, '(a)')
substring_index(name, ',', 1)
space(a)
md5(name)
upper(a)
length(a)
year(d)
year(ts)
year('2020-01-01')
quarter(d)
month(d)
day(d)
dayofmonth(d)
dayofweek(d)
weekday(d)
dayofyear(d)
weekofyear(d)
hour(ts)
minute(ts)
second(ts)
hour(d)
extract(year from d)
extract(month from ts)
date_part('year', d)
date_add(d, 1)
date_add(d, a)
date_sub(d, 1)
dateadd(d, 1)
datediff(d, d)
date_diff(d, '2020-01-01')
datediff(ts, d)
add_months(d, 1)
last_day(d)
trunc(d, 'MM')
date_trunc('day', ts)
date_trunc('day', d)
to_date(name)
to_date(ts)
to_date(name, 'yyyy')
to_timestamp(name)
make_date(2020, 1, 1)
unix_date(d)
unix_seconds(ts)
timestamp_millis(b)
date_from_unix_date(a)
d - d
ts - ts
ts - d
d + interval '1' month
d - interval 3 months
d + interval 1 hour
ts + interval 1 day
ts - interval 2 hours
interval 1 day
interval '1' year
interval '1-2' year to month
interval '1 02:03:04' day to second
date'2020-01-01'
timestamp'2020-01-01'
timestamp'2020-01-01 10:00:00'
timestamp_ntz'2020-01-01 10:00:00'
1
1L
1S
1Y
1.5
1.50
0.05
.5
1e3
1.5D
1.5F
1.5BD
1BD
100000000000
'abc'
'a' 'b'
true
null
-1
-1.5
X'1F'
size(arr)
cardinality(m)
arr[0]
arr[a]
m['k']
m[name]
s.x
s.y.z
t.s.y.z
element_at(arr, 1)
element_at(m, 'a')
array_contains(arr, 1)
array_contains(arr, b)
array(1, 2)
array(1, 2L)
array(1, 'a')
array()
map('a', 1)
map_keys(m)
map_values(m)
named_struct('a', 1, 'b', name)
struct(a, b)
struct(a as x, 1)
struct(a, a + 1)
(a, b)
array(named_struct('a', 1)).a
arr[0] + 1
sort_array(arr)
array_min(arr)
array_distinct(arr)
array_join(array('a'), ',')
slice(arr, 1, 2)
int(name)
date(name)
string(a)
boolean(a)
decimal(a)
isnull(a)
isnotnull(a)
a > 1 = true
(a, b) in ((1, 2), (3, 4))
a in (select k from u)
exists (select 1 from u)
(select max(k) from u)
""".strip().splitlines()

SAME_TYPE_ONLY = r"""
-'1'
+a
position('a', name)
d + 1
d - 1
d + interval 1 day
d - interval 1 day
d + interval 1 week
ts + interval '1 2' day to hour
interval 2 hours 3 minutes AS x
s['x']
""".strip().splitlines()
"""Spark names these columns after its internal rewrite; only their types are compared."""

QUERIES = r"""
select * from t
select t.* from t
select u.*, t.a from t join u on t.id = u.id
select * except (id) from t
select * from t join u using (id)
select t.id, u.id, id from t join u using (id)
select * from t left join u using (id)
select * from t right join u using (id)
select * from t full join u using (id)
select id from t full outer join u using (id)
select * from t natural join u
select * from u cross join n
select * from u, n
select * from u left semi join t on u.id = t.id
select * from u left anti join t on u.id = t.id
select * from u semi join t using (id)
select u.id from u join u v on u.id = v.id
select id from u join t on u.id = t.id
select x.id as one, y.id as two from u x left join u y on x.id = y.k and x.v > 'a'
select a, count(*) from t group by a
select a, count(1), count(b), count(distinct b), count(distinct a, b) from t group by a
select a + 1, sum(b) from t group by a + 1
select a as k, sum(amount) from t group by k
select a, sum(amount) s from t group by 1
select a, sum(b), avg(b), min(b), max(b), avg(amount), sum(f), avg(f), sum(a), avg(a) from t group by all
select sum(amount) filter (where a > 1), count(*) filter (where ok) from t
select sum(distinct a) from t
select a from t group by a having sum(b) > 1
select a from t having count(*) > 1
select count(*) from t having count(*) > 1
select a, b from t group by a
select sum(a) as a from t group by b having b > 1
select a, sum(b) from t group by rollup(a)
select a, name, sum(b), grouping(a), grouping_id() from t group by cube(a, name)
select a, name, sum(b), grouping_id(a, name) from t group by grouping sets ((a), (name), (a, name), ())
select a, name, count(*) from t group by a, name with rollup
select a, name, count(*) from t group by a, name with cube
select a, name, count(*) from t group by a, rollup(name)
select a, name, count(*) from t group by a, name grouping sets ((a), (name))
select stddev(a), stddev_pop(b), variance(f), var_pop(a), skewness(a), kurtosis(a), corr(a, b), covar_pop(a,b), covar_samp(a,b) from t
select bool_and(ok), every(ok), bool_or(ok), any(ok), some(ok), count_if(a > 1) from t
select collect_list(a), collect_set(name), array_agg(a) from t
select percentile(a, 0.5), median(a), percentile(a, array(0.1, 0.9)) from t
select percentile_cont(0.5) within group (order by a) from t
select min_by(name, a), max_by(a, b), mode(a, true) from t
select first(a), last(a), any_value(a), first(a, true), first(a) ignore nulls, first_value(a), last_value(a) from t
select bit_and(a), bit_or(b), bit_xor(a) from t
select sum('1'), avg(name), min(name), max(d), max(ts), sum(1.5) from t
select min(arr), max(s) from t
select mean(a), std(a), stddev_samp(a), var_samp(a) from t
select a, row_number() over (partition by name order by b) from t
select rank() over (order by a desc), dense_rank() over (order by a), percent_rank() over (order by a), cume_dist() over (order by a), ntile(4) over (order by a) from t
select lag(a) over (order by b), lead(a, 2) over (order by b), lag(a, 1, 0) over (order by b), lag(amount, 1, 0) over (order by b) from t
select sum(a) over (partition by name), sum(a) over (order by b), avg(amount) over (order by b rows between 1 preceding and current row) from t
select sum(a) over w, count(*) over w from t window w as (partition by name order by b)
select first_value(a) over (order by b), last_value(a) over (order by b), nth_value(a, 2) over (order by b) from t
select sum(a) over (order by ts range between interval 1 day preceding and current row) from t
select sum(a) over (order by d range between 1 preceding and 1 following) from t
select a, sum(sum(b)) over (partition by a) from t group by a
select a, rank() over (order by sum(b) desc) r from t group by a
select distinct a, name from t
select a from t order by b limit 3
select a from t order by b
select a, b from t order by 2 desc limit 5 offset 2
select sum(b) from t group by a order by a limit 2
select a, sum(b) s from t group by a order by s desc, sum(f) limit 2
select distinct a from t order by a limit 1
select a from t limit 3
select a from t union all select b from t
select a from t union select amount from t
select a, name from t intersect select id, v from u
select a from t except select id from u
select a from t except all select id from u
select a from t intersect all select id from u
select a from t minus select id from u
select a from t union all select name from t
select d from t union all select ts from t
select a from t union all select null
select a, name from t union all by name select name, a from t
(select a from t) union all (select id from u) order by a limit 2
select a from t union select id from u union all select k from u
values (1, 'a'), (2L, 'b')
select * from values (1, 'a'), (2, null) as v(x, y)
select col1 from values (1, 1.5), (2, 2)
with c as (select a, b from t) select * from c
with c(x) as (select a from t), e as (select x + 1 as y from c) select c.x, e.y from c join e on c.x = e.y
with recursive r(x) as (select 1 union all select x + 1 from r where x < 5) select * from r
with recursive r as (select id, k from u union all select r.id, u.k from r join u on r.k = u.id) select * from r
select * from (select a from t) x where x.a > 1
select a, (select count(*) from u where u.id = t.id) c from t
select * from u where exists (select 1 from t where t.id = u.id)
select * from u where id in (select id from t)
select * from u where id not in (select a from t where t.name = u.v)
select * from u where k = (select max(k) from u x where x.id = u.id)
select * from u where (id, k) in (select id, a from t)
select a, e from t lateral view explode(arr) x as e
select e, f2 from t lateral view outer posexplode(arr) x as e, f2
select key, value from t lateral view explode(m) x
select explode(arr) from t
select a, explode(arr) as e from t
select explode(m) from t
select explode(m) as (k, v) from t
select posexplode(arr) from t
select inline(array(struct(1, 'a'), struct(2, 'b')))
select a, explode_outer(arr) from t
select explode(collect_list(a)) from t
select window(ts, '5 minutes'), count(*) from t group by window(ts, '5 minutes')
select window.start, window.end, sum(a) from t group by window(ts, '10 minutes', '5 minutes')
select window(ts, '5 minutes').start as st, a from t
select session_window(ts, '5 minutes'), a, count(*) from t group by session_window(ts, '5 minutes'), a
select session_window.start, count(*) from t group by session_window(ts, '5 minutes')
select session_window(ts, '5 minutes').start, count(*) from t group by session_window(ts, '5 minutes').start
select session_window(ts, '5 minutes') from t
select datediff(DAY, d, ts), timestampdiff(minute, ts, d), date_diff(d, d) from t
select timestampadd(HOUR, 3, ts), dateadd(MONTH, a, d), date_add(DAY, 1, d), date_add(d, 1) from t
select timestampadd(FORTNIGHT, 3, ts) from t
select 1
select 1 as one, 'x' as two where 1 = 1
select count(*)
select t.a, u.k from t left join u on t.id = u.id and u.k > 3 where t.ok
select if(count(*) > 1, 'a', 'b') from t
select max(a) - min(a), sum(a) / count(*) from t
select a, case when sum(b) > 1 then 'x' else 'y' end from t group by a
select a, b from t group by a, b having a > 1 and max(f) > 2
select s.x, s.y.z, s.* from t
select id from t join u using (id) where t.id > 1 and u.id > 2
select * from t join u on t.id = u.id join n on n.x = u.k
select a from t where b in (select b from t t2 where t2.a = t.a)
select a b from t order by all limit 2
select sum(a) over () + 1 from t
select name, sum(a) from t group by substr(name, 1, 2)
select upper(name) n, count(*) from t group by upper(name)
select a % 2 = 0 as even, count(*) from t group by a % 2 = 0
select a + b + 1 from t group by a + b
select a, a from t
select -a from t group by a
select max(a) from t where max(a) > 1
select sum(sum(a)) from t
select row_number() over (order by a) r from t where r > 1
select a from t group by sum(a)
select t.a from t x
select nope from t
select f(a) from t
select cast(a as map<int,int>) from t
select name + name from t
select upper(arr) from t
select sum(arr) from t
select a from t union select a, b from t
select * from nope
select abs(a, b) from t
select null + 1, null + null, null = null, null and true, null || 'a', coalesce(null, null)
select '1' + null, null / 2, null * 1.5
""".strip().splitlines()  # noqa: E501 - one query to a line
"""Valid or not: a query that Spark's analyzer refuses must be refused."""

PAIRED = ["{} + {}", "{} / {}", "{} = {}", "coalesce({}, {})"]
_COLUMNS = "ty l fl db d1 d2 d4 st bi bo da ts nt ar al sv"
OPERANDS = [*_COLUMNS.split(), "null", "1", "1.5"]
NULL_TIME_SUM = re.compile(r"(da|ts|nt) \+ null|null \+ (da|ts|nt)")
"""Refused on purpose: the sum of a time and an unknown interval."""


@pytest.fixture
def analyzer(session: Session) -> Iterator[SparkSession]:
    """A Spark that knows the tables, all empty."""
    spark = session.spark
    for name, columns in CATALOG.items():
        listed = ", ".join(f"CAST(NULL AS {type_name(part.type)}) AS {part.name}" for part in columns)
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT {listed} WHERE false")
    yield spark
    for name in CATALOG:
        spark.catalog.dropTempView(name)


def of_spark(spark: SparkSession, sql: str) -> Columns | None:
    try:
        schema = spark.sql(sql).schema
    except PySparkException:
        return None
    return [(part.name, _plain(part.dataType.simpleString())) for part in schema]


def _plain(name: str) -> str:
    """Arrow has one type for all day-time intervals and one for all year-month ones."""
    day_time = re.sub(r"interval (day|hour|minute|second)( to (hour|minute|second))?", "interval day to second", name)
    return re.sub(r"interval (year|month)( to month)?", "interval year to month", day_time)


def of_binder(sql: str) -> Columns | None:
    try:
        plan = bind_query(sql, CATALOG)
    except QueryError:
        return None
    return [(part.name, type_name(part.type)) for part in plan.fields]


def types(columns: Columns | None) -> list[str] | None:
    return None if columns is None else [kind for _, kind in columns]


def test_expressions_have_the_names_and_types_of_spark(analyzer: SparkSession) -> None:
    queries = [f"SELECT {expression} FROM t" for expression in EXPRESSIONS]

    assert {sql: of_binder(sql) for sql in queries} == {sql: of_spark(analyzer, sql) for sql in queries}


def test_rewritten_expressions_have_the_types_of_spark(analyzer: SparkSession) -> None:
    queries = [f"SELECT {expression} FROM t" for expression in SAME_TYPE_ONLY]

    assert {sql: types(of_binder(sql)) for sql in queries} == {sql: types(of_spark(analyzer, sql)) for sql in queries}


def test_queries_have_the_names_and_types_of_spark(analyzer: SparkSession) -> None:
    assert {sql: of_binder(sql) for sql in QUERIES} == {sql: of_spark(analyzer, sql) for sql in QUERIES}


@pytest.mark.parametrize(
    "operation", [PAIRED[0], *(pytest.param(each, marks=pytest.mark.campaign) for each in PAIRED[1:])]
)
def test_operands_of_all_types_meet_as_in_spark(operation: str, analyzer: SparkSession) -> None:
    pairs = [operation.format(one, other) for one in OPERANDS for other in OPERANDS]
    queries = [f"SELECT {pair} AS r FROM w" for pair in pairs if not NULL_TIME_SUM.fullmatch(pair)]

    assert {sql: of_binder(sql) for sql in queries} == {sql: of_spark(analyzer, sql) for sql in queries}


def test_tpch_has_the_names_and_types_of_spark(analyzer: SparkSession) -> None:
    assert {number: of_binder(sql) for number, sql in TPCH.items()} == {
        number: of_spark(analyzer, sql) for number, sql in TPCH.items()
    }


def test_passes_keep_the_names_and_types_of_tpch() -> None:
    for sql in TPCH.values():
        assert logical_plan(sql, CATALOG).fields == bind_query(sql, CATALOG).fields
