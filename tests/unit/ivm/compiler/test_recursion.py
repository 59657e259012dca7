"""Recursive CTEs as views: levels, fixed points, limits, and ticks that fail or are taken back."""

from collections import Counter

import pyarrow as pa
import pytest
from support.compiled_views import compile_views
from support.maintained import Maintained, batch_rows

from weirflow.errors import DataError, NotIncremental, Reason
from weirflow.ivm.circuit import recursion
from weirflow.ivm.circuit.recursion import Recursion, RecursionLimits
from weirflow.ivm.compiler.program import Program
from weirflow.ivm.compiler.view import View
from weirflow.ivm.zset.batch import Batch

EDGES = {"e": pa.schema([("a", pa.int64()), ("b", pa.int64())])}
CLOSURE = "WITH RECURSIVE r AS (SELECT a, b FROM e {} SELECT r.a, e.b FROM r JOIN e ON r.b = e.a) SELECT a, b FROM r"
UNION = CLOSURE.format("UNION")
UNION_ALL = CLOSURE.format("UNION ALL")
FROM_ZERO = "WITH RECURSIVE r AS (SELECT 0L AS n UNION SELECT e.b FROM r JOIN e ON r.n = e.a) SELECT n FROM r"


def maintained(sql, sources=EDGES, **more):
    return Maintained(sources, {"view": sql, **more})


def rows(views, name="view"):
    return sorted(views.views[name].elements(), key=repr)


def inserts(*values):
    return [(value, 1) for value in values]


def deletes(*values):
    return [(value, -1) for value in values]


def chain(first, last):
    return inserts(*((node, node + 1) for node in range(first, last)))


def recursions(circuit):
    return [node.operator for node in circuit.nodes if isinstance(node.operator, Recursion)]


def test_an_org_chart_follows_a_reorganisation():
    staff = {"staff": pa.schema([("id", pa.int64()), ("boss", pa.int64()), ("name", pa.string())])}
    views = maintained(
        """
        WITH RECURSIVE chart AS (
            SELECT id, name, 0 AS depth, name AS path FROM staff WHERE boss IS NULL
            UNION ALL
            SELECT staff.id, staff.name, depth + 1, concat(path, '/', staff.name)
            FROM chart JOIN staff ON staff.boss = chart.id
        ) SELECT path, depth FROM chart
        """,
        staff,
    )
    views.tick({"staff": inserts((1, None, "ann"), (2, 1, "bob"), (3, 2, "cid"), (4, 1, "dee"))})
    assert rows(views) == [("ann", 0), ("ann/bob", 1), ("ann/bob/cid", 2), ("ann/dee", 1)]

    views.tick({"staff": [((2, 1, "bob"), -1), ((2, 4, "bob"), 1)]})

    assert rows(views) == [("ann", 0), ("ann/dee", 1), ("ann/dee/bob", 2), ("ann/dee/bob/cid", 3)]


def test_a_bill_of_materials_adds_up_all_ways_to_a_part():
    parts = {"parts": pa.schema([("whole", pa.string()), ("part", pa.string()), ("n", pa.int64())])}
    views = maintained(
        """
        WITH RECURSIVE need AS (
            SELECT part, n FROM parts WHERE whole = 'car'
            UNION ALL
            SELECT parts.part, need.n * parts.n FROM need JOIN parts ON parts.whole = need.part
        ) SELECT part, SUM(n) AS n FROM need GROUP BY part
        """,
        parts,
    )
    views.tick({"parts": inserts(("car", "wheel", 4), ("car", "bolt", 10), ("wheel", "bolt", 5), ("bolt", "nut", 2))})
    assert rows(views) == [("bolt", 30), ("nut", 60), ("wheel", 4)]

    views.tick({"parts": [(("wheel", "bolt", 5), -1), (("wheel", "bolt", 6), 1)]})

    assert rows(views) == [("bolt", 34), ("nut", 68), ("wheel", 4)]


def test_union_ends_on_cycles_and_loses_what_only_a_cycle_holds_up():
    views = maintained(FROM_ZERO)
    views.tick({"e": inserts((0, 1), (1, 2), (2, 3), (3, 1))})
    assert rows(views) == [(0,), (1,), (2,), (3,)]

    views.tick({"e": deletes((0, 1))})

    assert rows(views) == [(0,)]


def test_a_row_that_is_found_earlier_or_later_is_no_change():
    views = maintained(FROM_ZERO)
    views.tick({"e": chain(0, 6)})

    assert views.tick({"e": inserts((0, 5))}) == {}
    assert views.tick({"e": deletes((4, 5))}) == {}
    assert views.tick({"e": [((0, 5), -1), ((4, 5), 1)]}) == {}
    assert rows(views) == [(node,) for node in range(7)]


def test_union_all_keeps_each_way_to_a_row():
    views = maintained(UNION_ALL)
    views.tick({"e": [((1, 2), 2), ((2, 4), 1), ((1, 3), 1), ((3, 4), 3)]})
    assert views.views["view"] == Counter({(1, 2): 2, (2, 4): 1, (1, 3): 1, (3, 4): 3, (1, 4): 5})

    views.tick({"e": [((1, 2), -1), ((3, 4), -3)]})

    assert views.views["view"] == Counter({(1, 2): 1, (2, 4): 1, (1, 3): 1, (1, 4): 1})


def test_base_and_step_change_in_the_same_tick():
    sources = {**EDGES, "s": pa.schema([("n", pa.int64())])}
    views = maintained(
        "WITH RECURSIVE r AS (SELECT n FROM s UNION ALL SELECT e.b FROM r JOIN e ON r.n = e.a) SELECT n FROM r", sources
    )
    views.tick({"s": inserts((0,)), "e": chain(0, 3)})
    assert rows(views) == [(0,), (1,), (2,), (3,)]

    views.tick({"s": [((0,), -1), ((1,), 1)], "e": [((2, 3), -1), ((2, 9), 1)]})

    assert rows(views) == [(1,), (2,), (9,)]


def test_null_keys_lead_nowhere_and_null_rows_are_found_once():
    views = maintained(UNION)
    views.tick({"e": inserts((1, None), (None, 2), (None, None), (1, None))})
    assert rows(views) == [(1, None), (None, 2), (None, None)]


def test_union_compares_floats_as_distinct_does():
    floats = {"f": pa.schema([("x", pa.float64()), ("y", pa.float64())])}
    views = maintained(
        "WITH RECURSIVE r AS (SELECT x FROM f UNION SELECT f.y FROM r JOIN f ON r.x = f.x) SELECT x FROM r", floats
    )
    views.tick({"f": inserts((0.0, float("nan")), (-0.0, -0.0), (float("nan"), 0.0))})
    assert rows(views) == [("NaN",), (0.0,)]


def test_a_recursion_over_constants_is_there_from_the_start():
    views = maintained(
        """
        WITH RECURSIVE r AS (
            SELECT 1 AS n UNION ALL SELECT n + d FROM r JOIN (VALUES (1), (2)) AS v(d) ON n + d <= 4
        ) SELECT n, COUNT(*) AS ways FROM r GROUP BY n
        """
    )
    assert rows(views) == [(1, 1), (2, 1), (3, 2), (4, 3)]


def test_generators_in_a_step():
    views = maintained(
        "WITH RECURSIVE r AS (SELECT a, b FROM e UNION ALL "
        "SELECT r.a, x FROM r LATERAL VIEW explode(array(b + 1, b + 2)) AS x WHERE b < 2) SELECT a, b FROM r"
    )
    views.tick({"e": inserts((7, 0))})
    assert rows(views) == [(7, 0), (7, 1), (7, 2), (7, 2), (7, 3)]


def test_equal_recursions_of_two_views_are_built_once():
    views = maintained(UNION, grouped=UNION.replace("SELECT a, b FROM r", "SELECT a, COUNT(*) AS n FROM r GROUP BY a"))
    views.tick({"e": chain(1, 4)})

    assert len(recursions(views.circuit)) == 1
    assert rows(views, "grouped") == [(1, 3), (2, 2), (3, 1)]


def test_a_thousand_levels():
    views = maintained(FROM_ZERO)
    views.tick({"e": chain(0, 1000)})
    assert rows(views) == sorted([(node,) for node in range(1001)], key=repr)

    views.tick({"e": deletes((500, 501))})

    assert rows(views) == sorted([(node,) for node in range(501)], key=repr)


@pytest.mark.parametrize("sql", [UNION, UNION_ALL])
def test_a_discarded_tick_leaves_nothing_behind(sql):
    views = maintained(sql)
    views.tick({"e": chain(1, 4)})
    delta = {"e": views._batch("e", [((2, 3), -1), ((4, 5), 1), ((3, 5), 1)])}

    first = views.circuit.step(delta)
    views.circuit.discard()
    second = views.circuit.step(delta)
    views.circuit.discard()
    views.tick({"e": inserts((4, 5))})

    assert sorted(batch_rows(first["view"])) == sorted(batch_rows(second["view"]))
    assert rows(views) == sorted((a, b) for a in range(1, 5) for b in range(a + 1, 6))


def test_union_all_has_as_many_levels_as_spark_allows():
    views = maintained(UNION_ALL)
    views.tick({"e": chain(0, 100)})
    before = views.views["view"].copy()

    with pytest.raises(DataError, match="after 100 levels") as raised:
        views.tick({"e": inserts((100, 101))})
    views.circuit.discard()

    assert raised.value.condition == "RECURSION_LEVEL_LIMIT_EXCEEDED"
    assert views.tick({"e": deletes((99, 100))})
    assert views.views["view"] == Counter({(a, b): n for (a, b), n in before.items() if b != 100})


def test_a_cycle_under_union_all_fails_the_tick_and_changes_nothing():
    views = maintained(UNION_ALL)
    views.tick({"e": inserts((1, 2))})

    with pytest.raises(DataError, match="look for a cycle"):
        views.tick({"e": inserts((2, 1))})
    views.circuit.discard()
    views.tick({"e": inserts((2, 3))})

    assert rows(views) == [(1, 2), (1, 3), (2, 3)]


def test_union_all_has_fewer_rows_than_spark_allows():
    views = maintained(UNION_ALL)
    views.tick({"e": [((1, 2), 999), ((2, 3), 500)]})  # and 499,500 ways from 1 to 3

    with pytest.raises(DataError, match="reached 1,000,000 rows") as raised:
        views.tick({"e": [((2, 3), 500)]})
    views.circuit.discard()

    assert raised.value.condition == "RECURSION_ROW_LIMIT_EXCEEDED"
    views.tick({"e": [((2, 3), 499)]})
    assert views.views["view"] == Counter({(1, 2): 999, (2, 3): 999, (1, 3): 998_001})


def test_rows_that_leave_a_level_make_room_for_others_in_the_same_tick():
    views = maintained(UNION_ALL)
    views.tick({"e": [((1, 2), 999), ((2, 3), 999)]})

    views.tick({"e": [((2, 3), -999), ((5, 6), 998_000)]})

    assert views.views["view"] == Counter({(1, 2): 999, (5, 6): 998_000})


def test_rows_of_untouched_levels_count_too():
    views = maintained(UNION_ALL)
    views.tick({"e": [((1, 2), 999), ((2, 3), 999)]})

    with pytest.raises(DataError, match="rows"):
        views.tick({"e": [((5, 6), 1)]})
    views.circuit.discard()


def test_union_that_makes_ever_new_rows_ends_at_its_own_limit(monkeypatch):
    monkeypatch.setattr(recursion, "UNION", RecursionLimits(levels=20, rows=None))
    views = maintained("WITH RECURSIVE r AS (SELECT a FROM e UNION SELECT a + 1 FROM r WHERE a <> 100) SELECT a FROM r")
    views.tick({"e": inserts((81, 0))})

    with pytest.raises(DataError, match="after 20 levels"):
        views.tick({"e": [((81, 0), -1), ((80, 0), 1)]})
    views.circuit.discard()

    assert rows(views) == sorted([(n,) for n in range(81, 101)], key=repr)


def test_a_row_that_fails_in_a_later_level_fails_the_tick():
    views = maintained(
        "WITH RECURSIVE r AS (SELECT a FROM e UNION ALL SELECT a - 1 FROM r WHERE 6 / a > 0) SELECT a FROM r"
    )
    with pytest.raises(DataError) as raised:
        views.tick({"e": inserts((3, 0))})
    views.circuit.discard()
    assert raised.value.condition == "DIVIDE_BY_ZERO"
    assert views.tick({"e": inserts((-1, 0))})
    assert rows(views) == [(-1,)]


def test_a_step_that_failed_half_way_is_forgotten():
    views = maintained(
        "WITH RECURSIVE r AS (SELECT a, 1D AS x FROM e WHERE a = 1 UNION ALL "
        "SELECT e.b, 10 / e.b FROM r JOIN e ON r.a = e.a) SELECT a, x FROM r"
    )
    with pytest.raises(DataError):
        views.tick({"e": inserts((1, 0))})
    views.circuit.discard()
    views.tick({"e": inserts((1, 5))})
    views.tick({"e": [((1, 5), -1), ((1, 2), 1)]})
    assert rows(views) == [(1, 1.0), (2, 5.0)]


def test_rows_that_only_change_levels_cost_nothing_downstream():
    views = maintained(FROM_ZERO)
    views.tick({"e": chain(0, 6)})
    (operator,) = recursions(views.circuit)

    change = operator.step([Batch.empty([pa.int64()]), views._batch("e", inserts((0, 5)))])
    operator.discard()

    assert len(change) == 0


@pytest.mark.parametrize("sql", [UNION, UNION_ALL])
def test_all_state_is_in_states(sql):
    """What a checkpoint saves is enough to go on."""
    views = maintained(sql)
    views.tick({"e": chain(1, 5)})
    other = maintained(sql)
    (one,), (two,) = recursions(views.circuit), recursions(other.circuit)
    for saved, empty in zip(one.states, two.states, strict=True):
        empty.adopt(saved.runs)

    delta = {"e": views._batch("e", [((2, 3), -1), ((5, 9), 1)])}
    expected, got = views.circuit.step(delta)["view"], other.circuit.step(delta)["view"]

    assert len(expected)
    assert Counter(zip(batch_rows(got), got.weights.tolist(), strict=True)) == Counter(
        zip(batch_rows(expected), expected.weights.tolist(), strict=True)
    )


def test_state_does_not_grow_with_the_number_of_ticks():
    views = maintained(FROM_ZERO)
    (operator,) = recursions(views.circuit)
    fan = [(0, node) for node in range(1, 3001)]
    for _ in range(10):
        views.tick({"e": inserts(*fan)})
        views.tick({"e": deletes(*fan)})
    views.tick({"e": inserts(*fan)})

    # The edges, the nodes by the edge they continue with, and the levels at which nodes are derived.
    assert sum(state.row_count for state in operator.states) <= 3 * (3000 + 3001 + 3001)


def test_a_recursive_view_added_later_starts_with_the_rows_that_are_there():
    program = Program()
    program.add_source("e", EDGES["e"])
    program.fill()
    views = maintained(UNION)
    changes = [chain(1, 5), [((2, 3), -1), ((5, 1), 1)]]
    program.circuit.step({"e": views._batch("e", changes[0])})
    program.circuit.commit([])
    program.circuit.maintain(4)
    program.add_views({"view": View(UNION)})
    program.fill()
    program.circuit.step({"e": views._batch("e", changes[1])})
    program.circuit.commit([])
    program.circuit.maintain(2)

    for change in changes:
        views.tick({"e": change})
    stored = program.rows("view")
    assert Counter(batch_rows(stored)) == views.views["view"]


REFUSED = {
    "WITH RECURSIVE r AS (SELECT a, b FROM e UNION SELECT x.a, y.b FROM r x JOIN r y ON x.b = y.a) SELECT * FROM r": (
        "reads it twice in a join"
    ),
    "WITH RECURSIVE r AS (SELECT a, b FROM e UNION (SELECT a, b FROM r UNION ALL SELECT 1L, 2L)) SELECT * FROM r": (
        "has a part that does not read it"
    ),
    "WITH RECURSIVE r AS (SELECT a, b FROM e UNION ALL (SELECT a, b FROM r LIMIT 1)) SELECT * FROM r": "under LIMIT",
    "WITH RECURSIVE r AS (SELECT a FROM e UNION ALL (SELECT a FROM r EXCEPT SELECT a FROM e)) SELECT * FROM r": (
        "in EXCEPT or INTERSECT"
    ),
    "WITH RECURSIVE r AS (SELECT a FROM e UNION SELECT a FROM e WHERE a NOT IN (SELECT a FROM r)) SELECT * FROM r": (
        "inside ANTI JOIN"
    ),
    """WITH RECURSIVE r AS (
        SELECT a, b FROM e UNION ALL SELECT a, b FROM e WHERE EXISTS (SELECT 1 FROM r WHERE r.b = e.a AND r.a < e.b)
    ) SELECT * FROM r""": "by more than equality",
    """WITH RECURSIVE r AS (SELECT 0 AS x UNION ALL (
        WITH RECURSIVE q AS (SELECT x FROM r UNION ALL SELECT x + 100 FROM q WHERE x < 300) SELECT x + 1 FROM q
    )) SELECT * FROM r""": "inside another recursion",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_has_no_delta_rule_is_refused(sql):
    with pytest.raises(NotIncremental, match=REFUSED[sql]) as raised:
        compile_views(EDGES, {"view": sql})
    assert raised.value.reason is Reason.OPERATOR_NOT_INCREMENTALIZABLE
    assert raised.value.hint
