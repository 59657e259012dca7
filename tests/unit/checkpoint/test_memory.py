import pytest
from support.storage_contract import StorageContract, listed

from weirflow.checkpoint import open_checkpoint_storage


class TestMemory(StorageContract):
    @pytest.fixture
    def storage(self):
        return open_checkpoint_storage("memory://")


def test_without_a_name_each_is_private():
    open_checkpoint_storage("memory://").put("a", b"x")
    assert listed(open_checkpoint_storage("memory://")) == []


def test_the_same_name_is_the_same_storage():
    open_checkpoint_storage("memory://test-shared").put("folder/a", b"x")
    assert listed(open_checkpoint_storage("memory://test-shared/")) == [("folder/a", 1)]
    assert listed(open_checkpoint_storage("memory://test-shared/folder")) == [("a", 1)]
    assert listed(open_checkpoint_storage("memory://test-other")) == []


def test_the_uri_is_shown():
    storage = open_checkpoint_storage("memory://test-shown/folder/")
    assert (storage.uri, repr(storage)) == (
        "memory://test-shown/folder",
        "<checkpoint storage memory://test-shown/folder>",
    )
