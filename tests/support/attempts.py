"""Two processes that both run every task, and one counts: retried, speculative and zombie attempts all the time."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Self

from weirflow.ivm.partitioned.executor import InThisProcess
from weirflow.ivm.partitioned.reports import decode_parcel, decode_task, encode_parcel, encode_task
from weirflow.ivm.partitioned.stage import run_stage

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from weirflow.ivm.partitioned.reports import ShardReport, StageTask

Sent = list[tuple[int, bytes]]


class TwoAttempts(InThisProcess):
    """Runs each task in two processes, each with state of its own at hand, and takes what one of them sends.

    Attributes:
        files: the packs of tasks that counted, and of those that did not.
        warm: of how many tasks that counted the state was at hand.
    """

    def __init__(self, chosen: random.Random) -> None:
        context = multiprocessing.get_context("spawn")
        self._processes = [ProcessPoolExecutor(1, context) for _ in range(2)]
        self._chosen = chosen
        self.files: tuple[set[str], set[str]] = (set(), set())
        self.warm = 0

    def run(self, stages: Sequence[StageTask]) -> list[ShardReport]:
        waiting: dict[int, list[bytes]] = {}
        for task in stages:
            sent: dict[int, list[bytes]] = {}
            for shard in range(task.shards):
                attempts = [
                    one.submit(_attempt, encode_task(task), shard, waiting.get(shard, [])) for one in self._processes
                ]
                both = [attempt.result() for attempt in attempts]
                self._chosen.shuffle(both)
                for found, files in zip(both, self.files, strict=True):
                    files.update(*(report.packs for report in _reports(found) if report.stage == task.stage))
                self.warm += sum(report.warm for report in _reports(both[0]) if report.stage == task.stage)
                for target, parcel in both[0]:
                    sent.setdefault(target, []).append(parcel)
            waiting = sent
        return [report for parcels in waiting.values() for report in _reports([(0, one) for one in parcels])]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.shutdown()


def _reports(sent: Sent) -> list[ShardReport]:
    parcels = [decode_parcel(data) for _, data in sent]
    return [parcel.report for parcel in parcels if parcel.report is not None]


def _attempt(task: bytes, shard: int, parcels: list[bytes]) -> Sent:
    sent = run_stage(decode_task(task), shard, map(decode_parcel, parcels), "an attempt")
    return [(target, encode_parcel(parcel)) for target, parcel in sent]
