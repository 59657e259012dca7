import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from weirflow.errors import ConfigError, LeaseHeld, LeaseLost, MetadataError
from weirflow.metadata import LeaseKeeper, leases, open_metadata

LONG = 60.0
SHORT = 0.15
KEPT = 3.0  # renewed many times within it, so that a machine that stands still for a second loses nothing


def wait_for_end(lease):
    """Past its end here and in the database."""
    time.sleep(lease.ttl * 1.2)
    assert not lease.valid


def test_an_acquired_lease_is_valid_and_held_against_others(metadata, other):
    lease = metadata.acquire("flow", "a", LONG)
    assert (lease.name, lease.owner, lease.token, lease.ttl, lease.valid) == ("flow", "a", 1, LONG, True)
    lease.require()
    with pytest.raises(LeaseHeld) as held:
        other.acquire("flow", "b", LONG)
    error = held.value
    assert (error.name, error.owner, error.uri) == ("flow", "a", metadata.uri)
    assert abs((datetime.now(UTC) - error.since).total_seconds()) < 5
    assert 59.9 < (error.until - error.since).total_seconds() < 60.1
    assert "'flow' has been held by 'a' since 20" in str(error)


def test_the_same_owner_does_not_get_it_twice(metadata, other):
    metadata.acquire("flow", "a", LONG)
    with pytest.raises(LeaseHeld):
        other.acquire("flow", "a", LONG)


def test_names_are_independent_and_exact(metadata):
    assert [metadata.acquire(name, "a", LONG).token for name in ("x", "X", "x ", "%", "é'\"?")] == [1] * 5


def test_tokens_grow_after_release_and_after_expiry(metadata, other):
    first = metadata.acquire("flow", "a", LONG)
    first.release()
    second = other.acquire("flow", "b", SHORT)
    wait_for_end(second)
    third = metadata.acquire("flow", "a", LONG)
    assert [lease.token for lease in (first, second, third)] == [1, 2, 3]
    assert [lease.valid for lease in (first, second, third)] == [False, False, True]


def test_a_lost_lease_says_so_and_leaves_the_new_one_alone(metadata, other):
    lost = metadata.acquire("flow", "a", SHORT)
    wait_for_end(lost)
    new = other.acquire("flow", "b", LONG)
    with pytest.raises(LeaseLost, match="'flow' of 'a' with token 1"):
        lost.require()
    with pytest.raises(LeaseLost) as error:
        lost.renew()
    assert (error.value.name, error.value.uri) == ("flow", metadata.uri)
    lost.release()
    new.renew()
    with pytest.raises(LeaseHeld):
        metadata.acquire("flow", "a", LONG)


def test_a_renewed_lease_outlives_its_first_time(metadata, other):
    lease = metadata.acquire("flow", "a", KEPT)
    begin = time.monotonic()
    while time.monotonic() < begin + KEPT * 1.2:
        time.sleep(0.1)
        lease.renew()
        assert lease.valid
    with pytest.raises(LeaseHeld):
        other.acquire("flow", "b", LONG)


def test_a_lease_that_ran_out_is_renewed_if_nobody_took_it(metadata):
    lease = metadata.acquire("flow", "a", SHORT)
    wait_for_end(lease)
    lease.renew()
    assert lease.valid
    assert lease.token == 1


def test_a_released_lease_is_over(metadata):
    with metadata.acquire("flow", "a", LONG) as lease:
        assert lease.valid
    assert not lease.valid
    lease.release()
    for call in (lease.renew, lease.require):
        with pytest.raises(LeaseLost):
            call()
    assert metadata.acquire("flow", "b", LONG).token == 2


def test_a_renewal_that_a_release_overtook_does_not_bring_it_back(metadata):
    lease = metadata.acquire("flow", "a", LONG)
    lease.release()
    assert metadata._database.run(leases._RENEW, (LONG, "flow", lease._claim)) == []
    assert metadata.acquire("flow", "b", LONG).token == 2


def test_a_lease_whose_release_failed_runs_out(metadata, uri, monkeypatch):
    with open_metadata(uri) as mine:
        lease = mine.acquire("flow", "a", 0.3)
    with pytest.raises(MetadataError):
        lease.release()
    monkeypatch.setattr(lease, "_database", metadata._database)  # the database is there again
    with pytest.raises(LeaseLost):
        lease.renew()
    assert metadata.acquire("flow", "b", LONG, wait=LONG).token == 2


def test_validity_counts_from_before_the_request(metadata, monkeypatch):
    run = metadata._database.run

    def slowly(sql, values=(), **options):
        rows = run(sql, values, **options)
        time.sleep(0.2)
        return rows

    monkeypatch.setattr(metadata._database, "run", slowly)
    lease = metadata.acquire("flow", "a", 0.2)
    assert not lease.valid
    lease.renew()
    assert not lease.valid


def test_waiting_gets_it_when_it_is_released(metadata, other):
    held = metadata.acquire("flow", "a", LONG)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(other.acquire, "flow", "b", LONG, wait=30.0)
        time.sleep(0.1)
        assert not waiting.done()
        held.release()
        assert waiting.result(LONG).token == 2


@pytest.mark.parametrize("wait", [None, 0, 0.0])
def test_waiting_for_no_time_is_not_waiting(metadata, other, wait):
    metadata.acquire("flow", "a", LONG)
    with pytest.raises(LeaseHeld):
        other.acquire("flow", "b", LONG, wait=wait)
    assert other.acquire("flow 2", "b", LONG, wait=wait).valid


def test_waiting_gets_it_when_it_runs_out(metadata, other):
    held = metadata.acquire("flow", "a", 0.3)
    assert other.acquire("flow", "b", LONG, wait=30.0).token == 2
    assert not held.valid


def test_waiting_ends(metadata, other):
    metadata.acquire("flow", "a", LONG)
    begin = time.monotonic()
    with pytest.raises(LeaseHeld):
        other.acquire("flow", "b", LONG, wait=0.3)
    assert 0.3 <= time.monotonic() - begin < LONG / 2


def test_of_many_at_once_one_wins(uri):
    def attempt(number):
        with open_metadata(uri) as mine:
            start.wait()
            try:
                return mine.acquire("flow", f"n{number}", LONG).owner
            except LeaseHeld as held:
                return held.owner

    start = threading.Barrier(8)
    with ThreadPoolExecutor(8) as pool:
        seen = set(pool.map(attempt, range(8)))
    assert len(seen) == 1


def test_an_acquisition_that_is_sent_twice_gets_one_lease(metadata):
    values = ("flow", "claim", "a", LONG, LONG, None)
    assert [metadata._database.run(leases._ACQUIRE, values) for _ in range(2)] == [[(1,)], [(2,)]]


def test_a_keeper_keeps_it(metadata, other):
    lease = metadata.acquire("flow", "a", KEPT)
    lost = []
    with LeaseKeeper(lease, on_lost=lost.append):
        begin = time.monotonic()
        while time.monotonic() < begin + KEPT * 1.2:
            assert lease.valid
            time.sleep(0.01)
        with pytest.raises(LeaseHeld):
            other.acquire("flow", "b", LONG)
    assert lost == []
    assert lease.valid
    wait_for_end(lease)
    assert other.acquire("flow", "b", LONG).token == 2


def test_a_keeper_ends_without_a_word_when_the_lease_is_released(metadata):
    lease = metadata.acquire("flow", "a", 0.3)
    lost = []
    keeper = LeaseKeeper(lease, on_lost=lost.append)
    lease.release()
    keeper._thread.join(LONG)
    assert not keeper._thread.is_alive()
    assert lost == []


def test_a_keeper_tells_once_that_it_was_lost(metadata, other):
    lease = metadata.acquire("flow", "a", 0.3)
    lost, told = [], threading.Event()

    def on_lost(error):
        lost.append(error)
        keeper.stop()
        told.set()

    keeper = LeaseKeeper(lease, on_lost=on_lost)
    other._database.run("UPDATE weirflow_leases SET token = 2, claim = 'another', owner = 'b', expires = clock() + 60")
    assert told.wait(LONG)
    keeper.stop()
    assert [(error.code, error.name) for error in lost] == [("LEASE_LOST", "flow")]
    assert not lease.valid
    assert not keeper._thread.is_alive()


def test_a_keeper_tells_when_the_database_is_gone_until_the_time_is_over(uri):
    lost, told = [], threading.Event()
    with open_metadata(uri) as mine:
        lease = mine.acquire("flow", "a", 0.4)
        keeper = LeaseKeeper(lease, on_lost=lambda error: (lost.append((error, lease.valid)), told.set()))
    assert told.wait(LONG)
    keeper.stop()
    ((error, valid),) = lost
    assert not valid
    assert "could not be renewed" in error.message


def test_a_stopped_keeper_stops_at_once(metadata):
    keeper = LeaseKeeper(metadata.acquire("flow", "a", LONG))
    begin = time.monotonic()
    keeper.stop()
    keeper.stop()
    assert time.monotonic() - begin < LONG / 4
    assert not keeper._thread.is_alive()


@pytest.mark.parametrize("name", ["", "a\0b", "a\nb", "\udc80", "x" * 256])
def test_a_bad_name_or_owner_is_refused(metadata, name):
    with pytest.raises(ConfigError):
        metadata.acquire(name, "a", LONG)
    with pytest.raises(ConfigError):
        metadata.acquire("flow", name, LONG)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_bad_time_is_refused(metadata, seconds):
    with pytest.raises(ConfigError):
        metadata.acquire("flow", "a", seconds)
    if seconds != 0:  # which is not to wait
        with pytest.raises(ConfigError):
            metadata.acquire("flow", "a", LONG, wait=seconds)


def test_after_close_every_call_fails(uri):
    mine = open_metadata(uri)
    lease = mine.acquire("flow", "a", LONG)
    mine.close()
    mine.close()
    for call in (lease.renew, lease.release, mine.alive_nodes, mine.documents.list):
        with pytest.raises(MetadataError, match="was closed before"):
            call()
