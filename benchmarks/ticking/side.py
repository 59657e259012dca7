"""The parent's side: a system in a child process, asked one thing at a time."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

BENCHMARKS = Path(__file__).parents[1]


class Skipped(Exception):
    """The system cannot take part; the message says why, in one line."""


class Side:
    """A running child. Close it, or use it as a context: it never outlives its parent's interest."""

    def __init__(self, name: str, python: Path, log: Path, deadline: float) -> None:
        self.name = name
        self.deadline = deadline
        self.log = log
        path = os.pathsep.join([str(BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])])
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [python, "-m", f"ticking.run_{name}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": str(python)},
            )
        try:
            self.version: str = self._answer()["version"]
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        """The answer to one request. Raises ``Skipped`` when the system says no, dies or takes too long."""
        stdin = self.process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps({"op": op, **arguments}) + "\n")
            stdin.flush()
        except BrokenPipeError:
            raise Skipped(self._death()) from None
        return self._answer()

    def close(self) -> None:
        """End the child: it stops when its input ends, or is killed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def _answer(self) -> dict[str, Any]:
        stdout = self.process.stdout
        assert stdout is not None
        ready, _, _ = select.select([stdout], [], [], self.deadline)
        if not ready:
            self.process.kill()
            raise Skipped(f"no answer within {self.deadline:.0f} s")
        line = stdout.readline()
        if not line:
            raise Skipped(self._death())
        answer: dict[str, Any] = json.loads(line)
        if "skip" in answer:
            raise Skipped(answer["skip"])
        return answer

    def _death(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return f"ended with code {self.process.wait()}: {lines[-1] if lines else 'no message'}"
