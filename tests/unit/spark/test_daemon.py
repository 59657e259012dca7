import sys
from types import ModuleType

import pytest

from weirflow.spark.launch.daemon import drop_archives


@pytest.fixture
def import_path(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "path_importer_cache", dict(sys.path_importer_cache))
    return sys.path


def test_archives_leave_the_import_path(import_path):
    before = list(import_path)
    archives = ["/spark/python/lib/pyspark.zip", "/spark/python/lib/py4j-src.zip", "/spark/jars/spark-core.jar"]
    import_path[1:1] = archives
    for entry in archives:
        sys.path_importer_cache[entry] = None
    drop_archives()
    assert sys.path == [entry for entry in before if not entry.endswith(".zip")]
    assert not sys.path_importer_cache.keys() & set(archives)


def test_archives_stay_where_pyspark_is_only_in_them(import_path, monkeypatch):
    import_path.append("/spark/python/lib/pyspark.zip")
    before = list(import_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    drop_archives()
    assert sys.path == before


def test_a_namespace_package_found_in_a_jar_is_forgotten(import_path, monkeypatch):
    """`import copy` leaves one behind, and every task would read the jar again for it."""
    package = ModuleType("org")
    package.__path__ = ["/spark/jars/spark-core.jar/org"]
    monkeypatch.setitem(sys.modules, "org", package)
    sys.path_importer_cache["/spark/jars/spark-core.jar/org"] = None
    drop_archives()
    assert "org" not in sys.modules
    assert not [entry for entry in sys.path_importer_cache if ".jar" in entry]
