"""Find a Java runtime that Spark can use, and say what to do when there is none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from weirflow.errors import DependencyMissing
from weirflow.spark.compat import LEAST_JAVA

_INSTALL_HINT = (
    f"install a Java {LEAST_JAVA}+ runtime (Debian: apt-get install openjdk-{LEAST_JAVA}-jre-headless) or set JAVA_HOME"
)


@dataclass(frozen=True)
class Java:
    """A Java runtime: its executable, its full version text and its major version."""

    executable: Path
    version: str
    major: int


def find_java() -> Java:
    """The runtime of JAVA_HOME, else the one on the PATH. Raises ``DependencyMissing`` if Spark cannot use it."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", "java") if home else shutil.which("java")
    if found is None:
        raise DependencyMissing("Spark needs Java and none is on the PATH.", hint=_INSTALL_HINT)
    executable = Path(found)
    try:
        printed = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise DependencyMissing(f"Java at {executable} does not start: {error}.", hint=_INSTALL_HINT) from error
    version = printed.stderr.strip()
    match = re.search(r'version "(\d+)', version)
    major = int(match.group(1)) if match else 0
    if major < LEAST_JAVA:
        raise DependencyMissing(
            f"Spark needs Java {LEAST_JAVA} or newer; {executable} is {_version_line(version)}.",
            hint=_INSTALL_HINT,
        )
    return Java(executable, version, major)


def _version_line(printed: str) -> str:
    """The line that names the version; JVMs may print others before it."""
    lines = printed.splitlines()
    return next((line for line in lines if "version" in line), lines[0] if lines else "of unknown version")
