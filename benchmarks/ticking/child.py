"""The child's side: a system that answers one JSON line on standard output for each one on standard input."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ticking.data import read, write
from ticking.views import VIEWS, View

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa


class CannotDo(Exception):
    """The system has no way to maintain or compute this view; the message says why."""


@dataclass(frozen=True)
class Scenario:
    """A view over a base of ``rows``, and the files that hold the base and the deltas."""

    view: View
    rows: int
    facts: Path
    dims: Path
    deltas: Path

    def base(self) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Facts and dimension before the first tick."""
        return read(self.facts).get_batch(0), read(self.dims).get_batch(0)


@dataclass(frozen=True)
class Tick:
    """What a tick took. ``sending`` is time spent on handing the delta over, where that is not in ``seconds``."""

    seconds: float
    sending: float = 0.0


class System(Protocol):
    """What is measured. ``open`` is called first; a system may be opened again for another scenario."""

    version: str

    def open(self, scenario: Scenario) -> float | None:
        """Load the base and be ready for ticks. Raises ``CannotDo`` when the view is out of reach.

        Returns what the loading took, where that is less than the call took.
        """

    def tick(self, delta: pa.RecordBatch) -> Tick:
        """Apply a delta, whose last column is the weight."""

    def view(self) -> pa.Table:
        """The rows of the view as it is now."""


class Recomputing(ABC):
    """A system without deltas: a tick is the whole query. Applying the delta is not even charged."""

    def tick(self, delta: pa.RecordBatch) -> Tick:  # noqa: ARG002 - as said above
        """Recompute the view to Arrow."""
        started = time.perf_counter()
        self.view()
        return Tick(time.perf_counter() - started)

    @abstractmethod
    def view(self) -> pa.Table:
        """The query's rows."""


def serve(start: Callable[[], System]) -> None:
    """Answer requests until standard input ends. Whatever the system prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    system = start()
    handler = _Handler(system)
    print(json.dumps({"version": system.version}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = handler.answer(request)
        except CannotDo as error:
            answer = {"skip": str(error)}
        except Exception as error:  # noqa: BLE001 - a peer's failure is a line of the report, never its end
            traceback.print_exc()
            answer = {"skip": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)
    # Engines with threads of their own do not always let an interpreter end.
    os._exit(0)


class _Handler:
    def __init__(self, system: System) -> None:
        self.system = system

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        match request["op"]:
            case "open":
                paths = {name: Path(request[name]) for name in ("facts", "dims", "deltas")}
                scenario = Scenario(VIEWS[request["view"]], request["rows"], **paths)
                self.deltas = read(scenario.deltas)
                before, started = resident_bytes(), time.perf_counter()
                loaded = self.system.open(scenario)
                seconds = time.perf_counter() - started
                return {"load_s": seconds if loaded is None else loaded, "bytes": resident_bytes() - before}
            case "ticks":
                return self._ticks(request["first"], request["last"], time.perf_counter() + request["budget_s"])
            case "view":
                write(Path(request["path"]), self.system.view().combine_chunks().to_batches())
                return {}
            case op:
                raise ValueError(f"unknown request {op!r}")

    def _ticks(self, first: int, last: int, until: float) -> dict[str, list[float]]:
        """Fewer ticks than asked for, but at least one, when time is up."""
        ticks: list[Tick] = []
        for number in range(first, last):
            ticks.append(self.system.tick(self.deltas.get_batch(number)))
            if time.perf_counter() > until:
                break
        return {"seconds": [tick.seconds for tick in ticks], "sending": [tick.sending for tick in ticks]}


def resident_bytes(process: str = "self") -> int:
    """Memory of this process, and of those that it has started, that is in RAM and not a mapped file."""
    folder = Path("/proc") / process
    lines = (folder / "status").read_text().splitlines()
    own = sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))
    children = (child for task in (folder / "task").glob("*/children") for child in task.read_text().split())
    return own + sum(resident_bytes(child) for child in children)
