import sys

import pytest

from weirflow.spark.daemon import drop_archives


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
