"""Backends, each kind in turn."""

import pytest

from weirflow.state import InMemoryStateBackend, RocksDbStateBackend


@pytest.fixture(params=["memory", "rocksdb"])
def backend(request, tmp_path):
    made = InMemoryStateBackend() if request.param == "memory" else RocksDbStateBackend(tmp_path / "state", fsync=0)
    yield made
    made.close()
