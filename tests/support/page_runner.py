"""Runs scripts one after the other in one process, each as if alone, so that they share one Spark.

As a program it reads lines of JSON, ``{"blocks": [...], "own_spark": false}``, and answers each with what every block
has printed, or with the error. Scripts begin in an empty folder and as ``__main__``; Sessions that they open share the
Spark of one that is kept open, unless a script needs its own.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from weirflow import Session

TIMEOUT_SECONDS = 300.0
# With these, sessions that say nothing else ask for the same Spark.
SETTINGS = {"WEIRFLOW_CORES": "2", "WEIRFLOW_DRIVER_MEMORY": "1g"}


class PageRunner:
    """The process, as seen from the tests; it has the variables in its environment."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self._errors = (folder / "errors").open("w+")
        (folder / "work").mkdir()
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", __file__],
            cwd=folder / "work",
            env={**os.environ, **SETTINGS, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def run(self, blocks: list[str], *, own_spark: bool) -> list[str]:
        """What each block has printed; fails with the error of the one that raised."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"blocks": blocks, "own_spark": own_spark}) + "\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], TIMEOUT_SECONDS)
        answer = self._process.stdout.readline() if ready else ""
        assert answer, f"no answer within {TIMEOUT_SECONDS} s\n{self.errors}"
        done = json.loads(answer)
        assert done["error"] is None, f"{done['error']}\n{self.errors}"
        printed: list[str] = done["printed"]
        return printed

    @property
    def errors(self) -> str:
        """What it has written to stderr."""
        self._errors.seek(0)
        return self._errors.read()

    def close(self) -> None:
        """End it; it must end well."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._process, self._errors:
            self._process.stdin.close()
            assert self._process.wait(60) == 0, self.errors

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run_script(blocks: list[str]) -> dict[str, Any]:
    """Run blocks as one script; what they print is caught wherever it comes from."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    printed = []
    with tempfile.TemporaryFile() as out:
        os.dup2(out.fileno(), 1)
        try:
            for block in blocks:
                exec(compile(block, "<page>", "exec"), vars(main))
                sys.stdout.flush()
                out.seek(0)
                printed.append(out.read().decode())
                out.seek(0)
                out.truncate()
        except BaseException:  # noqa: BLE001 - whatever it is, a line of JSON tells it
            return {"printed": printed, "error": traceback.format_exc()}
        finally:
            os.dup2(2, 1)
    return {"printed": printed, "error": None}


def serve() -> None:
    """Answer line by line."""
    answers = os.fdopen(os.dup(1), "w")
    keeper: Session | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["own_spark"] and keeper is not None:
            keeper.close()
            keeper = None
        elif not asked["own_spark"] and keeper is None:
            keeper = Session.embedded()
            keeper.spark  # noqa: B018 - starts it
        done = run_script(asked["blocks"])
        for left in Path().iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        answers.write(json.dumps(done) + "\n")
        answers.flush()
    if keeper is not None:
        keeper.close()


if __name__ == "__main__":
    serve()
