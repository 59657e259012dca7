import logging
import os
import time
from pathlib import Path

import pytest

from weirflow.spark.launch.archive import ClassArchive
from weirflow.spark.launch.java import Java

JAVA = Java(Path("/usr/bin/java"), 'openjdk version "17.0.1"', 17)


@pytest.fixture
def jars(tmp_path):
    jar = tmp_path / "spark.jar"
    jar.write_bytes(b"classes")
    return [jar]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache" / "classes"


def written(folder, jars, java=JAVA):
    """An archive as a first JVM leaves it."""
    archive = ClassArchive(folder, java, jars)
    draft = Path(archive.java_options[0].partition("=")[2])
    draft.write_bytes(b"archive")
    archive.settle()
    [file] = folder.glob("*.jsa")
    return file


def test_the_first_jvm_writes_and_the_next_maps(folder, jars):
    first = ClassArchive(folder, JAVA, jars)
    assert first.writes_at_exit
    option, _, draft = first.java_options[0].partition("=")
    assert option == "-XX:ArchiveClassesAtExit"
    Path(draft).write_bytes(b"archive")
    first.settle()
    assert not first.writes_at_exit
    second = ClassArchive(folder, JAVA, jars)
    assert not second.writes_at_exit
    [file] = folder.glob("*.jsa")
    assert second.java_options == (f"-XX:SharedArchiveFile={file}",)
    assert file.read_bytes() == b"archive"


@pytest.mark.parametrize("size", [0, 3])
def test_a_torn_archive_is_replaced(folder, jars, size):
    file = written(folder, jars)
    os.truncate(file, size)
    archive = ClassArchive(folder, JAVA, jars)
    assert archive.writes_at_exit
    assert not file.exists()
    archive.settle()


def test_a_killed_jvm_leaves_no_archive_and_the_next_tries_again(folder, jars):
    ClassArchive(folder, JAVA, jars).settle()
    assert list(folder.glob("*.jsa")) == []
    again = ClassArchive(folder, JAVA, jars)
    assert again.writes_at_exit
    again.settle()


def test_only_one_writes_at_a_time(folder, jars):
    first = ClassArchive(folder, JAVA, jars)
    second = ClassArchive(folder, JAVA, jars)
    assert (first.writes_at_exit, second.writes_at_exit, second.java_options) == (True, False, ())
    second.settle()
    first.settle()
    third = ClassArchive(folder, JAVA, jars)
    assert third.writes_at_exit
    third.settle()


def test_who_may_not_write_does_without(folder, jars):
    archive = ClassArchive(folder, JAVA, jars, may_write=False)
    assert (archive.writes_at_exit, archive.java_options) == (False, ())


@pytest.mark.parametrize("change", ["java path", "java version", "jar size", "jar time", "more jars"])
def test_another_spark_or_java_has_another_archive(folder, jars, tmp_path, change):
    written(folder, jars)
    java = JAVA
    if change == "java path":
        java = Java(Path("/opt/java"), JAVA.version, 17)
    elif change == "java version":
        java = Java(JAVA.executable, 'openjdk version "17.0.2"', 17)
    elif change == "jar size":
        jars[0].write_bytes(b"other classes")
    elif change == "jar time":
        os.utime(jars[0], ns=(1, 1))
    else:
        (tmp_path / "more.jar").write_bytes(b"x")
        jars = [*jars, tmp_path / "more.jar"]
    archive = ClassArchive(folder, java, jars)
    assert archive.writes_at_exit
    archive.settle()


def test_archives_unused_for_a_month_go_when_a_new_one_comes(folder, jars):
    folder.mkdir(parents=True)
    long_ago = time.time() - 31 * 24 * 3600
    for name in ("old.jsa", "old.7.draft", "young.jsa"):
        (folder / name).write_bytes(b"")
        if name.startswith("old"):
            os.utime(folder / name, (long_ago, long_ago))
    archive = ClassArchive(folder, JAVA, jars)
    Path(archive.java_options[0].partition("=")[2]).write_bytes(b"archive")
    archive.settle()
    assert {file.name for file in folder.glob("*.jsa")} >= {"young.jsa"}
    assert not (folder / "old.jsa").exists()
    assert not (folder / "old.7.draft").exists()


def test_a_mapped_archive_counts_as_used(folder, jars):
    file = written(folder, jars)
    os.utime(file, (1, 1))
    ClassArchive(folder, JAVA, jars).settle()
    assert time.time() - file.stat().st_mtime < 60


def test_a_folder_that_cannot_be_made_costs_speed_only(tmp_path, jars, caplog):
    (tmp_path / "cache").write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING):
        archive = ClassArchive(tmp_path / "cache" / "classes", JAVA, jars)
    assert (archive.writes_at_exit, archive.java_options) == (False, ())
    archive.settle()
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert "starts are slower" in record.getMessage()


def test_a_folder_that_may_not_be_written_costs_speed_only(folder, jars, caplog, monkeypatch):
    folder.mkdir(parents=True)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    # Not by the folder's mode: root may write anywhere.
    monkeypatch.setattr("weirflow.spark.launch.archive.os.open", refuse)
    archive = ClassArchive(folder, JAVA, jars)
    assert (archive.writes_at_exit, archive.java_options) == (False, ())
    assert "Permission denied" in caplog.text


def test_another_users_archive_is_used(folder, jars, monkeypatch):
    file = written(folder, jars)

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("weirflow.spark.launch.archive.os.utime", refuse)
    assert ClassArchive(folder, JAVA, jars).java_options == (f"-XX:SharedArchiveFile={file}",)
