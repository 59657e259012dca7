"""A driver's start is ended when its master goes silent, and only then."""

from __future__ import annotations

import threading

from weirflow.errors import EndpointUnreachable
from weirflow.spark.launch.preflight import MasterWatch


def watched(answers, seconds=30.0):
    """Start something that goes on until the masters have given all these answers, and say whether it was ended."""
    asked, ended = threading.Semaphore(0), threading.Event()
    left = list(answers)

    def ask():
        answer = left.pop(0) if left else None
        asked.release()
        if answer is not None:
            raise answer

    with MasterWatch(0.001, ask, ended.set):
        for _ in answers:
            assert asked.acquire(timeout=seconds)
        if any(answers):
            assert ended.wait(seconds)
    return ended.is_set()


def test_a_start_that_takes_its_time_goes_on_while_the_master_answers():
    assert not watched([None, None, None])


def test_a_start_whose_master_goes_silent_is_ended():
    assert watched([None, EndpointUnreachable("No Spark master answered.")])


def test_a_start_that_ends_at_once_asks_nobody():
    with MasterWatch(60.0, lambda: 1 / 0, lambda: 1 / 0) as watch:
        pass
    watch._thread.join(5.0)
    assert not watch._thread.is_alive()
