"""Which errors are worth another try, and when."""

import pytest

from weirflow.errors import ConfigError, DataError, EndpointUnreachable, QueryError, StorageError, UserCodeError
from weirflow.streaming.query.restart import RestartPolicy


def raised(cause):
    error = UserCodeError("a function raised")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (QueryError("a task was lost"), True),
        (StorageError("no answer", uri="s3://bucket"), True),
        (EndpointUnreachable("no answer"), True),
        (raised(ConnectionResetError()), True),
        (raised(TimeoutError()), True),
        (raised(ValueError()), False),
        (raised(None), False),
        (DataError("division by zero"), False),
        (ConfigError("wrong"), False),
        (ValueError("wrong"), False),
    ],
)
def test_what_may_be_gone_by_itself_is_transient(error, transient):
    assert RestartPolicy().is_transient(error) is transient


def test_further_errors_may_be_transient():
    assert RestartPolicy(retry=(KeyError,)).is_transient(raised(KeyError("x")))


def test_delays_grow_until_attempts_are_used_up():
    policy = RestartPolicy(attempts=4, delay=1.0, factor=3.0, longest=10.0)
    error = QueryError("a task was lost")
    assert [policy.delay_after(error, failures) for failures in range(1, 6)] == [1.0, 3.0, 9.0, 10.0, None]


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"delay": -1}, {"factor": 0.5}, {"longest": -1}])
def test_what_cannot_be_followed_is_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        RestartPolicy(**wrong)
