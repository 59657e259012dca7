"""Each kind of state, in either backend: reads see own writes, others see whole batches."""

import operator

import pytest

from weirflow.errors import ConfigError, StateError, StateMismatch, StateTypeError
from weirflow.state import Aggregate, KeyedStateStore, KeyGroupRange, StateDescriptor, group_ranges, key_group
from weirflow.state.encoding.keys import encode_key

MEAN = Aggregate(lambda: (0.0, 0), lambda acc, value: (acc[0] + value, acc[1] + 1), lambda acc: acc[0] / acc[1])


@pytest.fixture
def store(backend):
    return KeyedStateStore(backend, "op")


def again(backend, **options):
    """The operator as another process would find it."""
    return KeyedStateStore(backend, "op", **options)


def test_value_state(store, backend):
    seen = store.value(StateDescriptor("seen", str, int))
    store.set_key("ann")
    assert (seen.get(), seen.get(7)) == (None, 7)
    seen.set(1)
    store.set_key("bob")
    assert seen.get() is None
    store.flush()
    store.set_key("ann")
    assert seen.get() == 1
    seen.clear()
    assert seen.get() is None
    assert again(backend).value(StateDescriptor("seen", str, int)).get_many(["ann", "bob"]) == [1, None]
    store.flush()
    assert again(backend).value(StateDescriptor("seen", str, int)).get_many(["ann", "bob"]) == [None, None]


def test_many_values_at_once(store):
    seen = store.value(StateDescriptor("seen", str, int))
    seen.set_many(["ann", "bob"], [1, 2])
    store.set_key("bob")
    assert seen.get() == 2
    store.flush()
    seen.set_many(["bob"], [3])
    assert seen.get_many(["bob", "eve", "ann", "bob"]) == [3, None, 1, 3]


def test_keys_and_values_are_as_many(store):
    seen, total = (
        store.value(StateDescriptor("v", str, int)),
        store.reducing(StateDescriptor("r", str, int), operator.add),
    )
    for act in (seen.set_many, total.add_many):
        for keys, values in ((["a", "b"], [1]), (["a"], [1, 2])):
            with pytest.raises(StateError, match="keys were given"):
                act(keys, values)
    assert (list(store.keys("v")), list(store.keys("r")), seen.get_many([])) == ([], [], [])


def test_many_values_of_which_one_is_wrong_write_nothing(store):
    seen = store.value(StateDescriptor("seen", str, int))
    with pytest.raises(StateTypeError) as error:
        seen.set_many(["ann", "bob"], [1, "2"])
    assert error.value.key == "'bob'"
    assert seen.get_many(["ann", "bob"]) == [None, None]


def test_a_value_that_was_read_is_a_copy(store):
    basket = store.value(StateDescriptor("basket", str, list[str]))
    store.set_key("ann")
    basket.set(["milk"])
    basket.get().append("eggs")
    assert basket.get() == ["milk"]


def test_list_state(store, backend):
    clicks = store.list(StateDescriptor("clicks", str, list[int]))
    store.set_key("ann")
    assert clicks.get() == []
    clicks.add(1)
    clicks.extend([2, 3])
    store.flush()
    clicks.add(4)
    store.set_key("bob")
    clicks.add(9)
    store.set_key("ann")
    assert clicks.get() == [1, 2, 3, 4]
    clicks.set([7, 8])
    clicks.add(9)
    assert clicks.get() == [7, 8, 9]
    store.flush()
    clicks.clear()
    clicks.add(5)
    store.flush()
    found = again(backend)
    clicks = found.list(StateDescriptor("clicks", str, list[int]))
    found.set_key("ann")
    assert clicks.get() == [5]


def test_a_list_whose_new_elements_are_discarded_goes_on_behind_the_old_ones(store):
    clicks = store.list(StateDescriptor("clicks", str, list[int]))
    store.set_key("ann")
    clicks.extend([1, 2, 3])
    store.flush()
    clicks.set([9])
    store.discard()
    clicks.add(4)
    assert clicks.get() == [1, 2, 3, 4]


def test_map_state(store, backend):
    carts = store.map(StateDescriptor("cart", str, dict[tuple[str, int], float]))
    store.set_key("ann")
    for entry in [("b", 2), ("a", 10), ("a", 9), ("c", 1)]:
        carts.put(entry, entry[1] / 2)
    store.flush()
    carts.put(("a", 11), 0.5)
    carts.remove(("b", 2))
    assert ("a", 9) in carts
    assert ("b", 2) not in carts
    assert list(carts.keys()) == [("a", 9), ("a", 10), ("a", 11), ("c", 1)]
    assert list(carts.values()) == [4.5, 5.0, 0.5, 0.5]
    assert list(carts.items(("a", 10), ("c", 1))) == [(("a", 10), 5.0), (("a", 11), 0.5)]
    assert (carts.get(("a", 9)), carts.get(("b", 2)), carts.get(("b", 2), 1.0)) == (4.5, None, 1.0)
    store.set_key("an")
    assert list(carts.items()) == []
    store.set_key("ann")
    carts.clear()
    assert list(carts.items()) == []
    store.discard()
    assert len(list(carts.items())) == 4
    store.flush()


def test_entries_may_change_while_they_are_read(store):
    counts = store.map(StateDescriptor("counts", str, dict[int, int]))
    store.set_key("ann")
    for number in range(5):
        counts.put(number, number)
    for number, value in counts.items():
        assert number == value
        counts.remove(number)
        counts.put(number + 100, 1)
    assert list(counts.keys()) == [100, 101, 102, 103, 104]


def test_reducing_state(store):
    total = store.reducing(StateDescriptor("total", str, int), operator.add)
    store.set_key("ann")
    assert total.get(0) == 0
    total.add(3)
    total.add(4)
    store.flush()
    total.add_many(["ann", "bob", "ann"], [10, 1, 100])
    total.add_many(["bob", "eve"], [1, 1])
    assert total.get() == 117
    store.set_key("bob")
    assert total.get() == 2
    total.clear()
    assert total.get() is None


def test_aggregating_state(store):
    mean = store.aggregating(StateDescriptor("mean", str, tuple[float, int]), MEAN)
    store.set_key("ann")
    assert mean.get() is None
    mean.add(1)
    store.flush()
    mean.add(2)
    assert mean.get() == 1.5
    mean.clear()
    assert mean.get(0.0) == 0.0


def test_broadcast_state_has_no_key(store):
    rules = store.broadcast(StateDescriptor("rules", None, dict[str, int]))
    rules.put("limit", 10)
    rules.put("floor", 1)
    store.flush()
    assert list(rules.items()) == [("floor", 1), ("limit", 10)]
    rules.clear()
    assert list(rules.items()) == []


def test_all_keys_of_a_slot(store):
    values = store.value(StateDescriptor("v", int, int))
    counts = store.map(StateDescriptor("m", int, dict[int, int]))
    values.set_many(range(50), range(50))
    store.flush()
    for key in range(40, 60):
        store.set_key(key)
        values.set(1)
        for entry in range(3):
            counts.put(entry, 1)
    store.set_key(0)
    values.clear()
    assert sorted(store.keys("v")) == list(range(1, 60))
    assert sorted(store.keys("m")) == list(range(40, 60))
    with pytest.raises(StateError, match="no keyed slot 'x'"):
        store.keys("x")


def test_a_batch_that_raises_writes_nothing(store, backend):
    seen = store.value(StateDescriptor("seen", str, int))
    with store.batch():
        store.set_key("ann")
        seen.set(1)
    with pytest.raises(StateTypeError), store.batch():  # noqa: PT012 - what was written before is what it is about
        seen.set(2)
        seen.set("3")
    assert seen.get() == 1
    assert again(backend).value(StateDescriptor("seen", str, int)).get_many(["ann"]) == [1]


def test_operators_do_not_see_each_other(backend):
    stores = [KeyedStateStore(backend, name) for name in ("one", "two")]
    slots = [store.value(StateDescriptor("v", str, str)) for store in stores]
    for store, slot, value in zip(stores, slots, "ab", strict=True):
        store.set_key("ann")
        slot.set(value)
        store.flush()
    assert [slot.get() for slot in slots] == ["a", "b"]


@pytest.mark.parametrize("key", [1, 1.0, b"ann", None, "\ud800"])
def test_a_key_of_another_type_is_refused(store, key):
    seen = store.value(StateDescriptor("seen", str, int))
    with pytest.raises(StateTypeError) as error:  # noqa: PT012 - either may say it
        store.set_key(key)
        seen.get()
    assert (error.value.slot, error.value.key) == ("seen", repr(key))
    with pytest.raises(StateTypeError):
        seen.get_many(["ann", key])


def test_true_is_not_the_key_one(store):
    seen = store.value(StateDescriptor("seen", int, int))
    seen.set_many([1], [1])
    with pytest.raises(StateTypeError):
        store.set_key(True)
    with pytest.raises(StateTypeError):
        seen.get_many([True])


def test_an_entry_of_another_type_is_refused(store):
    counts = store.map(StateDescriptor("counts", str, dict[int, int]))
    store.set_key("ann")
    with pytest.raises(StateTypeError) as error:
        counts.put("x", 1)
    assert error.value.slot == "counts"
    with pytest.raises(StateTypeError):
        counts.put(1, "x")


def test_without_a_key_there_is_no_state(store):
    with pytest.raises(StateError, match="no keyed state yet"):
        store.set_key("ann")
    seen = store.value(StateDescriptor("seen", str, int))
    with pytest.raises(StateError, match="no current key"):
        seen.get()


def test_a_store_has_the_keys_of_its_groups_alone(backend):
    keys = [f"key {number}" for number in range(100)]
    for owned in group_ranges(3):
        store = again(backend, owned=owned)
        seen = store.value(StateDescriptor("seen", str, int))
        mine = [key for key in keys if key_group(encode_key(key)) in owned]
        seen.set_many(mine, [1] * len(mine))
        store.flush()
        assert sorted(store.keys("seen")) == sorted(mine)
        other = next(key for key in keys if key not in mine)
        with pytest.raises(StateError, match="key group"):
            seen.get_many([other])
        store.set_key(other)
        with pytest.raises(StateError, match="key group"):
            seen.get()


def test_a_stored_key_begins_with_its_group(backend, store):
    store.value(StateDescriptor("seen", str, int)).set_many(["ann"], [5])
    store.flush()
    assert backend.get("op", bytes.fromhex("00 1c 04") + b"seen" + encode_key("ann")) == b"\x01\x05"


@pytest.mark.parametrize(
    ("declare", "why"),
    [
        (lambda store: store.list(StateDescriptor("seen", str, list[int])), "kind"),
        (lambda store: store.value(StateDescriptor("seen", int, int)), "key"),
    ],
)
def test_a_slot_that_is_stored_in_another_form_is_refused(store, backend, declare, why):
    store.value(StateDescriptor("seen", str, int))
    store.flush()
    with pytest.raises(StateMismatch, match=f"its {why} is"):
        declare(again(backend))
    with pytest.raises(StateMismatch, match="its groups is"):
        again(backend, groups=64).value(StateDescriptor("seen", str, int))


@pytest.mark.parametrize(
    "declare",
    [
        lambda store: store.list(StateDescriptor("x", str, int)),
        lambda store: store.map(StateDescriptor("x", str, list[int])),
        lambda store: store.broadcast(StateDescriptor("x", str, dict[str, int])),
        lambda store: store.value(StateDescriptor("x", list, int)),
        lambda store: store.value(StateDescriptor("x", str, object)),
        lambda store: [store.value(StateDescriptor("x", str, int)) for _ in range(2)],
        lambda _: KeyedStateStore(None, ""),
        lambda _: KeyedStateStore(None, "op", groups=4, owned=KeyGroupRange(0, 5)),
    ],
)
def test_what_cannot_be_declared(store, declare):
    with pytest.raises(ConfigError):
        declare(store)


def test_all_slots_of_an_operator_have_one_key_type(store):
    store.value(StateDescriptor("a", str, int))
    with pytest.raises(StateError, match="are int, those of 'a' are str"):
        store.value(StateDescriptor("b", int, int))
