"""Functions that jobs run, and the processes of jobs. The functions read numbers from the folder ``inbox``.

That folder is beside the Session's.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow.parquet as pq

from weirflow import RestartPolicy, Trigger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from weirflow import Session, StreamingDataFrame, StreamingQuery


def land(folder: Path, *numbers: int) -> None:
    """Have a file with these numbers arrive; one file is one batch."""
    inbox = folder / "inbox"
    inbox.mkdir(exist_ok=True)
    count = len(list(inbox.glob("*.json")))
    draft = inbox / f".{count}"
    draft.write_text("".join(json.dumps({"n": number}) + "\n" for number in numbers))
    draft.rename(inbox / f"{count:03d}.json")


def written(folder: Path) -> Counter[int]:
    """The numbers that ``copy`` has written and committed."""
    logs = [path.read_text() for path in (folder / "out" / "_spark_metadata").glob("[0-9]*")]
    files = {name for log in logs for name in re.findall(r'"path":"file://([^"]+)"', log)}
    return Counter(pq.read_table(sorted(files))["n"].to_pylist()) if files else Counter()


def job_pids(folder: Path) -> set[int]:
    """The processes of all jobs under a folder."""
    return {process.pid for process in psutil.process_iter() if _is_job(process, folder)}


@contextlib.contextmanager
def no_job_left(folder: Path) -> Iterator[None]:
    """After the block no job under the folder runs; a failure otherwise, and it is killed."""
    try:
        yield
    finally:
        left = job_pids(folder)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    assert left == set()


def numbers(session: Session) -> StreamingDataFrame:
    return session.read_stream("json", _place(session) / "inbox", schema="n BIGINT", maxFilesPerTrigger=1)


def copy(session: Session) -> StreamingQuery:
    """Writes the numbers to files."""
    return (
        numbers(session)
        .write_stream()
        .format("parquet")
        .option("path", _place(session) / "out")
        .query_name("copy")
        .start()
    )


def patient(session: Session) -> StreamingQuery:
    """Writes the numbers to files, and is started again when Spark is lost."""
    writer = numbers(session).write_stream().format("parquet").option("path", _place(session) / "out")
    return writer.query_name("patient").restart(RestartPolicy(delay=0.1)).start()


def summed(session: Session) -> StreamingQuery:
    """Ticks a flow with the numbers."""
    flow = session.flow("sums")
    flow.register_source("numbers", "n BIGINT")
    flow.register_view("sums", "SELECT COUNT(*) AS count, SUM(n) AS total FROM numbers")
    return flow.attach(numbers(session), "numbers")


def fussy(session: Session) -> StreamingQuery:
    """Fails once for a reason that goes away when it meets 13, and for good when it meets 0."""
    met: list[int] = []

    def take(frame: Any, _: int) -> None:
        for number in frame.to_arrow()["n"].to_pylist():
            if number == 13 and not met:
                met.append(number)
                raise ConnectionError("try again")
            1 / number  # zero raises

    return (
        numbers(session)
        .write_stream()
        .foreach_batch(take)
        .query_name("fussy")
        .restart(RestartPolicy(delay=0.1))
        .start()
    )


def several(session: Session) -> list[StreamingQuery]:
    """One query that keeps rows in memory, and one that counts."""
    kept = numbers(session).write_stream().format("memory").query_name("kept").start()
    counted = numbers(session).groupBy("n").count().write_stream().output_mode("complete").format("memory")
    return [kept, counted.query_name("counted").trigger(Trigger.processing_time(200)).start()]


def slow(session: Session) -> None:
    """Takes its time, and starts nothing."""
    (_place(session) / "begun").touch()
    time.sleep(600)


def _place(session: Session) -> Path:
    assert session.settings.path is not None
    return session.settings.path.parent


def _is_job(process: psutil.Process, folder: Path) -> bool:
    try:
        command = process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False
    return "weirflow.session.job" in command and command[-1].startswith(str(folder))
