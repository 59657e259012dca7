import pyarrow as pa


def test_a_worker_reads_no_archive_and_walks_no_imported_module(session):
    def look(batches):
        import gc  # noqa: PLC0415 - this runs in Spark's worker
        import sys  # noqa: PLC0415 - as above

        list(batches)
        archives = [entry for entry in sys.path_importer_cache if ".jar" in entry or ".zip" in entry]
        walked = {id(one) for one in gc.get_objects()}
        seen = [name for name in ("pyarrow", "pyspark.worker", "pyspark.sql.types") if id(sys.modules[name]) in walked]
        yield pa.RecordBatch.from_pydict({"archives": [len(archives)], "seen": [",".join(seen)]})

    found = session.spark.range(0, 1, 1, 1).mapInArrow(look, "archives long, seen string").toArrow()
    assert found.to_pylist() == [{"archives": 0, "seen": ""}]
