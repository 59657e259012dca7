"""``QueryRun``: a streaming query over all its starts, watched by a thread until it has ended for good."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weirflow.errors import WeirflowError
from weirflow.streaming.query.progress import QueryProgress
from weirflow.types import QueryState

if TYPE_CHECKING:
    from weirflow.streaming.query.batches import BatchGate
    from weirflow.streaming.query.restart import RestartPolicy

STOP_SECONDS = 5.0
"""How long a stop waits for the batch that is under way."""

_LOOK_SECONDS = 2.0
_CANCEL_SECONDS = 1.0
_POLL_SECONDS = 0.01
_KEPT = 100
_OUTCOME_SECONDS = 5.0


@dataclass(frozen=True)
class EndedRun:
    """A query that has ended for good, without anything of Spark's: that would stay as long as this does.

    Attributes:
        name: what it was called.
        last: its last batch, if it had one.
        outcomes: how each of its starts ended, by its id, and whether another followed.
    """

    name: str | None
    last: QueryProgress | None
    outcomes: Mapping[str, tuple[WeirflowError | None, bool]]


class QueryRun:
    """A query that is started, watched, started again by policy, and stopped.

    Args:
        start: starts it on Spark and returns the native query; called again for each restart.
        gate: what Spark gives the batches to, if a function takes them.
        policy: whether it is started again after an error.
        batched: whether it runs in batches, whose end ``stop`` can wait for.
        ended: called once, with the error that has ended the query for good or None.
    """

    def __init__(
        self,
        start: Callable[[], Any],
        *,
        gate: BatchGate | None,
        policy: RestartPolicy | None,
        batched: bool,
        ended: Callable[[QueryRun], None],
    ) -> None:
        self._gate = gate
        self._policy = policy
        self._batched = batched
        self._earlier: deque[QueryProgress] = deque(maxlen=_KEPT)
        self._outcomes: dict[str, tuple[WeirflowError | None, bool]] = {}
        self._changed = threading.Condition()
        self._stop_asked = threading.Event()
        self._restarting = False
        self._state: QueryState | None = None
        self.restarts = 0
        self.error: WeirflowError | None = None
        self.native = start()
        self.id = str(self.native.id)
        self.run_id = str(self.native.runId)
        self.name: str | None = self.native.name
        # Given to the thread alone, so that nobody who remembers the query's end keeps its frames.
        arguments = (start, ended)
        name = f"weirflow-stream-{self.id}"
        self._watcher = threading.Thread(target=self._watch, args=arguments, name=name, daemon=True)
        self._watcher.start()

    @property
    def policy(self) -> RestartPolicy | None:
        """Whether it is started again after an error."""
        return self._policy

    @property
    def done(self) -> bool:
        """Whether it has ended for good."""
        return self._state is not None

    def state(self) -> tuple[QueryState, str]:
        """Where in its life it is, and in Spark's words what it does."""
        if self._state is not None:
            return self._state, self.error.message if self.error else ""
        if self._restarting:
            return QueryState.RESTARTING, self.error.message if self.error else ""
        status = self.native.status
        return (QueryState.RUNNING if status["isTriggerActive"] else QueryState.WAITING), str(status["message"])

    def recent(self) -> list[QueryProgress]:
        """The last hundred batches, oldest first."""
        now: list[QueryProgress] = []
        with contextlib.suppress(Exception):  # Spark may be gone
            now = [QueryProgress.from_json(one.json) for one in self.native.recentProgress]
        return [*(one for one in self._earlier if one.run_id != self.run_id), *now][-_KEPT:]

    def last(self) -> QueryProgress | None:
        """The last batch; None before the first."""
        with contextlib.suppress(Exception):  # as above
            found = self.native.lastProgress
            if found is not None:
                return QueryProgress.from_json(found.json)
        return self._earlier[-1] if self._earlier else None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended for good; says whether it has."""
        with self._changed:
            return self._changed.wait_for(lambda: self._state is not None, timeout)

    def had(self, run_id: str) -> bool:
        """Whether this is the id of one of its starts."""
        return run_id == self.run_id or run_id in self._outcomes

    def outcome(self, run_id: str) -> tuple[WeirflowError | None, bool] | None:
        """How the start of this id ended, and whether another follows; waits a little for the watcher to know."""
        with self._changed:
            self._changed.wait_for(lambda: run_id in self._outcomes, _OUTCOME_SECONDS)
            return self._outcomes.get(run_id)

    def remembered(self) -> EndedRun:
        """What is remembered of it once it has ended for good."""
        return EndedRun(self.name, self.last(), dict(self._outcomes))

    def stop(self, within: float = STOP_SECONDS) -> None:
        """End it after the batch it is at, or after ``within`` seconds; inside a batch's function: after that one."""
        self._stop_asked.set()
        if self._gate is not None and self._gate.entered:
            threading.Thread(target=self.stop, args=(within,), name=f"weirflow-stop-{self.id}", daemon=True).start()
            return
        if self._state is None:
            deadline = time.monotonic() + within
            if self._gate is not None:
                self._gate.close(within)
            self._wait_for_batch(deadline)
            with contextlib.suppress(Exception):  # Spark may be gone, which ends the query just as well
                self._stop_native()
        if threading.current_thread() is not self._watcher:
            self._watcher.join()

    def _stop_native(self) -> None:
        """Stop Spark's query. A continuous one whose job is about to start misses that: then the job is cancelled."""
        done = threading.Event()
        if not self._batched:
            name = f"weirflow-cancel-{self.id}"
            threading.Thread(target=self._cancel_until, args=(done,), name=name, daemon=True).start()
        try:
            self.native.stop()
        finally:
            done.set()

    def _cancel_until(self, done: threading.Event) -> None:
        from weirflow.spark.streaming.query import cancel_jobs  # noqa: PLC0415 - imports pyspark

        while not done.wait(_CANCEL_SECONDS):
            with contextlib.suppress(Exception):  # as in stop()
                cancel_jobs(self.native)

    def _wait_for_batch(self, deadline: float) -> None:
        if not self._batched:
            return
        try:
            before = self.native.lastProgress
            while time.monotonic() < deadline and self.native.isActive and self.native.status["isTriggerActive"]:
                now = self.native.lastProgress
                if now is not None and (before is None or now.batchId != before.batchId):
                    return
                time.sleep(_POLL_SECONDS)
        except Exception:  # noqa: BLE001 - as in stop()
            return

    # The watcher's thread

    def _watch(self, start: Callable[[], Any], ended: Callable[[QueryRun], None]) -> None:
        failures = 0
        error = self._await_end()
        while error is not None and not self._stop_asked.is_set() and self._policy is not None:
            failures = 1 if self._progressed() else failures + 1
            delay = self._policy.delay_after(error, failures)
            if delay is None:
                break
            self._note(error, restarting=True)
            if self._stop_asked.wait(delay):
                error = None
                break
            error = self._start_again(start)
        self._note(error, restarting=False)
        self._finish(error, ended)

    def _start_again(self, start: Callable[[], Any]) -> WeirflowError | None:
        self._earlier.extend(self.recent())
        try:
            native = start()
        except WeirflowError as error:
            return error
        self.native = native
        self.run_id = str(native.runId)
        self.restarts += 1
        self._restarting = False
        if self._stop_asked.is_set():  # stop() has stopped the one before
            native.stop()
        return self._await_end()

    def _await_end(self) -> WeirflowError | None:
        from weirflow.spark.streaming.query import query_error  # noqa: PLC0415 - imports pyspark

        with contextlib.suppress(Exception):  # the error is asked for below
            while not self.native.awaitTermination(_LOOK_SECONDS):
                continue
        if self._stop_asked.is_set():
            return None
        raised = self._gate.error if self._gate is not None else None
        return raised or query_error(self.native)

    def _progressed(self) -> bool:
        with contextlib.suppress(Exception):  # Spark may be gone
            return self.native.lastProgress is not None
        return False

    def _note(self, error: WeirflowError | None, *, restarting: bool) -> None:
        with self._changed:
            self.error = error
            self._restarting = restarting
            self._outcomes[self.run_id] = (error, restarting)
            self._changed.notify_all()

    def _finish(self, error: WeirflowError | None, ended: Callable[[QueryRun], None]) -> None:
        if error is not None:
            state = QueryState.FAILED
        else:
            state = QueryState.STOPPED if self._stop_asked.is_set() else QueryState.FINISHED
        ended(self)
        with self._changed:
            self._state = state
            self._changed.notify_all()
