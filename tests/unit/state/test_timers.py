"""Timers as state: moments of keys, found by their time within the key groups that an instance has."""

import pytest

from weirflow.errors import StateError
from weirflow.state import InMemoryStateBackend, KeyedStateStore, KeyGroupRange, StateDescriptor

TIMERS = StateDescriptor("timers", str, None)


def opened(backend, owned=None):
    store = KeyedStateStore(backend, "test", owned=owned)
    return store, store.timers(TIMERS)


def found(timers, end):
    return sorted((at, timers.key(data)) for at, data in timers.until(end))


def test_moments_are_found_by_time_over_all_keys():
    store, timers = opened(InMemoryStateBackend())
    for key, at in [("ann", 300), ("bob", -7), ("ann", 5), ("cid", 1 << 70), ("bob", 256)]:
        store.set_key(key)
        timers.add(at)
    assert timers.first() == -7
    assert found(timers, 255) == [(-7, "bob"), (5, "ann")]
    assert found(timers, 256) == [(-7, "bob"), (5, "ann"), (256, "bob")]
    store.flush()
    assert found(timers, 1 << 80) == [(-7, "bob"), (5, "ann"), (256, "bob"), (300, "ann"), (1 << 70, "cid")]


def test_a_moment_is_one_for_its_key_and_time():
    store, timers = opened(InMemoryStateBackend())
    store.set_key("ann")
    assert timers.add(5) is not None
    assert timers.add(5) is None
    assert [timers.remove(at) for at in (5, 5, 6)] == [True, False, False]
    assert timers.first() is None


def test_what_is_discarded_is_not_there_and_what_is_flushed_is():
    backend = InMemoryStateBackend()
    store, timers = opened(backend)
    store.set_key("ann")
    timers.add(5)
    store.flush()
    timers.remove(5)
    timers.add(6)
    store.discard()
    assert found(timers, 9) == [(5, "ann")]
    assert found(opened(backend)[1], 9) == [(5, "ann")]


def test_an_instance_finds_those_of_its_key_groups():
    backend = InMemoryStateBackend()
    store, timers = opened(backend)
    keys = [f"key {number}" for number in range(50)]
    for key in keys:
        store.set_key(key)
        timers.add(1)
    store.flush()
    halves = [found(opened(backend, groups)[1], 1) for groups in (KeyGroupRange(0, 64), KeyGroupRange(64, 128))]
    assert all(halves)
    assert sorted(halves[0] + halves[1]) == sorted((1, key) for key in keys)


def test_without_a_key_there_is_no_keyed_state():
    store, timers = opened(InMemoryStateBackend())
    value = store.value(StateDescriptor("value", str, int))
    store.set_key("ann")
    store.unset_key()
    for use in (value.get, lambda: value.set(1), lambda: timers.add(1)):
        with pytest.raises(StateError, match="There is no current key"):
            use()


def test_keys_are_not_asked_of_timers():
    store, _ = opened(InMemoryStateBackend())
    with pytest.raises(StateError, match="no keyed slot 'timers'"):
        store.keys("timers")
