"""Starts the process of a job, which from then on is nobody's child and belongs to no terminal."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from weirflow.errors import SessionError
from weirflow.streaming.detached.wire import value_of

if TYPE_CHECKING:
    from weirflow.streaming.detached.folder import JobFolder
    from weirflow.streaming.detached.order import JobOrder

CANCEL = b"cancel"
"""What follows an order whose client does not want the job any more."""

_PROGRAM = "weirflow.session.job"
# Starts the job in a session of its own and ends at once, so that the job is no child of the client's.
_DETACH = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True)"
_END_SECONDS = 30.0
_TAIL_LINES = 20


def start_job(folder: JobFolder, order: JobOrder) -> list[str]:
    """Start a job, wait until its function has returned its queries, and return their names.

    A client that is killed meanwhile leaves the job running. One that is interrupted (Ctrl-C) ends it.

    Raises:
        WeirflowError: what the job could not be started for; nothing is left running.
    """
    with _started(folder) as (control, report):
        try:
            with contextlib.suppress(BrokenPipeError):  # it has ended, and the log says why
                control.send_bytes(order.to_bytes())
            outcome = report.recv_bytes()
        except EOFError:
            raise SessionError(
                f"The process of the job {folder.name!r} ended as it started:\n{folder.log_tail(_TAIL_LINES)}",
                hint=f"the whole log is at {folder.log}",
            ) from None
        except BaseException:
            with contextlib.suppress(BrokenPipeError):
                control.send_bytes(CANCEL)
            _await_end(report)
            raise
        try:
            names: list[str] = value_of(outcome)
        except BaseException:
            _await_end(report)
            raise
        return names


@contextlib.contextmanager
def _started(folder: JobFolder) -> Iterator[tuple[Connection, Connection]]:
    """A job's process that waits for its order: where to send it, and where its report comes from."""
    orders, to_job = os.pipe()
    from_job, reports = os.pipe()
    with Connection(to_job, readable=False) as control, Connection(from_job, writable=False) as report:
        try:
            with folder.log.open("ab") as log:
                job = [sys.executable, "-m", _PROGRAM, str(folder.path)]
                launch = [sys.executable, "-I", "-S", "-c", _DETACH, *job]
                subprocess.run(launch, stdin=orders, stdout=reports, stderr=log, check=False)
        finally:
            os.close(orders)
            os.close(reports)
        yield control, report


def _await_end(report: Connection) -> None:
    """Wait until the process has let go of its end of the pipe, which it does not do before it ends."""
    with contextlib.suppress(EOFError):
        while report.poll(_END_SECONDS):
            report.recv_bytes()
