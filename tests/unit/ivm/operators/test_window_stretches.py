"""Windows maintained by stretches equal those that are computed anew from all rows, whatever comes and goes."""

from __future__ import annotations

import math
import random
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.rows import coarse_hash, colliding_hash, count_rows

from weirflow.errors import DataError
from weirflow.ivm.kernel import places
from weirflow.ivm.kernel.expressions.compile import compile_expressions
from weirflow.ivm.kernel.ordered import OrderedArrangement
from weirflow.ivm.kernel.runs import spine
from weirflow.ivm.kernel.sort_keys import SortColumn
from weirflow.ivm.operators.floats import normalized
from weirflow.ivm.operators.window import before, operator
from weirflow.ivm.operators.window.changes import Limit
from weirflow.ivm.operators.window.functions import evaluate
from weirflow.ivm.operators.window.operator import Window
from weirflow.ivm.operators.window.ordered import OrderedPartitions, sorted_rows
from weirflow.ivm.zset.batch import Batch, take_columns
from weirflow.ivm.zset.rows import consolidate, group_rows
from weirflow.sql.bind.query import bind_query
from weirflow.sql.plan import Field
from weirflow.sql.plan import Window as WindowPlan
from weirflow.sql.traverse import nodes

pytestmark = pytest.mark.usefixtures("either_kernel")

COLUMNS = {"p": pa.int64(), "o": pa.int64(), "f": pa.float64(), "s": pa.string(), "d": pa.decimal128(10, 2)}
TYPES = list(COLUMNS.values())
PARTITIONS = ["PARTITION BY p", "PARTITION BY f", "PARTITION BY p, s", ""]
ORDERS = ["o", "o DESC", "f", "f DESC NULLS FIRST", "s NULLS LAST, o", "o, f DESC", "abs(o)", "d", "s"]
CALLS = [
    *("row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", "ntile(3)"),
    *("lag(o)", "lag(f, 2, 0.5D)", "lead(s)", "lead(o, 3)", "lag(o, -1)", "lag(o, 0)", "lag(o) IGNORE NULLS"),
]
FRAMED = [
    *("SUM(o)", "SUM(f)", "SUM(d)", "AVG(f)", "AVG(d)", "COUNT(*)", "COUNT(s)", "stddev(f)", "bool_or(o > 2)"),
    *("MIN(o)", "MAX(f)", "first_value(s)", "last_value(o)", "last_value(f) IGNORE NULLS", "nth_value(o, 2)"),
    "collect_list(o)",
]
NEAR = ["1 PRECEDING AND 2 FOLLOWING", "3 PRECEDING AND CURRENT ROW", "2 PRECEDING AND 1 PRECEDING"]
FRAMES = [
    "",
    *("ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
    *("ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING", "ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING"),
    *("ROWS BETWEEN 4 PRECEDING AND 2 PRECEDING", "ROWS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING"),
    *("ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"),
    *("RANGE BETWEEN CURRENT ROW AND CURRENT ROW", "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"),
]
ROWS = st.tuples(
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, *range(9), -3]),
    st.sampled_from([None, 0.0, -0.0, 1.5, -2.25, 0.1, 1e10] * 3 + [math.nan, math.inf, 1e300, 1e-300]),
    st.sampled_from([None, "", "a", "aaaaaaaaaab", "aaaaaaaaaaa", "b"]),
    st.sampled_from([None, Decimal("1.25"), Decimal("-3.10"), Decimal(0)]),
)
TICKS = st.lists(
    st.tuples(
        st.lists(st.tuples(ROWS, st.integers(1, 3)), max_size=12),  # rows that come
        st.lists(st.tuples(st.integers(0, 999), st.integers(1, 3)), max_size=6),  # rows that go, by place
        st.booleans(),  # whether runs are merged
    ),
    min_size=2,
    max_size=6,
)


def calls_of(select: str):
    catalog = {"t": tuple(Field(name, kind) for name, kind in COLUMNS.items())}
    plan = bind_query(f"SELECT p, {select} FROM t", catalog)
    return next(node for node in nodes(plan) if isinstance(node, WindowPlan)).calls


@st.composite
def selects(draw):
    over = f"{draw(st.sampled_from(PARTITIONS))} ORDER BY {draw(st.sampled_from(ORDERS))}"
    plain = st.sampled_from(CALLS).map(lambda call: f"{call} OVER ({over})")
    framed = st.tuples(st.sampled_from(FRAMED), st.sampled_from(FRAMES)).map(lambda c: f"{c[0]} OVER ({over} {c[1]})")
    return ", ".join(draw(st.lists(plain | framed, min_size=1, max_size=3)))


@st.composite
def near_values(draw):
    over = f"{draw(st.sampled_from(PARTITIONS))} ORDER BY o {draw(st.sampled_from(['', 'DESC', 'NULLS LAST']))}"
    near = st.tuples(st.sampled_from(FRAMED), st.sampled_from(NEAR)).map(
        lambda c: f"{c[0]} OVER ({over} RANGE BETWEEN {c[1]})"
    )
    others = st.sampled_from(["row_number()", "rank()", "lag(o)", "SUM(f)"]).map(lambda call: f"{call} OVER ({over})")
    return ", ".join([draw(near), *draw(st.lists(near | others, max_size=2))])


def batch(rows) -> Batch:
    columns = tuple(pa.array([row[at] for row, _ in rows], kind) for at, kind in enumerate(TYPES))
    return Batch(columns, np.array([weight for _, weight in rows], np.int64))


def recomputed(calls, table: Batch) -> Counter:
    """Each call over all rows at once, sorted for it."""
    rows = consolidate(table)
    rows = rows.take(np.repeat(np.arange(len(rows)), rows.weights))
    count = len(rows)
    if not count:
        return Counter()
    keys = compile_expressions(calls[0].partition_by)(rows.columns, count)
    partition = np.zeros(count, np.int64)
    if keys:
        order, starts, _ = group_rows([normalized(key) for key in keys], count)
        partition[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=count))
    made = []
    for call in calls:
        arguments = compile_expressions(call.arguments)(rows.columns, count)
        sort_keys = compile_expressions([key.expr for key in call.order_by])(rows.columns, count)
        order = [SortColumn(at, key.descending, key.nulls_first) for at, key in enumerate(call.order_by)]
        placed = sorted_rows(partition, sort_keys, order, rows.columns)
        ordered = OrderedPartitions(
            partition[placed], take_columns(sort_keys, placed), descending=call.order_by[0].descending
        )
        values = evaluate(ordered, take_columns(arguments, placed), call)
        made.append(take_columns([values], np.argsort(placed))[0])
    return count_rows([Batch((*rows.columns, *made), np.ones(count, np.int64))])


class Table:
    """Rows as they are written, since to Python zeros of either sign are equal."""

    def __init__(self) -> None:
        self.held: dict[str, tuple] = {}
        self.count: Counter[str] = Counter()

    def change(self, come, go) -> Batch:
        changes = list(come)
        for row, weight in come:
            self.held[repr(row)] = row
            self.count[repr(row)] += weight
        for place, weight in go:
            present = sorted(+self.count)
            if present:
                name = present[place % len(present)]
                taken = min(weight, self.count[name])
                self.count[name] -= taken
                changes.append((self.held[name], -taken))
        return batch(changes)

    def rows(self) -> Batch:
        return batch([(self.held[name], weight) for name, weight in (+self.count).items()])


def check(window: Window, calls, ticks, passes=None) -> None:
    """The sum of what comes out is, after each tick, what is computed anew."""
    table, emitted = Table(), Counter()
    for come, go, merged in ticks:
        delta = table.change(come, go)
        if not len(delta):
            continue
        output = window.step([delta])
        window.commit()
        if merged:
            for state in window.states:
                state.maintain(1000)
        emitted.update(count_rows([output]))
        expected = Counter(
            {row: n for row, n in recomputed(calls, table.rows()).items() if passes is None or passes(row)}
        )
        assert {row: n for row, n in emitted.items() if n} == expected


@pytest.fixture(params=[0, 32], ids=["searched", "read"])
def few_ties(request, monkeypatch):
    """Ties are searched through, or read whole; a delta is never too large, and runs and blocks are small."""
    monkeypatch.setattr(places, "_FEW_TIES", request.param)
    monkeypatch.setattr(operator, "_MANY", 0)
    monkeypatch.setattr(spine, "HEAD_ROWS", 4)
    monkeypatch.setattr(before, "_BLOCK", 2)
    monkeypatch.setattr(before, "_LONG", 1)


@pytest.mark.usefixtures("few_ties")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(selects() | near_values(), TICKS)
def test_a_window_equals_one_that_is_computed_anew(select, ticks):
    calls = calls_of(select)
    check(Window(TYPES, calls), calls, ticks)


MIXED = {
    "both ways": ["lead(f, 3) OVER (w)", "SUM(d) OVER (w ROWS BETWEEN 5 PRECEDING AND CURRENT ROW)"],
    "places and peers": ["lag(s, 2) OVER (w)", "MIN(f) OVER (w RANGE BETWEEN CURRENT ROW AND CURRENT ROW)"],
    "onwards and around": ["row_number() OVER (w)", "SUM(d) OVER (w)", "lead(s, 2) OVER (w)"],
    "onwards and near": ["rank() OVER (w)", "COUNT(s) OVER (w RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING)"],
}


@pytest.mark.usefixtures("few_ties")
@pytest.mark.parametrize("select", MIXED.values(), ids=MIXED)
def test_calls_that_reach_differently_far_go_together(select):
    dice = random.Random(5)
    rows = [
        (1, n // 8, dice.choice([None, dice.random()]), dice.choice("abc"), Decimal(dice.randrange(900)) / 100)
        for n in range(80)
    ]
    ticks = [([(row, 1) for row in rows[:50]], [], True)]
    ticks += [
        ([(row, 1) for row in dice.sample(rows, dice.randrange(3))], [(dice.randrange(999), 1)], dice.random() < 0.3)
        for _ in range(40)
    ]
    calls = calls_of(", ".join(select).replace("(w", "(PARTITION BY p ORDER BY o"))
    check(Window(TYPES, calls), calls, ticks)


RANKED = [
    ["row_number()"],
    ["rank()"],
    ["dense_rank()"],
    ["row_number()", "SUM(o)", "lag(f)"],
    ["rank()", "collect_list(s)", "MAX(o)"],
    ["dense_rank()", "row_number()"],
]


@pytest.mark.usefixtures("few_ties")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.sampled_from(RANKED), st.sampled_from(PARTITIONS), st.sampled_from(ORDERS), st.integers(0, 4), TICKS)
def test_the_first_of_each_partition_equal_those_that_are_computed_anew(names, partition, order, most, ticks):
    calls = calls_of(", ".join(f"{name} OVER ({partition} ORDER BY {order})" for name in names))
    at = len(TYPES)
    check(Window(TYPES, calls, Limit(0, most)), calls, ticks, lambda row: row[at] <= most)


@pytest.mark.usefixtures("few_ties")
@pytest.mark.parametrize("row_hash", [coarse_hash, colliding_hash], ids=["coarse", "colliding"])
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.sampled_from(["row_number()", "rank()", "lag(o)", "SUM(o)", "SUM(f)"]), st.booleans(), TICKS)
def test_partitions_whose_hashes_collide_are_kept_apart(row_hash, name, limited, ticks):
    calls = calls_of(f"{name} OVER (PARTITION BY p ORDER BY o)")
    limit = Limit(0, 2) if limited and name in ("row_number()", "rank()") else None
    window = Window(TYPES, calls, limit)
    rows = window._rows
    window._rows = OrderedArrangement(rows.types, rows.key_count, rows.order, row_hash=row_hash)
    at = len(TYPES)
    check(window, calls, ticks, lambda row: limit is None or row[at] <= 2)


GREATEST, LEAST = 2**63 - 1, -(2**63)
EDGES = st.tuples(
    st.just(1),
    st.sampled_from([None, LEAST, LEAST + 2, 5, 6, GREATEST - 3, GREATEST - 1, GREATEST]),
    st.none(),
    st.sampled_from(["a", "b"]),
    st.none(),
)


@pytest.mark.usefixtures("few_ties")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.sampled_from([*NEAR, "2 PRECEDING AND 2 FOLLOWING", "1 FOLLOWING AND 2 FOLLOWING"]),
    st.sampled_from(["", "DESC", "NULLS LAST", "DESC NULLS FIRST"]),
    st.lists(
        st.tuples(
            st.lists(st.tuples(EDGES, st.just(1)), max_size=3),
            st.lists(st.tuples(st.integers(0, 9), st.just(1)), max_size=1),
        ),
        max_size=8,
    ),
)
def test_a_bound_that_leaves_its_type_is_found_in_a_stretch_too(frame, direction, ticks):
    calls = calls_of(f"COUNT(*) OVER (PARTITION BY p ORDER BY o {direction} RANGE BETWEEN {frame})")
    window, table, emitted = Window(TYPES, calls), Table(), Counter()
    for come, go in ticks:
        kept = table.count.copy()
        delta = table.change(come, go)
        if not len(delta):
            continue
        try:
            expected = recomputed(calls, table.rows())
        except DataError:
            with pytest.raises(DataError):
                window.step([delta])
            window.discard()
            table.count = kept
            continue
        emitted.update(count_rows([window.step([delta])]))
        window.commit()
        assert {row: n for row, n in emitted.items() if n} == expected
