"""Ticks of several threads that wait for their turn together, in a known order."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from weirflow.ivm.sharded.executor import InThisProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weirflow.ivm.sharded.flow import PartitionedFlow
    from weirflow.ivm.sharded.worker.reports import ShardReport, StageTask

_PATIENCE = 60.0


class CountedJobs(InThisProcess):
    """Notes how many ticks each job had.

    Attributes:
        jobs: those numbers.
        before: called before each job with them.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.jobs: list[int] = []
        self.before: Callable[[], object] = lambda: None

    def run(self, stages: Sequence[StageTask]) -> list[ShardReport]:
        self.jobs.append(len(stages[0].ticks))
        self.before()
        return super().run(stages)


def together(flow: PartitionedFlow, calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Have calls of ``flow.tick`` wait in this order, and then let them go; what each returns or raises."""
    queue: Any = flow._backend._queue
    outcomes: list[Any] = [None] * len(calls)

    def call(number: int) -> None:
        try:
            outcomes[number] = calls[number]()
        except BaseException as error:  # noqa: BLE001 - told to the test
            outcomes[number] = error

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(calls))]
    with flow.exclusive():
        for number, thread in enumerate(threads):
            thread.start()
            deadline = time.monotonic() + _PATIENCE
            while len(queue.waiting()) <= number:
                assert time.monotonic() < deadline, "a tick did not come to wait"
                time.sleep(0.0005)
    for thread in threads:
        thread.join(_PATIENCE)
        assert not thread.is_alive(), "a tick did not return"
    return outcomes
