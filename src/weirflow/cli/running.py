"""A Session for one command: Spark work runs beside the main thread, which is free to hear Ctrl-C."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from weirflow.cli.failures import CANCELLED

if TYPE_CHECKING:
    from pathlib import Path

    from weirflow.cli.options import SessionOptions
    from weirflow.session import Session
    from weirflow.streaming.detached.query import DetachedQuery

T = TypeVar("T")

_DESCRIPTION_LENGTH = 60


@dataclass(frozen=True)
class Command:
    """One command's Session, which starts nothing by itself, and the way to run Spark work in it."""

    session: Session
    listen: Callable[[], None]

    def run(self, sql: str, work: Callable[[], T], timeout: float | None = None) -> T:
        """Start Spark, run the work and wait for it; ``OperationTimeout`` when it takes over ``timeout`` seconds."""
        with _starting_shown(self.session):
            _ = self.session.spark
        self.listen()  # PySpark has put a handler of its own in place, which talks to the JVM
        line = " ".join(sql.split())
        description = line if len(line) <= _DESCRIPTION_LENGTH else line[: _DESCRIPTION_LENGTH - 1] + "…"
        if timeout is not None:
            return self.session.operations.run_with_timeout(description, work, timeout)
        result: T = self.session.operations.submit(description, work).result()
        return result

    def detach(self, function: str, name: str | None, at: Path | None) -> list[DetachedQuery]:
        """Start queries in a process of their own; Ctrl-C ends that, too."""
        with _starting_shown(self.session):
            started = self.session.streams.detach(function, name=name, at=at)
        return started if isinstance(started, list) else [started]


@contextlib.contextmanager
def opened(options: SessionOptions, *, quiet: bool = False) -> Iterator[Command]:
    """A Session for the block; closed, and its work stopped, however the block ends.

    Ctrl-C raises ``KeyboardInterrupt``. A second one, while the first is being obeyed, ends the process at once;
    Spark's JVM then ends by itself.

    Args:
        options: which Spark.
        quiet: show no progress, whatever the settings say.
    """
    from weirflow.session import Session  # noqa: PLC0415 - imports pydantic, and help does without

    arguments = {**options.arguments(), **({"progress": "off"} if quiet else {})}
    with _interruptible() as listen, Session(**arguments) as session:
        yield Command(session, listen)


@contextlib.contextmanager
def _interruptible() -> Iterator[Callable[[], None]]:
    """Hear Ctrl-C in the block; what it gives is to be called whenever someone else has changed the handler."""
    previous = signal.getsignal(signal.SIGINT)
    heard = False

    def on_interrupt(_signal: int, _frame: Any) -> None:
        nonlocal heard
        if heard:
            os._exit(CANCELLED)
        heard = True
        raise KeyboardInterrupt

    def listen() -> None:
        # Ignored signals stay ignored: that is how shells shield what runs in the background.
        signal.signal(signal.SIGINT, previous if previous is signal.SIG_IGN else on_interrupt)

    listen()
    logging.getLogger().addFilter(_is_no_interrupt)
    try:
        yield listen
    finally:
        logging.getLogger().removeFilter(_is_no_interrupt)
        signal.signal(signal.SIGINT, previous)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Py4J logs a traceback when Ctrl-C meets it, and raises it all the same."""
    return not record.getMessage().startswith("KeyboardInterrupt while")


@contextlib.contextmanager
def _starting_shown(session: Session) -> Iterator[None]:
    if session.settings.progress == "off" or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415 - slow to import, and scripts do without

    with Console(stderr=True).status("Starting Spark"):
        yield
