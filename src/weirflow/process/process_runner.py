"""``ProcessRunner``: runs a function of one input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from weirflow.arguments import AtLeast, Name, Positive, checked
from weirflow.process.function import ProcessFunction, Row
from weirflow.process.intake import Intake, KeyOf, Rows
from weirflow.process.runner import BackendFor, Element, FunctionRunner, ProcessResult
from weirflow.state.backends.ttl import wall_clock

if TYPE_CHECKING:
    from weirflow.process.instance import Instance


@checked
class ProcessRunner(FunctionRunner):
    """Runs a ``ProcessFunction`` batch by batch.

    Args:
        function: copied for each instance.
        key: the column of the key, several columns for a tuple, or a function of the row.
        event_time: the column with the time of the event: a timestamp, or milliseconds since 1970.
        watermark_delay: how far the watermark is behind the latest event; None if only ``advance`` moves the watermark.
        operator: the operator that has this state in the backend.
        parallelism: the number of instances, which share the key groups.
        backend: where the state is (by default in memory): a URI or path, such as ``rocksdb:///var/state``, which
            ``open_state_backend`` opens; a backend for one instance; or a function that returns one for each range of
            key groups. A run continues with the existing state.
        clock: processing time, milliseconds since 1970.

    Raises:
        ConfigError: an option, a schema or a slot of the function cannot be used.
        UserCodeError: ``open`` raised.
        StateError: the stored state does not fit what the function declares, or is not of one moment.
    """

    def __init__(
        self,
        function: ProcessFunction,
        *,
        key: KeyOf,
        event_time: Name | None = None,
        watermark_delay: Annotated[timedelta, AtLeast(timedelta(0))] | None = timedelta(0),
        operator: Name = "process",
        parallelism: Positive = 1,
        backend: BackendFor | None = None,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        intakes = [Intake(key, event_time, watermark_delay)]
        super().__init__(function, intakes, operator=operator, parallelism=parallelism, backend=backend, clock=clock)
        self._whole_batches = type(function).on_batch is not ProcessFunction.on_batch

    def run(self, rows: Rows, *, broadcast: Rows = ()) -> ProcessResult:
        """Run a batch: the broadcast rows, then the rows, then the timers that are due.

        Raises:
            ConfigError: these are not rows.
            ColumnNotFound: a row has no key or time.
            DataError: there is no time in the column of the time.
            UserCodeError: the function raised, or emitted what it has not declared.
            StateError: state could not be read or written, or a key or value is of another type than declared.
        """
        return self._batch([rows], broadcast)

    def _feed(self, _: int, elements: Sequence[Element]) -> None:
        if not self._whole_batches:
            self._one_by_one("on_element", elements)
            return
        keys: dict[Any, tuple[Instance, list[tuple[int | None, Row]]]] = {}
        with self._user_code("on_batch") as user_code:
            for instance, key, time, row in elements:
                user_code.key = key
                keys.setdefault(key, (instance, []))[1].append((time, row))
            for key, (instance, rows) in keys.items():
                user_code.key = key
                instance.batch(key, rows)
