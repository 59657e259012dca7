"""Messages, rows and parameters as bytes, and bytes that are none."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from weirflow.errors import ConfigError
from weirflow.ivm.flow.summary import StepSummary
from weirflow.wire.arrow import (
    pack_params,
    pack_rows,
    pack_schema,
    unpack_params,
    unpack_rows,
    unpack_schema,
)
from weirflow.wire.calls import METHODS, OfName, form, method_of
from weirflow.wire.messages import (
    PREFIX,
    Call,
    FlowQuery,
    Mark,
    Place,
    Put,
    Result,
    Rows,
    Statement,
    Summary,
    Tick,
    Watch,
    pack,
    pack_command,
    pack_ticket,
    unpack,
    unpack_command,
    unpack_ticket,
)

PLACE = Place("orders", "kafka", "7", ("kafka", "6"))
MESSAGES = [
    Tick("shop", {"orders": b"\x00\xff"}, "t-1", 2.5),
    Tick("shop", {}, position=PLACE),
    Summary(7, 3, 2, 0.5, {"totals": 2}, 1, 1, replayed=True),
    Mark(8, last=False),
    Call("status", flow="shop"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: type(one).__name__)
def test_a_message_arrives_as_it_was_sent(message):
    assert unpack(pack(message), type(message)) == message


@pytest.mark.parametrize(
    "command", [Put("shop", "orders", "t", 1.0, PLACE), Statement("SELECT 1", b"x", 2.0, "k"), Result("op-1")]
)
def test_commands_are_told_apart_and_from_those_of_others(command):
    assert unpack_command(pack_command(command)) == command
    assert unpack_command(b"\n\x10type.googleapis.com/x") is None


@pytest.mark.parametrize(
    "ticket", [Rows("shop", "totals", 3), FlowQuery("shop", "SELECT 1", {"t": b"x"}), Watch("shop", "totals", 5)]
)
def test_tickets_are_told_apart_and_from_those_of_others(ticket):
    assert unpack_ticket(pack_ticket(ticket)) == ticket
    assert unpack_ticket(b"something else") is None


@pytest.mark.parametrize(
    "content", [b"", b"\xc1", b"\x80", b"\x93\x01\x02\x03", b"\xdf\xff\xff\xff\xff", b"\x91" * 99_999]
)
def test_bytes_that_are_no_message_are_refused(content):
    with pytest.raises(ConfigError, match="no Tick of Weirflow's protocol"):
        unpack(content, Tick)
    with pytest.raises(ConfigError):
        unpack_command(PREFIX + content)


def test_a_later_version_may_say_more():
    later = pack({"epoch": 3, "last": True, "colour": "blue"})
    assert unpack(later, Mark) == Mark(3)


def test_arguments_are_read_as_those_of_the_method():
    schema = METHODS["schema"]
    call = unpack(schema.ask(OfName("totals"), "shop"), Call)
    assert method_of(call) is schema
    assert schema.read_arguments(call) == OfName("totals")
    with pytest.raises(ConfigError, match="no OfName"):
        schema.read_arguments(Call("schema", flow="shop"))


def test_unknown_methods_and_those_of_something_else_are_refused():
    with pytest.raises(ConfigError, match="no method 'statuss'") as refused:
        method_of(Call("statuss", flow="shop"))
    assert refused.value.hint == "did you mean 'status'?"
    with pytest.raises(ConfigError, match="one of a flow"):
        method_of(Call("status"))
    with pytest.raises(ConfigError, match="one of the Session"):
        method_of(Call("flows", flow="shop"))


def test_a_form_is_made_of_what_has_its_attributes():
    assert form(StepSummary(1, 2, 3, 4.0, {"v": 3}), Summary) == Summary(1, 2, 3, 4.0, {"v": 3})


ROWS = pa.table(
    {
        "id": pa.array([1, None, 3], pa.int64()),
        "name": ["a", "é", None],
        "list": pa.array([[1], None, []], pa.list_(pa.int32())),
        "_weight": pa.array([1, -1, 2], pa.int64()),
    }
)


def test_rows_and_schemas_arrive_as_they_were():
    assert unpack_rows(pack_rows(ROWS)).equals(ROWS)
    assert unpack_rows(pack_rows(ROWS.to_batches()[0])).equals(ROWS)
    assert unpack_schema(pack_schema(ROWS.schema)).equals(ROWS.schema)


def test_mutated_rows_are_refused_or_sound():
    content, rng, refused = pack_rows(ROWS), random.Random(7), 0
    for _ in range(2000):
        bent = bytearray(content)
        for _ in range(rng.randint(1, 4)):
            bent[rng.randrange(len(bent))] = rng.randrange(256)
        try:
            table = unpack_rows(bytes(bent[: rng.randint(0, len(bent))] if rng.random() < 0.2 else bent))
        except ConfigError:
            refused += 1
        else:
            table.to_pylist()
    assert refused > 500


@pytest.mark.parametrize("content", [b"", b"\x00", b"rows"])
def test_bytes_that_are_no_rows_or_schema_are_refused(content):
    with pytest.raises(ConfigError, match="not rows"):
        unpack_rows(content)
    with pytest.raises(ConfigError, match="not an Arrow schema"):
        unpack_schema(content)


def test_weights_have_no_nulls():
    with pytest.raises(ConfigError, match="'_weight' has NULLs"):
        unpack_rows(pack_rows(pa.table({"_weight": pa.array([None], pa.int64())})))


VALUES = [
    None,
    True,
    2**62,
    -0.5,
    "é",
    b"\x00",
    Decimal("1.20"),
    date(2024, 2, 29),
    datetime(2024, 2, 29, 1, 2, 3, 4),  # noqa: DTZ001 - without a zone is what it is
    datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC),
    timedelta(days=1, microseconds=1),
    [1, 2],
    {"a": 1},
]


@pytest.mark.parametrize("params", [VALUES, {f"p{n}": one for n, one in enumerate(VALUES)}, [], {}, None])
def test_parameters_keep_their_values_and_types(params):
    found = unpack_params(pack_params(params))
    assert found == params
    assert type(found) is type(params)
    if params:
        values = lambda given: list(given.values()) if isinstance(given, dict) else given  # noqa: E731
        assert [type(one) for one in values(found)] == [type(one) for one in values(params)]


@pytest.mark.parametrize("value", [object(), 2**70, [1, "a"]])
def test_parameters_that_cannot_be_sent_are_refused(value):
    with pytest.raises(ConfigError, match="The parameter 'p' cannot be sent"):
        pack_params({"p": value})


def test_parameters_are_one_row():
    with pytest.raises(ConfigError, match="are one row"):
        unpack_params(pack_rows(pa.table({"a": [1, 2]})))
