"""Values of older versions, read by a later program in either backend."""

import dataclasses
from datetime import timedelta

import msgspec
import pytest

from weirflow.errors import ConfigError, MigrationMissing, StateDamaged
from weirflow.state import (
    KeyedStateStore,
    MigrationReport,
    Migrations,
    StateDescriptor,
    Ttl,
    TtlStateBackend,
    apply_state_migration,
    dry_run,
    register_state_migration,
    state_migration,
)


@dataclasses.dataclass
class Money:
    cents: int
    currency: str


class Account(msgspec.Struct):
    balance: Money
    open: bool


V1 = StateDescriptor("balance", str, int)
V2 = StateDescriptor("balance", str, Money, version=2)
V3 = StateDescriptor("balance", str, Account, version=3)


@pytest.fixture
def steps():
    steps = Migrations()

    @state_migration("balance", from_version=1, to_version=2, migrations=steps)
    def with_currency(cents):
        return Money(cents, "EUR")

    @state_migration("balance", from_version=2, to_version=3, reads=Money, migrations=steps)
    def as_account(money):
        assert isinstance(money, Money)
        return Account(money, open=True)

    return steps


def write(backend, descriptor, keys, value, steps):
    store = KeyedStateStore(backend, "op", migrations=steps)
    store.value(descriptor).set_many(keys, [value] * len(keys))
    store.flush()


def read(backend, descriptor, keys, steps):
    return KeyedStateStore(backend, "op", migrations=steps).value(descriptor).get_many(keys)


def test_a_chain_of_steps_runs_when_values_are_read(backend, steps):
    write(backend, V1, ["ann", "bob"], 7, steps)
    write(backend, V2, ["bob"], Money(8, "USD"), steps)
    write(backend, V3, ["eve"], Account(Money(9, "GBP"), open=False), steps)
    assert read(backend, V3, ["ann", "bob", "eve"], steps) == [
        Account(Money(7, "EUR"), open=True),
        Account(Money(8, "USD"), open=True),
        Account(Money(9, "GBP"), open=False),
    ]


def test_what_is_written_is_of_the_new_version(backend, steps):
    write(backend, V1, ["ann"], 7, steps)
    store = KeyedStateStore(backend, "op", migrations=steps)
    balance = store.value(V2)
    store.set_key("ann")
    balance.set(balance.get())
    store.flush()
    assert [(one.version, one.values) for one in dry_run(backend, {"op": [V2]}, migrations=steps)] == [(2, 1)]


def test_a_missing_step_is_named_when_the_slot_is_declared(backend, steps):
    write(backend, V1, ["ann"], 7, steps)
    with pytest.raises(MigrationMissing) as error:
        read(backend, StateDescriptor("balance", str, Account, version=4), ["ann"], steps)
    assert (error.value.slot, error.value.from_version, error.value.to_version) == ("balance", 3, 4)
    assert error.value.hint == 'register one: @state_migration("balance", from_version=3, to_version=4)'


def test_a_missing_step_is_named_when_a_value_is_read(backend, steps):
    write(backend, V1, ["ann"], 7, steps)
    write(backend, V2, ["bob"], Money(8, "USD"), steps)
    later = Migrations()
    later.add(steps.path("balance", 2, 3)[0])
    assert read(backend, V3, ["bob"], later) == [Account(Money(8, "USD"), open=True)]
    with pytest.raises(MigrationMissing) as error:
        read(backend, V3, ["ann"], later)
    assert (error.value.from_version, error.value.to_version) == (1, 3)


def test_an_older_program_refuses_later_values(backend, steps):
    write(backend, V2, ["ann"], Money(8, "USD"), steps)
    with pytest.raises(MigrationMissing, match="is of version 2") as error:
        read(backend, V1, ["ann"], steps)
    assert error.value.hint == "run the program that wrote it, or a later one"


def test_a_step_may_skip_versions_but_not_the_wanted_one(backend):
    steps = Migrations()
    state_migration("balance", from_version=1, to_version=3, migrations=steps)(
        lambda cents: {"balance": {"cents": cents, "currency": "EUR"}, "open": False}
    )
    write(backend, V1, ["ann"], 7, steps)
    assert read(backend, V3, ["ann"], steps) == [Account(Money(7, "EUR"), open=False)]


def test_no_step_leads_past_the_wanted_version(steps):
    skipping = Migrations()
    state_migration("balance", from_version=1, to_version=3, migrations=skipping)(lambda cents: cents)
    with pytest.raises(MigrationMissing):
        skipping.path("balance", 1, 2)


def test_elements_entries_and_stamped_values_migrate_too(backend, steps):
    expiring = TtlStateBackend(backend)
    ttl = Ttl(timedelta(hours=1))
    old = KeyedStateStore(expiring, "op", migrations=steps)
    clicks = old.list(StateDescriptor("balance", str, list[int], ttl))
    old.set_key("ann")
    clicks.extend([1, 2])
    old.flush()
    new = KeyedStateStore(expiring, "op", migrations=steps)
    clicks = new.list(StateDescriptor("balance", str, list[Money], ttl, version=2))
    new.set_key("ann")
    assert clicks.get() == [Money(1, "EUR"), Money(2, "EUR")]


def test_a_dry_run_counts_and_changes_nothing(backend, steps):
    write(backend, V1, ["ann", "bob", "eve"], 7, steps)
    write(backend, V2, ["bob"], Money(8, "USD"), steps)
    before = list(backend.scan("op", b"", b"\xff" * 4))
    value_1, value_2 = 15 + 2, 15 + 1 + len(msgspec.msgpack.encode(Money(8, "USD")))
    assert dry_run(backend, {"op": [V3]}, migrations=steps) == [
        MigrationReport("op", "balance", 1, 2, 2 * value_1, (1, 2, 3)),
        MigrationReport("op", "balance", 2, 1, value_2, (2, 3)),
    ]
    assert dry_run(backend, {"op": [V2]}, migrations=Migrations()) == [
        MigrationReport("op", "balance", 1, 2, 2 * value_1, (1,), (1, 2)),
        MigrationReport("op", "balance", 2, 1, value_2, (2,)),
    ]
    assert dry_run(backend, {"nobody": [V2]}, migrations=steps) == []
    assert list(backend.scan("op", b"", b"\xff" * 4)) == before


def test_a_step_that_reads_or_returns_what_it_cannot_is_named(backend):
    steps = Migrations()
    state_migration("balance", from_version=1, to_version=2, reads=str, migrations=steps)(str.upper)
    state_migration("other", from_version=1, to_version=2, migrations=steps)(lambda _: object())
    write(backend, V1, ["ann"], 7, steps)
    write(backend, StateDescriptor("other", str, int), ["ann"], 7, steps)
    with pytest.raises(StateDamaged, match="'balance' from 1 to 2 reads another type"):
        read(backend, V2, ["ann"], steps)
    with pytest.raises(StateDamaged, match="'other' from 1 to 2 returns what cannot be stored"):
        read(backend, StateDescriptor("other", str, int, version=2), ["ann"], steps)


def test_the_result_of_the_last_step_is_of_the_slots_type(backend):
    steps = Migrations()
    state_migration("balance", from_version=1, to_version=2, migrations=steps)(str)
    write(backend, V1, ["ann"], 7, steps)
    with pytest.raises(StateDamaged, match="after migrations"):
        read(backend, V2, ["ann"], steps)


@pytest.mark.parametrize(("first", "last"), [(0, 1), (2, 2), (3, 2)])
def test_a_step_leads_on(first, last):
    with pytest.raises(ConfigError):
        state_migration("balance", from_version=first, to_version=last, migrations=Migrations())(int)


def test_one_step_begins_at_a_version(steps):
    with pytest.raises(ConfigError, match="already, to 2"):
        state_migration("balance", from_version=1, to_version=3, migrations=steps)(int)


def test_steps_are_registered_and_applied_by_calls():
    steps = Migrations()
    register_state_migration("balance", 1, 2, lambda cents: {"cents": cents}, migrations=steps)
    register_state_migration("balance", 2, 3, lambda old: [old["cents"], "EUR"], migrations=steps)
    assert apply_state_migration("balance", 1, 3, 250, migrations=steps) == [250, "EUR"]
    assert apply_state_migration("balance", 3, 3, [1], migrations=steps) == [1]
    with pytest.raises(MigrationMissing):
        apply_state_migration("balance", 3, 4, [1], migrations=steps)
    with pytest.raises(ConfigError, match="cannot be stored"):
        apply_state_migration("balance", 1, 2, object(), migrations=steps)
