"""Find a Java runtime that Spark can use, and say what to do when there is none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from weirflow.errors import DependencyMissing

MINIMUM_MAJOR = 17
_INSTALL_HINT = "install a Java 17+ runtime (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"

# What Spark's launcher opens to itself (org.apache.spark.launcher.JavaModuleOptions). Its incubator vector module is
# left out: only linear algebra in MLlib uses it, and it makes every start print a warning and skip the archived
# module graph.
MODULE_OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.lang",
            "java.base/java.lang.invoke",
            "java.base/java.lang.reflect",
            "java.base/java.io",
            "java.base/java.net",
            "java.base/java.nio",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic",
            "java.base/jdk.internal.ref",
            "java.base/sun.nio.ch",
            "java.base/sun.nio.cs",
            "java.base/sun.security.action",
            "java.base/sun.util.calendar",
            "java.security.jgss/sun.security.krb5",
        )
    ),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--enable-native-access=ALL-UNNAMED",
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
    if major < MINIMUM_MAJOR:
        raise DependencyMissing(
            f"Spark needs Java {MINIMUM_MAJOR} or newer; {executable} is {_version_line(version)}.",
            hint=_INSTALL_HINT,
        )
    return Java(executable, version, major)


def _version_line(printed: str) -> str:
    """The line that names the version; JVMs may print others before it."""
    lines = printed.splitlines()
    return next((line for line in lines if "version" in line), lines[0] if lines else "of unknown version")
