from datetime import UTC, datetime

import msgspec
import pytest

from weirflow.errors import DataError, QueryError, SqlPosition, StorageError, UserCodeError
from weirflow.streaming.detached.record import (
    ErrorRecord,
    JobRecord,
    QueryEnd,
    QueryRecord,
    read_record,
    write_record,
)
from weirflow.streaming.query.handle import QueryInfo, QueryStatus
from weirflow.types import Delivery, OutputMode, QueryState

WHERE, HINT = "record.json", "start it again"
INFO = QueryInfo(
    name="orders",
    query_id="1",
    output_mode=OutputMode.APPEND,
    trigger="once",
    sink="parquet out",
    delivery=Delivery.EXACTLY_ONCE,
    because="of its log",
    checkpoint="there",
    restarts="none",
)
PROGRESS = {
    "id": "1",
    "runId": "2",
    "name": "orders",
    "batchId": 7,
    "timestamp": "2024-01-01T00:00:00.000Z",
    "sources": [{"numInputRows": 3, "inputRowsPerSecond": float("nan")}],
}


def test_a_record_is_read_as_it_was_written():
    failure = ErrorRecord.of(UserCodeError("it raised", hint="do not"))
    ended = QueryRecord(INFO, "2", QueryEnd(QueryState.FAILED, "2", 3, failure, {"batchId": 7}))
    record = JobRecord("job", 1, "here", datetime(2024, 1, 1, tzinfo=UTC), "/tmp/s", [QueryRecord(INFO, "2"), ended])
    assert read_record(write_record(record), WHERE, HINT) == record


def test_an_end_tells_what_a_handle_tells():
    failure = ErrorRecord.of(UserCodeError("it raised", hint="do not"))
    queries = [QueryRecord(INFO, "2", QueryEnd(QueryState.FAILED, "2", 3, failure, PROGRESS))]
    record = JobRecord("job", 1, "here", datetime(2024, 1, 1, tzinfo=UTC), "/tmp/s", queries)
    found = read_record(write_record(record), WHERE, HINT).query("orders").end
    assert found.status == QueryStatus(QueryState.FAILED, "it raised")
    assert (type(found.error), str(found.error)) == (UserCodeError, "[USER_CODE_FAILED] it raised\n  hint: do not")
    assert (found.progress.batch, found.progress.input_rows, found.progress.input_rows_per_second) == (7, 3, 0.0)


@pytest.mark.parametrize(
    ("error", "attributes"),
    [
        (StorageError("no answer", uri="s3://bucket", hint="wait"), {"uri": "s3://bucket"}),
        (DataError("too large", condition="OVERFLOW", position=SqlPosition(1, 2)), {"condition": "OVERFLOW"}),
    ],
)
def test_errors_keep_what_they_carry(error, attributes):
    again = ErrorRecord.of(error).error()
    assert (type(again), again.message, again.hint) == (type(error), error.message, error.hint)
    assert {name: getattr(again, name) for name in attributes} == attributes
    assert error.message in str(again)


@pytest.mark.parametrize("kind", ["FromTheFuture", "TYPE_CHECKING", "did_you_mean", "difflib"])
def test_an_error_of_a_class_that_is_not_known_is_a_query_error(kind):
    again = ErrorRecord(kind, "what happened", None, {"x": 1}).error()
    assert (type(again), again.message) == (QueryError, "what happened")


@pytest.mark.parametrize("content", [b"", b"{}", b"{\n}", b"\xff", b"{\n\xff", b"[]", b'{"job": 1}'])
def test_what_is_no_record_is_a_typed_error(content):
    with pytest.raises(StorageError, match=f"{WHERE} cannot be used") as error:
        read_record(content, WHERE, HINT)
    assert error.value.hint == HINT


def test_no_byte_of_a_record_can_change_unnoticed():
    record = JobRecord("job", 41, "here", datetime(2024, 1, 1, tzinfo=UTC), "/tmp/s", [QueryRecord(INFO, "2")])
    whole = write_record(record)
    for at in range(len(whole)):
        for damaged in (whole[:at], whole[at + 1 :], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
            with pytest.raises(StorageError):
                read_record(damaged, WHERE, HINT)


def test_a_record_of_an_earlier_version_is_read():
    record = JobRecord("job", 41, "here", datetime(2024, 1, 1, tzinfo=UTC), "/tmp/s", [QueryRecord(INFO, "2")])
    assert read_record(msgspec.json.format(msgspec.json.encode(record), indent=2), WHERE, HINT) == record
