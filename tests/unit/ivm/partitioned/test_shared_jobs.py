"""Ticks that wait together are one job, and otherwise what they would be one at a time."""

import threading
from datetime import datetime

import pytest
from prometheus_client import CollectorRegistry
from support.flow_engine import FlowEngine
from support.together import CountedJobs, together

from weirflow.errors import ConfigError, DataError, FlowReentered, StorageError, TickPending, TickTimeout
from weirflow.failpoints import watch_failpoints
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.flow.source import Lateness
from weirflow.ivm.sharded.checkup import check_shards
from weirflow.ivm.sharded.commits import GivenTick
from weirflow.ivm.sharded.flow import PartitionedFlow
from weirflow.ivm.zset import DeltaBatch
from weirflow.sql.typing.type_syntax import parse_ddl

ORDERS = "id BIGINT, customer STRING, amount BIGINT"
VIEWS = {
    "totals": "SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer",
    "shares": "SELECT id, 100 / amount AS share FROM orders",
    "pairs": "SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.amount = b.id",
    "ranked": "SELECT o.id, t.total FROM orders o JOIN totals t ON o.customer = t.customer WHERE t.total > 2",
    "all": "SELECT COUNT(*) AS n, SUM(total) AS total FROM totals",
}


def declare(flow, **options):
    flow.register_source("orders", ORDERS, **options)
    for name, sql in VIEWS.items():
        flow.register_view(name, sql)
    return flow


def opened(path, jobs, **options):
    return PartitionedFlow(str(path), 2, jobs, registry=CollectorRegistry(), **options)


@pytest.fixture
def jobs():
    return CountedJobs(FlowEngine())


@pytest.fixture
def shop(tmp_path, jobs):
    with opened(tmp_path / "shop", jobs) as flow:
        declare(flow)
        flow.tick("orders", [order(0)])
        jobs.jobs.clear()
        yield flow


def order(number, customer="ann", amount=1):
    return {"id": number, "customer": customer, "amount": amount}


def insert(flow, *rows, **options):
    return lambda: flow.tick("orders", list(rows), **options)


def retract(flow, *rows):
    return lambda: flow.tick("orders", DeltaBatch.from_deletes(list(rows), schema=parse_ddl(ORDERS)))


def told(watch):
    found = []
    while (one := watch.get(timeout=0)) is not None:
        found.append((one[0], one[1].canonical().to_arrow().to_pylist()))
    return found


def ids(flow):
    return sorted(flow.snapshot("orders")["id"].to_pylist())


def test_ticks_that_wait_are_one_job_and_told_epoch_by_epoch(shop, jobs):
    deltas = [[order(number, "ann" if number % 2 else "bob", number)] for number in range(1, 7)]
    watches = {name: shop.watch_output(name) for name in VIEWS}
    done = together(shop, [insert(shop, *delta, token=f"tick {at}") for at, delta in enumerate(deltas)])
    assert jobs.jobs == [6]
    with declare(IncrementalFlow()) as alone:
        alone.tick("orders", [order(0)])
        expected = {name: alone.watch_output(name) for name in VIEWS}
        summaries = [alone.tick("orders", delta) for delta in deltas]
        for ours, theirs in zip(done, summaries, strict=True):
            assert (ours.epoch, ours.rows_in, ours.rows_out, ours.views) == (
                theirs.epoch,
                theirs.rows_in,
                theirs.rows_out,
                theirs.views,
            )
        for name in VIEWS:
            assert told(watches[name]) == told(expected[name]), name
            assert shop.snapshot(name, epoch=4).num_rows == alone.snapshot(name, epoch=4).num_rows
    assert [shop.epoch_of(f"tick {at}") for at in range(6)] == [2, 3, 4, 5, 6, 7]


def test_what_was_told_is_told_again_after_a_restart(tmp_path, jobs):
    with opened(tmp_path, jobs) as flow:
        declare(flow)
        watch = flow.watch_output("totals")
        together(flow, [insert(flow, order(number)) for number in range(3)])
        together(flow, [insert(flow, order(number)) for number in range(3, 5)])
        before = told(watch)
        assert check_shards(flow._backend.storage).is_whole
    assert [epoch for epoch, _ in before] == [1, 2, 3, 4, 5]
    with opened(tmp_path, jobs) as flow:
        assert told(flow.watch_output("totals", from_epoch=0)) == before
        assert told(flow.watch_output("totals", from_epoch=1)) == before[1:]
        flow.tick("orders", [order(5)])
        assert flow.epoch == 6
        assert ids(flow) == list(range(6))


@pytest.mark.parametrize("at", [0, 1, 3])
@pytest.mark.parametrize("cause", ["missing", "ansi"])
def test_a_tick_that_fails_does_not_fail_the_others(shop, at, cause):
    calls = [insert(shop, order(number)) for number in range(1, 4)]
    bad = retract(shop, order(99)) if cause == "missing" else insert(shop, order(99, amount=0))
    calls.insert(at, bad)
    watch = shop.watch_output("all")
    done = together(shop, calls)
    assert isinstance(done.pop(at), DataError)
    assert [one.epoch for one in done] == [2, 3, 4]
    assert [epoch for epoch, _ in told(watch)] == [2, 3, 4]
    assert shop.pending is (cause == "ansi")  # a delta that its source cannot take is not kept
    if shop.pending:
        with pytest.raises(DataError):
            shop.retry()
        shop.discard()
    assert ids(shop) == [0, 1, 2, 3]
    shop.tick("orders", [order(4)])
    assert (shop.epoch, ids(shop)) == (5, [0, 1, 2, 3, 4])


def test_of_several_that_fail_each_is_told_why_and_the_first_that_can_waits(shop):
    calls = [retract(shop, order(98)), insert(shop, order(1)), insert(shop, order(99, amount=0))]
    missing, fine, ansi = together(shop, calls)
    assert "98" in missing.message
    assert isinstance(ansi, DataError)
    assert ansi.message != missing.message
    assert (fine.epoch, shop.pending) == (2, True)
    with pytest.raises(DataError) as again:
        shop.retry()
    assert again.value.message == ansi.message
    shop.discard()
    assert ids(shop) == [0, 1]


def test_a_tick_may_retract_what_one_before_it_has_brought(shop, jobs):
    done = together(shop, [insert(shop, order(1)), retract(shop, order(1)), insert(shop, order(1, amount=2))])
    assert [one.epoch for one in done] == [2, 3, 4]
    assert jobs.jobs == [3]
    assert shop.snapshot("orders").sort_by("id").to_pylist() == [order(0), order(1, amount=2)]


def test_a_key_is_upserted_again_and_again(tmp_path, jobs):
    with opened(tmp_path, jobs) as flow:
        declare(flow, key="id")
        together(flow, [insert(flow, order(1, "ann", 5)), insert(flow, order(1, "bob", 6)), insert(flow, order(1))])
        assert jobs.jobs[-1] == 3
        assert flow.snapshot("totals").to_pylist() == [{"customer": "ann", "total": 1}]


def test_a_token_counts_once(shop, jobs):
    calls = [insert(shop, order(1), token="a"), insert(shop, order(2), token="b"), insert(shop, order(3), token="a")]
    first, second, again = together(shop, calls)
    assert [first.epoch, second.epoch, again.epoch] == [2, 3, 2]
    assert (first.replayed, again.replayed) == (False, True)
    assert jobs.jobs == [2]
    assert ids(shop) == [0, 1, 2]


def test_content_that_repeats_is_dropped(tmp_path, jobs):
    with opened(tmp_path, jobs) as flow:
        declare(flow, dedup=10)
        done = together(flow, [insert(flow, order(1)), insert(flow, order(2)), insert(flow, order(1))])
        assert [one.dropped for one in done] == [0, 0, 1]
        assert ids(flow) == [1, 2]
        assert flow.tick("orders", [order(2)]).dropped == 1


def test_a_delta_that_does_not_fit_is_its_callers_business(shop, jobs):
    bad = lambda: shop.tick("orders", [{"id": 1, "colour": "red"}])  # noqa: E731 - as the others
    unknown = lambda: shop.tick("ordres", [order(1)])  # noqa: E731 - as the others
    done = together(shop, [bad, insert(shop, order(1)), unknown, insert(shop, order(2))])
    assert [type(one) for one in done[::2]] == [ConfigError, ConfigError]
    assert [one.epoch for one in done[1::2]] == [2, 3]
    assert jobs.jobs == [2]


def test_a_tick_whose_time_is_over_does_not_fail_the_others(shop):
    done = together(shop, [insert(shop, order(1)), insert(shop, order(2), timeout=1e-6), insert(shop, order(3))])
    assert isinstance(done.pop(1), TickTimeout)
    assert [one.epoch for one in done] == [2, 3]
    assert shop.retry().epoch == 4
    assert ids(shop) == [0, 1, 2, 3]


@pytest.mark.parametrize("policy", ["block", "fail"])
def test_readers_get_no_more_than_they_have_room_for(shop, jobs, policy):
    watch = shop.watch_output("all", capacity=2, policy=policy)
    seen = []

    def read():
        while len(seen) < 5 and (one := watch.get(timeout=60)) is not None:
            seen.append(one[0])

    reader = threading.Thread(target=read)
    reader.start()
    jobs.before = lambda: threading.Event().wait(0.05)  # for the reader to keep up
    together(shop, [insert(shop, order(number)) for number in range(1, 6)])
    reader.join(60)
    assert seen == [2, 3, 4, 5, 6]
    assert max(jobs.jobs) == 2


@pytest.mark.parametrize("kind", ["late", "recomputed", "clock", "large"])
def test_what_cannot_share_runs_one_at_a_time(tmp_path, jobs, kind):
    with opened(tmp_path, jobs) as flow:
        if kind == "late":
            flow.register_source("events", "at TIMESTAMP_NTZ, id BIGINT", lateness=Lateness("at", "1 minute"))
            row = lambda number: {"at": datetime(2024, 1, 1, 0, number), "id": number}  # noqa: E731, DTZ001
        else:
            flow.register_source("events", "at STRING, id BIGINT")
            row = lambda number: {"at": "x" * (1 << 21 if kind == "large" else 1), "id": number}  # noqa: E731
        sql = "SELECT MAX(id) AS id FROM events"
        if kind == "clock":
            sql = "SELECT id FROM events WHERE timestamp_micros(id) < now()"
        flow.register_view("last", sql, mode="diff" if kind == "recomputed" else "auto")
        done = together(flow, [lambda at=at: flow.tick("events", [row(at)]) for at in range(3)])
        assert len({one.epoch for one in done}) == 3
        assert max(jobs.jobs) == 1
        assert sorted(flow.snapshot("events")["id"].to_pylist()) == [0, 1, 2]


def test_who_has_the_flow_to_itself_runs_nobody_elses_ticks(shop, jobs):
    queue, other = shop._backend._queue, threading.Thread(target=insert(shop, order(2)))
    with shop.exclusive():
        other.start()
        while not queue.waiting():
            pass
        shop.tick("orders", [order(1)])
        assert ids(shop) == [0, 1]
        assert jobs.jobs == [1]
    other.join(60)
    assert ids(shop) == [0, 1, 2]


def test_a_callback_cannot_tick_and_sees_every_epoch(shop):
    seen, refused = [], []

    def called(epoch, delta):
        seen.append(epoch)
        try:
            shop.tick("orders", [order(50)])
        except FlowReentered as error:
            refused.append(error)

    shop.on_delta("all", called)
    together(shop, [insert(shop, order(number)) for number in range(1, 4)])
    assert seen == [2, 3, 4]
    assert len(refused) == 3
    assert ids(shop) == [0, 1, 2, 3]


def test_sinks_get_every_epoch(shop):
    written = []
    shop.sink("all", lambda epoch, delta: written.append((epoch, len(delta.to_arrow()))))
    together(shop, [insert(shop, order(number)) for number in range(1, 4)])
    assert written == [(1, 1), (2, 2), (3, 2), (4, 2)]


def test_an_interrupted_job_leaves_the_tick_of_its_caller_pending(shop, jobs):
    def interrupt():
        jobs.before = lambda: None
        raise KeyboardInterrupt

    jobs.before = interrupt
    first, *others = together(shop, [insert(shop, order(number)) for number in range(1, 4)])
    assert isinstance(first, KeyboardInterrupt)
    assert [type(one) for one in others] == [TickPending, TickPending]
    assert shop.pending
    assert shop.retry().epoch == 2
    assert ids(shop) == [0, 1]


def test_what_others_were_refused_is_not_run_by_the_next_process(tmp_path, jobs):
    def interrupt():
        jobs.before = lambda: None
        raise KeyboardInterrupt

    flow = declare(opened(tmp_path, jobs))
    flow.tick("orders", [order(0)])
    jobs.before = interrupt
    together(flow, [insert(flow, order(number)) for number in range(1, 4)])
    with opened(tmp_path, jobs) as heir:
        assert (heir.epoch, heir.pending, ids(heir)) == (2, False, [0, 1])
    flow.close()


@pytest.mark.parametrize("point", ["partitioned.before_commit", "partitioned.after_commit"])
def test_a_commit_whose_fate_is_not_known_is_looked_up(shop, point):
    failed = []

    def fail(name):
        if name == point and not failed:
            failed.append(name)
            raise StorageError("The storage is away.", uri="memory://")

    watch = shop.watch_output("all")
    watch_failpoints(fail)
    try:
        first, *others = together(shop, [insert(shop, order(number)) for number in range(1, 4)])
    finally:
        watch_failpoints(None)
    assert isinstance(first, StorageError)
    if point == "partitioned.after_commit":
        assert [one.epoch for one in others] == [3, 4]
        assert not shop.pending
    else:
        assert [type(one) for one in others] == [TickPending, TickPending]
        assert shop.retry().epoch == 2
    assert [epoch for epoch, _ in told(watch)] == list(range(2, shop.epoch + 1))
    assert ids(shop) == list(range(shop.epoch))


def test_ticks_that_were_begun_together_are_run_by_the_next_process(tmp_path, jobs):
    flow = declare(opened(tmp_path, jobs))
    flow.tick("orders", [order(0)])
    rows = [order(1), order(2, amount=0), order(3)]
    backend = flow._backend
    with flow.exclusive():
        given = [backend.read_deltas({"orders": [row]}) for row in rows]
        first, *more = [GivenTick(f"tick {at}", one.rows, one.digests) for at, one in enumerate(given)]
        backend._coordinator.begin(first, more=more)
        backend._coordinator._await_written()
    assert any("epochs 2 to 4" in file.holds for file in check_shards(backend.storage).files)
    with opened(tmp_path, jobs) as heir:
        assert (heir.epoch, heir.pending) == (3, True)
        assert [heir.epoch_of(f"tick {at}") for at in range(3)] == [2, None, 3]
        assert ids(heir) == [0, 1, 3]
    flow.close()
