"""Code that may hang or eat all memory, run in child processes that are allowed neither.

As a script it reads a line of JSON for each piece of code, runs it in a child that is forked with everything imported,
and answers with how the child ended and what it printed.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any, Self

_GIB = 1 << 30


class LimitedRunner:
    """The process that children are forked from."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, code: str, *, seconds: float = 20, gibibytes: int = 4) -> str:
        """What the code prints. The test fails if it raises, takes longer or wants more memory."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"code": textwrap.dedent(code), "seconds": seconds, "bytes": gibibytes * _GIB}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        done = json.loads(self._process.stdout.readline())
        assert done["status"] == 0, f"the child ended with {done['status']}\n{done['error'][-2000:]}"
        printed: str = done["printed"]
        return printed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def _run(order: dict[str, Any], folder: Path) -> None:
    """In the child: what is printed goes to files, because nobody reads a pipe meanwhile."""
    for number, name in ((1, "printed"), (2, "error")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT), number)
    resource.setrlimit(resource.RLIMIT_AS, (order["bytes"], order["bytes"]))
    resource.setrlimit(resource.RLIMIT_CPU, (int(order["seconds"]) + 1,) * 2)
    exec(compile(order["code"], "<limited>", "exec"), {"__name__": "__main__"})
    sys.stdout.flush()


def _status(child: int, seconds: float) -> int:
    """How the child ends, which it must do in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _serve() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            child = os.fork()
            if child == 0:
                status = 1
                with contextlib.suppress(BaseException):
                    try:
                        _run(order, folder)
                        status = 0
                    except BaseException:  # noqa: BLE001 - the child's own report, whatever it is
                        sys.excepthook(*sys.exc_info())
                        sys.stderr.flush()
                os._exit(status)
            answer: dict[str, Any] = {"status": _status(child, order["seconds"])}
            answer |= {one: (folder / one).read_text() for one in ("printed", "error") if (folder / one).exists()}
        sys.stdout.write(json.dumps({"printed": "", "error": ""} | answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    from weirflow.ivm.flow import IncrementalFlow

    with IncrementalFlow() as flow:  # what is imported and made at first use is there for all children
        flow.register_source("t", "s STRING, n INT")
        flow.register_view("v", "SELECT upper(s) AS s, SUM(n) AS n FROM t GROUP BY 1")
        flow.tick("t", [{"s": "a", "n": 1}])
    _serve()
