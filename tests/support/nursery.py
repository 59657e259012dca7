"""Runs flows in children that die at a failpoint; each is forked from a process that has everything imported.

As a script it reads a line of JSON for each child and answers with the child's exit status. A script of another kind of
flow does the same by ``serve``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from weirflow.failpoints import watch_failpoints

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = Path(__file__).parent.parent


class Nursery:
    """The process that children are forked from: a script that calls ``serve``."""

    def __init__(self, script: str = __file__) -> None:
        self._process = subprocess.Popen(
            [sys.executable, script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        )

    def live(
        self,
        path: Path,
        ticks: int,
        *,
        point: str = "",
        nth: int = 0,
        checkpoint_every: int = 5,
        together: bool = False,
    ) -> bool:
        """Run the shop's flow up to a number of ticks; whether it was killed on the way."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {
            "path": str(path),
            "ticks": ticks,
            "point": point,
            "nth": nth,
            "checkpoint_every": checkpoint_every,
            "together": together,
        }
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        status = json.loads(self._process.stdout.readline())
        assert status in (0, -signal.SIGKILL), f"the child ended with {status}"
        return status != 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def die_at(order: dict[str, Any]) -> None:
    """Let this process end at the nth time that the point is reached."""
    seen = 0

    def die(name: str) -> None:
        nonlocal seen
        seen += name == order["point"]
        if name == order["point"] and seen == order["nth"]:
            os.kill(os.getpid(), signal.SIGKILL)

    watch_failpoints(die)


def _live(order: dict[str, Any]) -> None:
    die_at(order)
    path, every = order["path"], order["checkpoint_every"]
    with IncrementalFlow("shop", path=path, checkpoint_every=every, fsync=0) as flow:
        shop_flow.declare(flow)
        shop_flow.open_sinks(flow, path)
        shop_flow.run(flow, order["ticks"])


def serve(live: Callable[[dict[str, Any]], None]) -> None:
    """Fork a child for each line of standard input, which runs ``live`` with it."""
    os.fsync = os.fdatasync = lambda _: None  # type: ignore[assignment]  # the children die, the machine does not
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                live(json.loads(line))
            except BaseException:  # noqa: BLE001 - the child's own report, whatever it is
                sys.excepthook(*sys.exc_info())
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    from support import shop_flow

    from weirflow.ivm.flow import IncrementalFlow

    with IncrementalFlow("shop") as flow:  # what is imported and made at first use is there for all children
        shop_flow.declare(flow)
        shop_flow.run(flow, 2)
    serve(_live)
