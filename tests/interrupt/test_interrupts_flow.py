"""A flow in one process equals what it acknowledged, whatever is raised in the middle of whatever it does."""

from __future__ import annotations

import contextlib
import random
import threading

import pytest
from support.interrupted_flow import Reader, Shop, declare, delta, reopened, settled, shown
from support.interrupts import async_raise, at_depth, interrupt_after, raise_at

from weirflow.errors import SqlTooComplex, StackExhausted, WeirflowError
from weirflow.ivm.flow import IncrementalFlow
from weirflow.ivm.flow.unfinished import AtomicChanges

pytestmark = [
    # An exception in a finalizer goes no further, and a file that was being read when it came is closed by one.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

EXHAUSTED = (RecursionError, StackExhausted)

INTERRUPTIONS = (KeyboardInterrupt, SystemExit, MemoryError, *EXHAUSTED, SqlTooComplex, SystemError)
"""What may come of an attack: SQL that no memory is left for is too complex, and compiled code raises a SystemError."""

COMMIT = (
    "ivm/flow/",
    "ivm/durability/",
    "ivm/circuit/circuit.py",
    "ivm/operators/operator.py",
    "ivm/kernel/runs/spine.py",
)
"""Where a tick that was computed becomes a fact."""


class Attacked:
    """A flow of a shop at which exceptions are thrown, and the shop that it must equal."""

    def __init__(self, dice, path=None):
        self.dice = dice
        self.path = path
        self.options = {"fsync": dice.choice([0, 1, 3]), "checkpoint_every": dice.choice([0, 3, 10])} if path else {}
        self.shop = Shop()
        self.open()

    def open(self):
        self.flow = IncrementalFlow("shop", path=self.path, **self.options)
        declare(self.flow)
        self.watch()

    def watch(self):
        self.readers = [Reader(self.flow, "totals"), Reader(self.flow, "named")]
        self.called = []
        self.flow.on_delta("totals", lambda epoch, _: self.called.append(epoch))

    def tick(self):
        """A random tick, and the shop after it."""
        dice, after = self.dice, self.shop.copy()
        if dice.random() < 0.2:
            customer, name = dice.randrange(4), dice.choice("abc")
            after.names[customer] = name
            return (lambda: self.flow.tick("customers", [{"id": customer, "name": name}])), after
        inserted = [(dice.randrange(4), dice.randrange(5)) for _ in range(dice.randrange(1, 4))]
        held = sorted(self.shop.orders.elements())
        retracted = dice.sample(held, min(len(held), dice.randrange(3)))
        after.orders.update(inserted)
        after.orders.subtract(retracted)
        change = delta(inserted, retracted)
        return (lambda: self.flow.tick("orders", change)), after

    def check(self, after, exception):
        """After an interrupt: the flow is as before or as after, in every view and for every reader, and goes on."""
        now = settled(self.flow, self.shop, after, self.readers)
        if self.flow.pending:
            assert shown(self.flow) == self.shop.views()
            if self.dice.random() < 0.5:
                self.flow.retry()
                now = settled(self.flow, after, after, self.readers)
            else:
                self.flow.discard()
                now = settled(self.flow, self.shop, self.shop, self.readers)
        self.shop = now
        assert self.called == sorted(set(self.called)), exception

    def thrown(self, act, after, exception, throw):
        """Do something while an exception is thrown at it; returns whether it was."""
        try:
            with throw:
                act()
        except exception:
            self.check(after, exception)
            return True
        self.shop = settled(self.flow, after, after, self.readers)
        return False

    def reopen(self):
        """Close and open again: what was acknowledged is there."""
        self.flow.close()
        self.open()
        assert shown(self.flow) == self.shop.views()


@pytest.fixture(params=["in memory", "durable"])
def attacked(request, tmp_path):
    attacked = Attacked(random.Random(7), None if request.param == "in memory" else tmp_path / "flow")
    yield attacked
    if attacked.path is not None:
        attacked.reopen()
    attacked.flow.close()


def points(act, files):
    """How many points something passes."""
    with raise_at(10**9, KeyboardInterrupt, files) as counted:
        act()
    return counted.points


def commit_points(attacked):
    """How many points a tick of the shop passes where it is committed."""
    act, attacked.shop = attacked.tick()
    act()
    act, after = attacked.tick()
    count = points(act, COMMIT)
    attacked.shop = settled(attacked.flow, after, after, attacked.readers)
    return count


@pytest.mark.parametrize("every", [53, pytest.param(1, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("exception", [KeyboardInterrupt, MemoryError])
def test_a_tick_interrupted_where_it_is_committed_has_happened_or_not(attacked, exception, every):
    for point in range(1, commit_points(attacked), every):
        act, after = attacked.tick()
        attacked.thrown(act, after, exception, raise_at(point, exception, COMMIT))


def test_a_tick_interrupted_anywhere_has_happened_or_not(attacked):
    act, attacked.shop = attacked.tick()
    count = points(act, "")
    for _ in range(20):
        act, after = attacked.tick()
        exception = attacked.dice.choice([KeyboardInterrupt, SystemExit, MemoryError])
        attacked.thrown(act, after, exception, raise_at(attacked.dice.randrange(1, count), exception))


def test_a_tick_near_the_end_of_the_stack_has_happened_or_not(attacked):
    act, attacked.shop = attacked.tick()
    act()
    failed = 0
    for depth in range(1, 130, 4):
        act, after = attacked.tick()
        near_the_end = contextlib.nullcontext()
        failed += attacked.thrown(lambda: at_depth(depth, act), after, EXHAUSTED, near_the_end)  # noqa: B023 - called at once
    assert failed > 3


def test_interrupts_while_an_interrupt_is_dealt_with_are_made_up_for_by_the_next_call(attacked, monkeypatch):
    settle = AtomicChanges.settle
    armed = []

    def interrupted_settle(changes):
        if not armed or changes.is_settled:
            settle(changes)
            return
        with raise_at(armed.pop(), KeyboardInterrupt, COMMIT):
            settle(changes)

    monkeypatch.setattr(AtomicChanges, "settle", interrupted_settle)
    for first in range(1, commit_points(attacked), 71):
        act, after = attacked.tick()
        armed[:] = [attacked.dice.randrange(1, 12), attacked.dice.randrange(1, 20)]
        with contextlib.suppress(KeyboardInterrupt), raise_at(first, KeyboardInterrupt, COMMIT):
            act()
        armed.clear()
        attacked.check(after, KeyboardInterrupt)


def test_definitions_interrupted_anywhere_are_there_or_not(attacked):
    act, attacked.shop = attacked.tick()
    act()
    flow, dice = attacked.flow, attacked.dice
    sql = "SELECT customer, MAX(amount) AS most FROM orders GROUP BY customer"
    actions = {
        "register_view": lambda: flow.register_view("most", sql),
        "replace_view": lambda: flow.replace_view("most", f"{sql} HAVING MAX(amount) > 1"),
        "drop": lambda: flow.drop("most"),
        "register_source": lambda: flow.register_source("extra", "id BIGINT"),
        "drop_source": lambda: flow.drop("extra"),
    }
    counts = {name: points(action, "ivm/") for name, action in actions.items()}
    for name, action in actions.items():
        for point in sorted(dice.sample(range(1, counts[name]), 5)):
            before = flow.views, flow.sources
            with contextlib.suppress(KeyboardInterrupt), raise_at(point, KeyboardInterrupt, "ivm/"):
                action()
            settled(flow, attacked.shop, attacked.shop, attacked.readers)
            held = {customer: amount for customer, amount in sorted(attacked.shop.orders.elements())}  # noqa: C416 - the greatest comes last
            if "most" in flow.views and "extra" not in flow.sources:
                found = {row["customer"]: row["most"] for row in flow.snapshot("most").to_pylist()}
                assert found in (held, {one: most for one, most in held.items() if most > 1})
            if (flow.views, flow.sources) == before and name in {"register_view", "drop", "register_source"}:
                continue
            if name == "register_view":
                flow.drop("most")
            elif name == "drop":
                flow.register_view("most", sql)
            elif name == "replace_view":
                flow.replace_view("most", sql)
            elif name == "register_source":
                flow.drop("extra")
        with contextlib.suppress(WeirflowError):
            action()


def test_a_callback_that_stops_the_program_leaves_no_reader_without_the_epoch(attacked):
    def stop(epoch, delta):
        raise SystemExit(3)

    attacked.flow.on_delta("kinds", stop)
    later = []
    attacked.flow.on_delta("kinds", lambda epoch, _: later.append(epoch))
    reader = Reader(attacked.flow, "kinds")
    attacked.shop.orders[1, 2] += 1
    with pytest.raises(SystemExit):
        attacked.flow.tick("orders", delta([(1, 2)], []))
    assert not attacked.flow.pending
    settled(attacked.flow, attacked.shop, attacked.shop, [*attacked.readers, reader])
    assert later == [1]


CHECKPOINT = ("ivm/flow/", "ivm/durability/", "checkpoint/")


@pytest.fixture
def durable(tmp_path):
    attacked = Attacked(random.Random(11), tmp_path / "flow")
    for _ in range(5):
        act, attacked.shop = attacked.tick()
        act()
    yield attacked
    attacked.flow.close()


def test_a_checkpoint_interrupted_anywhere_costs_nothing(durable):
    act, durable.shop = durable.tick()
    act()
    count = points(durable.flow.checkpoint, CHECKPOINT)
    for point in range(1, count, max(1, count // 25)):
        act, durable.shop = durable.tick()
        act()
        with contextlib.suppress(KeyboardInterrupt), raise_at(point, KeyboardInterrupt, CHECKPOINT):
            durable.flow.checkpoint()
        durable.flow.checkpoint()
        durable.reopen()


def test_an_open_interrupted_anywhere_leaves_the_flow_to_the_next(durable):
    durable.flow.close()
    count = points(durable.open, "")
    durable.flow.close()
    for point in range(1, count, max(1, count // 40)):
        with contextlib.suppress(KeyboardInterrupt), raise_at(point, KeyboardInterrupt):
            durable.open()
        durable.flow.close()
        durable.open()
        assert shown(durable.flow) == durable.shop.views()
        act, durable.shop = durable.tick()
        act()
        durable.flow.close()


def test_a_close_that_is_interrupted_can_be_done_again(durable):
    count = points(durable.flow.close, CHECKPOINT)
    for point in range(1, count, 3):
        durable.open()
        act, durable.shop = durable.tick()
        act()
        with contextlib.suppress(KeyboardInterrupt), raise_at(point, KeyboardInterrupt, CHECKPOINT):
            durable.flow.close()
        durable.flow.close()
        with reopened(durable.path) as again:
            assert shown(again) == durable.shop.views()


def attack(seed, path, count):
    """Throw exceptions of every kind at whatever the flow does, at random moments; returns how many came."""
    dice = random.Random(seed)
    attacked = Attacked(dice, path)
    thrown = 0
    while thrown < count:
        what = dice.random()
        act, after = attacked.tick()
        if what < 0.1 and path is not None:
            act, after = attacked.flow.checkpoint, attacked.shop
        elif what < 0.2:
            act, after = _definition(attacked.flow, dice), attacked.shop
        elif what < 0.25 and path is not None:
            act, after = attacked.reopen, attacked.shop
        try:
            _under_attack(dice, act)
        except INTERRUPTIONS:
            thrown += 1
        else:
            attacked.shop = after
            continue
        if act == attacked.reopen:  # it may have come to any point, also where nobody reads the new flow yet
            attacked.flow.close()
            attacked.open()
            assert shown(attacked.flow) == attacked.shop.views()
        attacked.check(after, None)
    attacked.flow.close()
    if path is not None:
        with reopened(path) as again:
            assert shown(again) == attacked.shop.views()
    return thrown


def _definition(flow, dice):
    if "most" in flow.views:
        return lambda: flow.drop("most")
    level = dice.randrange(3)
    return lambda: flow.register_view("most", f"SELECT customer FROM orders WHERE amount > {level}")


def _under_attack(dice, act):
    """Do something while something is thrown at it: a signal, another thread's exception, a limit of the stack."""
    kind = dice.choice(["signal", "thread", "stack", "memory"])
    if kind == "signal":
        with interrupt_after(dice.uniform(0, 0.01)):
            act()
    elif kind == "stack":
        at_depth(dice.randrange(1, 150), act)
    elif kind == "memory":
        with raise_at(dice.randrange(1, 12_000), MemoryError):
            act()
    else:
        _interrupted_by_another_thread(act, dice.uniform(0, 0.01))


def _interrupted_by_another_thread(act, seconds):
    result = []

    def work():
        try:
            act()
        except BaseException as error:  # noqa: BLE001 - handed over
            result.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    async_raise(thread.ident, KeyboardInterrupt)
    thread.join(60)
    assert not thread.is_alive()
    if result:
        raise result[0]


@pytest.mark.parametrize("seed", [1, 2])
def test_exceptions_of_every_kind_at_random_moments(tmp_path, seed):
    assert attack(seed, tmp_path / "flow" if seed % 2 else None, 30) == 30


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_exceptions_of_every_kind_at_random_moments(tmp_path, seed):
    assert attack(seed, tmp_path / "flow" if seed % 2 else None, 100) == 100
