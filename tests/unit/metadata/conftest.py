import uuid

import pytest

from weirflow.metadata import open_metadata


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def uri(request, tmp_path):
    if request.param == "memory":
        return f"memory://{uuid.uuid4().hex}"
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/metadata.db"
    return request.getfixturevalue("postgres").make_uri()


@pytest.fixture
def metadata(uri):
    with open_metadata(uri) as opened:
        yield opened


@pytest.fixture
def other(uri):
    """A second connection to the same metadata."""
    with open_metadata(uri) as opened:
        yield opened
