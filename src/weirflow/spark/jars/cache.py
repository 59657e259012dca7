"""The jar cache: fetch jars from Maven once, with the Ivy that PySpark ships, and serve them offline after.

The folder ``CACHE/jars`` is flat. Each jar is ``GROUP_ARTIFACT-VERSION.jar``, because Spark tells jars apart
by file name alone. Beside the jars lies one JSON manifest for each fetched artifact: the list of its jars. An
artifact is present when its manifest is there and every jar in it has the size written down; otherwise it
is fetched again. Jars, then manifests, are renamed into place whole, so no reader ever sees half an entry. A
copy of the folder is all that another machine needs.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weirflow.errors import ConfigError, DependencyMissing, PackageUnavailable
from weirflow.spark.compat import LEAST_JAVA
from weirflow.spark.jars.ivy_input import ivy_xml

if TYPE_CHECKING:
    from weirflow.spark.jars.artifacts import Artifact

_MANIFEST_FORMAT = 1
_LOCK_POLL_SECONDS = 0.1
_IVY_LAYOUT = "[conf]/[organisation]/[module]/[revision]/[artifact]-[revision](-[classifier]).[ext]"
_IVY_MISSING = re.compile(r"^\s*:: (?P<group>[^\s#]+)#(?P<artifact>[^\s;]+);(?P<version>[^\s!:]+)[!:]", re.MULTILINE)
_IVY_CRASH = re.compile(r"\S+(?:Exception|Error)\b.*")
_IVY_UNREACHABLE = re.compile(r"Server access error|Host \S+ not found|UnknownHostException|timed out")


@dataclass(frozen=True)
class Jar:
    """One jar as a manifest describes it."""

    name: str
    module: str
    version: str
    size: int
    sha256: str


@dataclass(frozen=True)
class JarCache:
    """Jars kept under ``folder``.

    Attributes:
        folder: the cache folder; it is created by the first fetch, and never written when nothing is missing.
        java: the Java to run Ivy with.
        ivy_jar: Ivy itself, ``$SPARK_HOME/jars/ivy-*.jar``.
        ivy_settings: an Ivy settings file that names other repositories than Maven's public one.
        java_options: options for that Java, for example ``-Dhttps.proxyHost=...``.
        timeout: seconds until a fetch is given up, waiting for other processes included.
        on_progress: is told, in one line, what a fetch is about to do; never called when nothing is missing.
    """

    folder: Path
    java: Path
    ivy_jar: Path
    ivy_settings: Path | None = None
    java_options: Sequence[str] = ()
    timeout: float = 300.0
    on_progress: Callable[[str], None] | None = None

    @property
    def jars_folder(self) -> Path:
        """Where jars and manifests lie: the folder to copy to a machine without a network."""
        return self.folder / "jars"

    def get(self, artifacts: Sequence[Artifact]) -> list[Path]:
        """The jars of all ``artifacts``, absolute, each once; of a module only its newest version.

        Starts no process and takes no lock when all are in the cache. Otherwise fetches everything missing
        with one run of Ivy, while other processes that miss something wait.

        Raises:
            PackageUnavailable: they do not exist, or could not be fetched in time; the cache is unchanged.
            DependencyMissing: a fetch is needed and Java, or Ivy, is not where it was said to be.
            ConfigError: a fetch is needed and the cache folder cannot be written.
        """
        wanted = list(dict.fromkeys(artifacts))
        manifests = self._read_manifests(wanted)
        if len(manifests) < len(wanted):
            self._fetch(wanted)
            manifests = self._read_manifests(wanted)
        damaged = [artifact for artifact in wanted if artifact not in manifests]
        if damaged:
            raise self._unavailable(damaged, "something removed or changed them as they came")
        jars = [jar for artifact in wanted for jar in manifests[artifact]]
        return [(self.jars_folder / jar.name).absolute() for jar in _newest_of_each_module(jars)]

    def _read_manifests(self, artifacts: Iterable[Artifact]) -> dict[Artifact, tuple[Jar, ...]]:
        """The jars of those artifacts that are present."""
        read = {artifact: self._read_manifest(artifact) for artifact in artifacts}
        return {artifact: jars for artifact, jars in read.items() if jars is not None}

    def _missing(self, artifacts: Iterable[Artifact]) -> list[Artifact]:
        return [artifact for artifact in artifacts if self._read_manifest(artifact) is None]

    def _read_manifest(self, artifact: Artifact) -> tuple[Jar, ...] | None:
        """The artifact's jars, or None when the manifest or a jar is missing or damaged."""
        try:
            manifest = json.loads((self.jars_folder / artifact.manifest_name).read_bytes())
            jars = tuple(Jar(**entry) for entry in manifest["jars"])
            whole = manifest["format"] == _MANIFEST_FORMAT and all(
                jar.name == Path(jar.name).name and (self.jars_folder / jar.name).stat().st_size == jar.size
                for jar in jars
            )
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return jars if whole and jars else None

    def _fetch(self, wanted: Sequence[Artifact]) -> None:
        deadline = time.monotonic() + self.timeout
        try:
            self.jars_folder.mkdir(parents=True, exist_ok=True)
            with self._lock(wanted, deadline):
                # Another process may have fetched them while this one waited.
                missing = self._missing(wanted)
                if missing:
                    self._fetch_locked(missing, deadline)
        except OSError as error:
            raise ConfigError(
                f"the jar cache {self.jars_folder} cannot be written: {error}",
                hint="choose another cache folder, or make room and give write access to this one",
            ) from error

    @contextlib.contextmanager
    def _lock(self, wanted: Sequence[Artifact], deadline: float) -> Iterator[None]:
        """Hold the cache for writing. The kernel releases it when the process dies, however it dies."""
        with (self.jars_folder / ".lock").open("a") as lock:
            told = False
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if not told:
                        self._tell("waiting for another process that fetches jars")
                        told = True
                    if time.monotonic() > deadline:
                        raise self._unavailable(
                            self._missing(wanted),
                            f"another process has been fetching jars for {self.timeout:g} s",
                        ) from None
                    time.sleep(_LOCK_POLL_SECONDS)
            yield

    def _fetch_locked(self, missing: Sequence[Artifact], deadline: float) -> None:
        for leftover in self.jars_folder.glob(".fetch-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        self._tell(f"fetching {_describe(missing)} once")
        # Inside the cache folder, so that jars can be renamed out of it; new each time, because what an
        # interrupted Ivy left in its own cache cannot be trusted.
        staging = Path(tempfile.mkdtemp(prefix=".fetch-", dir=self.jars_folder.absolute()))
        try:
            self._run_ivy(missing, staging, deadline)
            manifests = {
                artifact: _describe_jars(staging / "lib" / f"c{number}") for number, artifact in enumerate(missing)
            }
            empty = [artifact for artifact, jars in manifests.items() if not jars]
            if empty:
                raise self._unavailable(empty, "they exist but have no jar")
            for jar, path in (entry for jars in manifests.values() for entry in jars):
                path.replace(self.jars_folder / jar.name)
            for artifact, jars in manifests.items():
                manifest = staging / artifact.manifest_name
                manifest.write_text(_manifest_text(artifact, [jar for jar, _ in jars]), encoding="utf-8")
                manifest.replace(self.jars_folder / artifact.manifest_name)
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _run_ivy(self, missing: Sequence[Artifact], staging: Path, deadline: float) -> None:
        java = shutil.which(self.java)
        if java is None:
            raise DependencyMissing(
                f"fetching {_describe(missing)} needs Java, and {self.java} is none.",
                hint=f"install Java {LEAST_JAVA} or newer, or set JAVA_HOME",
            )
        if not self.ivy_jar.is_file():
            raise DependencyMissing(
                f"fetching {_describe(missing)} needs PySpark's Ivy, and {self.ivy_jar} is missing.",
                hint="pip install --force-reinstall pyspark",
            )
        (staging / "ivy.xml").write_text(ivy_xml(missing), encoding="utf-8")
        settings = () if self.ivy_settings is None else ("-settings", str(self.ivy_settings.absolute()))
        # Relative to the staging folder: Ivy would read brackets and braces in its name as a pattern.
        command = (
            *(java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *self.java_options),
            # Nothing in the user's own ~/.ivy2 may decide what is fetched.
            f"-Divy.default.ivy.user.dir={staging / 'home'}",
            *("-jar", str(self.ivy_jar.absolute()), *settings),
            *("-cache", "cache", "-ivy", "ivy.xml", "-retrieve", f"lib/{_IVY_LAYOUT}"),
        )
        log = self.jars_folder / "ivy.log"
        try:
            with log.open("wb") as output:
                done = subprocess.run(
                    command,
                    cwd=staging,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=max(0.0, deadline - time.monotonic()),
                    check=False,
                )
        except subprocess.TimeoutExpired:
            raise self._unavailable(missing, f"fetching took longer than {self.timeout:g} s") from None
        if done.returncode != 0:
            raise self._explain(missing, log.read_text(encoding="utf-8", errors="replace"))

    def _explain(self, missing: Sequence[Artifact], ivy_output: str) -> PackageUnavailable:
        if _IVY_UNREACHABLE.search(ivy_output):
            return self._unavailable(missing, "the Maven repository cannot be reached")
        absent = dict.fromkeys(":".join(found.groups()) for found in _IVY_MISSING.finditer(ivy_output))
        if not absent:
            found = _IVY_CRASH.search(ivy_output)
            return self._unavailable(missing, f"Ivy failed{f' with {found[0]}' if found else ''}")
        asked_for = [artifact for artifact in missing if str(artifact.coordinate) in absent]
        return self._unavailable(
            asked_for or missing,
            f"the Maven repository does not have {', '.join(absent)}",
            first_try="check group, artifact and version",
        )

    def _unavailable(
        self, artifacts: Sequence[Artifact], reason: str, *, first_try: str | None = None
    ) -> PackageUnavailable:
        folder = self.jars_folder.absolute()
        copy = f"start the same session there, then copy its cache folder's jars to {folder}"
        advice = (
            first_try,
            f"a machine without a network needs them once from one that has it: {copy}",
            "behind a proxy, set JDK_JAVA_OPTIONS='-Dhttps.proxyHost=... -Dhttps.proxyPort=...'",
            f"what Ivy said last is in {folder / 'ivy.log'}",
        )
        return PackageUnavailable(
            f"{_describe(artifacts)} could not be fetched: {reason}.",
            coordinates=[str(artifact.coordinate) for artifact in artifacts],
            hint="; ".join(filter(None, advice)),
        )

    def _tell(self, message: str) -> None:
        if self.on_progress is not None:
            self.on_progress(message)


def _describe(artifacts: Iterable[Artifact]) -> str:
    """Words for messages: named purposes with their number of jars, then plain coordinates."""
    listed = list(artifacts)
    purposes = Counter(artifact.purpose for artifact in listed if artifact.purpose)
    named = [f"{purpose} ({count} jar{'s'[: count > 1]})" for purpose, count in purposes.items()]
    return ", ".join(named + [str(artifact.coordinate) for artifact in listed if not artifact.purpose])


def _describe_jars(folder: Path) -> list[tuple[Jar, Path]]:
    """The jars Ivy put below ``folder``, and where, sorted by their name in the cache."""
    found = []
    for path in folder.rglob("*.jar"):
        group, module, version = path.relative_to(folder).parts[:3]
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        jar = Jar(f"{group}_{path.name}", f"{group}:{module}", version, path.stat().st_size, digest)
        found.append((jar, path))
    return sorted(found, key=lambda entry: entry[0].name)


def _manifest_text(artifact: Artifact, jars: Sequence[Jar]) -> str:
    manifest = {
        "format": _MANIFEST_FORMAT,
        "coordinate": str(artifact.coordinate),
        "dependencies": artifact.dependencies.value,
        "jars": [asdict(jar) for jar in jars],
    }
    return json.dumps(manifest, indent=1) + "\n"


def _newest_of_each_module(jars: Iterable[Jar]) -> list[Jar]:
    """Each jar once; where artifacts brought several versions of a module, those of the newest."""
    unique = list(dict.fromkeys(jars))
    newest: dict[str, str] = {}
    for jar in unique:
        newest[jar.module] = max(newest.get(jar.module, jar.version), jar.version, key=_version_order)
    return [jar for jar in unique if jar.version == newest[jar.module]]


def _version_order(version: str) -> list[tuple[int, int, str]]:
    """The order of versions by Ivy's rule: numbers by value, words before numbers and before nothing.

    >>> sorted(["2.10", "2.9", "2.10-rc1"], key=_version_order)
    ['2.9', '2.10-rc1', '2.10']
    """
    parts = re.findall(r"\d+|[A-Za-z]+", version)
    return [(2, int(part), "") if part.isdigit() else (0, 0, part.lower()) for part in parts] + [(1, 0, "")]
