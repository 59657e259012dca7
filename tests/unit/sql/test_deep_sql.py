"""Deep and long SQL: it is computed, or refused by a typed error in time, however deep the caller is."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pytest

from weirflow import IncrementalFlow
from weirflow.errors import SqlTooComplex, StackExhausted, WeirflowError
from weirflow.sql.limits import MAX_HEIGHT, MAX_NESTING
from weirflow.sql.passes.optimize import logical_plan
from weirflow.sql.statements.kinds import is_query
from weirflow.sql.statements.parameters import with_literals
from weirflow.stack import grows, is_deep, on_fresh_stack

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from weirflow.sql.plan import Field

SECONDS = 5.0
"""Of one thread's computing, for each statement."""
DEEP, DEEPER = 900, 930
SOURCE = "x BIGINT, s STRING, d DOUBLE"
ROWS = [{"x": 1, "s": "a", "d": 0.5}, {"x": 2, "s": None, "d": None}, {"x": 40, "s": "c", "d": 1e300}]


def nested(opening: str, inside: str, closing: str, times: int) -> str:
    return opening * times + inside + closing * times


def chain(operator: str, terms: list[str]) -> str:
    return operator.join(terms)


@dataclass(frozen=True)
class Case:
    """A query over ``ROWS``, and its rows; None if it is refused."""

    sql: str
    rows: list[tuple[Any, ...]] | None


def one_column(expression: str, *values: Any) -> Case:
    return Case(f"SELECT {expression} AS y FROM t", [(value,) for value in values] or None)


def where(condition: str, *values: int | None) -> Case:
    return Case(f"SELECT x AS y FROM t WHERE {condition}", None if None in values else [(one,) for one in values])


CASES = {
    "150 parentheses": one_column(nested("(", "x", ")", 150), 1, 2, 40),
    "as many parentheses as may be": one_column(nested("(", "x", ")", MAX_NESTING), 1, 2, 40),
    "one more": one_column(nested("(", "x", ")", MAX_NESTING + 1)),
    "100,000 parentheses": one_column(nested("(", "x", ")", 100_000)),
    "900 calls": one_column(nested("abs(", "x", ")", 900), 1, 2, 40),
    "5,000 calls": one_column(nested("abs(", "x", ")", 5000)),
    "999 NOTs": where("NOT " * 999 + "x > 1", 1),
    "5,000 NOTs": where("NOT " * 5000 + "x > 1", None),
    "NOTs and parentheses": where(nested("NOT (", "x > 1", ")", 600), None),
    "500 minus signs": one_column("- " * 500 + "x", 1, 2, 40),
    "5,000 minus signs": one_column("- " * 5000 + "x"),
    "1,000 ANDs": where(chain(" AND ", [f"x <> {number + 2}" for number in range(1000)]), 1),
    "1,000 ORs": where(chain(" OR ", [f"x = {number * 40}" for number in range(1000)]), 40),
    "2,000 sums": one_column(chain(" + ", ["x"] * 2000), 2000, 4000, 80_000),
    "doubles are added in order": one_column(
        chain(" + ", ["d"] * 300 + ["-1e308"]), 150.0 - 1e308, None, 3e302 - 1e308
    ),
    "2,000 texts": one_column(chain(" || ", ["'b'"] * 2000 + ["s"]), "b" * 2000 + "a", None, "b" * 2000 + "c"),
    "2,000 casts": one_column("x" + "::int::bigint" * 1000, 1, 2, 40),
    "1,000 comparisons": where("x > 1" + " = (x > 1)" * 1000, 2, 40),
    "more than a chain may have": one_column(chain(" + ", ["x"] * (MAX_HEIGHT + 1))),
    "1,000 branches": one_column(
        "CASE " + " ".join(f"WHEN x = {number} THEN {number + 1}" for number in range(1000)) + " END", 2, 3, 41
    ),
    "300 CASEs in each other": one_column(nested("CASE WHEN x = 3 THEN 1/0 ELSE ", "x", " END", 300), 1.0, 2.0, 40.0),
    "300 subqueries in FROM": Case(
        f"SELECT x AS y FROM {nested('(SELECT x FROM ', 't', ')', 300)}", [(1,), (2,), (40,)]
    ),
    "3,000 subqueries in FROM": Case(f"SELECT x AS y FROM {nested('(SELECT x FROM ', 't', ')', 3000)}", None),
    "200 INs in each other": where(nested("x IN (SELECT x FROM t WHERE ", "x > 1", ")", 200), 2, 40),
    "50 EXISTS in each other": Case(
        "SELECT x AS y FROM t a0 WHERE "
        + "".join(f"EXISTS (SELECT 1 FROM t a{n} WHERE a{n}.x = a{n - 1}.x AND " for n in range(1, 50))
        + "a49.x > 1"
        + ")" * 49,
        [(2,), (40,)],
    ),
    "300 subqueries side by side": where(
        chain(" AND ", [f"x IN (SELECT x FROM t WHERE x < {40 + n})" for n in range(300)]), 1, 2
    ),
    "60 scalar subqueries": one_column(
        chain(" + ", [f"(SELECT max(x) + {number} FROM t)" for number in range(60)]), *[4170] * 3
    ),
    "30 correlated scalar subqueries": Case(
        "SELECT " + chain(" + ", ["(SELECT max(x) FROM t b WHERE b.x = a.x)"] * 30) + " AS y FROM t a",
        [(30,), (60,), (1200,)],
    ),
    "1,000 scalar subqueries": one_column(
        chain(" + ", [f"(SELECT max(x) + {number} FROM t)" for number in range(1000)])
    ),
    "700 UNION ALLs": Case(chain(" UNION ALL ", ["SELECT x AS y FROM t WHERE x > 2"] * 700), [(40,)] * 700),
    "300 UNIONs": Case(
        chain(" UNION ", [f"SELECT x + {number % 2} AS y FROM t" for number in range(300)]),
        [(n,) for n in (1, 2, 3, 40, 41)],
    ),
    "300 EXCEPTs": Case(chain(" EXCEPT ", ["SELECT x AS y FROM t"] + ["SELECT 2L"] * 300), [(1,), (40,)]),
    "an IN of 10,000": where(f"x IN ({chain(',', [str(number * 2) for number in range(10_000)])})", 2, 40),
    "2,000 columns": Case(
        "SELECT " + ", ".join(f"x + {number} AS c{number}" for number in range(2000)) + " FROM t WHERE x = 2",
        [tuple(range(2, 2002))],
    ),
    "500 keys": Case(
        "SELECT count(*) AS n FROM t GROUP BY " + ", ".join(f"x + {number}" for number in range(500)), [(1,)] * 3
    ),
    "500 aggregates": Case(
        "SELECT " + ", ".join(f"sum(x + {number}) AS c{number}" for number in range(500)) + " FROM t",
        [tuple(43 + 3 * number for number in range(500))],
    ),
    "300 CTEs in a row": Case(
        "WITH c0 AS (SELECT x FROM t), "
        + ", ".join(f"c{n} AS (SELECT x + 1 AS x FROM c{n - 1})" for n in range(1, 300))
        + " SELECT x AS y FROM c299",
        [(300,), (301,), (339,)],
    ),
    "CTEs that each read the last twice": Case(
        "WITH c0 AS (SELECT x FROM t), "
        + ", ".join(f"c{n} AS (SELECT a.x FROM c{n - 1} a JOIN c{n - 1} b ON a.x = b.x)" for n in range(1, 40))
        + " SELECT x FROM c39",
        None,
    ),
    "aliases that each use the last twice": Case(
        "SELECT x + x AS a0, " + ", ".join(f"a{n - 1} + a{n - 1} AS a{n}" for n in range(1, 40)) + " FROM t", None
    ),
    "a filter over columns that each use the last twice": Case(
        f"SELECT y FROM {nested('(SELECT y + y AS y FROM ', '(SELECT x AS y FROM t)', ')', 30)} WHERE y > {2 << 30}",
        [(40 << 30,)],
    ),
    "CUBE of 30": Case(
        "SELECT count(*) AS n FROM t GROUP BY CUBE(" + ", ".join(f"x + {n}" for n in range(30)) + ")", None
    ),
    "60 joins": Case(
        "SELECT t0.x AS y FROM t t0 " + " ".join(f"JOIN t t{n} ON t{n}.x = t{n - 1}.x" for n in range(1, 60)),
        [(1,), (2,), (40,)],
    ),
    "1,000 joins": Case(
        "SELECT t0.x AS y FROM t t0 " + " ".join(f"JOIN t t{n} ON t{n}.x = t{n - 1}.x" for n in range(1, 1000)), None
    ),
    "a literal of 10,000,000": Case(f"SELECT length('{'b' * 10_000_000}') AS y FROM t WHERE x = 1", [(10_000_000,)]),
    "a literal of 20,000,000": one_column(f"'{'b' * 20_000_000}'"),
    "2,000,000 spaces": one_column(" " * 2_000_000 + "x"),
    "a type of 20 arrays": Case(
        f"SELECT CAST(NULL AS {nested('ARRAY<', 'INT', '>', 20)}) IS NULL AS y FROM t WHERE x = 1", [(True,)]
    ),
    "a type of 500 arrays": one_column(f"CAST(NULL AS {nested('ARRAY<', 'INT', '>', 500)})"),
    "a type of 500 structs": one_column(f"CAST(NULL AS {nested('STRUCT<a: ', 'INT', '>', 500)})"),
    "500 arrays": one_column(nested("array(", "x", ")", 500)),
    "2,000 brackets": one_column("array(x)" + "[0]" * 2000),
    "parentheses that do not end": one_column("(" * 900),
    "a name of 3,000 columns": Case(f"SELECT {chain(' + ', ['x'] * 1000)} FROM t WHERE x = 2", [(2000,)]),
}


LONG = {
    "400,000 words": one_column(chain("+", ["x"] * 200_000)),
    "10,000 UNIONs": Case(chain(" UNION ", ["SELECT x AS y FROM t"] * 10_000), None),
    "5,000 ANDs": where(chain(" AND ", [f"x <> {number + 2}" for number in range(5000)]), 1),
    "5,000 ORs": where(chain(" OR ", [f"x = {number * 40}" for number in range(5000)]), 40),
    "5,000 sums": one_column(chain(" + ", ["x"] * 5000), 5000, 10_000, 200_000),
    "5,000 branches": one_column(
        "CASE " + " ".join(f"WHEN x = {number} THEN {number + 1}" for number in range(5000)) + " END", 2, 3, 41
    ),
    "an IN of 50,000": where(f"x IN ({chain(',', [str(number * 2) for number in range(50_000)])})", 2, 40),
    "900 INs in each other": where(nested("x IN (SELECT x FROM t WHERE ", "x > 1", ")", 900), 2, 40),
    "3,000 subqueries side by side": where(chain(" AND ", ["x IN (SELECT x FROM t WHERE x < 40)"] * 3000), 1, 2),
    "5,000 UNION ALLs": Case(chain(" UNION ALL ", ["SELECT x AS y FROM t WHERE x > 2"] * 5000), [(40,)] * 5000),
    "1,000 CASEs in each other": one_column(nested("CASE WHEN x = 3 THEN 1 ELSE ", "x", " END", 1000), 1, 2, 40),
}
FROM_DEEP = (
    "as many parentheses as may be",
    "one more",
    "900 calls",
    "999 NOTs",
    "1,000 ANDs",
    "2,000 sums",
    "300 CASEs in each other",
    "300 subqueries in FROM",
    "50 EXISTS in each other",
    "300 UNIONs",
    "300 CTEs in a row",
    "a type of 500 arrays",
)

T = TypeVar("T")


def deep(frames: int, call: Callable[[], T]) -> T:
    return call() if frames <= 0 else deep(frames - 1, call)


def on_a_stack_of(frames: int, call: Callable[[], T]) -> T:
    """The call with this many frames around it, whatever the test itself has."""
    return on_fresh_stack(lambda: deep(frames - 3, call))


def a_flow(path: Path | None = None) -> IncrementalFlow:
    flow = IncrementalFlow(path=path)
    if not flow.sources:
        flow.register_source("t", SOURCE)
    return flow


def rows_of(flow: IncrementalFlow) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in flow.snapshot("v").to_pylist()), key=repr)


def answer(flow: IncrementalFlow, case: Case) -> list[tuple[Any, ...]] | str:
    """The rows of the view, or the code of the error that refused it."""
    try:
        flow.register_view("v", case.sql)
    except WeirflowError as error:
        return error.code
    flow.tick("t", ROWS)
    return rows_of(flow)


def check(case: Case) -> None:
    flow = a_flow()
    started = time.process_time()

    found = answer(flow, case)

    assert time.process_time() - started < SECONDS
    if case.rows is None:
        assert found in ("SQL_TOO_COMPLEX", "SQL_SYNTAX")
        assert flow.views == ()
    else:
        assert found == sorted(case.rows, key=repr)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_sql_is_computed_or_refused_in_time(case: Case) -> None:
    check(case)


@pytest.mark.campaign
@pytest.mark.parametrize("case", LONG.values(), ids=LONG)
def test_longer_sql_is_computed_in_time(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("name", FROM_DEEP)
def test_the_depth_of_the_caller_changes_nothing(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    expected = "SQL_TOO_COMPLEX" if case.rows is None else sorted(case.rows, key=repr)

    def made() -> Any:
        with a_flow(tmp_path) as flow:
            return answer(flow, case)

    def reopened() -> Any:
        with a_flow(tmp_path) as flow:
            kept = rows_of(flow)
            flow.tick("t", [{"x": -1, "s": None, "d": None}])
            return kept

    assert on_a_stack_of(DEEP, made) == expected
    if case.rows is not None:
        assert on_a_stack_of(DEEPER, reopened) == expected


@pytest.mark.parametrize("name", ["150 parentheses", "2,000 sums", "5,000 NOTs"])
def test_a_small_recursion_limit_changes_nothing(name: str) -> None:
    limit = sys.getrecursionlimit()
    case = CASES[name]

    def limited() -> Any:
        sys.setrecursionlimit(400)
        try:
            return answer(a_flow(), case)
        finally:
            sys.setrecursionlimit(limit)

    assert on_fresh_stack(limited) == ("SQL_TOO_COMPLEX" if case.rows is None else case.rows)


def test_queries_and_their_explanation_are_as_deep_as_views(tmp_path: Path) -> None:
    flow = a_flow(tmp_path)
    flow.tick("t", ROWS)
    query = CASES["as many parentheses as may be"].sql

    assert on_a_stack_of(DEEP, lambda: flow.sql(query)).column("y").to_pylist() == [1, 2, 40]
    assert on_a_stack_of(DEEP, lambda: flow.explain_query(query)).startswith("the query: incremental")
    for ask in (flow.sql, flow.explain_query):
        with pytest.raises(SqlTooComplex):
            on_a_stack_of(DEEP, lambda ask=ask: ask(CASES["one more"].sql))


@pytest.mark.parametrize("views", [150, pytest.param(1000, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("materialized", [True, False])
def test_views_on_views(views: int, materialized: bool, tmp_path: Path) -> None:
    last = f"v{views - 1}"
    with a_flow(tmp_path) as flow:
        flow.register_view("v0", "SELECT x + 1 AS x FROM t", materialized=materialized)
        for number in range(1, views - 5):
            flow.register_view(f"v{number}", f"SELECT x + 1 AS x FROM v{number - 1}", materialized=materialized)
        flow.tick("t", ROWS)
        for number in range(views - 5, views):
            kept = materialized or number == views - 1
            flow.register_view(f"v{number}", f"SELECT x + 1 AS x FROM v{number - 1}", materialized=kept)
        assert sorted(flow.snapshot(last).column("x").to_pylist()) == [1 + views, 2 + views, 40 + views]
        assert "#0 source t" in on_a_stack_of(DEEP, lambda: flow.explain(last))
        assert on_a_stack_of(DEEP, lambda: flow.graph().svg).count("<rect") == views + 1

    def reopened() -> list[int]:
        with a_flow(tmp_path) as again:
            again.tick("t", [{"x": 100, "s": None, "d": None}])
            return sorted(again.snapshot(last).column("x").to_pylist())

    assert on_a_stack_of(DEEP, reopened) == [1 + views, 2 + views, 40 + views, 100 + views]


def test_a_source_of_deep_types_is_refused() -> None:
    kind: pa.DataType = pa.int32()
    for _ in range(500):
        kind = pa.list_(kind)
    flow = a_flow()

    for schema in (pa.schema([("a", kind)]), f"a {nested('ARRAY<', 'INT', '>', 500)}"):
        with pytest.raises(SqlTooComplex, match="type is nested more than 50 deep"):
            flow.register_source("deep", schema)

    assert flow.sources == ("t",)


def test_types_as_deep_as_may_be_are_kept(tmp_path: Path) -> None:
    value: Any = 1
    for _ in range(50):
        value = [value]
    with IncrementalFlow(path=tmp_path) as flow:
        flow.register_source("deep", f"a {nested('ARRAY<', 'INT', '>', 50)}")
        flow.register_view("v", "SELECT a FROM deep")
        flow.tick("deep", [{"a": value}])
        flow.checkpoint()

    with IncrementalFlow(path=tmp_path) as flow:
        assert flow.snapshot("v").to_pylist() == [{"a": value}]


def test_a_caller_without_any_room_gets_an_error_and_nothing_has_changed(tmp_path: Path) -> None:
    with a_flow(tmp_path) as flow:
        flow.register_view("v", "SELECT sum(x) AS y FROM t")
        flow.tick("t", ROWS)
        room = sys.getrecursionlimit() - 20

        for call in (
            lambda: flow.tick("t", ROWS),
            lambda: flow.register_view("w", "SELECT x FROM t"),
            lambda: flow.register_source("u", "a INT"),
            lambda: flow.replace_view("v", "SELECT min(x) AS y FROM t"),
        ):
            with pytest.raises(StackExhausted, match="nothing has changed"):
                on_a_stack_of(room, call)

        assert (flow.epoch, flow.pending, flow.views, flow.sources) == (1, False, ("v",), ("t",))
        assert flow.tick("t", ROWS).epoch == 2
        assert rows_of(flow) == [(86,)]


def test_the_first_thing_a_process_does_may_be_deep() -> None:
    script = """
from weirflow import IncrementalFlow

def deep(frames, call):
    return call() if frames == 0 else deep(frames - 1, call)

def work():
    flow = IncrementalFlow()
    flow.register_source("t", "x BIGINT")
    flow.register_view("v", "SELECT " + "(" * 150 + "x" + ")" * 150 + " AS y FROM t")
    flow.tick("t", [{"x": 7}])
    return flow.snapshot("v").to_pylist()

print(deep(930, work))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)

    assert (done.stdout, done.stderr) == ("[{'y': 7}]\n", "")


def test_an_interrupted_caller_waits_until_nothing_runs_any_more() -> None:
    begun, sent, ended = threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        sent.wait(60)
        deadline = time.monotonic() + 0.3
        while time.monotonic() < deadline:
            pass
        ended.append(True)

    def interrupt() -> None:
        begun.wait()
        os.kill(os.getpid(), signal.SIGINT)
        sent.set()

    thread = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            on_fresh_stack(work)
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)

    assert ended == [True]


def test_a_system_without_threads_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("weirflow.stack._thread.start_new_thread", refuse)

    with pytest.raises(StackExhausted, match="refuses another thread"):
        on_fresh_stack(lambda: None)


def test_what_is_raised_on_another_stack_is_raised_here() -> None:
    @grows
    def fall(depth: int) -> int:
        if depth == 0:
            raise ValueError("bottom")
        return fall(depth - 1)

    with pytest.raises(ValueError, match="bottom"):
        fall(3000)
    assert not is_deep()


def test_deep_plans_compare_hash_and_pickle(catalog: dict[str, tuple[Field, ...]]) -> None:
    sql = f"SELECT {chain(' + ', ['a'] * 1500)} AS y FROM t"
    one, other = (logical_plan(sql, catalog) for _ in range(2))

    assert one is not other
    assert one == other
    assert hash(one) == hash(other)
    assert one != logical_plan(sql.replace("a + a", "a - a", 1), catalog)
    shallow = logical_plan("SELECT a + 1 AS y FROM t", catalog)
    assert pickle.loads(pickle.dumps(shallow)) == shallow


def test_reading_long_text_takes_no_memory_for_each_character() -> None:
    assert is_query(f"SELECT '{'b' * 5_000_000}'")
    assert not is_query(f"SELECT '{chr(92)}'' ; DELETE FROM t -- '")


def test_a_deep_parameter_is_refused() -> None:
    value: Any = []
    value.append(value)

    with pytest.raises(SqlTooComplex):
        with_literals("SELECT ?", [value])
