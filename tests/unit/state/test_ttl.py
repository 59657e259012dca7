"""State that expires: absent at once, removed later, by the clock or by the watermark."""

import operator
from datetime import timedelta

import pytest

from weirflow.errors import ConfigError, StateError, StateMismatch
from weirflow.state import KeyedStateStore, RocksDbStateBackend, StateDescriptor, Ttl, TtlStateBackend
from weirflow.state.encoding.layout import CATALOGUE


class Clock:
    now = 1_000_000

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def expiring(backend, clock):
    return TtlStateBackend(backend, clock)


def slot(time="processing", refresh="write", *, milliseconds=100, name="seen", value=int):
    return StateDescriptor(name, str, value, Ttl(timedelta(milliseconds=milliseconds), time, refresh))


def entries(backend):
    return len(list(backend.scan("op", b"", CATALOGUE)))


def test_what_has_expired_is_absent_at_once_and_removed_with_the_next_write(expiring, backend, clock):
    store = KeyedStateStore(expiring, "op")
    seen = store.value(slot())
    other = store.value(StateDescriptor("other", str, int))
    store.set_key("ann")
    seen.set(1)
    other.set(1)
    store.flush()
    clock.now += 99
    assert seen.get() == 1
    clock.now += 1
    assert (seen.get(), other.get()) == (None, 1)
    assert entries(backend) == 2
    other.set(2)
    store.flush()
    assert entries(backend) == 1


def test_writing_begins_a_new_life(expiring, clock):
    store = KeyedStateStore(expiring, "op")
    seen = store.value(slot())
    store.set_key("ann")
    for _ in range(3):
        seen.set(1)
        store.flush()
        clock.now += 60
        assert seen.get() == 1
    seen.get()
    clock.now += 60
    assert seen.get() is None


@pytest.mark.parametrize("flushed", [True, False])
def test_reading_begins_a_new_life_if_so_declared(expiring, clock, flushed):
    store = KeyedStateStore(expiring, "op")
    seen = store.value(slot(refresh="read"))
    store.set_key("ann")
    seen.set(1)
    for read in (seen.get, lambda: seen.get_many(["ann"])[0]):
        if flushed:
            store.flush()
        clock.now += 99
        assert read() == 1
    clock.now += 100
    assert seen.get() is None


def test_what_a_batch_has_written_expires_too(expiring, clock):
    store = KeyedStateStore(expiring, "op")
    seen, counts = store.value(slot()), store.map(slot(name="counts", value=dict[int, int]))
    store.set_key("ann")
    seen.set(1)
    counts.put(1, 1)
    clock.now += 100
    assert (seen.get(), seen.get_many(["ann"]), 1 in counts, list(counts.items())) == (None, [None], False, [])


def test_a_key_that_was_found_expired_and_is_written_again_is_there(expiring, backend, clock):
    store = KeyedStateStore(expiring, "op")
    seen = store.value(slot())
    store.set_key("ann")
    seen.set(1)
    store.flush()
    clock.now += 100
    assert seen.get() is None
    seen.set(2)
    store.flush()
    store.flush()
    assert seen.get() == 2
    assert entries(backend) == 1


def test_elements_and_entries_expire_one_by_one(expiring, clock):
    store = KeyedStateStore(expiring, "op")
    clicks, counts = store.list(slot(name="l", value=list[int])), store.map(slot(name="m", value=dict[str, int]))
    store.set_key("ann")
    for number in range(4):
        clicks.add(number)
        counts.put(str(number), number)
        store.flush()
        clock.now += 40
    assert clicks.get() == [2, 3]
    assert list(counts.items()) == [("2", 2), ("3", 3)]
    clicks.add(9)
    store.flush()
    assert clicks.get() == [2, 3, 9]
    clock.now += 1000
    clicks.add(10)
    store.flush()
    assert clicks.get() == [10]


def test_a_reduced_value_that_has_expired_begins_anew(expiring, clock):
    store = KeyedStateStore(expiring, "op")
    total = store.reducing(slot(), operator.add)
    total.add_many(["ann", "bob"], [1, 1])
    store.flush()
    clock.now += 100
    total.add_many(["ann", "ann"], [5, 5])
    store.set_key("ann")
    assert total.get() == 10


def test_event_time_follows_the_watermark_however_late_the_clock_is(expiring, clock):
    store = KeyedStateStore(expiring, "op")
    seen = store.value(slot("event"))
    store.set_key("ann", timestamp_ms=5000)
    seen.set(1)
    store.flush()
    clock.now += 10**9
    assert seen.get() == 1
    expiring.set_watermark(5099)
    assert seen.get() == 1
    expiring.set_watermark(5100)
    assert seen.get() is None
    expiring.set_watermark(1)
    assert (seen.get(), expiring.watermark) == (None, 5100)


def test_a_late_event_lives_from_the_watermark_on(expiring):
    store = KeyedStateStore(expiring, "op")
    seen = store.value(slot("event"))
    expiring.set_watermark(9000)
    store.set_key("ann", timestamp_ms=5000)
    seen.set(1)
    expiring.set_watermark(9099)
    assert seen.get() == 1
    expiring.set_watermark(9100)
    assert seen.get() is None


def test_a_late_event_does_not_shorten_what_it_reads(expiring):
    store = KeyedStateStore(expiring, "op")
    seen = store.value(slot("event", "read"))
    store.set_key("ann", timestamp_ms=5000)
    seen.set(1)
    store.set_key("ann", timestamp_ms=4000)
    assert seen.get() == 1
    expiring.set_watermark(5099)
    assert seen.get() == 1
    store.set_key("ann", timestamp_ms=5090)
    assert seen.get() == 1
    expiring.set_watermark(5198)
    assert seen.get_many(["ann"]) == [1]


def test_event_time_has_to_be_known(expiring):
    store = KeyedStateStore(expiring, "op")
    seen = store.value(slot("event"))
    store.set_key("ann")
    with pytest.raises(StateError, match="before any event time was known"):
        seen.set(1)
    with pytest.raises(ConfigError):
        expiring.set_watermark(-1)


def test_cleanup_looks_at_so_many_entries_and_goes_on(expiring, backend, clock):
    for name in ("op", "op2"):
        store = KeyedStateStore(expiring, name)
        store.value(slot()).set_many([f"{number}" for number in range(50)], [1] * 50)
        store.value(StateDescriptor("stays", str, int)).set_many(["a", "b"], [1, 1])
        store.flush()
    assert expiring.cleanup(1000) == 0
    clock.now += 100
    removed = [expiring.cleanup(10) for _ in range(11)]
    assert max(removed) <= 10
    assert sum(removed) == 100
    assert (entries(backend), len(list(backend.scan("op2", b"", CATALOGUE)))) == (2, 2)
    assert [expiring.cleanup(10) for _ in range(3)] == [0, 0, 0]
    with pytest.raises(ConfigError):
        expiring.cleanup(0)


def test_a_snapshot_and_a_scan_show_nothing_expired(expiring, clock):
    store = KeyedStateStore(expiring, "op")
    seen = store.value(slot())
    seen.set_many(["ann"], [1])
    store.flush()
    snapshot = expiring.snapshot()
    place = next(key for key, _ in snapshot.scan("op", b"", CATALOGUE))
    assert snapshot.get("op", place) is not None
    clock.now += 100
    assert (snapshot.get("op", place), list(snapshot.scan("op", b"", CATALOGUE))) == (None, [])
    assert (expiring.get("op", place), list(expiring.scan("op", b"", CATALOGUE))) == (None, [])
    assert (list(store.keys("seen")), snapshot.operators(), expiring.operators()) == ([], ["op"], ["op"])
    snapshot.close()


def test_slots_and_watermark_are_known_when_state_is_opened_again(tmp_path, clock):
    first = TtlStateBackend(RocksDbStateBackend(tmp_path / "state"), clock)
    store = KeyedStateStore(first, "op")
    seen = store.value(slot("event"))
    store.set_key("ann", timestamp_ms=5000)
    seen.set(1)
    first.set_watermark(5100)
    store.flush()
    first.close()
    second = TtlStateBackend(RocksDbStateBackend(tmp_path / "state"), clock)
    assert second.watermark == 5100
    assert second.cleanup() == 1
    second.close()


def test_a_time_to_live_needs_a_backend_that_knows_time(backend):
    with pytest.raises(ConfigError, match="does not keep time") as error:
        KeyedStateStore(backend, "op").value(slot())
    assert "TtlStateBackend" in error.value.hint


@pytest.mark.parametrize(
    "other", [StateDescriptor("seen", str, int), slot("event")], ids=["without a time to live", "by another time"]
)
def test_a_time_to_live_cannot_come_or_go(expiring, other):
    store = KeyedStateStore(expiring, "op")
    store.value(slot())
    store.flush()
    with pytest.raises(StateMismatch, match="time to live"):
        KeyedStateStore(expiring, "op").value(other)
    KeyedStateStore(expiring, "op").value(slot(milliseconds=5, refresh="read"))


def test_the_clock_is_the_systems_by_default(backend):
    store = KeyedStateStore(TtlStateBackend(backend), "op")
    seen = store.value(slot(milliseconds=3_600_000))
    seen.set_many(["ann"], [1])
    assert seen.get_many(["ann"]) == [1]
