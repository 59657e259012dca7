"""What must be right for Weirflow to work on this machine, checked one by one without starting Spark."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from weirflow.cli.version import installed, java_number
from weirflow.errors import ConfigError, DependencyMissing
from weirflow.extensions import EXTENSION_POINTS
from weirflow.spark.compat import LEAST_JAVA
from weirflow.spark.launch.endpoint import parse_endpoint
from weirflow.spark.launch.java import find_java

if TYPE_CHECKING:
    from weirflow.config import Settings

_GIB = 1 << 30
_UNITS = {"m": 1 << 20, "g": 1 << 30}
_NEEDED_SCRATCH = _GIB
EXTRAS = {
    "compiled": "ticks of small deltas in half the time",
    "connect": "Spark Connect endpoints (sc://)",
    "kafka": "streams into Kafka in transactions",
    "pandas": "flows in shards, mapInArrow, toPandas and pandas functions",
    "postgresql": "metadata and leases for many machines",
    "rocksdb": "keyed state on local disk",
    "server": "weirflow serve",
    "vector": "approximate vector views",
}
"""What each extra is for."""
_PORT_SECONDS = 3.0
_POSTGRESQL_PORT = 5432
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?P<range>[^;]*)(?:;.*extra == ['\"](?P<extra>\w+)['\"])?")
_BOUND = re.compile(r"(>=|<=|==|!=|<|>)\s*([\d.]+)")


class Verdict(StrEnum):
    """How a check went."""

    OK = "ok"
    PROBLEM = "problem"
    OPTIONAL = "optional"
    """Not there, and not needed unless its feature is used."""


@dataclass(frozen=True)
class Check:
    """One thing looked at: what was found and, unless all is well, what to do."""

    name: str
    verdict: Verdict
    found: str
    advice: str | None = None


def machine_checks(settings: Settings) -> Iterator[Check]:
    """All checks that need no Spark, in the order they are best read."""
    yield _python()
    yield _java()
    yield _spark()
    yield _memory(settings)
    yield from (_extra(name, purpose) for name, purpose in EXTRAS.items())
    yield from _extensions()
    yield _cache(settings)
    yield _class_archive(settings)
    yield _temporary_folder()
    yield from _chosen_folders(settings)
    yield _loopback()
    yield from _chosen_ports(settings)
    yield from _server()


def satisfies(version: str, wanted: str) -> bool:
    """Whether a version lies in a range; what follows the numbers, such as rc1, is not looked at.

    >>> [satisfies(version, ">=4.1,<5") for version in ("4.1.3", "4.0.9", "5.0.0")]
    [True, False, False]
    """
    mine = _numbers(version)
    checks = {
        ">=": mine.__ge__,
        "<=": mine.__le__,
        ">": mine.__gt__,
        "<": mine.__lt__,
        "==": mine.__eq__,
        "!=": mine.__ne__,
    }
    return all(checks[operator](_numbers(bound)) for operator, bound in _BOUND.findall(wanted))


def _numbers(version: str) -> tuple[int, ...]:
    parts = [int(part) for part in re.findall(r"\d+", version)[:3]]
    return (*parts, *[0] * (3 - len(parts)))


def _requirements(extra: str | None) -> dict[str, str]:
    """What Weirflow's own package says it needs: names and version ranges."""
    try:
        lines = metadata.requires("weirflow") or []
    except metadata.PackageNotFoundError:  # run from its sources, not installed
        return {}
    found = [match for line in lines if (match := _REQUIREMENT.match(line))]
    return {match["name"]: match["range"].strip() for match in found if match["extra"] == extra}


def _python() -> Check:
    version = platform.python_version()
    try:
        wanted = metadata.metadata("weirflow")["Requires-Python"] or ""
    except metadata.PackageNotFoundError:
        wanted = ""
    if satisfies(version, wanted):
        return Check("Python", Verdict.OK, version)
    return Check("Python", Verdict.PROBLEM, version, f"use a Python {wanted}")


def _java() -> Check:
    try:
        java = find_java()
    except DependencyMissing as error:
        return Check("Java", Verdict.PROBLEM, error.message, error.hint)
    return Check("Java", Verdict.OK, f"{java_number(java)} at {java.executable} (needs {LEAST_JAVA} or newer)")


def _spark() -> Check:
    version = installed("pyspark")
    wanted = _requirements(None).get("pyspark", "")
    command = f"pip install 'pyspark{wanted}'"
    if version is None:
        return Check("Spark", Verdict.PROBLEM, "pyspark is not installed", command)
    if not satisfies(version, wanted):
        return Check("Spark", Verdict.PROBLEM, f"pyspark {version} (needs {wanted})", command)
    return Check("Spark", Verdict.OK, f"pyspark {version}" + (f" (supported: {wanted})" if wanted else ""))


def _memory(settings: Settings) -> Check:
    needed = int(settings.driver_memory[:-1]) * _UNITS[settings.driver_memory[-1].lower()]
    available = available_memory()
    if available is None:
        return Check("Memory", Verdict.OK, f"unknown here; the driver may take {settings.driver_memory}")
    found = f"{_gib(available)} available, the driver may take {settings.driver_memory}"
    if available >= needed:
        return Check("Memory", Verdict.OK, found)
    return Check("Memory", Verdict.PROBLEM, found, "free some, or set a smaller WEIRFLOW_DRIVER_MEMORY, such as 1g")


def available_memory() -> int | None:
    """Bytes that a new process can use: what the machine has, and what a container leaves. None if unknown."""
    free = _first_number(Path("/proc/meminfo"), r"MemAvailable:\s+(\d+) kB")
    limit = _first_number(Path("/sys/fs/cgroup/memory.max"), r"^(\d+)$")
    used = _first_number(Path("/sys/fs/cgroup/memory.current"), r"^(\d+)$")
    known = []
    if free is not None:
        known.append(free * 1024)
    if limit is not None and used is not None:
        known.append(max(limit - used, 0))
    return min(known, default=None)


def _first_number(file: Path, pattern: str) -> int | None:
    try:
        found = re.search(pattern, file.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found.group(1)) if found else None


def _extra(name: str, purpose: str) -> Check:
    title, command = f"Extra {name}", f"pip install 'weirflow[{name}]'"
    wanted = _requirements(name)
    versions = {package: installed(package) for package in wanted}
    missing = [package for package, version in versions.items() if version is None]
    if missing or not wanted:
        return Check(title, Verdict.OPTIONAL, f"not installed; for {purpose}", command)
    wrong = [
        f"{package} {version} (needs {wanted[package]})"
        for package, version in versions.items()
        if version is not None and not satisfies(version, wanted[package])
    ]
    if wrong:
        return Check(title, Verdict.PROBLEM, ", ".join(wrong), command)
    return Check(title, Verdict.OK, ", ".join(f"{package} {version}" for package, version in sorted(versions.items())))


def _extensions() -> Iterator[Check]:
    """What other distributions add: it can be loaded."""
    for point in EXTENSION_POINTS:
        for name, found in point.check().items():
            title = f"{point.what.capitalize()} {name}"
            if isinstance(found, ConfigError):
                yield Check(title, Verdict.PROBLEM, found.message, found.hint)
            else:
                yield Check(title, Verdict.OK, f"added by {found}")


def _cache(settings: Settings) -> Check:
    folder = settings.cache_dir
    advice = "make it writable, or set WEIRFLOW_CACHE_DIR to another folder"
    existing = next((parent for parent in (folder, *folder.parents) if parent.exists()), Path("/"))
    if not existing.is_dir() or not _writable(existing):
        return Check("Cache folder", Verdict.PROBLEM, f"{folder} cannot be written", advice)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder.exists() else 0
    return Check("Cache folder", Verdict.OK, f"{folder}, {size / (1 << 20):.0f} MiB")


def _class_archive(settings: Settings) -> Check:
    if not settings.class_archive:
        return Check("Class archive", Verdict.OPTIONAL, "switched off by WEIRFLOW_CLASS_ARCHIVE")
    archives = sorted((settings.cache_dir / "classes").glob("*.jsa"))
    if archives:
        return Check("Class archive", Verdict.OK, ", ".join(archive.name for archive in archives))
    return Check(
        "Class archive",
        Verdict.OPTIONAL,
        "not there yet; it halves the start of Spark",
        "the first Session writes it as it closes, once, in about 10 s: weirflow doctor --start",
    )


def _temporary_folder() -> Check:
    try:
        folder = Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        return Check("Temporary folder", Verdict.PROBLEM, str(error), "set TMPDIR to a folder that can be written")
    free = shutil.disk_usage(folder).free
    found = f"{folder}, {_gib(free)} free"
    if not _writable(folder):
        return Check(
            "Temporary folder", Verdict.PROBLEM, f"{folder} cannot be written", "make it writable, or set TMPDIR"
        )
    if free < _NEEDED_SCRATCH:
        return Check("Temporary folder", Verdict.PROBLEM, found, "free some space, or set TMPDIR to a larger disk")
    return Check("Temporary folder", Verdict.OK, found)


def _chosen_folders(settings: Settings) -> Iterator[Check]:
    """The folders that settings name: they can be written, or made."""
    checkpoints = settings.checkpoint_uri or ""
    local = checkpoints.removeprefix("file://") if "://" not in checkpoints.removeprefix("file://") else ""
    folders = {"Session folder": settings.path, "Checkpoint folder": Path(local) if local else None}
    for title, folder in folders.items():
        if folder is None:
            continue
        existing = next((parent for parent in (folder, *folder.parents) if parent.exists()), Path("/"))
        if not existing.is_dir() or not _writable(existing):
            advice = f"make {existing} a folder that can be written, or choose another one"
            yield Check(title, Verdict.PROBLEM, f"{folder} cannot be written", advice)
        elif shutil.disk_usage(existing).free < _NEEDED_SCRATCH:
            free = _gib(shutil.disk_usage(existing).free)
            yield Check(title, Verdict.PROBLEM, f"{folder}, {free} free", "free some space, or choose another disk")
        else:
            yield Check(title, Verdict.OK, f"{folder}, {_gib(shutil.disk_usage(existing).free)} free")


def _chosen_ports(settings: Settings) -> Iterator[Check]:
    """The ports that settings name: somebody listens there."""
    if settings.endpoint is not None:
        with contextlib.suppress(ConfigError):  # what is wrong with it is told with the settings
            for place in parse_endpoint(settings.endpoint).hosts:
                yield _port("Spark's port", place.host, place.port, "start Spark there, or check the firewall")
    if settings.metadata_url is not None:
        url = urlsplit(settings.metadata_url.get_secret_value())
        if url.hostname is not None:
            advice = "start PostgreSQL there, or check the firewall"
            yield _port("PostgreSQL's port", url.hostname, url.port or _POSTGRESQL_PORT, advice)


def _server() -> Iterator[Check]:
    """What `weirflow serve` would use here, if it is installed: its ports are free, its folders can be written."""
    try:
        from weirflow.server.settings import load_config, parse_address  # noqa: PLC0415 - needs an extra
    except ImportError:
        return
    try:
        config = load_config()
    except ConfigError as error:
        yield Check("Server settings", Verdict.PROBLEM, error.message, error.hint)
        return
    for door, address in (("HTTP", config.server.http), ("Flight", config.server.flight)):
        if address is not None:
            yield _free_port(f"Server's {door}", *parse_address(address), door.lower())
    folders = {"Server's spool": config.server.spool, "Server's audit log": config.server.audit_log}
    for title, place in folders.items():
        if place is not None and "://" not in str(place):
            existing = next(one for one in (Path(place).absolute(), *Path(place).absolute().parents) if one.exists())
            if _writable(existing):
                yield Check(title, Verdict.OK, str(place))
            else:
                advice = f"make {existing} writable, or choose another place"
                yield Check(title, Verdict.PROBLEM, f"{place} cannot be written", advice)


def _free_port(title: str, host: str, port: int, option: str) -> Check:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
    except OSError as error:
        advice = f"fine if that is your server; otherwise weirflow serve --{option} {host}:PORT, with another port"
        return Check(title, Verdict.OPTIONAL, f"{host}:{port} cannot be listened at: {error.strerror}", advice)
    return Check(title, Verdict.OK, f"{host}:{port} is free")


def _port(title: str, host: str, port: int, advice: str) -> Check:
    try:
        with socket.create_connection((host, port), timeout=_PORT_SECONDS):
            return Check(title, Verdict.OK, f"{host}:{port} answers")
    except OSError as error:
        return Check(title, Verdict.PROBLEM, f"{host}:{port} does not answer: {error}", advice)


def _loopback() -> Check:
    try:
        with socket.socket() as listener, socket.socket() as client:
            listener.bind(("127.0.0.1", 0))
            listener.listen(1)
            client.settimeout(5.0)
            client.connect(listener.getsockname())
    except OSError as error:
        advice = "let programs talk to each other on 127.0.0.1: check the firewall or sandbox"
        return Check("Loopback", Verdict.PROBLEM, f"127.0.0.1 cannot be used: {error}", advice)
    return Check("Loopback", Verdict.OK, "ports on 127.0.0.1 can be bound and reached")


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f} GiB"
