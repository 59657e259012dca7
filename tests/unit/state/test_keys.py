"""Keys as bytes: golden, ordered, self-delimiting."""

import dataclasses
import math
from datetime import UTC, date, datetime, timedelta, timezone
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from weirflow.errors import ConfigError, StateDamaged
from weirflow.state.encoding.key_types import key_codec
from weirflow.state.encoding.keys import decode_key, decode_key_at, encode_key, tuple_prefix
from weirflow.state.encoding.layout import successor

NAIVE = datetime(1970, 1, 1)  # noqa: DTZ001 - without a time zone is what it is about
GOLDEN = [
    (None, "01"),
    (False, "02"),
    (True, "03"),
    (0, "14"),
    (1, "15 01"),
    (255, "15 ff"),
    (256, "16 01 00"),
    (-1, "13 fe"),
    (-255, "13 00"),
    (-256, "12 fe ff"),
    (2**63, "1c 80 00 00 00 00 00 00 00"),
    (2**64, "1d 00 00 00 09 01 00 00 00 00 00 00 00 00"),
    (-(2**64), "0b ff ff ff f6 fe ff ff ff ff ff ff ff ff"),
    (0.0, "21 80 00 00 00 00 00 00 00"),
    (-0.0, "21 80 00 00 00 00 00 00 00"),
    (1.5, "21 bf f8 00 00 00 00 00 00"),
    (-1.5, "21 40 07 ff ff ff ff ff ff"),
    (math.inf, "21 ff f0 00 00 00 00 00 00"),
    (math.nan, "21 ff f8 00 00 00 00 00 00"),
    ("", "22 00"),
    ("ann", "22 61 6e 6e 00"),
    ("a\0b", "22 61 00 ff 62 00"),
    ("ä", "22 c3 a4 00"),
    (b"\0\xff", "23 00 ff ff 00"),
    (date(1, 1, 1), "24 00 00 00 00"),
    (date(2024, 2, 29), "24 00 0b 46 80"),
    (NAIVE, "25 00 dc bf fe ff 2b c0 00"),
    (datetime(1970, 1, 1, tzinfo=UTC), "26 00 dc bf fe ff 2b c0 00"),
    ((), "27 00"),
    (("ann", 7), "27 22 61 6e 6e 00 15 07 00"),
    ((("a",), None), "27 27 22 61 00 00 01 00"),
]


@pytest.mark.parametrize(("key", "data"), GOLDEN, ids=[repr(key) for key, _ in GOLDEN])
def test_the_bytes_of_a_key_never_change(key, data):
    assert encode_key(key).hex(" ") == data


SCALARS = {
    "bool": st.booleans(),
    "int": st.integers() | st.integers(-(2**70), 2**70) | st.integers(-300, 300),
    "float": st.floats(allow_nan=False),
    "str": st.text(),
    "bytes": st.binary() | st.lists(st.sampled_from([0, 1, 0xFF])).map(bytes),
    "date": st.dates(),
    "datetime": st.datetimes(),
    "aware": st.datetimes(min_value=NAIVE, timezones=st.just(timezone(timedelta(hours=5)))),
}
SCALARS["tuple"] = st.tuples(SCALARS["str"], SCALARS["int"]) | st.tuples(SCALARS["str"])
any_key = st.recursive(
    st.none() | st.one_of(*SCALARS.values()), lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6
)


@given(any_key)
def test_a_key_comes_back(key):
    assert decode_key(encode_key(key)) == key


@given(any_key, st.binary().filter(lambda data: not data.startswith(b"\xff")))
@example("", b"\xfe")
def test_a_key_ends_where_its_bytes_say(key, behind):
    data = encode_key(key)
    assert decode_key_at(data + behind, 0) == (key, len(data))


@pytest.mark.parametrize("kind", SCALARS)
def test_bytes_are_ordered_as_keys(kind):
    @given(SCALARS[kind], SCALARS[kind])
    def check(one, other):
        a, b = encode_key(one), encode_key(other)
        assert (one < other, one == other) == (a < b, a == b)

    check()


def test_nan_is_one_key_and_the_greatest_float():
    odd_nan = -float("nan")
    assert encode_key(odd_nan) == encode_key(math.nan) > encode_key(math.inf)
    assert math.isnan(decode_key(encode_key(odd_nan)))


@given(st.lists(st.tuples(SCALARS["str"], SCALARS["int"])), SCALARS["str"])
def test_tuples_of_one_beginning_scan_together(keys, first):
    start = tuple_prefix(first)
    found = [key for key in keys if start <= encode_key(key) < successor(start)]
    assert found == [key for key in keys if key[0] == first]


@pytest.mark.parametrize(
    "data", ["", "00", "04", "15", "1d 00 00 00 09 01", "21 00", "22 61", "22 ff 00", "24 ff ff ff ff", "27 14", "28"]
)
def test_other_bytes_are_no_key(data):
    with pytest.raises(StateDamaged):
        decode_key(bytes.fromhex(data))


def test_bytes_behind_a_key_are_no_key():
    with pytest.raises(StateDamaged):
        decode_key(b"\x14\x14")


@dataclasses.dataclass(frozen=True)
class Place:
    city: str
    zone: int | None


class Pair(msgspec.Struct, frozen=True):
    left: int
    right: tuple[str, date]


class Named(NamedTuple):
    a: bytes
    b: bool


@pytest.mark.parametrize(
    ("declared", "key"),
    [
        (int, 7),
        (float, 7),
        (str, "ann"),
        (tuple[str, int], ("ann", 7)),
        (tuple[int, ...], (1, 2, 3)),
        (int | None, None),
        (Place, Place("Bonn", None)),
        (Place, Place("Bonn", 3)),
        (Pair, Pair(1, ("x", date(2024, 1, 1)))),
        (Named, Named(b"x", True)),
    ],
)
def test_a_key_of_a_declared_type_comes_back(declared, key):
    codec = key_codec(declared)
    data = codec.encode(key)
    assert codec.decode_at(data + b"more", 0) == (key, len(data))


@pytest.mark.parametrize(
    ("declared", "key"),
    [(int, True), (int, "7"), (str, 7), (bool, 1), (str, "\ud800"), (tuple[str, int], ("ann",)), (Place, ("Bonn", 3))],
)
def test_a_key_of_another_type_is_refused(declared, key):
    with pytest.raises((TypeError, ValueError)):
        key_codec(declared).encode(key)


@pytest.mark.parametrize("declared", [list, dict[str, int], object, tuple[list, int], int | tuple[int]])
def test_a_type_that_cannot_be_a_key_is_refused(declared):
    with pytest.raises(ConfigError):
        key_codec(declared)
