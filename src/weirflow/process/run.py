"""``run_process`` and ``run_co_process``: a function over all batches of an input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from weirflow.arguments import AtLeast, Name, Positive, checked, shown
from weirflow.errors import ConfigError
from weirflow.process.co_process_runner import CoProcessRunner
from weirflow.process.process_runner import ProcessRunner
from weirflow.state.backends.ttl import wall_clock

if TYPE_CHECKING:
    from weirflow.process.function import CoProcessFunction, ProcessFunction
    from weirflow.process.intake import KeyOf, Rows
    from weirflow.process.runner import BackendFor, FunctionRunner, ProcessResult


@checked
def run_process(
    function: ProcessFunction,
    batches: Iterable[Rows],
    *,
    key: KeyOf,
    event_time: Name | None = None,
    watermark_delay: Annotated[timedelta, AtLeast(timedelta(0))] | None = timedelta(0),
    finish: bool = True,
    operator: Name = "process",
    parallelism: Positive = 1,
    backend: BackendFor | None = None,
    clock: Callable[[], int] = wall_clock,
) -> Iterator[ProcessResult]:
    """Run a function over batches. Each batch runs when you ask for its result.

    Args:
        function: what to run.
        batches: Arrow data or lists of dicts, one for each batch.
        finish: whether the input ends: at its end all timers by event time fire, and their output is one more result.
        key: as for ``ProcessRunner``, like all the following arguments.
        event_time: the column with the time of the event.
        watermark_delay: how far the watermark is behind the latest event.
        operator: whose state it is.
        parallelism: the number of instances.
        backend: where state is; it stays open.
        clock: processing time.

    Raises:
        ConfigError: as for ``ProcessRunner``; batches fail like ``ProcessRunner.run``.
    """
    runner = ProcessRunner(
        function,
        key=key,
        event_time=event_time,
        watermark_delay=watermark_delay,
        operator=operator,
        parallelism=parallelism,
        backend=backend,
        clock=clock,
    )
    return _results(runner, (runner.run(rows) for rows in batches), finish=finish)


@checked
def run_co_process(
    function: CoProcessFunction,
    batches: Iterable[tuple[Rows, Rows]],
    *,
    key: tuple[KeyOf, KeyOf],
    event_time: tuple[Name | None, Name | None] = (None, None),
    watermark_delay: Annotated[timedelta, AtLeast(timedelta(0))] | None = timedelta(0),
    finish: bool = True,
    operator: Name = "process",
    parallelism: Positive = 1,
    backend: BackendFor | None = None,
    clock: Callable[[], int] = wall_clock,
) -> Iterator[ProcessResult]:
    """Run a function over batches of two inputs, ``(left, right)``; otherwise like ``run_process``.

    Args:
        function: what to run.
        batches: the left and the right rows of each batch.
        finish: as for ``run_process``.
        key: the keys of the left and of the right rows; this and the following arguments are as for
            ``CoProcessRunner``.
        event_time: of the left and of the right rows.
        watermark_delay: of both.
        operator: whose state it is.
        parallelism: the number of instances.
        backend: where state is; it stays open.
        clock: processing time.

    Raises:
        ConfigError: as for ``CoProcessRunner``; batches fail like ``CoProcessRunner.run``.
    """
    runner = CoProcessRunner(
        function,
        key=key,
        event_time=event_time,
        watermark_delay=watermark_delay,
        operator=operator,
        parallelism=parallelism,
        backend=backend,
        clock=clock,
    )
    return _results(runner, (runner.run(*_pair(batch)) for batch in batches), finish=finish)


def _pair(batch: Any) -> tuple[Rows, Rows]:
    if not isinstance(batch, tuple | list) or len(batch) != 2:  # noqa: PLR2004 - left and right
        raise ConfigError(f"A batch is {shown(batch)}, not a pair.", hint="give each as a pair: (left, right)")
    return batch[0], batch[1]


def _results(runner: FunctionRunner, results: Iterator[ProcessResult], *, finish: bool) -> Iterator[ProcessResult]:
    with runner:
        yield from results
        if finish:
            yield runner.finish()
