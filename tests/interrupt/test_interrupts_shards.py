"""Flows in shards under exceptions at every point: a change happens wholly or not at all, and is told once."""

import os
import threading
import uuid
from collections import Counter
from contextlib import suppress
from functools import partial
from itertools import count

import pyarrow as pa
import pytest
from support.flow_engine import FlowEngine
from support.interrupts import at_depth, interrupt_after, pester, raise_at, some_points

from weirflow.errors import FlowError, StorageError, TickPending, WeirflowError
from weirflow.ivm.flow.position import Position
from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.flow import PartitionedFlow

pytestmark = [
    # An exception in a finalizer goes no further, and a file that was being read when it came is closed by one.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

DECIDING = tuple(
    f"ivm/sharded/{name}.py"
    for name in (
        "backend",
        "commits",
        "coordinator",
        "declared",
        "kept_commits",
        "ledger",
        "published",
        "queued_ticks",
        "sharing",
    )
)
"""Where it is decided what the flow is."""
TELLING = (
    "ivm/flow/outputs/publisher.py",
    "ivm/flow/outputs/watch.py",
    "ivm/flow/outputs/history.py",
    "ivm/flow/unfinished.py",
)
ALL = ("ivm/", "checkpoint/", "sql/")
ORDERS = pa.schema([("customer", pa.string()), ("amount", pa.int64())])
TOTALS = "SELECT customer, SUM(amount) AS total, COUNT(*) AS orders FROM orders GROUP BY customer"
LARGE = "SELECT customer, amount FROM orders WHERE amount >= 10"


def orders(*rows):
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=ORDERS)


FIRST = (("ann", 15), ("bob", 20), ("ann", 30))
SECOND = (("bob", 1), ("cy", 11), ("ann", 40))
THIRD = (("dee", 12), ("bob", 2))


def totals(rows):
    sums, counts = Counter(), Counter()
    for customer, amount in rows:
        sums[customer] += amount
        counts[customer] += 1
    return Counter((customer, sums[customer], counts[customer]) for customer in counts)


def large(rows):
    return Counter(row for row in rows if row[1] >= 10)


def huge(rows):
    return Counter(row for row in rows if row[1] >= 20)


def rows_of(table):
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


class Shop:
    """A flow with what it was told, beside all rows that it should have."""

    def __init__(self, shards=2):
        self.uri = f"memory://{uuid.uuid4().hex}"
        self.views = {"totals": totals, "large": large}
        self.shards = shards
        self.open()
        self.flow.register_source("orders", ORDERS)
        self.flow.register_view("totals", TOTALS)
        self.flow.register_view("large", LARGE)
        self.flow.tick("orders", orders(*FIRST))
        self.rows = list(FIRST)
        self.watch = self.flow.watch_output("totals", snapshot=True)
        self.called = []
        self.flow.on_delta("totals", lambda epoch, delta: self.called.append((epoch, signed(delta))))
        self.begun = self.flow.epoch

    def open(self):
        self.flow = PartitionedFlow(self.uri, self.shards, InThisProcess(FlowEngine()), name="shop")

    def tick(self, rows):
        self.flow.tick("orders", orders(*rows))
        self.rows += rows

    def found(self):
        return {name: rows_of(self.flow.snapshot(name)) for name in self.flow.views}

    def expected(self, rows):
        return {name: view(rows) for name, view in self.views.items()}

    def check(self):
        assert self.found() == self.expected(self.rows)

    def check_told(self, *, watch_ended=False):
        """What the watch and the callback were told adds up to the view, epoch by epoch."""
        epochs, total = [], Counter()
        while (one := self.watch.get(timeout=0)) is not None:
            epochs.append(one[0])
            add(total, signed(one[1]))
        if not watch_ended:
            assert +total == totals(self.rows)
            assert epochs == sorted(set(epochs))
            called = [epoch for epoch, _ in self.called]
            assert called == [epoch for epoch in epochs[1:] if epoch in called]
            assert len(called) >= len(epochs) - 2  # the exception may have come into the callback itself

    def reopen(self):
        self.flow.close()
        self.open()


def signed(delta):
    table = delta.to_arrow()
    found = Counter()
    for *row, weight in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found[tuple(row)] += weight
    return found


def add(total, change):
    for row, weight in change.items():
        total[row] += weight


def settled(shop, rows, n):
    """After an interrupted tick of these rows: whether it has happened; what is pending is run again, or given up."""
    if shop.flow.pending:
        with pytest.raises(WeirflowError, match="retry"):
            shop.flow.tick("orders", orders(*rows))
        if n % 2:
            shop.flow.retry()
            return True
        shop.flow.discard()
        assert not shop.flow.pending
        return False
    found = shop.found()
    assert found in (shop.expected(shop.rows), shop.expected([*shop.rows, *rows]))
    return found == shop.expected([*shop.rows, *rows])


def went_on(shop):
    """The flow goes on where it is, and so does the one that is opened next."""
    shop.tick(THIRD)
    shop.check()
    shop.check_told()
    shop.reopen()
    assert not shop.flow.pending
    shop.check()
    shop.tick(THIRD)
    shop.check()


SOME = pytest.param(8, id="some")
MANY = pytest.param(600, id="many", marks=pytest.mark.campaign)


@pytest.mark.parametrize("exception", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("most", [SOME, MANY])
@pytest.mark.parametrize("files", [(*DECIDING, *TELLING), ALL], ids=["deciding", "all"])
def test_a_tick(exception, most, files):
    for n in some_points(partial(Shop().tick, SECOND), most, files):
        shop = Shop()
        with raise_at(n, exception, files) as thrown:
            try:
                shop.tick(SECOND)
                done = True
            except (exception, WeirflowError):
                assert thrown.where is not None
                done = False
        if not done and settled(shop, SECOND, n):
            shop.rows += SECOND
        assert shop.flow.epoch == len(shop.rows) // 3, thrown.where
        shop.check()
        went_on(shop)


OTHERS = ((("eve", 13),), (("fay", 14),))


def led(shop, tick):
    """Call ``tick`` while others wait behind it, so that it runs theirs too; the rows of those that were acknowledged.

    What ``tick`` raises is raised. The others have happened, or were told that a tick is pending.
    """
    queue, held, gone, outcomes = shop.flow._backend._queue, threading.Event(), threading.Event(), {}

    def other(rows):
        try:
            outcomes[rows] = shop.flow.tick("orders", orders(*rows)).epoch
        except TickPending:
            outcomes[rows] = None

    threads = [threading.Thread(target=other, args=(rows,)) for rows in OTHERS]

    def hold():
        with shop.flow.exclusive():
            held.set()
            while not queue.waiting() and not gone.is_set():
                gone.wait(0.001)
            for number, thread in enumerate(threads, 1):
                thread.start()
                while len(queue.waiting()) < number + (not gone.is_set()):
                    gone.wait(0.001)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    try:
        tick()
    finally:
        gone.set()
        for thread in (holder, *threads):
            thread.join()
        assert len(outcomes) == len(OTHERS)
        for rows, epoch in outcomes.items():
            if epoch is not None:
                shop.rows += rows


@pytest.mark.parametrize("exception", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("most", [SOME, MANY])
def test_a_tick_that_runs_those_of_others(exception, most):
    files, thrown_at, counted = (*DECIDING, *TELLING), [], Shop()
    for n in some_points(partial(led, counted, partial(counted.tick, SECOND)), most, files):
        shop = Shop()
        with raise_at(n, exception, files) as thrown:
            try:
                led(shop, partial(shop.tick, SECOND))
                done = True
            except (exception, WeirflowError):
                done = False
        thrown_at += [thrown.where] if thrown.where else []
        if not done and settled(shop, SECOND, n):
            shop.rows += SECOND
        shop.check()
        went_on(shop)
    assert len(thrown_at) > most // 2


def test_a_tick_near_the_end_of_the_stack():
    outcomes = set()
    for depth in range(1, 150, 20):
        shop = Shop()
        try:
            at_depth(depth, lambda shop=shop: shop.flow.tick("orders", orders(*SECOND)))
            done = True
        except (RecursionError, WeirflowError):
            done = settled(shop, SECOND, depth)
        outcomes.add(done)
        shop.rows += SECOND if done else ()
        shop.check()
        went_on(shop)
    assert outcomes == {True, False}


def test_exceptions_of_another_thread():
    shop = Shop()
    token = count()
    acknowledged = set()

    def step():
        if shop.flow.pending:
            shop.flow.discard()
        number = next(token)
        shop.flow.tick("orders", orders((str(number), 10)), token=str(number))
        acknowledged.add(str(number))

    pester(step, times=25)
    if shop.flow.pending:
        shop.flow.discard()
    there = {row[0]: number for row, number in rows_of(shop.flow.snapshot("orders")).items()}
    assert set(there.values()) == {1}
    assert acknowledged <= there.keys()
    shop.rows += [(name, 10) for name in there if name not in ("ann", "bob")]
    shop.check()
    shop.reopen()
    shop.check()


def test_control_c():
    """Real signals: the tick has happened or waits."""
    shop = Shop()
    for number in range(12):
        try:
            with interrupt_after(0.003 * number):
                shop.flow.tick("orders", orders((str(number), 10)))
            shop.rows.append((str(number), 10))
        except KeyboardInterrupt:
            if settled(shop, [(str(number), 10)], number):
                shop.rows.append((str(number), 10))
        shop.check()
    shop.reopen()
    shop.check()


CHANGES = {
    "define": lambda flow: flow.register_view("huge", "SELECT * FROM large WHERE amount >= 20"),
    "drop": lambda flow: flow.drop("large"),
    "rescale": lambda flow: flow.rescale(3),
    "replace": lambda flow: flow.replace_view("large", "SELECT customer, amount FROM orders WHERE amount >= 20"),
    "refresh": lambda flow: flow.refresh_view("totals"),
    "force": lambda flow: flow.force_diff_based("totals"),
}
VIEWS_AFTER = {
    "define": {"totals": totals, "large": large, "huge": huge},
    "drop": {"totals": totals},
    "replace": {"totals": totals, "large": huge},
}


@pytest.mark.parametrize("most", [pytest.param(3, id="some"), pytest.param(100, id="many", marks=pytest.mark.campaign)])
@pytest.mark.parametrize("files", [DECIDING, ALL], ids=["deciding", "all"])
@pytest.mark.parametrize("change", CHANGES)
def test_other_changes(change, files, most):
    """Wholly or not at all; and what was not done can be done again."""
    for n in some_points(partial(CHANGES[change], Shop().flow), most, files):
        shop = Shop()
        before, after = shop.views, VIEWS_AFTER.get(change, shop.views)
        with raise_at(n, KeyboardInterrupt, files), suppress(KeyboardInterrupt):
            CHANGES[change](shop.flow)
        assert set(shop.flow.views) in (set(before), set(after))
        shop.views = after if set(shop.flow.views) == set(after) else before
        if change == "replace" and shop.found() == {name: view(shop.rows) for name, view in before.items()}:
            shop.views = before
        shop.check()
        shop.tick(SECOND)
        shop.check()
        if shop.views is before or change not in VIEWS_AFTER:
            CHANGES[change](shop.flow)
            shop.views = after
        shop.check()
        shop.check_told(watch_ended=change == "force")
        shop.reopen()
        shop.check()
        shop.tick(THIRD)
        shop.check()


def test_a_stream_that_is_interrupted_is_taken_in_once():
    shop = Shop()
    feed = lambda: shop.flow.feed("orders", orders(*SECOND), position=Position("s", "origin", "1"))  # noqa: E731
    for n in some_points(feed, 6, DECIDING):
        shop = Shop()
        with raise_at(n, KeyboardInterrupt, DECIDING), suppress(KeyboardInterrupt):
            feed()
        with suppress(KeyboardInterrupt):
            feed()
        shop.rows += SECOND
        shop.check()
        went_on(shop)


class Storage:
    """Fails once, before or after it has done what it was asked."""

    def __init__(self, storage, when):
        self._storage = storage
        self._when = when
        self.failed = False

    def __getattr__(self, name):
        return getattr(self._storage, name)

    def put_if_absent(self, name, data):
        if self._when == "before" and not self.failed:
            self.failed = True
            raise StorageError("no route to the storage", uri=self._storage.uri)
        self._storage.put_if_absent(name, data)
        if self._when == "after" and not self.failed:
            self.failed = True
            raise StorageError("no answer from the storage", uri=self._storage.uri)


@pytest.mark.parametrize("then", ["retry", "discard"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_storage_that_does_not_answer(when, then):
    """Whether a commit is there that was asked for is found out before anything else is done."""
    shop = Shop()
    shop.flow._backend._coordinator.commits.storage = Storage(shop.flow._backend._coordinator.commits.storage, when)
    with pytest.raises(StorageError, match="the storage"):
        shop.flow.tick("orders", orders(*SECOND))
    assert shop.flow.pending is (when == "before")
    if when == "after":
        with pytest.raises(FlowError, match="No tick is pending"):
            shop.flow.retry()
        shop.flow.discard()
        shop.rows += SECOND
    elif then == "retry":
        shop.flow.retry()
        shop.rows += SECOND
    else:
        shop.flow.discard()
    shop.check()
    went_on(shop)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_what_a_callback_raises_comes_when_all_are_told(raised):
    shop = Shop()

    def interrupting(epoch, delta):
        raise raised

    shop.flow._backend._outputs._callbacks["totals"].insert(0, interrupting)
    with pytest.raises(raised):
        shop.tick(SECOND)
    assert [epoch for epoch, _ in shop.called] == [2]
    shop.rows += SECOND
    shop.flow._backend._outputs._callbacks["totals"].remove(interrupting)
    assert not shop.flow.pending
    shop.check()
    went_on(shop)


def test_a_discarded_tick_never_comes_back_however_slow_it_is_written(monkeypatch):
    """The tick is given up while the file that remembers it is still being written."""
    for n in some_points(partial(Shop().tick, SECOND), 8, "ivm/sharded/coordinator.py"):
        shop = Shop()
        commits = shop.flow._backend._coordinator.commits
        put, going = commits.put_pending, threading.Event()
        monkeypatch.setattr(commits, "put_pending", lambda one, put=put, going=going: going.wait(0.05) and put(one))
        with raise_at(n, KeyboardInterrupt, "ivm/sharded/coordinator.py") as thrown, suppress(KeyboardInterrupt):
            shop.flow.tick("orders", orders(*SECOND))
        if shop.flow.pending:
            threading.Timer(0.01, going.set).start()
            shop.flow.discard()
            shop.reopen()
            assert not shop.flow.pending, thrown.where
            shop.check()


def test_a_forked_child_is_refused_and_leaves_the_flow_alone(tmp_path):
    shop = Shop()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for call in (lambda: shop.tick(SECOND), lambda: shop.flow.snapshot("totals"), shop.flow.discard):
                with pytest.raises(FlowError, match="forked"):
                    call()
            shop.flow.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    shop.tick(SECOND)
    shop.check()
    went_on(shop)
