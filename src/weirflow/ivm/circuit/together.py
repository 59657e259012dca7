"""Aggregates that a tick reaches at once: one call of a compiled kernel replaces the groups of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from weirflow.errors import DataError
from weirflow.ivm.kernel.deadline import check
from weirflow.ivm.operators.aggregate.fused import replace_groups
from weirflow.ivm.operators.aggregate.operator import Aggregate

if TYPE_CHECKING:
    from weirflow.ivm.operators.aggregate.fused import ReplaceJob
    from weirflow.ivm.operators.operator import Operator
    from weirflow.ivm.zset.batch import Batch


def can_step_together(operator: Operator) -> bool:
    """Whether it is worth while to ask ``stepped_together`` for the operator's output."""
    return isinstance(operator, Aggregate) and operator.is_fused


def stepped_together(ready: Iterable[tuple[int, Operator, Batch]]) -> Iterator[tuple[int, Batch | None]]:
    """For each numbered operator with its delta, its output; None where it is to be stepped by itself."""
    jobs: list[tuple[int, Aggregate, ReplaceJob]] = []
    for number, operator, delta in ready:
        assert isinstance(operator, Aggregate)
        try:
            job = operator.job(delta, updates=True)
        except DataError:
            job = None  # whoever steps it by itself is told, or finds out that the rows are not there
        if job is None:
            yield number, None
        else:
            jobs.append((number, operator, job))
    if not jobs:
        return
    check()
    for (number, operator, job), made in zip(jobs, replace_groups([job for _, _, job in jobs]), strict=True):
        yield number, None if made.told < 0 else operator.finish(job, made)
