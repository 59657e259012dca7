"""Cancelling when Spark does not listen the first time."""

from __future__ import annotations

import contextlib
import threading

import pytest

from weirflow.errors import OperationCancelled
from weirflow.observability.progress import make_display
from weirflow.session.operations import Operations


class DeafControl:
    """Work that stops at the second request; the first one fails."""

    def __init__(self):
        self.requests = 0
        self.stopped = threading.Event()

    def begin(self, tag):
        pass

    def end(self, tag):
        pass

    def progress(self, tag):
        return 0, 0

    def cancel(self, tag):
        self.requests += 1
        if self.requests == 1:
            raise ConnectionError
        self.stopped.set()


def test_a_request_that_fails_is_made_again():
    control = DeafControl()
    operations = Operations(lambda: control, contextlib.nullcontext, make_display("off"))
    started = threading.Event()

    def work():
        started.set()
        assert control.stopped.wait(10.0)
        raise RuntimeError("stopped")

    job = operations.submit("work", work)
    assert started.wait(10.0)
    job.cancel()
    with pytest.raises(OperationCancelled):
        job.result(10.0)
    assert (control.requests, list(operations)) == (2, [])
