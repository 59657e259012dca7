"""Values as bytes: golden, typed, refused with slot and key."""

import dataclasses
import doctest
import importlib
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirflow.errors import ConfigError, StateDamaged, StateTypeError
from weirflow.state import StateDescriptor, Ttl
from weirflow.state.encoding.values import ValueCodec, read_varint, stamp, varint
from weirflow.state.migrations import Migrations


@dataclasses.dataclass
class Account:
    owner: str
    cents: int


class Point(msgspec.Struct, array_like=True):
    x: float
    y: float


def codec(declared, *, version=1, ttl=None):
    return ValueCodec(StateDescriptor("slot", str, declared, ttl, version), declared, Migrations())


NAIVE = datetime(1970, 1, 1)  # noqa: DTZ001 - without a time zone is what it is about
GOLDEN = [
    (int, 5, 1, "01 05"),
    (int, -1, 1, "01 ff"),
    (int, 2**64 - 1, 1, "01 cf ff ff ff ff ff ff ff ff"),
    (int, 5, 300, "ac 02 05"),
    (str, "ann", 1, "01 a3 61 6e 6e"),
    (bytes, b"\0", 1, "01 c4 01 00"),
    (float, 1.5, 1, "01 cb 3f f8 00 00 00 00 00 00"),
    (bool, True, 2, "02 c3"),
    (list[int], [1, 2], 1, "01 92 01 02"),
    (dict[str, int], {"a": 1}, 1, "01 81 a1 61 01"),
    (Account, Account("ann", 7), 1, "01 82 a5 6f 77 6e 65 72 a3 61 6e 6e a5 63 65 6e 74 73 07"),
    (Point, Point(0.0, 1.0), 1, "01 92 cb 00 00 00 00 00 00 00 00 cb 3f f0 00 00 00 00 00 00"),
    (datetime, datetime(2024, 1, 1, tzinfo=UTC), 1, "01 d6 ff 65 92 00 80"),
]


@pytest.mark.parametrize(("declared", "value", "version", "data"), GOLDEN)
def test_the_bytes_of_a_value_never_change(declared, value, version, data):
    one = codec(declared, version=version)
    assert one.encode(value, "ann").hex(" ") == data
    assert one.decode(bytes.fromhex(data), "ann") == value
    assert one.encode_many([value, value], ["ann", "bob"]) == [bytes.fromhex(data)] * 2
    assert one.decode_many([bytes.fromhex(data), None], ["ann", "bob"]) == [value, None]


def test_what_expires_begins_with_the_time():
    one = codec(int, ttl=Ttl(timedelta(seconds=1)))
    data = one.encode(5, "ann", stamp(1_700_000_000_000))
    assert data.hex(" ") == "00 68 e5 cf 8b 01 00 00 01 05"
    assert one.decode(data, "ann") == 5


@given(st.integers(0, 2**40))
def test_versions_come_back(number):
    assert read_varint(b"x" + varint(number) + b"y", 1) == (number, 1 + len(varint(number)))


ARROW = [
    (pa.bool_(), True, 1),
    (pa.int8(), -128, 128),
    (pa.uint8(), 255, 256),
    (pa.uint16(), 65535, -1),
    (pa.int32(), 2**31 - 1, 2**31),
    (pa.int64(), -(2**63), 2**63),
    (pa.uint64(), 2**64 - 1, 2**64),
    (pa.float32(), 1.5, "1.5"),
    (pa.decimal128(10, 2), Decimal("1.50"), "x"),
    (pa.string(), "ann", b"ann"),
    (pa.large_string(), "ann", 1),
    (pa.binary(), b"\0", 1),
    (pa.date32(), date(2024, 1, 1), "x"),
    (pa.time64("us"), time(1, 2, 3, 4), 1),
    (pa.duration("us"), timedelta(microseconds=7), "x"),
    (pa.timestamp("us"), NAIVE, datetime(2024, 1, 1, tzinfo=UTC)),
    (pa.timestamp("us", "UTC"), datetime(2024, 1, 1, tzinfo=UTC), NAIVE),
    (pa.list_(pa.int8()), [1, None], [1, 200]),
    (pa.map_(pa.string(), pa.int64()), {"a": 1, "b": None}, {"a": "x"}),
    (pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))]), {"a": 1, "b": ["x", None]}, {"a": 1}),
]


@pytest.mark.parametrize(("arrow", "value", "wrong"), ARROW, ids=[str(row[0]) for row in ARROW])
def test_arrow_types_hold_their_values_and_no_others(arrow, value, wrong):
    one = codec(arrow)
    assert one.decode(one.encode(value, "ann"), "ann") == value
    with pytest.raises(StateTypeError):
        one.encode(wrong, "ann")


@pytest.mark.parametrize(
    "arrow", [pa.timestamp("ns"), pa.time64("ns"), pa.duration("ns"), pa.month_day_nano_interval()]
)
def test_arrow_types_that_python_cannot_hold_are_refused(arrow):
    with pytest.raises(ConfigError):
        codec(arrow)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (int, "5"),
        (int, True),
        (int, 1.5),
        (int, None),
        (int, 2**64),
        (str, b"ann"),
        (str, "\ud800"),
        (bool, 1),
        (list[int], [1, "2"]),
        (Account, {"owner": "ann", "cents": 7}),
        (Account, Account("ann", "7")),
        (Point, Account("ann", 7)),
        (dict[str, int], {1: 1}),
        (Any, object()),
    ],
)
def test_a_value_of_another_type_is_refused_with_slot_and_key(declared, value):
    one = codec(declared)
    with pytest.raises(StateTypeError) as error:
        one.encode(value, ("ann", 7))
    assert (error.value.slot, error.value.key) == ("slot", "('ann', 7)")
    with pytest.raises(StateTypeError) as error:
        one.encode_many([value], [("ann", 7)])
    assert error.value.key == "('ann', 7)"


def test_an_int_is_a_float():
    one = codec(float)
    assert repr(one.decode(one.encode(5, "ann"), "ann")) == "5.0"


@pytest.mark.parametrize("declared", [object, type("Mine", (), {})])
def test_a_type_that_cannot_be_stored_is_refused(declared):
    with pytest.raises(ConfigError):
        codec(declared)


@pytest.mark.parametrize("data", ["01", "01 a3 61", "01 c0", "ff", ""])
def test_other_bytes_are_no_value(data):
    with pytest.raises(StateDamaged):
        codec(int).decode(bytes.fromhex(data), "ann")
    with pytest.raises(StateDamaged):
        codec(int).decode_many([b"\x01\x05", bytes.fromhex(data)], ["bob", "ann"])


@pytest.mark.parametrize("version", [0, -1, "1", True])
def test_a_version_counts_from_one(version):
    with pytest.raises(ConfigError):
        StateDescriptor("slot", str, int, version=version)


@pytest.mark.parametrize("name", ["", "x" * 256])
def test_a_name_that_cannot_be(name):
    with pytest.raises(ConfigError):
        StateDescriptor(name, str, int)


@pytest.mark.parametrize("arguments", [(timedelta(0),), (timedelta(1), "later"), (timedelta(1), "event", "never")])
def test_a_time_to_live_that_cannot_be(arguments):
    with pytest.raises(ConfigError):
        Ttl(*arguments)


@pytest.mark.parametrize(
    "module", ["encoding.keys", "encoding.groups", "encoding.layout", "encoding.values", "migrations"]
)
def test_examples_of_docstrings_are_true(module):
    assert doctest.testmod(importlib.import_module(f"weirflow.state.{module}")).failed == 0
