"""Materialized views on real Iceberg and Delta tables: after every refresh the table equals its query over the
snapshots that it names."""

import itertools
import random
import shutil
from contextlib import contextmanager

import pytest
from support import lake as named
from support.connectors import require_connectors
from support.lake import COPIES, MERGED_ON_READ, TOTALS, Lake

from weirflow.errors import ColumnNotFound, ConfigError, QueryError, RefreshRefused, SinkConflict
from weirflow.failpoints import REFRESH_POINTS, watch_failpoints
from weirflow.materialized import lent_sessions, planner, target
from weirflow.materialized.history import Estimate
from weirflow.materialized.opened import views_in
from weirflow.materialized.together import refresh_together
from weirflow.spark.jobs.shards import ShardJobs

KINDS = ["iceberg", "delta"]


@pytest.fixture(autouse=True)
def _connectors():
    require_connectors("iceberg", "delta")


@pytest.fixture
def lake(session, request):
    opened = Lake(session, request.param)
    opened.fill()
    yield opened
    opened.close()


def holds_what_it_names(lake, view):
    return named.holds_what_it_names(lake.session, view.name)


def in_order(lake, view):
    return sorted(tuple(row) for row in lake.session.table(view.name).collect())


def is_current(lake, view):
    return named.is_current(lake.session, view.name)


both = pytest.mark.parametrize("lake", KINDS, indirect=True)
mostly_iceberg = pytest.mark.parametrize(
    "lake", ["iceberg", pytest.param("delta", marks=pytest.mark.campaign)], indirect=True
)
iceberg = pytest.mark.parametrize("lake", ["iceberg"], indirect=True)


@both
def test_a_view_follows_its_tables_by_increments(lake):
    view = lake.view(TOTALS)
    first = lake.sql(f"REFRESH MATERIALIZED VIEW {view.name}").to_arrow().to_pylist()[0]
    assert (first["mode"], first["code"]) == ("full", "FIRST_REFRESH")
    assert is_current(lake, view)
    lake.sql("INSERT INTO {orders} VALUES (4, 'ann', 1), (5, 'bob', 8)")
    lake.sql("DELETE FROM {orders} WHERE id = 2")
    lake.sql("UPDATE {customers} SET region = 'west' WHERE name = 'ann'")
    assert not view.describe().is_fresh
    plan = lake.sql(f"EXPLAIN REFRESH MATERIALIZED VIEW {view.name}").to_arrow()["plan"][0].as_py()
    assert ": incremental" in plan.splitlines()[0]
    done = view.refresh()
    assert (done.mode, done.code, done.rows) == ("incremental", None, 4)
    assert is_current(lake, view)
    assert view.refresh().mode == "none"
    assert [one.mode for one in view.history()] == ["full", "incremental"]


@mostly_iceberg
def test_copies_of_rows_come_and_go_one_by_one(lake):
    view = lake.view(COPIES)
    view.refresh()
    lake.sql("DELETE FROM {orders} WHERE id = 2")
    lake.sql("INSERT INTO {orders} VALUES (4, 'ann', 5), (5, NULL, 5), (6, NULL, 5), (7, 'cid', 0)")
    assert (view.refresh().mode, is_current(lake, view)) == ("incremental", True)
    lake.sql("DELETE FROM {orders} WHERE id IN (5, 3)")
    assert (view.refresh().mode, is_current(lake, view)) == ("incremental", True)


@mostly_iceberg
def test_what_somebody_else_wrote_is_found_and_replaced(lake):
    view = lake.view(COPIES)
    view.refresh()
    lake.sql(f"INSERT INTO {view.name} VALUES ('eve', 666)")
    done = view.refresh()
    assert (done.mode, done.code) == ("full", "TARGET_CHANGED")
    assert "Somebody else has changed rows" in done.why
    assert is_current(lake, view)


@mostly_iceberg
def test_a_view_goes_on_from_where_its_table_was_rolled_back_to(lake):
    view = lake.view(COPIES)
    view.refresh()
    before = lake.versions(view.name)[0]
    lake.sql("INSERT INTO {orders} VALUES (4, 'ann', 9)")
    view.refresh()
    lake.roll_back(view.name, before)
    assert not view.describe().is_fresh
    assert (view.refresh().mode, is_current(lake, view)) == ("incremental", True)


@mostly_iceberg
def test_a_source_that_was_rolled_back_is_compared(lake):
    view = lake.view(COPIES)
    before = lake.versions(lake.orders)[0]
    lake.sql("INSERT INTO {orders} VALUES (4, 'ann', 9)")
    view.refresh()
    lake.roll_back(lake.orders, before)
    assert (view.refresh().mode, is_current(lake, view)) == ("incremental", True)


@mostly_iceberg
def test_compaction_of_the_table_is_looked_through(lake):
    view = lake.view(COPIES)
    view.refresh()
    lake.sql("INSERT INTO {orders} VALUES (4, 'ann', 9)")
    view.refresh()
    lake.compact(view.name)
    if lake.kind == "iceberg":
        later = "TIMESTAMP '2100-01-01 00:00:00'"
        lake.session.spark.sql(
            f"CALL iceberg.system.expire_snapshots(table => '{view.name}', older_than => {later}, retain_last => 1)"
        )
        assert len(lake.versions(view.name)) == 1
    lake.sql("INSERT INTO {orders} VALUES (5, 'ann', 9)")
    assert (view.refresh().mode, is_current(lake, view)) == ("incremental", True)


@iceberg
def test_state_that_is_lost_is_built_again(lake):
    view = lake.view(COPIES)
    view.refresh()
    view._view.place.forget_other_states(None)
    lake.sql("INSERT INTO {orders} VALUES (4, 'ann', 9)")
    done = view.refresh()
    assert (done.mode, done.code) == ("full", "STATE_LOST")
    assert is_current(lake, view)


@iceberg
def test_a_source_whose_snapshot_was_expired_or_that_was_replaced_is_read_in_full(lake):
    view = lake.view(COPIES)
    view.refresh()
    lake.sql("INSERT INTO {orders} VALUES (4, 'ann', 9)")
    later = "TIMESTAMP '2100-01-01 00:00:00'"
    lake.session.spark.sql(f"CALL iceberg.system.expire_snapshots(table => '{lake.orders}', older_than => {later})")
    done = view.refresh()
    assert (done.code, "no longer has version" in done.why, is_current(lake, view)) == (
        "SOURCE_HISTORY_GONE",
        True,
        True,
    )
    lake.sql("DROP TABLE {orders}")
    lake.table("orders", "id BIGINT, customer STRING, amount BIGINT")
    lake.sql("INSERT INTO {orders} VALUES (1, 'dan', 5)")
    done = view.refresh()
    assert (done.code, is_current(lake, view)) == ("SOURCE_REPLACED", True)
    lake.session.spark.sql(f"ALTER TABLE {lake.orders} DROP COLUMN id")
    lake.sql("INSERT INTO {orders} VALUES ('dan', 6)")
    done = view.refresh()  # which does not read the column
    assert (done.mode, is_current(lake, view)) == ("incremental", True)
    lake.session.spark.sql(f"ALTER TABLE {lake.orders} DROP COLUMN amount")
    with pytest.raises(ColumnNotFound, match="amount"):
        view.refresh()


@iceberg
def test_a_column_of_another_type_is_read_in_full(lake):
    numbers = lake.table("numbers", "n INT")
    lake.sql(f"INSERT INTO {numbers} VALUES (1), (2)")
    view = lake.view(f"SELECT SUM(CAST(n AS BIGINT)) AS total FROM {numbers}")
    view.refresh()
    lake.session.spark.sql(f"ALTER TABLE {numbers} ALTER COLUMN n TYPE BIGINT")
    lake.sql(f"INSERT INTO {numbers} VALUES (3000000000)")
    done = view.refresh()
    assert (done.code, is_current(lake, view)) == ("SOURCE_COLUMNS_CHANGED", True)


@mostly_iceberg
def test_a_small_change_that_rewrites_a_file_is_small(lake):
    orders = ", ".join(f"({number}, 'ann', {number})" for number in range(10, 400))
    lake.sql(f"INSERT INTO {{orders}} VALUES {orders}")
    view = lake.view(TOTALS)
    view.refresh()
    lake.sql("MERGE INTO {orders} t USING (SELECT 11 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET amount = 0")
    assert view.describe().changed_rows == 2
    done = view.refresh()
    assert (done.mode, done.changed_rows, done.rows, is_current(lake, view)) == ("incremental", 2, 2, True)


@mostly_iceberg
def test_a_view_is_given_another_query_and_keeps_its_table(lake):
    view = lake.view(COPIES)
    view.refresh()
    lake.sql(f"ALTER MATERIALIZED VIEW {view.name} AS SELECT customer, amount FROM {{orders}} o WHERE amount > 1")
    assert lake.session.materialized(view.name).refresh().mode == "none"  # it computes the same
    lake.sql(f"ALTER MATERIALIZED VIEW {view.name} AS SELECT customer, amount FROM {{orders}} WHERE amount > 5")
    view = lake.session.materialized(view.name)
    assert not view.describe().is_fresh
    done = view.refresh()
    assert (done.mode, done.code, is_current(lake, view)) == ("full", "QUERY_CHANGED", True)
    view.alter(f"SELECT customer, id, amount FROM {lake.orders}")
    lake.sql("INSERT INTO {orders} VALUES (4, 'ann', 9)")
    done = view.refresh()
    assert (done.code, is_current(lake, view)) == ("QUERY_CHANGED", True)
    lake.sql("DELETE FROM {orders} WHERE id = 1")
    assert (view.refresh().mode, is_current(lake, view)) == ("incremental", True)
    assert [one.code for one in view.history()] == ["FIRST_REFRESH", "QUERY_CHANGED", "QUERY_CHANGED", None]
    with pytest.raises(ConfigError, match="reads the view itself"):
        view.alter(f"SELECT * FROM {view.name}")
    with pytest.raises(SinkConflict, match="in another order"):
        view.alter(f"SELECT id, customer, amount FROM {lake.orders}")


@iceberg
def test_files_of_deletions_in_a_source_are_followed(lake):
    lake.session.spark.sql(f"ALTER TABLE {lake.orders} SET TBLPROPERTIES ({MERGED_ON_READ})")
    view = lake.view(TOTALS)
    view.refresh()
    lake.sql("INSERT INTO {orders} VALUES (4, 'ann', 1), (5, 'ann', 2)")
    lake.sql("DELETE FROM {orders} WHERE id IN (2, 5)")
    assert (view.refresh().mode, is_current(lake, view)) == ("incremental", True)
    lake.sql("UPDATE {orders} SET amount = 4 WHERE id = 4")
    assert view.describe().changed_rows == 2
    assert (view.refresh().mode, is_current(lake, view)) == ("incremental", True)


@iceberg
def test_a_row_that_two_files_of_deletions_name_goes_once(lake):
    spark = lake.session.spark
    spark.sql(f"ALTER TABLE {lake.orders} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    view = lake.view(COPIES)
    view.refresh()
    lake.sql("DELETE FROM {orders} WHERE id = 2")
    view.refresh()
    _delete_again(spark, lake.orders)
    lake.sql("DELETE FROM {orders} WHERE id = 1")
    done = view.refresh()
    assert (done.mode, done.changed_rows, is_current(lake, view)) == ("incremental", 1, True)


def _delete_again(spark, table):
    """Commit a copy of the file of deletions that a table has, as a second DELETE that began at once would."""
    found = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)
    tasks, known = found.newScan().planFiles().iterator(), []
    while tasks.hasNext():
        known.extend(list(tasks.next().deletes()))
    (deletes,) = known
    place = deletes.location().removeprefix("file:")
    other = place.replace("-deletes.parquet", "-again-deletes.parquet")
    shutil.copy(place, other)
    again = spark._jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(found.spec()).copy(deletes).withPath(other)
    found.newRowDelta().addDeletes(again.build()).commit()


@mostly_iceberg
def test_few_changes_are_read_once_for_all_views_and_ticked_in_this_process(lake, monkeypatch):
    views = [lake.view(COPIES, "copies"), lake.view("SELECT SUM(amount) AS total FROM {orders}", "total")]
    for view in views:
        view.refresh()
    read, here = [], ShardJobs.here
    monkeypatch.setattr(ShardJobs, "here", lambda jobs, frame: read.append(1) or here(jobs, frame))
    for job in ("stages", "over", "each"):
        monkeypatch.setattr(ShardJobs, job, None)
    lake.sql("INSERT INTO {orders} VALUES (4, 'ann', 9)")
    lake.sql("DELETE FROM {orders} WHERE id = 2")
    assert [(view.refresh().mode, is_current(lake, view)) for view in views] == [("incremental", True)] * 2
    assert len(read) == 1


@mostly_iceberg
def test_a_small_table_that_was_written_last_is_not_read_to_be_written_again(lake, monkeypatch):
    view = lake.view(COPIES)
    view.refresh()
    changes = ["DELETE FROM {orders} WHERE id = 2", "INSERT INTO {orders} VALUES (4, 'ann', 9)", "DELETE FROM {orders}"]
    known = []
    merge = target.merge_few_rows
    monkeypatch.setattr(target, "merge_few_rows", lambda *given: known.append(given[3] is not None) or merge(*given))
    for change in changes:
        lake.sql(change)
        assert (view.refresh().mode, is_current(lake, view)) == ("incremental", True)
    assert known == [False, True, True]
    lake.sql(f"INSERT INTO {view.name} VALUES ('eve', 666)")
    lake.sql("INSERT INTO {orders} VALUES (5, 'bob', 3), (6, 'bob', 3)")
    assert (view.refresh().code, is_current(lake, view)) == ("TARGET_CHANGED", True)
    lake.sql("DELETE FROM {orders} WHERE id = 5")
    assert (view.refresh().mode, is_current(lake, view), known[-1]) == ("incremental", True, False)


@mostly_iceberg
def test_what_a_refresh_changes_is_known_to_views_that_read_it(lake, monkeypatch):
    base = lake.view(COPIES, "base")
    top = lake.view(f"SELECT customer, SUM(amount) AS total FROM {base.name} GROUP BY customer", "top")
    top.refresh(cascade=True)
    read, here = [], ShardJobs.here
    monkeypatch.setattr(ShardJobs, "here", lambda jobs, frame: read.append(1) or here(jobs, frame))
    changes = ["INSERT INTO {orders} VALUES (4, 'ann', 9)", "UPDATE {orders} SET amount = 0", "DELETE FROM {orders}"]
    for number, change in enumerate(changes, 1):
        lake.sql(change)
        assert top.refresh(cascade=True).mode == "incremental"
        assert (is_current(lake, base), is_current(lake, top), len(read)) == (True, True, number)
    lake.sql("INSERT INTO {orders} VALUES (5, 'ann', 0)")
    done = top.refresh(cascade=True)  # of which base has no row
    assert (done.mode, done.changed_rows, is_current(lake, top), len(read)) == ("incremental", 0, True, 4)


@iceberg
def test_few_rows_that_are_too_long_for_this_process_stay_on_the_executors(lake, monkeypatch):
    view = lake.view(COPIES)
    view.refresh()

    def too_long(*_):
        raise QueryError("Total size of serialized results of 2 tasks is bigger than spark.driver.maxResultSize")

    monkeypatch.setattr(ShardJobs, "here", too_long)
    lake.sql("INSERT INTO {orders} VALUES (4, 'ann', 9)")
    assert (view.refresh().mode, is_current(lake, view)) == ("incremental", True)


@iceberg
def test_what_is_not_incremental_is_refreshed_in_full_with_its_reason(lake):
    view = lake.view("SELECT customer, rand() < 2 AS always FROM {orders}")
    view.refresh()
    lake.sql("INSERT INTO {orders} VALUES (4, 'ann', 9)")
    done = view.refresh()
    assert (done.mode, done.code) == ("full", "EXPRESSION_NOT_DETERMINISTIC")
    assert lake.session.table(view.name).count() == 4
    lake.session.spark.sql("CREATE TABLE plain (a INT) USING parquet")
    done = lake.view("SELECT a FROM spark_catalog.default.plain", "of_plain").refresh()
    assert (done.mode, done.code) == ("full", "SOURCE_WITHOUT_CHANGES")
    strict = lake.view("SELECT customer, rand() < 2 AS always FROM {orders}", "strict", "incremental strict")
    with pytest.raises(RefreshRefused) as refused:
        strict.refresh()
    assert refused.value.reason == "EXPRESSION_NOT_DETERMINISTIC"


@iceberg
def test_a_plain_view_is_read_over_its_tables_as_they_are_now(lake):
    lake.view(COPIES).refresh()
    lake.session.spark.sql(f"CREATE VIEW spark_catalog.default.seen AS SELECT * FROM {lake.orders}")
    try:
        view = lake.view("SELECT id FROM spark_catalog.default.seen", "of_plain_view")
        view.refresh()
        lake.sql("DELETE FROM {orders} WHERE id = 2")
        assert (view.refresh().code, in_order(lake, view)) == ("SOURCE_WITHOUT_CHANGES", [(1,), (3,)])
    finally:
        lake.session.spark.sql("DROP VIEW spark_catalog.default.seen")


@iceberg
def test_refreshes_one_after_the_other_share_a_session_of_spark(lake, monkeypatch):
    views = [lake.view(COPIES, "one"), lake.view(TOTALS, "two")]
    for view in views:
        view.refresh()
    for number in range(2):
        lake.sql(f"INSERT INTO {{orders}} VALUES ({10 + number}, 'ann', 9)")
        with monkeypatch.context() as patch:
            patch.setattr(lent_sessions, "own_session", None)
            assert [view.describe().is_fresh for view in views] == [False, False]
            assert [view.refresh().mode for view in views] == ["incremental", "incremental"]
        assert [is_current(lake, view) for view in views] == [True, True]


@iceberg
def test_a_view_reads_a_view_and_both_are_refreshed_from_the_same_snapshots(lake):
    base = lake.view(COPIES, "base")
    top = lake.view(f"SELECT customer, COUNT(*) AS orders FROM {base.name} GROUP BY customer", "top")
    done = lake.sql(f"REFRESH MATERIALIZED VIEW {top.name} CASCADE").to_arrow().to_pylist()
    assert [one["view"] for one in done] == [base.name, top.name]
    lake.sql("INSERT INTO {orders} VALUES (4, 'ann', 9)")
    done = lake.sql(f"REFRESH MATERIALIZED VIEW {top.name} CASCADE").to_arrow().to_pylist()
    assert [one["mode"] for one in done] == ["incremental", "incremental"]
    assert is_current(lake, base)
    assert is_current(lake, top)


@iceberg
def test_a_view_that_fails_stops_only_those_that_read_it(lake):
    good = lake.view(COPIES, "good")
    broken = lake.view("SELECT name FROM {customers}", "broken")
    reader = lake.view(f"SELECT name FROM {broken.name}", "reader")
    lake.sql("DROP TABLE {customers}")
    done = {one.view: one for one in refresh_together(lake.session, views_in(lake.session, "iceberg.mv"))}
    assert done[good.name].record.mode == "full"
    assert (done[broken.name].record, done[broken.name].error.code) == (None, "TABLE_NOT_FOUND")
    assert (done[reader.name].record, done[reader.name].behind) == (None, broken.name)


def test_views_of_a_catalog_that_was_added_are_refreshed_at_once(session, tmp_path):
    session.add_catalog("other", f"iceberg-hadoop+file://{tmp_path}")
    try:
        session.sql("CREATE NAMESPACE other.mv")
        session.sql("CREATE TABLE other.mv.orders (amount BIGINT) USING iceberg")
        session.sql("INSERT INTO other.mv.orders VALUES (1), (2)")
        for name in ("one", "two"):
            session.sql(f"CREATE MATERIALIZED VIEW other.mv.{name} USING iceberg AS SELECT * FROM other.mv.orders")
        done = refresh_together(session, views_in(session, "other.mv"), parallel=2)
        assert [one.error for one in done] == [None, None]
        assert sorted(row[0] for row in session.table("other.mv.two").collect()) == [1, 2]
    finally:
        session.sql("DROP CATALOG other")


@mostly_iceberg
def test_of_two_that_refresh_at_once_one_is_refused(lake):
    view = lake.view(COPIES)
    view.refresh()
    lake.sql("INSERT INTO {orders} VALUES (4, 'ann', 9)")

    def rival(point):
        if point == "refresh.before_commit":
            watch_failpoints(None)
            assert lake.session.materialized(view.name).refresh().mode == "incremental"

    watch_failpoints(rival)
    try:
        with pytest.raises(SinkConflict, match="Somebody else has written"):
            view.refresh()
    finally:
        watch_failpoints(None)
    assert is_current(lake, view)
    lake.sql("INSERT INTO {orders} VALUES (5, 'ann', 9)")
    assert (view.refresh().mode, is_current(lake, view)) == ("incremental", True)


@iceberg
def test_state_that_a_full_refresh_left_behind_is_brought_up_by_the_next_increment(lake, monkeypatch):
    view = lake.view(TOTALS, policy="auto")
    view.refresh()
    lake.sql("INSERT INTO {orders} VALUES (4, 'ann', 9)")
    monkeypatch.setattr(planner, "expected", lambda *_: Estimate(1, 9.0, 1.0))
    done = view.refresh()
    assert (done.code, done.cost.state_seconds, is_current(lake, view)) == ("LARGE_CHANGE", 0.0, True)
    lake.sql("DELETE FROM {orders} WHERE id IN (1, 4)")
    monkeypatch.setattr(planner, "expected", lambda *_: Estimate(1, 1.0, 9.0))
    done = view.refresh()
    assert (done.mode, done.cost.state_seconds > 0, is_current(lake, view)) == ("incremental", True, True)


class Killed(BaseException):
    """What is left is what a process that dies here leaves: all that was begun ends without another step."""


def kill():
    raise Killed


@contextmanager
def killed_at(wanted):
    watch_failpoints(lambda point: kill() if point == wanted else None)
    try:
        yield
    finally:
        watch_failpoints(None)


@mostly_iceberg
def test_a_refresh_that_is_killed_anywhere_is_made_good_by_the_next(lake):
    view = lake.view(COPIES)
    view.refresh()
    for number, point in enumerate(REFRESH_POINTS):
        lake.sql(f"INSERT INTO {{orders}} VALUES ({10 + number}, 'ann', 7)")
        with killed_at(point), pytest.raises(Killed):
            lake.session.materialized(view.name).refresh()
        assert holds_what_it_names(lake, view)
        lake.session.materialized(view.name).refresh()
    assert is_current(lake, view)
    assert {one.mode for one in view.history()[1:]} == {"incremental"}


@pytest.mark.campaign
@both
def test_refreshes_that_end_at_random_steps_leave_nothing_wrong_at_hand(lake):
    if lake.kind == "iceberg":
        lake.session.spark.sql(f"ALTER TABLE {lake.orders} SET TBLPROPERTIES ({MERGED_ON_READ})")
    view = lake.view(TOTALS)
    view.refresh()
    chosen = random.Random(20)
    kills = 0
    for number in range(60):
        lake.sql(f"INSERT INTO {{orders}} VALUES ({10 + number}, '{chosen.choice(['ann', 'bob'])}', {number})")
        lake.sql(f"DELETE FROM {{orders}} WHERE id = {chosen.randrange(10 + number)}")
        lake.sql(f"UPDATE {{orders}} SET amount = amount + 1 WHERE id = {chosen.randrange(10 + number)}")
        left = itertools.count(-chosen.randrange(20))
        watch_failpoints(lambda _, left=left: kill() if next(left) == 0 else None)
        try:
            lake.session.materialized(view.name).refresh()
        except Killed:
            kills += 1
        finally:
            watch_failpoints(None)
        assert holds_what_it_names(lake, view)
    view.refresh()
    assert is_current(lake, view)
    assert kills >= 20
    assert {one.mode for one in view.history()[1:]} == {"incremental"}


@iceberg
def test_views_are_listed_described_and_dropped(lake):
    view = lake.view(COPIES)
    listed = lake.sql("SHOW MATERIALIZED VIEWS IN iceberg.mv").to_arrow().to_pylist()
    assert [(one["name"], one["kind"]) for one in listed] == [(view.name, "iceberg")]
    described = lake.sql(f"DESCRIBE MATERIALIZED VIEW {view.name}").to_arrow().to_pylist()
    about = {one["property"]: one["value"] for one in described}
    assert about["refreshes"] == "0"
    assert about["next refresh"].startswith("full: FIRST_REFRESH")
    with pytest.raises(ConfigError, match="not a materialized view"):
        lake.session.materialized(lake.orders)
    lake.sql(f"DROP MATERIALIZED VIEW {view.name}")
    assert lake.sql("SHOW MATERIALIZED VIEWS IN iceberg.mv").count() == 0
    lake.sql(f"DROP MATERIALIZED VIEW IF EXISTS {view.name}")
