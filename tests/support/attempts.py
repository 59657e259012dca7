"""Two processes that run tasks in turn or both, and one counts: retried, speculative and zombie attempts."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from weirflow.ivm.sharded.executor import InThisProcess
from weirflow.ivm.sharded.worker.reports import decode_parcel, decode_task, encode_parcel, encode_task
from weirflow.ivm.sharded.worker.stage import run_stage

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from weirflow.ivm.sharded.worker.reports import ShardReport, StageTask

Sent = list[tuple[int, bytes]]


class TwoAttempts(InThisProcess):
    """Runs each task in one or both of two processes, which have state of their own at hand, and takes what one sends.

    Attributes:
        files: the packs of tasks that counted, and of those that did not.
        warm: of how many tasks that counted the state was at hand.
    """

    def __init__(self, chosen: random.Random) -> None:
        super().__init__()
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
                # Mostly one process alone, so that the other one's state falls behind.
                running = self._chosen.sample(self._processes, self._chosen.choice([1, 1, 2]))
                attempts = [one.submit(_attempt, encode_task(task), shard, waiting.get(shard, [])) for one in running]
                counts, *others = [_own(attempt.result(), task.stage) for attempt in attempts]
                self.warm += counts.report.warm
                self.files[0].update(counts.report.packs)
                self.files[1].update(*(one.report.packs for one in others))
                for target, parcel in counts.sent:
                    sent.setdefault(target, []).append(parcel)
            waiting = sent
        return [report for parcels in waiting.values() for report in _reports(parcels)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.shutdown()


@dataclass(frozen=True)
class _Attempt:
    sent: Sent
    report: ShardReport


def _own(sent: Sent, stage: int) -> _Attempt:
    (report,) = [one for one in _reports([data for _, data in sent]) if one.stage == stage]
    return _Attempt(sent, report)


def _reports(parcels: list[bytes]) -> list[ShardReport]:
    found = [decode_parcel(data).report for data in parcels]
    return [report for report in found if report is not None]


def _attempt(task: bytes, shard: int, parcels: list[bytes]) -> Sent:
    sent = run_stage(decode_task(task), shard, map(decode_parcel, parcels), "an attempt")
    return [(target, encode_parcel(parcel)) for target, parcel in sent]
