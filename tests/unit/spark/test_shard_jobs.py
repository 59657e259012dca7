"""Jobs whose executors are lost are run again; those that fail for the data or the code are not."""

import pytest

from weirflow.errors import DataError, QueryError, UserCodeError
from weirflow.spark.jobs.shards import ShardJobs

LOST = QueryError(
    "Job aborted due to stage failure: Task 1 in stage 12.0 failed 4 times, most recent failure: Lost task 1.0 in "
    "stage 12.0 (TID 37) (127.0.0.1 executor 3): ExecutorLostFailure (executor 3 exited caused by one of the running "
    "tasks) Reason: Command exited with code 137"
)


def run_with(failures):
    """Run a job that fails so often; returns how often it was tried."""
    waiting, tries = list(failures), []

    def run(what, job):
        tries.append(what)
        if waiting:
            raise waiting.pop(0)
        return []

    assert ShardJobs(lambda: None, run, lambda _: None).stages(2, []) == []
    return len(tries)


def test_a_job_that_lost_its_executors_is_run_again():
    assert run_with([LOST, LOST]) == 3


def test_a_job_is_not_run_again_for_ever():
    with pytest.raises(QueryError, match="ExecutorLostFailure"):
        run_with([LOST] * 3)


@pytest.mark.parametrize(
    "error",
    [DataError("ExecutorLostFailure"), UserCodeError("ExecutorLostFailure"), QueryError("overflow")],
    ids=["data", "code", "query"],
)
def test_what_would_fail_again_is_not_run_again(error):
    with pytest.raises(type(error)) as caught:
        run_with([error])
    assert caught.value is error
