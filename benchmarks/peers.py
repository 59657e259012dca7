"""The systems that Weirflow is measured against, each in a virtual environment of its own.

    python benchmarks/peers.py [NAME ...]

Environments lie in ``$WEIRFLOW_PEERS``, or ``~/.cache/weirflow/peers``. Those that exist are left as they are; remove
a folder to get the newest release of that peer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

FOLDER = Path(os.environ.get("WEIRFLOW_PEERS") or Path.home() / ".cache" / "weirflow" / "peers")
# The children read Arrow files and make their tables with NumPy.
_COMMON = ("numpy", "pyarrow")
PEERS = {name: (name, *_COMMON) for name in ("pathway", "krishiv", "duckdb", "datafusion")}
_READY = ".ready"


def python_of(peer: str) -> Path | None:
    """The interpreter of a peer's environment, or None when it is not installed."""
    folder = FOLDER / peer
    return folder / "bin" / "python" if (folder / _READY).exists() else None


def install(peer: str) -> None:
    """Create a peer's environment; a failed installation is started over the next time."""
    folder = FOLDER / peer
    venv.create(folder, clear=True, with_pip=True)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, *PEERS[peer]], check=True)
    (folder / _READY).touch()


def main(names: list[str]) -> int:
    """Install those that are missing; the exit code is 1 when one could not be installed."""
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        print(f"unknown peers: {', '.join(unknown)}; choose from {', '.join(PEERS)}", file=sys.stderr)
        return 2
    failed = False
    for name in names or PEERS:
        if python_of(name) is None:
            print(f"installing {name} into {FOLDER / name}", flush=True)
            try:
                install(name)
            except (OSError, subprocess.CalledProcessError) as error:
                failed = True
                print(f"{name} could not be installed: {error}", file=sys.stderr)
        else:
            print(f"{name} is in {FOLDER / name}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
