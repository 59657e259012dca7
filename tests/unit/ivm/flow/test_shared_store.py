"""Sources whose rows are kept where joins probe them: one copy, whatever becomes of the views."""

import contextlib
import random
from collections import Counter

import duckdb
import pyarrow as pa
import pytest
from support.interrupts import raise_at, some_points

from weirflow import DeltaBatch, IncrementalFlow, Lateness
from weirflow.errors import ColumnNotFound, DataError, StorageError
from weirflow.ivm.durability import manifest
from weirflow.ivm.durability.checkup import check_flow

FACTS = pa.schema([("uid", pa.int64()), ("d", pa.int64()), ("e", pa.string()), ("v", pa.float64())])
DIMS = pa.schema([("d", pa.int64()), ("region", pa.string())])
SCHEMAS = {"facts": FACTS, "dims": DIMS}
BY_D = "SELECT region, SUM(v) AS total FROM facts JOIN dims ON facts.d = dims.d GROUP BY region"
BY_E = "SELECT region, v FROM facts JOIN dims ON facts.e = dims.region"
COUNTED = {"n": "SELECT COUNT(*) AS n FROM facts"}
ONE, TWO, LOST = (1, 1, "x", 1.5), (2, 2, "y", 2.5), (3, None, None, None)
NORTH, SOUTH = (1, "x"), (2, "y")


def delta(source, inserted=(), retracted=()):
    rows = [*inserted, *retracted]
    schema = SCHEMAS[source]
    columns = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(schema)]
    weights = pa.array([1] * len(inserted) + [-1] * len(retracted), pa.int64())
    return DeltaBatch.from_weighted(pa.table([*columns, weights], names=[*schema.names, "_weight"]))


def begin(views, ticks=True, path=None, **options):
    flow = IncrementalFlow("shop", path=path)
    flow.register_source("facts", FACTS, **options)
    flow.register_source("dims", DIMS)
    for name, sql in views.items():
        flow.register_view(name, sql)
    if ticks:
        flow.tick({"facts": delta("facts", [ONE, TWO, LOST]), "dims": delta("dims", [NORTH, SOUTH])})
    return flow


def rows(flow, name, **options):
    return Counter(tuple(row.values()) for row in flow.snapshot(name, **options).to_pylist())


def arrangements(flow, name):
    """How many rows each arrangement below a relation holds."""
    lines = [line for line in flow.explain(name).splitlines() if "arrange, " in line]
    return [int(line.split("arrange, ")[1].split(" rows")[0].replace(",", "")) for line in lines]


def are_shared(flow, view, *sources):
    """Whether a view reads the rows of each of these sources where they are kept."""
    stores = [flow.explain(source).splitlines()[1].split(",")[0].strip() for source in sources]
    return [f"{store}, " in flow.explain(view) for store in stores]


def require(flow, facts, by_d):
    """The rows of the facts, and what the view has; no row can be retracted that is not there."""
    assert rows(flow, "facts") == Counter(facts)
    assert rows(flow, "by_d") == Counter(by_d)
    with pytest.raises(DataError, match="holds 0 times"):
        flow.tick("facts", delta("facts", retracted=[(9, 1, "x", 1.5)]))


def test_a_join_reads_the_rows_of_its_sources_where_they_are():
    flow = begin({"by_d": BY_D})
    assert are_shared(flow, "by_d", "facts", "dims") == [True, True]
    assert arrangements(flow, "by_d") == [2, 3, 2]  # its own rows, those of the facts, of the dimension
    require(flow, [ONE, TWO, LOST], [("x", 1.5), ("y", 2.5)])
    flow.tick("facts", delta("facts", [ONE, LOST], [TWO]))
    require(flow, [ONE, ONE, LOST, LOST], [("x", 3.0)])


def test_the_error_says_how_often_a_row_is_held():
    flow = begin({"by_d": BY_D})
    flow.tick("facts", delta("facts", [ONE]))
    with pytest.raises(DataError, match=r"3 times that the source 'facts' holds 2 times: \{'uid': 1, 'd': 1, 'e': 'x'"):
        flow.tick("facts", delta("facts", retracted=[ONE, ONE, ONE]))
    require(flow, [ONE, ONE, TWO, LOST], [("x", 3.0), ("y", 2.5)])


def test_rows_move_when_a_view_is_registered_later_and_none_is_lost():
    flow = begin(COUNTED)
    assert arrangements(flow, "facts") == [3]
    flow.register_view("by_d", BY_D)
    assert are_shared(flow, "by_d", "facts", "dims") == [True, True]
    require(flow, [ONE, TWO, LOST], [("x", 1.5), ("y", 2.5)])
    flow.tick("facts", delta("facts", retracted=[ONE]))
    require(flow, [TWO, LOST], [("y", 2.5)])
    assert rows(flow, "facts", epoch=1) == Counter([ONE, TWO, LOST])
    assert rows(flow, "n") == Counter([(2,)])


def test_rows_stay_when_the_view_is_dropped_and_move_for_the_next_one():
    flow = begin({"by_d": BY_D})
    flow.drop("by_d")
    assert rows(flow, "facts") == Counter([ONE, TWO, LOST])
    flow.tick("facts", delta("facts", retracted=[TWO]))
    flow.register_view("by_e", BY_E)
    assert are_shared(flow, "by_e", "facts") == [True]
    assert rows(flow, "by_e") == Counter([("x", 1.5)])
    flow.register_view("by_d", BY_D)  # now the facts are kept by another key
    assert are_shared(flow, "by_d", "facts") == [False]
    assert arrangements(flow, "facts") == [2]
    flow.tick("facts", delta("facts", [TWO], [ONE]))
    assert rows(flow, "by_e") == Counter([("y", 2.5)])
    require(flow, [TWO, LOST], [("y", 2.5)])


def test_a_replaced_view_takes_the_rows_along():
    flow = begin({"by_d": BY_E})
    watch = flow.watch_output("by_d")
    flow.replace_view("by_d", BY_E.replace("facts.e = dims.region", "facts.d = dims.d").replace("v ", "v * 2 AS v "))
    assert are_shared(flow, "by_d", "facts", "dims") == [True, True]
    assert watch.get(0)[1].to_arrow().num_rows == 4
    flow.tick("facts", delta("facts", retracted=[ONE]))
    require(flow, [TWO, LOST], [("y", 5.0)])
    flow.refresh_view("by_d")
    require(flow, [TWO, LOST], [("y", 5.0)])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT region, COUNT(*) AS n FROM facts JOIN dims ON facts.d = dims.d GROUP BY region",  # reads the key alone
        "SELECT region, v FROM facts JOIN dims ON facts.d + 1 = dims.d",
        "SELECT region, v FROM (SELECT * FROM facts WHERE v > 0) JOIN dims USING (d)",
        "SELECT region, uid FROM facts JOIN dims ON facts.v = dims.d",
    ],
)
def test_what_is_not_the_rows_by_columns_has_an_arrangement_of_its_own(sql):
    flow = begin({"view": sql})
    assert are_shared(flow, "view", "facts") == [False]
    assert "filter NULL keys" not in flow.explain("facts")
    assert flow.explain("facts").count("project") == 0
    assert rows(flow, "facts") == Counter([ONE, TWO, LOST])


def test_a_source_with_a_key_is_read_by_its_key_alone():
    flow = begin({"by_d": BY_D, "by_e": BY_E}, key="d", ticks=False)
    flow.tick({"facts": delta("facts", [ONE, TWO]), "dims": delta("dims", [NORTH, SOUTH])})
    assert [are_shared(flow, view, "facts") for view in ("by_d", "by_e")] == [[True], [False]]
    flow.tick("facts", [{"uid": 7, "d": 1, "e": "y", "v": 4.0}])
    assert rows(flow, "facts") == Counter([(7, 1, "y", 4.0), TWO])
    assert rows(flow, "by_d") == Counter([("x", 4.0), ("y", 2.5)])
    assert rows(flow, "by_e") == Counter([("y", 4.0), ("y", 2.5)])


def test_a_source_that_lets_go_of_rows_is_not_read_by_others():
    schema = pa.schema([("d", pa.int64()), ("at", pa.timestamp("us"))])
    flow = IncrementalFlow()
    flow.register_source("events", schema, lateness=Lateness("at", "0 seconds", keep=False))
    flow.register_source("dims", DIMS)
    flow.register_view("view", "SELECT region, at FROM events JOIN dims ON events.d = dims.d")
    flow.tick("dims", delta("dims", [NORTH]))
    assert are_shared(flow, "view", "events", "dims") == [False, True]
    for day in range(6):
        micros = [day * 86_400_000_000 + at for at in range(1000)]
        flow.tick("events", pa.table({"d": pa.array([1] * 1000), "at": pa.array(micros, pa.timestamp("us"))}))
    assert flow.snapshot("events").num_rows < 6000
    assert flow.snapshot("view").num_rows == 6000
    flow.tick("dims", delta("dims", [SOUTH], [NORTH]))
    assert flow.snapshot("view").num_rows == 0


def test_repetitions_and_watermarks_are_remembered_when_rows_move():
    schema = pa.schema([("d", pa.int64()), ("at", pa.timestamp("us"))])
    flow = IncrementalFlow()
    flow.register_source("events", schema, lateness=Lateness("at", "0 seconds"), dedup=2)
    flow.register_source("dims", DIMS)
    late, early = ({"d": [1], "at": pa.array([at], pa.timestamp("us"))} for at in (2_000_000, 1_000_000))
    flow.tick("events", pa.table(late))
    flow.register_view("view", "SELECT region, at FROM events JOIN dims ON events.d = dims.d")
    assert flow.tick("events", pa.table(late)).dropped == 1
    assert flow.tick("events", pa.table(early)).late == 1


def test_a_view_that_fails_leaves_the_rows_as_they_are():
    flow = begin(COUNTED)
    before = flow.explain("facts")
    with pytest.raises(DataError):
        flow.register_view("by_d", "SELECT region, 1 / (uid - 1) AS v FROM facts JOIN dims ON facts.d = dims.d")
    with pytest.raises(ColumnNotFound):
        flow.register_view("by_d", "SELECT nope FROM facts JOIN dims ON facts.d = dims.d")
    assert flow.explain("facts") == before
    flow.register_view("by_d", BY_D)
    require(flow, [ONE, TWO, LOST], [("x", 1.5), ("y", 2.5)])


def test_a_view_registered_interrupted_anywhere_is_there_or_not():
    counted = begin(COUNTED)
    for point in some_points(lambda: counted.register_view("by_d", BY_D), 15, "ivm/"):
        flow = begin(COUNTED)
        with contextlib.suppress(KeyboardInterrupt), raise_at(point, KeyboardInterrupt, "ivm/"):
            flow.register_view("by_d", BY_D)
        assert rows(flow, "facts") == Counter([ONE, TWO, LOST])
        if "by_d" not in flow.views:
            flow.register_view("by_d", BY_D)
        require(flow, [ONE, TWO, LOST], [("x", 1.5), ("y", 2.5)])


def test_a_durable_flow_finds_the_rows_where_they_were(tmp_path):
    with begin({"by_d": BY_D}, path=tmp_path) as flow:
        flow.checkpoint()
        flow.tick("facts", delta("facts", [ONE], [TWO]))
    assert check_flow(tmp_path).is_whole
    with IncrementalFlow("shop", path=tmp_path) as flow:
        assert are_shared(flow, "by_d", "facts", "dims") == [True, True]
        require(flow, [ONE, ONE, LOST], [("x", 3.0)])
        flow.drop("by_d")
        flow.checkpoint()
    with IncrementalFlow("shop", path=tmp_path) as flow:
        assert rows(flow, "facts") == Counter([ONE, ONE, LOST])
        flow.register_view("by_d", BY_D)
        require(flow, [ONE, ONE, LOST], [("x", 3.0)])


@pytest.mark.parametrize("views", [{}, {"by_d": BY_D}, {"by_d": BY_D, "by_e": BY_E}, {"by_e": BY_E}])
def test_a_checkpoint_is_restored_into_a_flow_of_other_views(tmp_path, views):
    begin({"by_d": BY_D}).checkpoint(tmp_path)
    flow = begin(views, ticks=False)
    plan = flow.restore(tmp_path)
    assert plan.kept == (("by_d",) if "by_d" in views else ())
    assert rows(flow, "facts") == Counter([ONE, TWO, LOST])
    flow.tick("facts", delta("facts", [ONE], [TWO]))
    if "by_d" in views:
        require(flow, [ONE, ONE, LOST], [("x", 3.0)])
    if "by_e" in views:
        assert rows(flow, "by_e") == Counter([("x", 1.5), ("x", 1.5)])


def test_versions_before_refuse_a_checkpoint_of_rows_that_they_would_not_find(tmp_path, monkeypatch):
    begin({}).checkpoint(tmp_path / "plain")
    begin({"by_d": BY_D}).checkpoint(tmp_path / "shared")
    monkeypatch.setattr(manifest, "ORDERED", manifest.FORMAT)  # all that an earlier version reads
    IncrementalFlow().restore(tmp_path / "plain")
    with pytest.raises(StorageError, match="format"):
        IncrementalFlow().restore(tmp_path / "shared")


JOINS = {
    "inner": "SELECT uid, region FROM facts JOIN dims ON facts.d = dims.d",
    "left": "SELECT uid, v, region FROM facts LEFT JOIN dims ON facts.d = dims.d",
    "right": "SELECT uid, region FROM facts RIGHT JOIN dims ON facts.d = dims.d",
    "full": "SELECT uid, region FROM facts FULL JOIN dims ON facts.d = dims.d",
    "semi": "SELECT uid, v FROM facts WHERE EXISTS (SELECT 1 FROM dims WHERE dims.d = facts.d)",
    "anti": "SELECT uid, v FROM facts WHERE NOT EXISTS (SELECT 1 FROM dims WHERE dims.d = facts.d)",
    "self": "SELECT a.uid, b.uid AS other FROM facts a JOIN facts b ON a.d = b.d",
    "residual": "SELECT uid, region FROM facts JOIN dims ON facts.d = dims.d AND dims.region > facts.e",
    "two keys": "SELECT uid, region, v FROM facts JOIN dims ON facts.d = dims.d AND facts.e = dims.region",
    "turned": "SELECT region, v, uid FROM dims JOIN facts ON facts.d = dims.d",
}


@pytest.mark.parametrize("kind", JOINS)
def test_every_join_over_shared_rows_equals_another_database(kind):
    dice = random.Random(kind)
    flow = begin({"view": JOINS[kind]}, ticks=False)
    held = {name: Counter() for name in SCHEMAS}

    def row(name):
        key, text = dice.choice([None, 1, 2, 3]), dice.choice([None, "x", "y"])
        return (dice.randrange(4), key, text, dice.choice([None, 0.0, -0.0, 1.5])) if name == "facts" else (key, text)

    for _ in range(25):
        change = {}
        for name in dice.choice([["facts"], ["dims"], ["facts", "dims"]]):
            gone = dice.sample(sorted(held[name].elements(), key=repr), min(held[name].total(), dice.randrange(3)))
            come = [row(name) for _ in range(dice.randrange(4))]
            held[name] = held[name] - Counter(gone) + Counter(come)
            change[name] = delta(name, come, gone)
        flow.tick(change)
        tables = {name: delta(name, list(held[name].elements())).inserts() for name in SCHEMAS}
        with duckdb.connect() as database:
            for name, table in tables.items():
                database.register(name, table)
            assert rows(flow, "view") == Counter(database.sql(JOINS[kind]).fetchall())
        assert rows(flow, "facts") == held["facts"]
