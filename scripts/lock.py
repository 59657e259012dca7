"""Write constraints.txt: one pinned version of every package, for all supported Pythons."""

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Pinned versions of everything `make` installs. Written by `make lock`; do not edit.\n"
# The newest Spark for which Kafka, Iceberg and Delta artifacts all exist.
PINNED = ["pyspark==4.1.3"]


def main() -> None:
    """Resolve pyproject's dependencies, all extras and the dev group into constraints.txt."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *PINNED, *project["build-system"]["requires"]]
    for extra in project["project"]["optional-dependencies"].values():
        wanted += extra
    wanted += project["dependency-groups"]["dev"]
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "uv"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "requirements.in"
        source.write_text("\n".join(wanted))
        command = [sys.executable, "-m", "uv", "pip", "compile", "--universal", "--python-version", "3.11"]
        command += ["--no-annotate", "--no-header", "--no-emit-index-url", "--quiet", str(source)]
        pins = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    (ROOT / "constraints.txt").write_text(HEADER + pins)


if __name__ == "__main__":
    main()
