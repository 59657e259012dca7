"""A peer that is a program in Rust: tables go to it as files of columns, and it says itself what a tick took.

The clock runs from the delta in the program's memory, as columns, to the columns of the view's delta. One worker.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import numpy as np
import peers
import pyarrow as pa

from ticking.child import Scenario, Tick
from ticking.data import WEIGHT, weighted
from ticking.emitted import added_up

if TYPE_CHECKING:
    from ticking.views import View

KINDS = {int: np.dtype("<i8"), float: np.dtype("<f8")}
SENT_WEIGHT = "weight"


class Program:
    """A running program for one view; a process opens it once."""

    def __init__(self, name: str) -> None:
        path = peers.program_of(name)
        if path is None:
            raise RuntimeError(f"{name} is not built, see benchmarks/peers.py")
        self.path = path
        self.version = peers.pinned(name)

    def open(self, scenario: Scenario) -> float:
        """Start it with the base; what that took is what the program says."""
        self.maintained = scenario.view
        self.folder = Path(mkdtemp(dir=scenario.facts.parent))
        files = []
        for name, rows in zip(("facts", "dims"), scenario.base(), strict=True):
            files += send(self.folder, f"base.{name}", weighted(rows, np.ones(len(rows), np.int64)))
        command = [str(self.path), scenario.view.name, str(self.folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        seconds = float(self._answer())
        for file in files:
            file.unlink()
        return seconds

    def tick(self, delta: pa.RecordBatch) -> Tick:
        """Apply a delta, which is in the program's memory before its clock starts."""
        send(self.folder, f"delta.{self.maintained.changes}", delta)
        return Tick(float(self._ask("tick")))

    def view(self) -> pa.Table:
        """The sum of all deltas that the program has emitted."""
        self._ask("view")
        return added_up(received(self.folder, self.maintained))

    def _ask(self, request: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        line: str = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the program ended with code {self.process.wait()}")
        return line.strip()


def send(folder: Path, table: str, rows: pa.RecordBatch) -> list[Path]:
    """Write a file for each column: little-endian numbers, or lines of text. The last column is the weight."""
    paths = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        path = folder / f"{table}.{SENT_WEIGHT if name == WEIGHT else name}"
        if pa.types.is_string(column.type):
            path.write_text("".join(f"{text}\n" for text in column.to_pylist()))
        else:
            column.to_numpy().tofile(path)
        paths.append(path)
    return paths


def received(folder: Path, view: View) -> pa.Table:
    """The deltas of a view that the program wrote, with their weights."""
    columns = {}
    for number, (name, kind) in enumerate(view.columns.items()):
        path = folder / f"view.{number}"
        columns[name] = path.read_text().splitlines() if kind is str else np.fromfile(path, KINDS[kind])
    columns[WEIGHT] = np.fromfile(folder / f"view.{SENT_WEIGHT}", KINDS[int])
    return pa.table(columns)
