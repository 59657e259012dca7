"""Bad SQL is a catalogue: each text has its error, the place it points to, and what it says to do."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pytest

from weirflow.errors import (
    AmbiguousColumn,
    ColumnNotFound,
    FunctionNotFound,
    NotGrouped,
    NotIncremental,
    QueryError,
    Reason,
    SqlSyntaxError,
    SqlTooComplex,
    SqlTypeError,
    TableNotFound,
)
from weirflow.sql.passes.optimize import logical_plan
from weirflow.sql.plan import Field

Catalog = dict[str, tuple[Field, ...]]


@dataclass(frozen=True)
class Bad:
    sql: str
    error: type[QueryError]
    at: tuple[int, int] | None
    says: str


CATALOGUE = [
    Bad("", SqlSyntaxError, None, "found none"),
    Bad("select", SqlSyntaxError, None, "SELECT of nothing"),
    Bad("select a from", SqlSyntaxError, (1, 10), "Expected table name"),
    Bad("select a from t where (a = 1", SqlSyntaxError, (1, 28), "Expecting )"),
    Bad("select a b c from t", SqlSyntaxError, (1, 12), ""),
    Bad("select 'abc", SqlSyntaxError, None, ""),
    Bad("select 1; select 2", SqlSyntaxError, None, "found 2 statements"),
    Bad("drop table t", SqlSyntaxError, (1, 12), "DROP is not a query"),
    Bad("insert into t values (1)", SqlSyntaxError, (1, 13), "INSERT is not a query"),
    Bad("select * from nope", TableNotFound, (1, 15), "'nope'"),
    Bad("select * from tt", TableNotFound, (1, 15), "did you mean 't'"),
    Bad("select nope from t", ColumnNotFound, (1, 8), "in scope are"),
    Bad("select\n  amuont\nfrom t", ColumnNotFound, (2, 3), "did you mean 'amount'"),
    Bad("select t.nope from t", ColumnNotFound, (1, 8), "'t.nope'"),
    Bad("select x.* from t", TableNotFound, (1, 8), "in FROM are t"),
    Bad("select * except (nope) from t", ColumnNotFound, (1, 18), "EXCEPT (nope)"),
    Bad("select s.nope from t", ColumnNotFound, (1, 8), "its fields are x, y"),
    Bad("select id from t join u on t.id = u.id", AmbiguousColumn, (1, 8), "say which: t.id, u.id"),
    Bad("select 1 from t join u using (a)", ColumnNotFound, (1, 22), "the right side has no such column"),
    Bad("select foo(a) from t", FunctionNotFound, (1, 8), "'foo'"),
    Bad("select uper(name) from t", FunctionNotFound, (1, 8), "did you mean 'upper'"),
    Bad("select a, b from t group by a", NotGrouped, (1, 11), "'b' is neither grouped"),
    Bad("select a from t where sum(b) > 1", SqlTypeError, (1, 23), "cannot be used in WHERE"),
    Bad("select sum(sum(a)) from t", SqlTypeError, (1, 12), "an aggregate's argument"),
    Bad("select a from t where row_number() over (order by a) = 1", SqlTypeError, (1, 23), "cannot be used in WHERE"),
    Bad("select row_number() from t", SqlTypeError, (1, 8), "needs OVER"),
    Bad("select row_number() over (partition by a) from t", SqlTypeError, (1, 8), "ORDER BY"),
    Bad("select sum(a) over w from t", QueryError, (1, 20), "no window named 'w'"),
    Bad("select count(distinct a) over () from t", SqlTypeError, (1, 8), "neither DISTINCT nor FILTER"),
    Bad("select a + d + d from t", SqlTypeError, (1, 8), "has no meaning for date and date"),
    Bad("select name + name from t", SqlTypeError, (1, 8), "string and string"),
    Bad("select abs(a, b) from t", SqlTypeError, (1, 8), "abs() takes 1 arguments, not 2"),
    Bad("select upper(arr) from t", SqlTypeError, (1, 8), "takes string as argument 1, not array<int>"),
    Bad("select sum(arr) from t", SqlTypeError, (1, 8), "array<int>"),
    Bad("select cast(a as date) from t", SqlTypeError, (1, 13), "int cannot be cast to date"),
    Bad("select cast(a as nope) from t", SqlSyntaxError, (1, 18), "nope is not a Spark type"),
    Bad("select case when a then 1 end from t", SqlTypeError, (1, 18), "case() takes boolean"),
    Bad("select coalesce(a, d) from t", SqlTypeError, (1, 8), "int, date"),
    Bad("select a from t where a", SqlTypeError, (1, 23), "takes boolean"),
    Bad("select 1 from t join u on t.a", SqlTypeError, (1, 27), "takes boolean"),
    Bad("select a from t union select id, k from u", SqlTypeError, (1, 30), "UNION of 1 and 2 columns"),
    Bad("select a from t union select arr from t", SqlTypeError, (1, 30), "int and array<int>"),
    Bad("select (select id, k from u) from t", SqlTypeError, (1, 16), "one column, not 2"),
    Bad("select a from t where (a, b) in (select id from u)", SqlTypeError, (1, 24), "IN compares 2 values"),
    Bad("select a from t order by 3 limit 1", SqlTypeError, (1, 26), "ORDER BY 3"),
    Bad("select a, count(*) from t group by 5", SqlTypeError, (1, 36), "GROUP BY 5"),
    Bad("select a from t limit a", SqlTypeError, (1, 23), "LIMIT takes a whole number"),
    Bad("select distinct a from t order by b limit 1", SqlTypeError, (1, 17), "output columns only"),
    Bad("select explode(a) from t", SqlTypeError, (1, 8), "an array or a map"),
    Bad("select explode(arr) + 1 from t", SqlTypeError, (1, 8), "makes rows"),
    Bad("select explode(arr), explode(arr) from t", SqlTypeError, (1, 22), "one generator"),
    Bad("select grouping(a) from t group by a", SqlTypeError, (1, 8), "GROUPING SETS"),
    Bad("select * from (values (1), (2, 3))", SqlTypeError, (1, 24), "differ in length"),
    Bad("select 99999999999999999999999999999999999999999", SqlSyntaxError, (1, 8), "38 digits"),
    Bad("select 128Y", SqlSyntaxError, (1, 8), "out of range"),
    Bad("with c(x, y) as (select a from t) select * from c", SqlTypeError, (1, 6), "2 names for 1 columns"),
    Bad("select window(ts, 'soon'), count(*) from t group by 1", SqlSyntaxError, (1, 19), "'5 minutes'"),
]

REFUSED = [
    ("select rand() from t", Reason.EXPRESSION_NOT_DETERMINISTIC, (1, 8)),
    ("select current_date from t", Reason.EXPRESSION_NOT_DETERMINISTIC, None),
    ("select now() from t", Reason.EXPRESSION_NOT_DETERMINISTIC, (1, 8)),
    ("select a from t where now() + (now() - ts) > ts", Reason.EXPRESSION_NOT_DETERMINISTIC, (1, 23)),
    ("select a from t where hour(now()) = 3", Reason.EXPRESSION_NOT_DETERMINISTIC, (1, 23)),
    ("select a from t where d in (current_date())", Reason.EXPRESSION_NOT_DETERMINISTIC, (1, 29)),
    ("select count(*) over (partition by ts > now()) from t", Reason.EXPRESSION_NOT_DETERMINISTIC, (1, 41)),
    ("select uuid()", Reason.EXPRESSION_NOT_DETERMINISTIC, (1, 8)),
    ("select monotonically_increasing_id() from t", Reason.EXPRESSION_NOT_DETERMINISTIC, (1, 8)),
    ("select sentences(name) from t", Reason.FUNCTION_NOT_PROVEN, (1, 8)),
    ("select xpath_string(s, 'a') from t", Reason.FUNCTION_NOT_PROVEN, (1, 8)),
    ("select approx_percentile(a, 0.5) from t", Reason.FUNCTION_NOT_PROVEN, (1, 8)),
    ("select histogram_numeric(a, 3) from t", Reason.FUNCTION_NOT_PROVEN, (1, 8)),
    ("select extract(epoch from ts) from t", Reason.FUNCTION_NOT_PROVEN, (1, 16)),
    ("select interval 1 day * a from t", Reason.TYPE_NOT_SUPPORTED, (1, 25)),
    ("select a from t qualify row_number() over (order by a) = 1", Reason.OPERATOR_NOT_INCREMENTALIZABLE, (1, 25)),
    ("select a from t tablesample (10 percent)", Reason.OPERATOR_NOT_INCREMENTALIZABLE, (1, 30)),
    ("select * from t pivot (sum(b) for name in (upper('x')))", Reason.OPERATOR_NOT_INCREMENTALIZABLE, (1, 44)),
    ("from t |> tablesample (10 percent)", Reason.OPERATOR_NOT_INCREMENTALIZABLE, (1, 24)),
    ("select a from t sort by a", Reason.OPERATOR_NOT_INCREMENTALIZABLE, (1, 25)),
    ("select * from t left join lateral explode(array(t.a))", Reason.OPERATOR_NOT_INCREMENTALIZABLE, None),
    ("select * from range(50000)", Reason.OPERATOR_NOT_INCREMENTALIZABLE, (1, 15)),
    (
        "select 1 from t left join u on t.id = u.id and t.a not in (select k from u)",
        Reason.OPERATOR_NOT_INCREMENTALIZABLE,
        (1, 48),
    ),
]


@pytest.mark.parametrize("bad", CATALOGUE, ids=lambda bad: bad.sql)
def test_an_error_names_its_place(bad: Bad, catalog: Catalog) -> None:
    with pytest.raises(QueryError) as raised:
        logical_plan(bad.sql, catalog)

    error = raised.value
    assert type(error) is bad.error
    assert (error.position and (error.position.line, error.position.column)) == bad.at
    assert bad.says in str(error)


@pytest.mark.parametrize(("sql", "reason", "at"), REFUSED)
def test_a_refusal_has_a_reason(sql: str, reason: Reason, at: tuple[int, int] | None, catalog: Catalog) -> None:
    with pytest.raises(NotIncremental) as raised:
        logical_plan(sql, catalog)

    error = raised.value
    assert (error.reason, error.code) == (reason, "NOT_INCREMENTAL")
    assert (error.position and (error.position.line, error.position.column)) == at
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_query_that_is_nested_too_deeply_is_an_error(catalog: Catalog) -> None:
    with pytest.raises(SqlTooComplex, match="nested more than 1,000 deep"):
        logical_plan("select a from t where " + "(" * 3000 + "a = 1" + ")" * 3000, catalog)


def test_hostile_names_are_just_names(catalog: Catalog) -> None:
    hostile = {"we`ird; drop": (Field("a b", catalog["n"][0].type), Field("ünï", catalog["n"][0].type))}

    plan = logical_plan("select `a b` as `x;--`, `ünï` from `we``ird; drop`", hostile)

    assert [field.name for field in plan.fields] == ["x;--", "ünï"]
