"""Code that may hang or eat all memory, run in a child process that is allowed neither."""

import resource
import subprocess
import sys
import textwrap

_GIB = 1 << 30


def run_limited(code: str, *, seconds: float = 20, gibibytes: int = 4) -> str:
    """What the code prints. The test fails if it raises, takes longer or wants more memory."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (gibibytes * _GIB, gibibytes * _GIB))
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=seconds,
        preexec_fn=limit,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
