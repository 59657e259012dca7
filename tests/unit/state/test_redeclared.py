"""A slot that is declared again with another type of values is refused at once, not when a value is read."""

import pytest

from weirflow.errors import StateMismatch
from weirflow.state import InMemoryStateBackend, KeyedStateStore, Migrations, StateDescriptor, register_state_migration


def declared(backend, value, version=1, migrations=None):
    store = KeyedStateStore(backend, "totals", migrations=migrations or Migrations())
    return store, store.value(StateDescriptor("total", key=str, value=value, version=version))


@pytest.fixture
def backend():
    backend = InMemoryStateBackend()
    store, total = declared(backend, float)
    store.set_key("ann")
    total.set(1.5)
    store.flush()
    return backend


def test_a_wider_type_reads_what_is_there(backend):
    store, total = declared(backend, float | str | None)
    store.set_key("ann")
    assert total.get() == 1.5


@pytest.mark.parametrize("value", [int, str, list[float]])
def test_another_type_is_refused_when_it_is_declared(backend, value):
    with pytest.raises(StateMismatch, match="holds values of type float, and is declared with") as caught:
        declared(backend, value)
    assert "state_migration" in caught.value.hint


def test_what_the_hint_recommends_works(backend):
    migrations = Migrations()
    register_state_migration("total", 1, 2, lambda total: round(total * 10), reads=float, migrations=migrations)
    store, total = declared(backend, int, version=2, migrations=migrations)
    store.set_key("ann")
    assert total.get() == 15
