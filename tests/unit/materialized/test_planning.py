"""What refreshes are expected to take, the order of views that read others, and notes that are not ours."""

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import msgspec
import pytest

from weirflow.errors import ConfigError, Reason, RefreshRefused, StorageError, UnsupportedError
from weirflow.flows.feeds.table_changes import ChangeSize
from weirflow.materialized.creation import NewView, create_view
from weirflow.materialized.definition import Definition, RefreshPolicy, decode_definition, encode_definition
from weirflow.materialized.graph import in_reading_order
from weirflow.materialized.history import Cost, Estimate, RefreshRecord, expected, most_rows_worth_it
from weirflow.materialized.note import Note, SourceMark, StateName, decode_note, encode_note
from weirflow.materialized.opened import open_view, views_in
from weirflow.materialized.planner import RefreshMode, choose
from weirflow.materialized.reasons import FullReason, Obstacle
from weirflow.materialized.target import Holding
from weirflow.sql.settings import USUAL

VIEW = NewView("v", "SELECT 1 AS one")
BEFORE = {"lake.orders": SourceMark("a", "1")}
NOW = {"lake.orders": SourceMark("a", "2")}
NOTE = Note("v", 3, "x", "9", BEFORE, StateName("g", 7, BEFORE), "incremental")


def record(mode, seconds, changed=0, source_rows=1000, uncounted=0):
    when = datetime(2026, 1, 1, tzinfo=UTC)
    estimate = Estimate(changed, 0.0, 0.0, uncounted, uncounted)
    found = changed if mode == "incremental" else None
    return RefreshRecord(
        1, "x", when, mode, None, None, "1", {}, source_rows, 0, estimate, Cost(seconds), changed_rows=found
    )


class Sources:
    """Tables that tell what the test says."""

    def __init__(self, changed=10, obstacle=None, lasting=None):
        self._changed, self._obstacle, self._lasting = changed, obstacle, lasting

    def lasting_obstacle(self):
        return self._lasting

    def obstacle(self, _before, _now):
        return self._obstacle

    def size(self, before, now):
        """A row for each version in between, unless the test says how many."""
        if self._changed is not None:
            return ChangeSize(self._changed)
        return ChangeSize(int(now["lake.orders"].version) - int(before["lake.orders"].version))

    def rows(self, _now):
        return 1000


def chosen(
    policy=RefreshPolicy.AUTO, note=NOTE, sources=None, now=NOW, records=(), full=False, obstacle=None, revision=0
):
    holding = Holding("10", note, obstacle)
    definition = Definition("v", "SELECT 1", "lake", "gold", USUAL, policy, revision=revision)
    return choose(definition, holding, sources or Sources(), now, lambda: records, full=full)


def test_a_wrong_estimate_corrects_the_next():
    size = ChangeSize(100_000)
    rough = expected([], size, 1000).incremental_seconds
    slow = record("incremental", 2 * rough, changed=100_000)
    assert expected([slow], size, 1000).incremental_seconds == pytest.approx(2 * rough)
    fulls = [record("full", 1.0)] * 20
    assert expected([slow, *fulls], size, 1000).incremental_seconds == pytest.approx(rough, rel=0.02)


def test_increments_of_the_same_size_tell_more_than_others():
    small, large = record("incremental", 1.0, changed=100), record("incremental", 400.0, changed=10**7)
    assert expected([small, large], ChangeSize(100), 1000).incremental_seconds < 1.3
    assert expected([large, small], ChangeSize(10**7), 1000).incremental_seconds > 300.0


def test_what_an_increment_takes_besides_its_rows_is_learned_from_small_ones_and_hardly_forgotten():
    size = ChangeSize(100)
    small = record("incremental", 2.0, changed=100)
    assert expected([small], size, 1000).incremental_seconds == pytest.approx(2.0)
    assert expected([small], ChangeSize(10**6), 1000).incremental_seconds == pytest.approx(22.0, abs=0.01)
    slow = record("incremental", 4.0, changed=100)
    assert expected([slow], ChangeSize(10**6), 1000).incremental_seconds == pytest.approx(44.0, abs=0.05)
    found = expected([small, *[record("full", 1.0)] * 10], size, 1000)
    assert 1.2 < found.incremental_seconds < 2.0
    later = msgspec.structs.replace(record("full", 1.0), estimate=found)
    assert 1.1 < expected([later], size, 1000).incremental_seconds < found.incremental_seconds


def test_how_many_rows_of_rewritten_files_changed_is_learned():
    unknown = ChangeSize(50, 1_000_000, 1_000_000)
    first = expected([], unknown, 1000)
    assert (first.changed_rows, first.compared_rows, first.uncounted_rows) == (10_000, 1_000_000, 1_000_000)
    learned = expected([record("incremental", 3.0, changed=300_000, uncounted=1_000_000)], unknown, 1000)
    assert learned.changed_rows == 300_000
    counted = expected([], ChangeSize(50, 1_000_000), 1000)
    assert (counted.changed_rows, counted.incremental_seconds > expected([], ChangeSize(50), 1000).full_seconds) == (
        50,
        True,
    )


def test_an_increment_whose_size_was_a_guess_is_given_up_where_a_full_refresh_is_faster():
    estimate = expected([record("full", 10.0)], ChangeSize(0, 1_000_000, 1_000_000), 1000)
    most = most_rows_worth_it(estimate)
    at_most = expected([record("full", 10.0)], ChangeSize(most, 1_000_000), 1000)
    assert at_most.incremental_seconds == pytest.approx(at_most.full_seconds, rel=0.01)
    assert most_rows_worth_it(Estimate(70_000, 9.0, 1.0, 10, 10)) == 70_000


def test_a_full_refresh_takes_what_the_last_one_took_for_as_many_rows_as_there_are():
    assert expected([record("full", 10.0), record("incremental", 1.0)], ChangeSize(1), 2000).full_seconds == 20.0


def test_what_a_full_refresh_took_is_known_for_as_long_as_refreshes_are_increments():
    last = msgspec.structs.replace(record("incremental", 1.0), estimate=Estimate(1, 1.0, 10.0))
    assert expected([last], ChangeSize(1), 3000).full_seconds == 30.0


@pytest.mark.parametrize(
    ("records", "changed", "mode"),
    [
        pytest.param([record("full", 60.0)], 10, RefreshMode.INCREMENTAL, id="a small change"),
        pytest.param([record("full", 60.0)], 10**8, RefreshMode.FULL, id="a large one"),
        pytest.param([record("full", 0.2)], 10, RefreshMode.FULL, id="a view that takes no time"),
        pytest.param([record("full", 0.5)], 10, RefreshMode.INCREMENTAL, id="nobody has tried"),
        pytest.param(
            [record("full", 0.5), record("incremental", 0.9, 10)], 10, RefreshMode.FULL, id="somebody has tried"
        ),
    ],
)
def test_the_cheaper_refresh_is_chosen(records, changed, mode):
    plan = chosen(records=records, sources=Sources(changed))
    assert plan.mode is mode
    assert plan.keeps_state is (mode is RefreshMode.FULL)
    assert (None if plan.obstacle is None else plan.obstacle.code) in (None, FullReason.LARGE_CHANGE)


def at(version):
    return {"lake.orders": SourceMark("a", str(version))}


@pytest.mark.parametrize(
    ("fulls", "own", "mode"),
    [
        pytest.param(1, 10, RefreshMode.FULL, id="it would take longer than what it spares"),
        pytest.param(4, 10, RefreshMode.FULL, id="nearly"),
        pytest.param(5, 10, RefreshMode.INCREMENTAL, id="as long"),
        pytest.param(20, 10**6, RefreshMode.FULL, id="but not now"),
    ],
)
def test_state_that_a_large_change_left_behind_catches_up_once_that_has_paid(fulls, own, mode):
    """A full refresh takes 5 s, an increment of few rows 0.3 s, and one of a million rows 20.3 s."""
    large = msgspec.structs.replace(record("full", 5.0), code=FullReason.LARGE_CHANGE, estimate=None)
    note = msgspec.structs.replace(NOTE, sources=at(10**6), state=StateName("g", 7, at(0)))
    records = [record("full", 5.0), *[large] * fulls]
    plan = chosen(note=note, now=at(10**6 + own), sources=Sources(None), records=records)
    assert plan.mode is mode
    if mode is RefreshMode.INCREMENTAL:
        assert plan.estimate.changed_rows == 10**6 + own
    else:
        assert plan.keeps_state


def test_nothing_is_done_where_nothing_has_changed():
    assert chosen(now=BEFORE).mode is RefreshMode.NONE
    assert chosen(now=BEFORE, full=True).obstacle.code == FullReason.REQUESTED


def test_a_query_that_depends_on_the_time_is_computed_where_nothing_has_changed():
    note = msgspec.structs.replace(NOTE, code=Reason.EXPRESSION_NOT_DETERMINISTIC, state=None)
    assert chosen(note=note, now=BEFORE).mode is RefreshMode.FULL


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"note": None, "obstacle": Obstacle(FullReason.FIRST_REFRESH, "")}, FullReason.FIRST_REFRESH),
        ({"obstacle": Obstacle(FullReason.TARGET_CHANGED, "")}, FullReason.TARGET_CHANGED),
        ({"sources": Sources(obstacle=Obstacle(FullReason.SOURCE_REPLACED, ""))}, FullReason.SOURCE_REPLACED),
        ({"sources": Sources(lasting=Obstacle(FullReason.SOURCE_WITHOUT_CHANGES, ""))}, "SOURCE_WITHOUT_CHANGES"),
        ({"note": msgspec.structs.replace(NOTE, state=None)}, FullReason.NO_STATE),
        ({"policy": RefreshPolicy.FULL}, FullReason.POLICY),
        ({"revision": 1, "now": BEFORE}, FullReason.QUERY_CHANGED),
        ({"revision": 1, "policy": RefreshPolicy.STRICT}, FullReason.QUERY_CHANGED),
    ],
)
def test_what_keeps_a_refresh_from_being_an_increment_is_named(given, code):
    plan = chosen(**given)
    assert (plan.mode, plan.obstacle.code, plan.keeps_state) == (RefreshMode.FULL, code, False)


def test_a_strict_view_refuses_what_is_no_increment():
    with pytest.raises(RefreshRefused, match="only be refreshed by increments") as refused:
        chosen(RefreshPolicy.STRICT, obstacle=Obstacle(FullReason.TARGET_CHANGED, "Somebody wrote."))
    assert refused.value.reason == "TARGET_CHANGED"
    assert chosen(RefreshPolicy.STRICT, full=True).mode is RefreshMode.FULL
    assert chosen(RefreshPolicy.STRICT, records=[record("full", 0.1)]).mode is RefreshMode.INCREMENTAL


def test_views_are_refreshed_behind_those_that_they_read():
    reads = {"d": ["b", "c"], "c": ["a"], "b": ["a", "orders"], "a": ["orders"]}
    assert in_reading_order(reads) == ["a", "b", "c", "d"]
    with pytest.raises(ConfigError, match="reads itself"):
        in_reading_order({"a": ["b"], "b": ["a"]})


def test_only_the_notes_of_the_view_are_believed():
    text = encode_note(NOTE)
    assert decode_note(text, "v") == NOTE
    newer = encode_note(msgspec.structs.replace(NOTE, format=2))
    assert [decode_note(one, "v") for one in (None, "", "by hand", "{}", newer)] == [None] * 5
    assert decode_note(text, "another") is None


def test_a_definition_is_read_as_it_was_written():
    definition = Definition(
        "v", "SELECT 'url' AS `a``b`", "lake", "gold", replace(USUAL, ansi=False), RefreshPolicy.AUTO
    )
    assert decode_definition(encode_definition(definition), "t") == definition
    with pytest.raises(StorageError, match="format 2"):
        decode_definition(encode_definition(msgspec.structs.replace(definition, format=2)), "t")
    with pytest.raises(StorageError, match="cannot be read"):
        decode_definition("{}", "t")


def test_spark_connect_is_refused_by_name():
    session = SimpleNamespace(spark=object())
    for call in (lambda: open_view(session, "v"), lambda: views_in(session, None), lambda: create_view(session, VIEW)):
        with pytest.raises(UnsupportedError, match="Spark Connect"):
            call()


def test_a_view_is_kept_as_iceberg_or_delta():
    with pytest.raises(ConfigError, match="'parquet'"):
        create_view(SimpleNamespace(), replace(VIEW, using="parquet"))
