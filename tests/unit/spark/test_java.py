import pytest

from weirflow.errors import DependencyMissing
from weirflow.spark.launch.java import find_java


@pytest.fixture
def java(tmp_path, monkeypatch):
    """Put a program called java on an otherwise empty PATH."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()

    def install(script, folder=tmp_path / "bin"):
        folder.mkdir(parents=True, exist_ok=True)
        program = folder / "java"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return program

    return install


def test_no_java(java):
    with pytest.raises(DependencyMissing, match="none is on the PATH") as caught:
        find_java()
    assert "apt-get install openjdk-17-jre-headless" in caught.value.hint


@pytest.mark.parametrize(
    ("line", "major"),
    [('openjdk version "17.0.11" 2024-04-16', 17), ('java version "21" 2023-09-19 LTS', 21)],
)
def test_a_java_that_spark_can_use(java, line, major):
    program = java(f"echo '{line}' >&2")
    found = find_java()
    assert (found.executable, found.version, found.major) == (program, line, major)


@pytest.mark.parametrize("line", ['java version "1.8.0_402"', 'openjdk version "11.0.2" 2019-01-15'])
def test_an_old_java_is_named(java, line):
    program = java(f"echo 'Picked up JAVA_TOOL_OPTIONS: -Dx=1' >&2; echo '{line}' >&2")
    with pytest.raises(DependencyMissing) as caught:
        find_java()
    assert caught.value.message == f"Spark needs Java 17 or newer; {program} is {line}."


@pytest.mark.parametrize("script", ["exit 0", "echo gibberish >&2"])
def test_a_java_that_does_not_say_its_version(java, script):
    java(script)
    with pytest.raises(DependencyMissing, match="Spark needs Java 17 or newer"):
        find_java()


def test_a_java_that_does_not_start(java):
    java("exit 1")
    with pytest.raises(DependencyMissing, match="does not start"):
        find_java()


def test_java_home_wins(java, tmp_path, monkeypatch):
    java("""echo 'openjdk version "17"' >&2""")
    other = java("""echo 'openjdk version "21"' >&2""", tmp_path / "jdk" / "bin")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert find_java().executable == other


def test_a_java_home_without_java_is_named(java, tmp_path, monkeypatch):
    java("""echo 'openjdk version "17"' >&2""")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(DependencyMissing, match="nowhere/bin/java does not start"):
        find_java()
