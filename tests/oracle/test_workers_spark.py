import pyarrow as pa


def test_a_worker_reads_no_archive_and_walks_no_imported_module(session):
    def look(batches):
        import gc  # noqa: PLC0415 - this runs in Spark's worker
        import sys  # noqa: PLC0415 - as above

        list(batches)
        archives = [entry for entry in sys.path_importer_cache if ".jar" in entry or ".zip" in entry]
        yield pa.RecordBatch.from_pydict({"archives": [len(archives)], "seen": [len(gc.get_objects())]})

    found = session.spark.range(0, 1, 1, 1).mapInArrow(look, "archives long, seen long").toArrow()
    assert found["archives"].to_pylist() == [0]
    assert found["seen"][0].as_py() < 10_000
