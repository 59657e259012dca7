"""What a Session writes down of its catalog, and what it makes of it after an interrupted statement; without Spark."""

import pytest

from weirflow.errors import DocumentChanged
from weirflow.metadata import open_metadata
from weirflow.session.kept_tables import KeptTables
from weirflow.spark.catalog.catalog import CatalogChange, ChangeKind


def table(name, kind="MANAGED"):
    return {
        "identifier": ["spark_catalog", "default", name],
        "tableType": kind,
        "storage": {"locationUri": f"{{warehouse}}/{name}"},
    }


class MemoryCatalog:
    """A catalog whose tables have folders in one that is given."""

    def __init__(self, warehouse):
        self.warehouse = warehouse
        self.tables = {}
        self.added = []
        self.on_change = None

    def table(self, schema, name):
        return self.tables[schema, name]

    def schema(self, name):
        return {"name": name}

    def place(self, data):
        return data["storage"]["locationUri"].replace("{warehouse}", self.warehouse.as_uri())

    def add_table(self, data):
        if data["identifier"][-1] == "bad":
            raise ValueError("of no format that there is")
        self.added.append(data["identifier"][-1])

    def add_schema(self, data):
        self.added.append(data["name"])

    def listen(self, on_change):
        self.on_change = on_change
        return lambda: None

    def make(self, name, *, folder=True):
        if folder:
            (self.warehouse / name).mkdir()
        self.tables["default", name] = table(name)
        self.tell(ChangeKind.TABLE_CREATED, name)

    def tell(self, kind, name="", new_name=""):
        self.on_change(CatalogChange(kind, "default", name, new_name))


@pytest.fixture
def opened(tmp_path):
    """Opens what is kept, each time with a catalog that is empty."""
    (tmp_path / "a warehouse").mkdir()
    kept = []

    def open_again():
        while kept:
            kept.pop().close()
        catalog = MemoryCatalog(tmp_path / "a warehouse")
        kept.append(KeptTables(catalog, tmp_path / "metadata.db"))
        return catalog

    yield open_again
    kept.pop().close()


def test_nothing_is_opened_before_there_is_something_to_keep(opened, tmp_path):
    opened()
    assert not (tmp_path / "metadata.db").exists()


def test_what_was_made_is_taken_on_and_what_was_dropped_is_not(opened):
    catalog = opened()
    catalog.tell(ChangeKind.SCHEMA_CREATED)
    for name in ("a", "b", "c"):
        catalog.make(name)
    catalog.tell(ChangeKind.TABLE_DROPPED, "b")
    assert opened().added == ["default", "a", "c"]
    opened().tell(ChangeKind.SCHEMA_DROPPED)
    assert opened().added == []


def test_a_table_whose_folder_is_gone_was_being_dropped(opened):
    opened().make("half", folder=False)
    assert opened().added == []
    assert opened().added == []


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_table_that_was_being_renamed_has_the_name_of_its_folder(opened, tmp_path, is_moved):
    catalog = opened()
    catalog.make("old")
    catalog.tell(ChangeKind.TABLE_RENAMING, "old", "new")
    if is_moved:
        (tmp_path / "a warehouse" / "old").rename(tmp_path / "a warehouse" / "new")
    expected = ["new" if is_moved else "old"]
    assert opened().added == expected
    assert opened().added == expected


def test_a_renamed_table_has_its_new_name(opened):
    catalog = opened()
    catalog.make("old")
    catalog.tell(ChangeKind.TABLE_RENAMING, "old", "new")
    (catalog.warehouse / "old").rename(catalog.warehouse / "new")
    catalog.tables["default", "new"] = table("new")
    catalog.tell(ChangeKind.TABLE_RENAMED, "old", "new")
    assert opened().added == ["new"]


def test_one_that_cannot_be_taken_on_does_not_keep_others_away(opened, tmp_path):
    catalog = opened()
    for name in ("a", "bad", "c"):
        catalog.make(name)
    with open_metadata(str(tmp_path / "metadata.db")) as store:
        store.documents.put("catalog/tables/default/b", {"format": 99, "definition": {}}, expected_version=0)
    assert opened().added == ["a", "c"]


def test_changes_of_two_processes_are_all_kept(opened, tmp_path, monkeypatch):
    catalog = opened()
    catalog.make("a")
    from weirflow.metadata.documents import Documents  # noqa: PLC0415 - patched here

    put, failures = Documents.put, [1, 1]

    def late(self, name, value, *, expected_version):
        if failures:
            failures.pop()
            raise DocumentChanged("It changed.", uri="", name=name, version=1)
        return put(self, name, value, expected_version=expected_version)

    monkeypatch.setattr(Documents, "put", late)
    catalog.make("b")
    assert opened().added == ["a", "b"]
