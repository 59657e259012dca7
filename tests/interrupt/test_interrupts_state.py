"""Keyed state under exceptions at every point: a batch is written whole or not at all, and the next ones go on."""

from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial
from itertools import count

import pytest
from support.interrupts import at_depth, pester, raise_at

from weirflow.errors import StateError
from weirflow.state import (
    InMemoryStateBackend,
    KeyedStateStore,
    RocksDbStateBackend,
    StateDescriptor,
    Ttl,
    TtlStateBackend,
)
from weirflow.state.encoding.layout import END

pytestmark = [
    # An exception in a finalizer goes no further, and a file that was being read when it came is closed by one.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

EXCEPTIONS = [KeyboardInterrupt, MemoryError, SystemExit]
BEFORE = {"one": {b"a": b"1", b"b": b"1", b"c": b"1"}, "two": {b"a": b"1"}}
CHANGE = {
    "one": {b"a": None, b"b": b"2", b"bb": b"2", b"d": b"2"},
    "two": {b"a": None, b"z": b"2"},
    "new": {b"n": b"2"},
}
LATER = {"one": {b"c": None, b"e": b"3", b"aa": b"3"}, "two": {b"a": b"3"}, "new": {b"o": b"3"}}


class Backends:
    """A backend for each case; those in RocksDB are one database, which costs less than many."""

    def __init__(self, kind, folder):
        self.database = RocksDbStateBackend(folder, fsync=0) if kind == "rocksdb" else None
        self.number = 0

    def make(self, *names):
        """A backend that is empty, as far as these operators go."""
        if self.database is None:
            return InMemoryStateBackend()
        self.database.write(
            {name: dict.fromkeys(key for key, _ in self.database.scan(name, b"", END)) for name in names}
        )
        return self.database

    def unknown(self, name):
        """An operator that the backend has never seen, every tenth time: in RocksDB they are expensive."""
        self.number += 1
        return f"{name}{self.number // 10}"

    def close(self):
        if self.database is not None:
            self.database.close()


@pytest.fixture(params=["memory", "rocksdb"])
def backends(request, tmp_path):
    with closing(Backends(request.param, tmp_path / "state")) as made:
        yield made


def applied(state, change):
    """What state would be after a change, or a part of one."""
    merged = {name: {**state.get(name, {}), **change.get(name, {})} for name in {*state, *change}}
    return {name: {key: value for key, value in own.items() if value is not None} for name, own in merged.items()}


def content(backend, names):
    """All that is stored, which is the same in whichever way it is read."""
    found = {}
    for name in names:
        forward = list(backend.scan(name, b"", END))
        assert forward == list(backend.scan(name, b"", END, reverse=True))[::-1]
        assert forward == sorted(forward)
        assert backend.multi_get(name, [key for key, _ in forward]) == [value for _, value in forward]
        with closing(backend.snapshot()) as snapshot:
            assert forward == list(snapshot.scan(name, b"", END))
        for key in {*BEFORE["one"], *CHANGE["one"], *LATER["one"]} - {key for key, _ in forward}:
            assert backend.get(name, key) is None
        found[name] = dict(forward)
    return found


@contextmanager
def interrupted(n, exception):
    """A block that an exception may end."""
    with raise_at(n, exception, ("state/", "process/")) as thrown:
        try:
            yield thrown
        except (exception, StateError):  # what goes wrong inside of RocksDB's calls is told by one of ours
            assert thrown.where is not None


def write_is_atomic(backends, interrupt):
    """Returns whether the interrupt came."""
    new = backends.unknown("new")
    change, later = ({new if name == "new" else name: own for name, own in one.items()} for one in (CHANGE, LATER))
    names = ["one", "two", new]
    backend = backends.make(*names)
    backend.write(BEFORE)
    before = applied({name: {} for name in names}, BEFORE)
    assert content(backend, names) == before

    came = interrupt(lambda: (backend.write(change), list(backend.scan("one", b"", END))))

    found = content(backend, names)
    assert found in (before, applied(before, change))
    backend.write(later)
    assert content(backend, names) == applied(found, later)
    assert set(names) <= set(backend.operators())
    return came


@pytest.mark.parametrize("exception", EXCEPTIONS)
def test_a_write_is_whole_or_not_there(backends, exception):
    def interrupt(n, work):
        with interrupted(n, exception) as thrown:
            work()
        return thrown.where is not None

    n = next(n for n in count(1) if not write_is_atomic(backends, partial(interrupt, n)))
    assert n > 20


def test_a_write_near_the_end_of_the_stack(backends):
    def interrupt(depth, work):
        try:
            at_depth(depth, work)
        except (RecursionError, StateError):  # as above
            return True
        return False

    outcomes = [write_is_atomic(backends, partial(interrupt, depth)) for depth in range(1, 40)]
    assert set(outcomes) == {True, False}


VALUES = StateDescriptor("values", str, int)
LISTS = StateDescriptor("lists", str, list[int])
MAPS = StateDescriptor("maps", str, dict[int, int])
LIVES = StateDescriptor("lives", str, int, ttl=Ttl(timedelta(milliseconds=10)))


class Store:
    """All kinds of slots in one store, and what they hold."""

    def __init__(self, backend, operator):
        self.now = [0]
        self.backend = TtlStateBackend(backend, lambda: self.now[0])
        self.store = KeyedStateStore(self.backend, operator)
        self.values, self.lists, self.maps = (
            self.store.value(VALUES),
            self.store.list(LISTS),
            self.store.map(MAPS),
        )
        self.lives = self.store.value(LIVES)

    def batch(self, number):
        with self.store.batch():
            for key in ("a", "b"):
                self.store.set_key(key)
                self.values.set(number)
                self.lists.add(number)
                self.maps.put(number, number)
                self.maps.remove(number - 1)
                self.lives.set(number)

    def content(self):
        found = {}
        for key in ("a", "b"):
            self.store.set_key(key)
            found[key] = (self.values.get(), self.lists.get(), dict(self.maps.items()), self.lives.get())
        return found


def expected(numbers):
    """What batches with these numbers leave."""
    if not numbers:
        return dict.fromkeys(("a", "b"), (None, [], {}, None))
    entries = {one: one for one in numbers if one + 1 not in numbers}
    return dict.fromkeys(("a", "b"), (numbers[-1], numbers, entries, numbers[-1]))


@pytest.mark.parametrize("exception", EXCEPTIONS[:2])
@pytest.mark.parametrize("step", [pytest.param(7, id="some"), pytest.param(1, id="all", marks=pytest.mark.campaign)])
def test_a_batch_of_a_store(backends, exception, step):
    for n in count(1, step):
        made = Store(backends.make("store"), "store")
        made.batch(1)
        made.now[0] += 20  # what lives for a while has expired, and the next batch removes it
        assert made.content()["a"][3] is None
        with interrupted(n, exception) as thrown:
            made.batch(2)
        made.store.discard()
        found = made.content()
        done = [1, 2] if found == expected([1, 2]) else [1]
        if done == [1]:
            assert found == {key: (*expected([1])[key][:3], None) for key in found}
        made.batch(3)
        assert made.content() == expected([*done, 3])
        again = Store(made.backend.backend, "store")
        again.now[0] = made.now[0]
        assert again.content() == expected([*done, 3])
        if thrown.where is None:
            break
    assert n > 20
    assert done == [1, 2]


def test_exceptions_of_another_thread(backends):
    """A thread writes batch after batch and gets exceptions: a batch is there for both keys, or for none."""
    made = Store(backends.make("store"), "store")
    numbers, acknowledged = count(1), []

    def step():
        made.store.discard()
        number = next(numbers)
        made.batch(number)
        acknowledged.append(number)

    pester(step, times=50)
    made.store.discard()
    found = made.content()
    numbers_there = found["a"][1]
    assert found["b"] == found["a"] == expected(numbers_there)["a"]
    assert numbers_there == sorted(set(numbers_there))
    assert set(acknowledged) <= set(numbers_there)
