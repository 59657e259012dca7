from concurrent.futures import ThreadPoolExecutor

import pytest

from weirflow.errors import ConfigError, DocumentChanged
from weirflow.metadata import Document, open_metadata

VALUES = [None, True, 0, -(2**63), 2**70, 1.5, "", "é\0\udc80'\"%?", [], {}, {"a": [1, {"b": None}]}]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_as_it_was_given(metadata, other, value):
    assert metadata.documents.put("a", value, expected_version=0) == 1
    assert other.documents.get("a") == Document("a", 1, value)


def test_a_change_is_made_on_the_version_that_was_read(metadata, other):
    assert metadata.documents.put("a", 1, expected_version=0) == 1
    assert other.documents.put("a", 2, expected_version=1) == 2
    with pytest.raises(DocumentChanged, match="'a' has version 2; version 1 was expected") as changed:
        metadata.documents.put("a", 3, expected_version=1)
    assert (changed.value.name, changed.value.version, changed.value.uri) == ("a", 2, metadata.uri)
    with pytest.raises(DocumentChanged, match="none was expected"):
        metadata.documents.put("a", 3, expected_version=0)
    with pytest.raises(DocumentChanged):
        metadata.documents.delete("a", expected_version=1)
    assert metadata.documents.get("a") == Document("a", 2, 2)


def test_what_is_not_there_is_neither_replaced_nor_deleted(metadata):
    with pytest.raises(DocumentChanged, match="is not there; version 1 was expected") as changed:
        metadata.documents.put("a", 1, expected_version=1)
    assert changed.value.version == 0
    with pytest.raises(DocumentChanged):
        metadata.documents.delete("a", expected_version=1)
    assert metadata.documents.get("a") is None


def test_versions_go_on_after_a_deletion(metadata):
    metadata.documents.put("a", "old", expected_version=0)
    metadata.documents.delete("a", expected_version=1)
    assert metadata.documents.get("a") is None
    assert metadata.documents.list() == ()
    with pytest.raises(DocumentChanged):
        metadata.documents.put("a", "new", expected_version=2)
    assert metadata.documents.put("a", "new", expected_version=0) == 3


def test_a_list_is_by_prefix_and_in_order(metadata):
    for name in ("b/2", "a", "B/1", "b/1", "b_1", "é/1"):
        metadata.documents.put(name, name, expected_version=0)
    names = lambda prefix: [document.name for document in metadata.documents.list(prefix)]  # noqa: E731
    assert names("") == ["B/1", "a", "b/1", "b/2", "b_1", "é/1"]
    assert names("b/") == ["b/1", "b/2"]
    assert names("b_") == ["b_1"]
    assert names("é/") == ["é/1"]
    assert names("%") == []


def test_of_many_writers_at_once_each_counts(uri):
    def count(_):
        with open_metadata(uri) as mine:
            for _ in range(5):
                while True:
                    there = mine.documents.get("counter")
                    try:
                        mine.documents.put("counter", there.value + 1, expected_version=there.version)
                        break
                    except DocumentChanged:
                        continue

    with open_metadata(uri) as first:
        first.documents.put("counter", 0, expected_version=0)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(count, range(4)))
        assert first.documents.get("counter") == Document("counter", 21, 20)


@pytest.mark.parametrize("value", [float("inf"), {1: 2}, (1,), b"x", {"a": {1}}])
def test_what_is_not_json_is_refused(metadata, value):
    with pytest.raises(ConfigError, match="'a' is not JSON"):
        metadata.documents.put("a", value, expected_version=0)
    assert metadata.documents.get("a") is None


def test_a_bad_name_or_version_is_refused(metadata):
    for call in (
        lambda: metadata.documents.get(""),
        lambda: metadata.documents.list("a\0"),
        lambda: metadata.documents.put("a\n", 1, expected_version=0),
        lambda: metadata.documents.put("a", 1, expected_version=-1),
        lambda: metadata.documents.delete("a", expected_version=0),
    ):
        with pytest.raises(ConfigError):
            call()
