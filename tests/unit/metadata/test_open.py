import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from weirflow.errors import ConfigError, DependencyMissing, MetadataError
from weirflow.metadata import open_metadata

OPEN_AT_ONCE = """
import sys
from weirflow.metadata import open_metadata
print("ready", flush=True)
sys.stdin.readline()
with open_metadata(sys.argv[1]) as metadata:
    print(metadata.acquire("flow", "a", 0.0001, wait=20).token)
"""


@pytest.mark.parametrize("uri", ["sqlite", "postgresql"], indirect=True)
def test_processes_that_open_it_at_once_agree(uri):
    children = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", OPEN_AT_ONCE, uri],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    assert {child.stdout.readline() for child in children} == {"ready\n"}
    with ThreadPoolExecutor(6) as pool:
        said = list(pool.map(lambda child: child.communicate("go\n", timeout=30)[0], children))
    assert sorted(map(int, said)) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_tables_are_created_once_however_many_begin(kind, tmp_path, request):
    def begin(uri):
        start.wait()
        with open_metadata(uri) as metadata:
            return metadata._database.run("SELECT version FROM weirflow_schema")

    start = threading.Barrier(6)
    with ThreadPoolExecutor(6) as pool:
        for number in range(10):
            file = f"{tmp_path}/{number}.db"
            uri = file if kind == "sqlite" else request.getfixturevalue("postgres").make_uri()
            assert list(pool.map(begin, [uri] * 6)) == [[(1,)]] * 6


def test_tables_of_another_version_are_left_alone(uri):
    with open_metadata(uri) as metadata:
        metadata._database.run("UPDATE weirflow_schema SET version = 2")
        with pytest.raises(MetadataError, match="has version 2; this Weirflow reads version 1"):
            open_metadata(uri)


def test_what_is_written_is_there_when_it_is_opened_again(uri):
    with open_metadata(uri) as metadata:
        metadata.documents.put("a", [1], expected_version=0)
        metadata.acquire("flow", "a", 60).release()
    with open_metadata(uri) as metadata:
        assert metadata.documents.get("a").value == [1]
        assert metadata.acquire("flow", "a", 60).token == 2


def test_memory_without_a_name_is_private():
    with open_metadata("memory://") as one, open_metadata("memory://") as two:
        assert one.acquire("flow", "a", 60).token == two.acquire("flow", "b", 60).token == 1


def test_paths_and_uris_of_one_file_are_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "new folder" / "é.db"
    names = [file, str(file), "new folder/é.db", f"sqlite://{file}", f"sqlite:///{file}", "sqlite://" + escaped(file)]
    tokens = []
    for name in names:
        with open_metadata(name) as metadata:
            tokens.append(metadata.acquire("flow", "a", 0.0001, wait=5).token)
            assert metadata.uri == f"sqlite://{file}"
            assert repr(metadata) == f"<metadata sqlite://{file}>"
    assert tokens == [1, 2, 3, 4, 5, 6]


def escaped(file):
    return file.as_uri().removeprefix("file://")


@pytest.mark.parametrize(
    ("uri", "hint"),
    [
        ("", "use a path or one of memory://"),
        ("a\0b", "use a path"),
        ("sqlite://relative.db", "sqlite:///absolute/path"),
        ("sqlite:///", "use a path"),
        ("sqlite:///a?mode=ro", "sqlite:///absolute/path"),
        ("sqlite:a.db", "use a path"),
        ("memory://a/b", "memory://name"),
        ("postgres://u:hidden@host/db", "did you mean 'postgresql'?"),
        ("mysql://u:hidden@host/db", "use a path or one of memory://, sqlite://, postgresql://"),
        ("postgresql://u:hid@den@host/db", "percent-encoded"),
        ("postgresql://u:hid/den@host/db", "percent-encoded"),
        ("postgresql://u:hidden@host/db?no_such_option=hidden", "percent-encoded"),
        ("postgresql://u:hidden@[host/db", "percent-encoded"),
    ],
)
def test_a_uri_that_cannot_be_used_is_refused_and_not_repeated(uri, hint):
    with pytest.raises(ConfigError) as refused:
        open_metadata(uri)
    assert hint in refused.value.hint
    assert "hid" not in str(refused.value)
    assert "den" not in str(refused.value)


def test_without_the_driver_postgresql_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "weirflow.metadata.postgresql", raising=False)
    with pytest.raises(DependencyMissing) as missing:
        open_metadata("postgresql://host/db")
    assert missing.value.hint == "pip install 'weirflow[postgresql]'"
