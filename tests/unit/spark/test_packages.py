"""Connector jars: the table of connectors, and a cache that survives damage, races, kills and no network."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from weirflow.errors import ConfigError, DependencyMissing, PackageUnavailable
from weirflow.spark.jars.artifacts import Artifact, Coordinate, Dependencies
from weirflow.spark.jars.cache import JarCache
from weirflow.spark.jars.packages import CONNECTORS, connector_conf, resolve_jars

JAVA = Path(shutil.which("java") or "java")
IVY_JAR = next((Path(importlib.util.find_spec("pyspark").origin).parent / "jars").glob("ivy-*.jar"))
NO_JAVA = Path("/nowhere/java")
ICEBERG = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
DELTA = "io.delta.sql.DeltaSparkSessionExtension"


@dataclass(frozen=True)
class MavenRepository:
    """A Maven repository in a folder, and the Ivy settings that make it the only one."""

    folder: Path

    @property
    def ivy_settings(self):
        return self.folder / "ivysettings.xml"

    def publish(self, coordinate, *, needs=(), packaging="jar"):
        group, artifact, version = coordinate.split(":")
        target = self.folder / group.replace(".", "/") / artifact / version
        target.mkdir(parents=True)
        dependencies = "".join(
            "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>".format(
                *each.split(":")
            )
            for each in needs
        )
        (target / f"{artifact}-{version}.pom").write_text(
            f"<project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId>"
            f"<artifactId>{artifact}</artifactId><version>{version}</version><packaging>{packaging}</packaging>"
            f"<dependencies>{dependencies}</dependencies></project>"
        )
        if packaging == "jar":
            (target / f"{artifact}-{version}.jar").write_bytes(f"the jar of {coordinate}".encode())


def ivy_settings_for(root):
    return (
        '<ivysettings><settings defaultResolver="only"/><resolvers>'
        f'<ibiblio name="only" m2compatible="true" root="{root}"/></resolvers></ivysettings>'
    )


@pytest.fixture
def maven(tmp_path):
    repository = MavenRepository(tmp_path / "maven")
    repository.folder.mkdir()
    repository.ivy_settings.write_text(ivy_settings_for(f"{repository.folder.as_uri()}/"))
    repository.publish("org.example:lib:1.9")
    repository.publish("org.example:lib:1.10")
    repository.publish("org.apache.spark:spark-sql_2.13:4.1.3")
    repository.publish("org.slf4j:slf4j-api:2.0.17")
    repository.publish(
        "org.example:app:1.0",
        needs=["org.example:lib:1.9", "org.apache.spark:spark-sql_2.13:4.1.3", "org.slf4j:slf4j-api:2.0.17"],
    )
    return repository


@pytest.fixture
def resolve(tmp_path, maven):
    """`resolve_jars` against the small repository, with its answer as file names."""

    def call(*packages, java=JAVA, **options):
        jars = resolve_jars(
            packages,
            **{
                "spark_version": "4.1.3",
                "cache": tmp_path / "cache",
                "java": java,
                "ivy_jar": IVY_JAR,
                "ivy_settings": maven.ivy_settings,
                **options,
            },
        )
        assert all(jar.is_absolute() and jar.is_file() for jar in jars)
        return [jar.name for jar in jars]

    return call


@pytest.fixture
def silent_server():
    """The address of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server, contextlib.ExitStack() as connections:

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    connections.enter_context(server.accept()[0])

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def ivy_processes(cache):
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(str(cache) in argument for argument in process.info["cmdline"] or ())
        and Path(process.info["cmdline"][0]).name == "java"
    ]


def wait_for(condition, what, seconds=30):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.02)
    return found


def test_every_connector_has_jars_for_the_spark_line_we_pin():
    assert {name for name, connector in CONNECTORS.items() if "4.1" in connector.jars} == set(CONNECTORS)


@pytest.mark.parametrize(
    "coordinate",
    sorted({c for connector in CONNECTORS.values() for jars in connector.jars.values() for c in jars}),
)
def test_every_coordinate_of_the_table_is_well_formed(coordinate):
    assert str(Coordinate.parse(coordinate)) == coordinate


def test_an_unknown_connector_names_the_nearest_and_all_known(resolve):
    with pytest.raises(ConfigError) as raised:
        resolve("kafak")
    assert raised.value.message == "no connector is named 'kafak'."
    assert "did you mean 'kafka'?" in raised.value.hint
    assert "iceberg-gcp, kafka, postgresql, s3, sqlite" in raised.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "",
        "org.example:app",
        "org.example:app:1.0:extra",
        "org.example:app:",
        "org/example:app:1.0",
        "..:..:/etc/passwd",
        "-Dx:app:1.0",
        "org.example:app:[1.0,2.0)",
        "org.example:app:1.+",
        "org.example:app:latest.release",
        "org.example:app:LATEST",
        'org.example:app:1.0"/><evil',
        "org.example:app:1.0\n",
        "org.example:app:1\x00",
    ],
)
def test_what_is_no_fixed_coordinate_is_refused_before_anything_starts(resolve, tmp_path, text):
    with pytest.raises(ConfigError):
        resolve(text, java=NO_JAVA)
    assert not (tmp_path / "cache").exists()


def test_a_connector_without_jars_for_this_spark_says_which_spark_has_them(resolve):
    with pytest.raises(PackageUnavailable, match=r"no jars for Spark 4\.2\.1; it has them for Spark 4\.1\."):
        resolve("iceberg", spark_version="4.2.1")


def test_a_connectors_jars_are_exactly_those_in_the_table(resolve, maven):
    for coordinate in CONNECTORS["kafka"].jars["4.1"]:
        maven.publish(coordinate, needs=["org.example:lib:1.9"])
    assert resolve("kafka") == [
        "org.apache.spark_spark-sql-kafka-0-10_2.13-4.1.3.jar",
        "org.apache.spark_spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
        "org.apache.kafka_kafka-clients-3.9.1.jar",
        "org.apache.commons_commons-pool2-2.12.1.jar",
    ]


def test_plain_coordinates_and_kafka_need_no_settings():
    assert connector_conf(["kafka", "org.example:app:1.0"], "/w") == {}


def test_the_settings_of_several_connectors_join():
    assert connector_conf(["iceberg", "delta", "iceberg"], "s3a://bucket/w/") == {
        "spark.sql.extensions": f"{ICEBERG},{DELTA}",
        "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.iceberg.type": "hadoop",
        "spark.sql.catalog.iceberg.warehouse": "s3a://bucket/w/iceberg.catalog",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.legacy.parameterSubstitution.constantsOnly": "true",
    }


def test_settings_of_an_unknown_connector_are_refused():
    with pytest.raises(ConfigError):
        connector_conf(["detla"], "/w")


def test_a_coordinate_brings_its_dependencies_without_those_spark_ships(resolve):
    assert resolve("org.example:app:1.0") == ["org.example_app-1.0.jar", "org.example_lib-1.9.jar"]


def test_a_coordinate_that_spark_would_ship_is_fetched_when_asked_for_by_name(resolve):
    assert resolve("org.slf4j:slf4j-api:2.0.17") == ["org.slf4j_slf4j-api-2.0.17.jar"]


def test_of_a_module_in_two_versions_only_the_newest_is_used(resolve):
    assert resolve("org.example:app:1.0", "org.example:lib:1.10") == [
        "org.example_app-1.0.jar",
        "org.example_lib-1.10.jar",
    ]


def test_the_same_artifact_may_be_asked_for_with_and_without_dependencies(tmp_path, maven):
    cache = JarCache(tmp_path / "cache", JAVA, IVY_JAR, maven.ivy_settings)
    app = Coordinate.parse("org.example:app:1.0")
    cache.get([Artifact(app, depth) for depth in Dependencies])
    got = {depth: [jar.name for jar in cache.get([Artifact(app, depth)])] for depth in Dependencies}
    assert got == {
        Dependencies.NONE: ["org.example_app-1.0.jar"],
        Dependencies.BESIDES_SPARK: ["org.example_app-1.0.jar", "org.example_lib-1.9.jar"],
        Dependencies.ALL: [
            "org.apache.spark_spark-sql_2.13-4.1.3.jar",
            "org.example_app-1.0.jar",
            "org.example_lib-1.9.jar",
            "org.slf4j_slf4j-api-2.0.17.jar",
        ],
    }


def test_nothing_asked_for_is_nothing_done(resolve, tmp_path):
    assert resolve(java=NO_JAVA) == []
    assert not (tmp_path / "cache").exists()


def test_fetched_jars_are_served_without_java_ivy_or_repository(resolve, maven):
    fetched = resolve("org.example:app:1.0")
    shutil.rmtree(maven.folder)
    assert resolve("org.example:app:1.0", java=NO_JAVA, ivy_jar=Path("/nowhere/ivy.jar")) == fetched


def test_a_copied_cache_folder_is_all_another_machine_needs(resolve, tmp_path):
    fetched = resolve("org.example:app:1.0")
    shutil.copytree(tmp_path / "cache", tmp_path / "other")
    shutil.rmtree(tmp_path / "cache")
    assert resolve("org.example:app:1.0", java=NO_JAVA, cache=tmp_path / "other") == fetched


def test_progress_is_told_once_and_never_for_what_is_there(resolve, maven):
    for coordinate in CONNECTORS["kafka"].jars["4.1"]:
        maven.publish(coordinate)
    told = []
    resolve("kafka", "org.example:app:1.0", on_progress=told.append)
    resolve("kafka", "org.example:app:1.0", on_progress=told.append)
    assert told == ["fetching kafka connector (4 jars), org.example:app:1.0 once"]


def test_a_fetch_leaves_only_jars_and_manifests(resolve, tmp_path):
    resolve("org.example:app:1.0")
    assert sorted(entry.name for entry in (tmp_path / "cache" / "jars").iterdir()) == [
        ".lock",
        "ivy.log",
        "org.example_app-1.0.besides-spark.json",
        "org.example_app-1.0.jar",
        "org.example_lib-1.9.jar",
    ]


def test_a_folder_name_full_of_special_characters_is_only_a_name(resolve, tmp_path):
    odd = tmp_path / "a [conf] (b) ${c} ü"
    assert resolve("org.example:lib:1.9", cache=odd) == ["org.example_lib-1.9.jar"]
    assert (odd / "jars" / "org.example_lib-1.9.jar").is_file()


def truncate(jars):
    (jars / "org.example_lib-1.9.jar").write_bytes(b"the")


def remove(jars):
    (jars / "org.example_lib-1.9.jar").unlink()


def cut_manifest(jars):
    manifest = jars / "org.example_app-1.0.besides-spark.json"
    manifest.write_bytes(manifest.read_bytes()[:40])


def empty_manifest(jars):
    (jars / "org.example_app-1.0.besides-spark.json").write_bytes(b"")


def foreign_manifest(jars):
    (jars / "org.example_app-1.0.besides-spark.json").write_text("[1, 2]")


def future_manifest(jars):
    path = jars / "org.example_app-1.0.besides-spark.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))


def manifest_that_points_outside(jars):
    path = jars / "org.example_app-1.0.besides-spark.json"
    manifest = json.loads(path.read_text())
    (jars.parent / "evil.jar").write_bytes(b"evil")
    manifest["jars"][0].update(name="../evil.jar", size=4)
    path.write_text(json.dumps(manifest))


DAMAGES = (
    truncate,
    remove,
    cut_manifest,
    empty_manifest,
    foreign_manifest,
    future_manifest,
    manifest_that_points_outside,
)


@pytest.mark.campaign
def test_what_is_damaged_is_fetched_again(resolve, tmp_path):
    whole = resolve("org.example:app:1.0")
    jars = tmp_path / "cache" / "jars"
    for damage in DAMAGES:
        damage(jars)
        assert resolve("org.example:app:1.0") == whole, damage
        assert (jars / "org.example_lib-1.9.jar").read_bytes() == b"the jar of org.example:lib:1.9", damage


def test_an_artifact_that_does_not_exist_is_named_and_leaves_the_cache_as_it_was(resolve, tmp_path):
    with pytest.raises(PackageUnavailable, match=r"does not have org\.example:app:9\.9") as raised:
        resolve("org.example:app:1.0", "org.example:app:9.9")
    assert raised.value.coordinates == ("org.example:app:9.9",)
    assert raised.value.hint.startswith("check group, artifact and version;")
    assert sorted(entry.name for entry in (tmp_path / "cache" / "jars").iterdir()) == [".lock", "ivy.log"]


def test_a_dependency_that_does_not_exist_is_named_with_what_needs_it(resolve, maven):
    maven.publish("org.example:broken:1.0", needs=["org.example:gone:3"])
    with pytest.raises(PackageUnavailable, match=r"does not have org\.example:gone:3") as raised:
        resolve("org.example:broken:1.0")
    assert raised.value.coordinates == ("org.example:broken:1.0",)


def test_an_artifact_without_any_jar_is_refused(resolve, maven):
    maven.publish("org.example:parent:1.0", packaging="pom")
    with pytest.raises(PackageUnavailable, match="have no jar"):
        resolve("org.example:parent:1.0")


def test_an_unreachable_repository_is_an_error_with_a_way_out(resolve, tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        proxy = (f"-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={port}").split()
        with pytest.raises(PackageUnavailable, match="cannot be reached") as raised:
            resolve("kafka", ivy_settings=None, java_options=proxy)
    assert raised.value.coordinates == CONNECTORS["kafka"].jars["4.1"]
    assert f"copy its cache folder's jars to {tmp_path / 'cache' / 'jars'}" in raised.value.hint


def test_a_repository_that_never_answers_is_given_up_in_time(resolve, tmp_path, silent_server):
    settings = tmp_path / "silent.xml"
    settings.write_text(ivy_settings_for(silent_server))
    began = time.monotonic()
    with pytest.raises(PackageUnavailable, match="longer than 2 s"):
        resolve("org.example:app:1.0", ivy_settings=settings, timeout=2)
    assert time.monotonic() - began < 10
    assert ivy_processes(tmp_path / "cache") == []


def test_a_fetch_without_java_says_what_to_install(resolve):
    with pytest.raises(DependencyMissing, match="needs Java") as raised:
        resolve("org.example:app:1.0", java=NO_JAVA)
    assert "JAVA_HOME" in raised.value.hint


def test_a_fetch_without_ivy_says_what_to_install(resolve):
    with pytest.raises(DependencyMissing, match="Ivy") as raised:
        resolve("org.example:app:1.0", ivy_jar=Path("/nowhere/ivy.jar"))
    assert "pyspark" in raised.value.hint


def test_a_cache_folder_that_cannot_be_made_is_a_config_error(resolve, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be written"):
        resolve("org.example:app:1.0", cache=tmp_path / "file")


def fetch_in_a_process(cache, settings):
    """A process that fetches the app and prints what it was told and got."""
    script = f"""
        from pathlib import Path
        from weirflow.spark.jars.packages import resolve_jars
        jars = resolve_jars(
            ["org.example:app:1.0"],
            spark_version="4.1.3",
            cache=Path({str(cache)!r}),
            java=Path({str(JAVA)!r}),
            ivy_jar=Path({str(IVY_JAR)!r}),
            ivy_settings=Path({str(settings)!r}),
            on_progress=lambda line: print(line, flush=True),
        )
        print(*(jar.name for jar in jars))
    """
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )


def test_of_many_processes_at_once_one_fetches_and_all_get_the_jars(tmp_path, maven):
    processes = [fetch_in_a_process(tmp_path / "cache", maven.ivy_settings) for _ in range(4)]
    outputs = [process.communicate(timeout=60)[0].splitlines() for process in processes]
    assert [lines[-1] for lines in outputs] == ["org.example_app-1.0.jar org.example_lib-1.9.jar"] * 4
    told = [line for lines in outputs for line in lines[:-1]]
    assert told.count("fetching org.example:app:1.0 once") == 1
    assert set(told) <= {"fetching org.example:app:1.0 once", "waiting for another process that fetches jars"}


def test_waiting_for_another_process_has_an_end(resolve, tmp_path, silent_server):
    settings = tmp_path / "silent.xml"
    settings.write_text(ivy_settings_for(silent_server))
    holder = fetch_in_a_process(tmp_path / "cache", settings)
    try:
        holder.stdout.readline()
        with pytest.raises(PackageUnavailable, match=r"another process has been fetching jars for 0\.5 s"):
            resolve("org.example:app:1.0", timeout=0.5)
    finally:
        for ivy in wait_for(lambda: ivy_processes(tmp_path / "cache"), "the start of Ivy"):
            ivy.kill()
        holder.communicate(timeout=10)


def test_a_fetch_killed_half_way_leaves_nothing_that_harms_the_next(resolve, tmp_path, silent_server):
    settings = tmp_path / "silent.xml"
    settings.write_text(ivy_settings_for(silent_server))
    victim = fetch_in_a_process(tmp_path / "cache", settings)
    [ivy] = wait_for(lambda: ivy_processes(tmp_path / "cache"), "the start of Ivy")
    victim.send_signal(signal.SIGKILL)
    victim.communicate(timeout=10)
    assert resolve("org.example:app:1.0") == ["org.example_app-1.0.jar", "org.example_lib-1.9.jar"]
    with contextlib.suppress(psutil.NoSuchProcess):  # it may have given up on the silent server by now
        ivy.kill()
    ivy.wait(10)
    (tmp_path / "cache" / "jars" / "org.example_lib-1.9.jar").unlink()
    resolve("org.example:app:1.0")
    assert list((tmp_path / "cache" / "jars").glob(".fetch-*")) == []


def test_the_modules_do_not_import_pyspark():
    script = "import sys, weirflow.spark.jars.packages; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
