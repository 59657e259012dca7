"""Every error arrives as what it was."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime

import pyarrow.flight as fl
import pytest

from weirflow import errors
from weirflow.errors import (
    AuthenticationFailed,
    ConfigError,
    EndpointError,
    EndpointUnreachable,
    HistoryGone,
    NotIncremental,
    QueryError,
    Reason,
    SqlPosition,
    SqlSyntaxError,
    WatchOverflow,
    WeirflowError,
)
from weirflow.wire.errors import Failure, error_of, failure_of, pack_error, unpack_error
from weirflow.wire.flight import ConnectionLost, of_flight, to_flight

KINDS = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, WeirflowError)]
EXAMPLES = {
    "epoch": 7,
    "oldest": 3,
    "operation_id": "op-1",
    "reason": "SOME_REASON",
    "uri": "s3://bucket",
    "name": "lease",
    "owner": "me",
    "since": datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC),
    "until": datetime(2024, 1, 2, 3, 5, 5, tzinfo=UTC),
    "slot": "s",
    "key": "k",
    "from_version": 1,
    "to_version": 3,
    "version": 4,
    "coordinates": ("a:b:1",),
    "condition": "SOME_CONDITION",
    "retry_after": 1.5,
    "position": SqlPosition(2, 5, "SELEC"),
}


def made(kind: type[WeirflowError]) -> WeirflowError:
    wanted = {one.name for one in inspect.signature(kind.__init__).parameters.values() if one.kind is one.KEYWORD_ONLY}
    given = {name: EXAMPLES[name] for name in wanted - {"hint"}}
    if kind is NotIncremental:
        given["reason"] = Reason.TYPE_NOT_SUPPORTED
    return kind("It broke.", hint="mend it", **given)


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: one.__name__)
def test_an_error_arrives_whole(kind):
    error = made(kind)
    arrived = unpack_error(pack_error(error))
    assert type(arrived) is type(error)
    assert arrived.__dict__ == error.__dict__
    assert str(arrived) == str(error)
    assert arrived.args == error.args


def test_an_unknown_code_is_kept():
    arrived = error_of(Failure("FROM_THE_FUTURE", "It broke.", details={"colour": "blue"}))
    assert type(arrived) is WeirflowError
    assert (arrived.code, arrived.colour) == ("FROM_THE_FUTURE", "blue")
    assert str(arrived) == "[FROM_THE_FUTURE] It broke."


def test_an_error_that_lacks_what_its_class_needs_is_one_of_the_class_above():
    arrived = error_of(Failure(WatchOverflow.code, "It fell behind."))
    assert type(arrived) is errors.FlowError
    assert arrived.code == "WATCH_OVERFLOW"


def test_a_missing_detail_has_its_default():
    arrived = error_of(Failure(SqlSyntaxError.code, "Not SQL."))
    assert (arrived.position, arrived.condition) == (None, None)


@pytest.mark.parametrize("name", ["__class__", "__dict__", "_x", "args", "message", "code", "not a name"])
def test_details_cannot_be_more_than_attributes(name):
    arrived = error_of(Failure("CONFIG_INVALID", "It broke.", details={name: "bad"}))
    assert arrived.__dict__ == {"message": "It broke.", "hint": None}
    assert type(arrived) is ConfigError


def test_values_that_are_not_plain_stay_behind():
    error = QueryError("It broke.")
    error.plan = object()
    error.where = {"a": object()}
    assert failure_of(error).details == {"condition": None}


def over_flight(error: Exception) -> Exception:
    class Server(fl.FlightServerBase):
        def do_action(self, *_):
            raise error

    with Server("grpc://127.0.0.1:0") as server, fl.connect(f"grpc://127.0.0.1:{server.port}") as client:
        with pytest.raises(fl.FlightError) as caught:
            list(client.do_action(fl.Action("x", b"")))
        return caught.value


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (AuthenticationFailed("No."), fl.FlightUnauthenticatedError),
        (errors.OperationTimeout("Late.", operation_id="o"), fl.FlightTimedOutError),
        (errors.OperationCancelled("Stopped.", operation_id="o"), fl.FlightCancelledError),
        (HistoryGone("Gone.", oldest=5, hint="é" * 50), fl.FlightServerError),
    ],
)
def test_errors_cross_flight_as_what_they_mean_there_and_whole(error, kind):
    arrived = over_flight(to_flight(error))
    assert type(arrived) is kind
    assert error.message in str(arrived)
    assert of_flight(arrived, "here").__dict__ == error.__dict__


@pytest.mark.parametrize("letter", ["x", "é", "漢", "\x00"])
def test_a_long_error_crosses_flight_shortened(letter):
    error = SqlSyntaxError(letter * 20_000, hint=letter * 20_000, position=SqlPosition(1, 2, letter * 20_000))
    arrived = of_flight(over_flight(to_flight(error)), "here")
    assert isinstance(arrived, SqlSyntaxError)
    assert arrived.message.startswith(letter * 200)
    assert arrived.message.endswith(letter * 200)
    assert (arrived.position.line, arrived.position.column) == (1, 2)


def test_what_flight_itself_raises_is_told_in_our_words():
    assert type(of_flight(fl.FlightUnavailableError("connection refused"), "h:1")) is ConnectionLost
    assert isinstance(of_flight(fl.FlightUnavailableError("x"), "h:1"), EndpointUnreachable)
    assert type(of_flight(fl.FlightUnauthenticatedError("x"), "h:1")) is AuthenticationFailed
    assert type(of_flight(fl.FlightInternalError("x"), "h:1")) is EndpointError
    assert "h:1" in of_flight(fl.FlightTimedOutError("x"), "h:1").message


def test_the_info_of_a_foreign_server_is_not_read():
    assert type(of_flight(fl.FlightServerError("x", extra_info=b"\x0a\x03abc"), "h:1")) is EndpointError
