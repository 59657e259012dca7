"""``weirflow version``: what is installed here. Starts no Spark."""

import json
import platform
import re
from importlib import metadata

import typer

from weirflow import __version__
from weirflow.cli.options import ReportOptions
from weirflow.errors import DependencyMissing
from weirflow.spark.launch.java import Java, find_java


def version(*, report: ReportOptions) -> None:
    """Print the versions of Weirflow and of what it runs on."""
    found = {
        "weirflow": __version__,
        "python": platform.python_version(),
        "pyspark": installed("pyspark"),
        "pyarrow": installed("pyarrow"),
        "java": _java(),
    }
    if report.json:
        typer.echo(json.dumps(found))
        return
    for name, number in found.items():
        typer.echo(f"{name:<9} {number or 'not installed'}")


def installed(package: str) -> str | None:
    """The version of an installed Python package, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _java() -> str | None:
    try:
        return java_number(find_java())
    except DependencyMissing:
        return None


def java_number(java: Java) -> str:
    """The version of a Java runtime without the words around it."""
    found = re.search(r'version "([^"]+)"', java.version)
    return found.group(1) if found else str(java.major)
