"""``KeptTables``: the tables, views and schemas of a durable Session, listed in its metadata store.

Spark keeps its catalog in memory. Each change of it is written down before the statement that made it returns, and
what is written down is taken on again when the next Spark of the Session starts; rows stay where they are all the time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from weirflow.errors import DocumentChanged, WeirflowError
from weirflow.metadata import Metadata, open_metadata

if TYPE_CHECKING:
    from weirflow.metadata import Document, Documents
    from weirflow.spark.catalog.catalog import CatalogChange, SparkCatalog

_log = logging.getLogger(__name__)

_SCHEMAS = "catalog/schemas/"
_TABLES = "catalog/tables/"
_FORMAT = 1
_ATTEMPTS = 5


class KeptTables:
    """Takes on what was kept, and keeps what changes until it is closed.

    Args:
        catalog: Spark's.
        store: the file of the metadata store, which may not be there yet.
    """

    def __init__(self, catalog: SparkCatalog, store: Path) -> None:
        self._catalog = catalog
        self._file = store
        self._store: Metadata | None = None
        if store.exists():
            self._take_on()
        self._stop: Callable[[], None] = catalog.listen(self._changed)

    def close(self) -> None:
        """Keep nothing more."""
        self._stop()
        if self._store is not None:
            self._store.close()

    def _take_on(self) -> None:
        documents = self._documents
        for document in documents.list(_SCHEMAS):
            if _is_known(document):
                self._attempt(document, self._catalog.add_schema)
        for document in documents.list(_TABLES):
            if _is_known(document):
                self._attempt(self._finished(document), self._catalog.add_table)

    def _attempt(self, document: Document | None, add: Callable[[dict[str, Any]], None]) -> None:
        """What cannot be taken on stays written down; all others are there."""
        if document is None:
            return
        try:
            add(document.value["definition"])
        except Exception as error:  # noqa: BLE001 - of Spark's, or of a definition that another version wrote
            _log.warning("%s is not in the catalog: %s", document.name, error)

    def _finished(self, document: Document) -> Document | None:
        """A table as it is after a statement that was interrupted; None for one that was dropped.

        Spark moves and removes the folder of a table first.
        """
        definition, new_name = document.value["definition"], document.value.get("renaming")
        if definition["tableType"] != "MANAGED" or _is_there(self._catalog.place(definition)):
            return document
        if new_name is None:
            _log.warning("%s is gone with its folder", document.name)
            self._forget(document.name)
            return None
        _, schema, table = document.name.rsplit("/", 2)
        moved = _renamed(definition, table, new_name)
        if not _is_there(self._catalog.place(moved)):
            return document
        self._write(f"{_TABLES}{schema}/{new_name}", moved)
        self._forget(document.name)
        return self._documents.get(f"{_TABLES}{schema}/{new_name}")

    def _changed(self, change: CatalogChange) -> None:
        try:
            self._keep(change)
        except WeirflowError as error:
            _log.warning("a change of %s.%s is not kept: %s", change.schema, change.table, error.message)
            raise

    def _keep(self, change: CatalogChange) -> None:
        from weirflow.spark.catalog.catalog import ChangeKind  # noqa: PLC0415 - imports pyspark

        name = f"{_TABLES}{change.schema}/{change.table}"
        match change.kind:
            case ChangeKind.SCHEMA_CREATED | ChangeKind.SCHEMA_ALTERED:
                self._write(_SCHEMAS + change.schema, self._catalog.schema(change.schema))
            case ChangeKind.SCHEMA_DROPPED:
                for document in self._documents.list(f"{_TABLES}{change.schema}/"):
                    self._forget(document.name)
                self._forget(_SCHEMAS + change.schema)
            case ChangeKind.TABLE_CREATED | ChangeKind.TABLE_ALTERED:
                self._write(name, self._catalog.table(change.schema, change.table))
            case ChangeKind.TABLE_RENAMING:
                self._write(name, self._catalog.table(change.schema, change.table), renaming=change.new_name)
            case ChangeKind.TABLE_RENAMED:
                renamed = self._catalog.table(change.schema, change.new_name)
                self._write(f"{_TABLES}{change.schema}/{change.new_name}", renamed)
                self._forget(name)
            case ChangeKind.TABLE_DROPPED:
                self._forget(name)

    def _write(self, name: str, definition: dict[str, Any], **more: Any) -> None:
        value = {"format": _FORMAT, "definition": definition, **more}

        def put() -> None:
            known = self._documents.get(name)
            self._documents.put(name, value, expected_version=0 if known is None else known.version)

        _again(put)

    def _forget(self, name: str) -> None:
        def delete() -> None:
            known = self._documents.get(name)
            if known is not None:
                self._documents.delete(name, expected_version=known.version)

        _again(delete)

    @property
    def _documents(self) -> Documents:
        if self._store is None:
            self._store = open_metadata(str(self._file))
        return self._store.documents


def _again(change: Callable[[], None]) -> None:
    """Make a change that another process may have come before."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return change()
        except DocumentChanged:
            continue
    return change()


def _is_known(document: Document) -> bool:
    known: bool = document.value.get("format") == _FORMAT
    if not known:
        _log.warning("%s was written by a later version of Weirflow; it is not in the catalog", document.name)
    return known


def _is_there(place: str | None) -> bool:
    """Whether there is a folder; what is not on this machine is taken to be there."""
    parts = urlsplit(place or "")
    return parts.scheme not in ("", "file") or place is None or Path(unquote(parts.path)).is_dir()


def _renamed(definition: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    names, storage = definition["identifier"], definition["storage"]
    place = storage["locationUri"].removesuffix("/").removesuffix(old) + new
    return {**definition, "identifier": [*names[:-1], new], "storage": {**storage, "locationUri": place}}
