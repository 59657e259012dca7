"""The systems that Weirflow is measured against.

    python benchmarks/peers.py [NAME ...]

Those of Python get a virtual environment each; those of Rust are small programs of ours, built by cargo where it is
there. All lie in ``$WEIRFLOW_PEERS``, or ``~/.cache/weirflow/peers``. Environments that exist are left as they are;
remove a folder to get the newest release of that peer. Programs are built anew when they have changed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

FOLDER = Path(os.environ.get("WEIRFLOW_PEERS") or Path.home() / ".cache" / "weirflow" / "peers")
# The children read Arrow files and make their tables with NumPy.
_COMMON = ("numpy", "pyarrow")
PEERS = {name: (name, *_COMMON) for name in ("pathway", "krishiv", "duckdb", "datafusion")}
# The crate that each program measures.
PROGRAMS = {"differential": "differential-dataflow"}
_SOURCES = Path(__file__).parent / "ticking" / "rust"
_READY = ".ready"


def python_of(peer: str) -> Path | None:
    """The interpreter of a peer's environment, or None when it is not installed."""
    folder = FOLDER / peer
    return folder / "bin" / "python" if (folder / _READY).exists() else None


def program_of(peer: str) -> Path | None:
    """The program of a peer in Rust, or None when it is not built."""
    path = FOLDER / peer / "target" / "release" / f"ticking-{peer}"
    return path if path.exists() else None


def pinned(peer: str) -> str:
    """The version of the crate that a program measures."""
    manifest = tomllib.loads((_SOURCES / peer / "Cargo.toml").read_text())
    entry = manifest["dependencies"][PROGRAMS[peer]]
    version: str = entry if isinstance(entry, str) else entry["version"]
    return version.removeprefix("=")


def install(peer: str) -> None:
    """Create a peer's environment; a failed installation is started over the next time."""
    folder = FOLDER / peer
    venv.create(folder, clear=True, with_pip=True)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, *PEERS[peer]], check=True)
    (folder / _READY).touch()


def build(peer: str) -> None:
    """Build a peer's program with one job at a low priority, which takes many minutes the first time."""
    options = ["--release", "--locked", "--jobs", "1"]
    command = ["nice", "-n", "10", "cargo", "build", *options, "--target-dir", str(FOLDER / peer / "target")]
    subprocess.run(command, cwd=_SOURCES / peer, check=True)


def prepare(peer: str) -> None:
    """Install or build a peer, unless it is there."""
    if peer in PEERS and python_of(peer) is not None:
        print(f"{peer} is in {FOLDER / peer}")
    elif peer in PEERS:
        print(f"installing {peer} into {FOLDER / peer}", flush=True)
        install(peer)
    elif shutil.which("cargo") is None:
        print(f"{peer} is left out: building it takes cargo, which is not there")
    else:
        print(f"building {peer} in {FOLDER / peer}", flush=True)
        build(peer)


def main(names: list[str]) -> int:
    """Install those that are missing; the exit code is 1 when one could not be installed."""
    known = [*PEERS, *PROGRAMS]
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"unknown peers: {', '.join(unknown)}; choose from {', '.join(known)}", file=sys.stderr)
        return 2
    failed = False
    for name in names or known:
        try:
            prepare(name)
        except (OSError, subprocess.CalledProcessError) as error:
            failed = True
            print(f"{name} could not be installed: {error}", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
