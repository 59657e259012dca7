"""``SupervisedQuery``: a query of a job over all Sessions that the job has had."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from weirflow.errors import QueryError, WeirflowError
from weirflow.streaming.query.handle import QueryStatus, StreamingQuery
from weirflow.types import QueryState

_LOOK_SECONDS = 0.2


class SupervisedQuery:
    """Answers as the query does. If it ended because its Spark is gone, and its policy allows, it is being restarted.

    Whatever is not here is the query's own, in the Session that it has now.

    Args:
        query: in the first Session.
        spark_is_lost: whether the Session's Spark is gone.
    """

    def __init__(self, query: StreamingQuery, spark_is_lost: Callable[[], bool]) -> None:
        self._query = query
        self._spark_is_lost = spark_is_lost
        self._lost: bool | None = None
        self._losses = 0
        self._earlier = 0
        self._progressed = False
        self._refused: WeirflowError | None = None
        self._changed = threading.Condition()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._query, name)

    @property
    def name(self) -> str:
        """What it is called."""
        return self._query.name

    @property
    def ended(self) -> bool:
        """Whether it has ended in the Session that it has now."""
        return not self._query.active

    @property
    def is_lost(self) -> bool:
        """Whether it has ended because its Spark is gone, and may be started in another."""
        with self._changed:
            if self._query.active or self._refused is not None:
                return False
            if self._lost is None:
                run = self._query._run  # noqa: SLF001 - a job is its queries' keeper
                self._lost = run.error is not None and run.policy is not None and self._spark_is_lost()
            return self._lost

    @property
    def active(self) -> bool:
        """Whether it runs, or is about to be started again."""
        return self._query.active or self.is_lost

    @property
    def restarts(self) -> int:
        """How often its policy has started it again."""
        return self._earlier + self._query.restarts

    @property
    def exception(self) -> WeirflowError | None:
        """What has ended it, or has it restart now."""
        return self._refused or self._query.exception

    def status(self) -> QueryStatus:
        """The current state."""
        if self.is_lost:
            error = self.exception
            return QueryStatus(QueryState.RESTARTING, error.message if error else "")
        return self._query.status()

    def await_termination(self, timeout: float | None = None) -> bool:
        """As the query's, also over several Sessions."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.active:
            left = _LOOK_SECONDS if deadline is None else min(deadline - time.monotonic(), _LOOK_SECONDS)
            if left <= 0:
                return False
            if self._query.active:
                self._query._run.wait(left)  # noqa: SLF001 - as above
            else:
                time.sleep(left)
        if self.exception is not None:
            raise self.exception
        return True

    def process_all_available(self) -> None:
        """As the query's; if it is being restarted, once it runs again."""
        while self.is_lost:
            time.sleep(_LOOK_SECONDS)
        self._query.process_all_available()

    def stop(self, within: float | None = None) -> None:
        """End it."""
        self.give_up(None)
        self._query.stop(**({} if within is None else {"within": within}))

    # For the job

    def look(self) -> None:
        """Note whether a batch has succeeded, which begins a new count of failures."""
        if not self._progressed and self._query.active:
            self._progressed = self._query.last_progress() is not None

    def delay(self) -> float | None:
        """Seconds to wait before it is started in another Session; None if its policy gives up."""
        self._losses = 1 if self._progressed else self._losses + 1
        self._progressed = False
        policy = self._query._run.policy  # noqa: SLF001 - as above
        return None if policy is None else policy.delay_after(QueryError("Spark is gone"), self._losses)

    def go_on(self, query: StreamingQuery) -> None:
        """It runs again, in another Session."""
        with self._changed:
            self._earlier += self._query.restarts + 1
            self._query, self._lost = query, None

    def give_up(self, error: WeirflowError | None) -> None:
        """It is not started again, because of this error, or of what ended it."""
        with self._changed:
            self._lost = False
            self._refused = error
