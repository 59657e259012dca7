"""Small JSON documents by name, each change made on the version that was read."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weirflow.arguments import Count, Name, Positive, checked
from weirflow.errors import DocumentChanged
from weirflow.metadata.names import require_name, to_json

if TYPE_CHECKING:
    from weirflow.metadata.database import Database

_GET = "SELECT version, value FROM weirflow_documents WHERE name = ? AND value IS NOT NULL"
_LIST = """
SELECT name, version, value FROM weirflow_documents WHERE substr(name, 1, ?) = ? AND value IS NOT NULL"""
_CREATE = """
INSERT INTO weirflow_documents (name, version, value) VALUES (?, 1, ?)
ON CONFLICT (name) DO UPDATE SET version = weirflow_documents.version + 1, value = excluded.value
WHERE weirflow_documents.value IS NULL
RETURNING version"""
_REPLACE = """
UPDATE weirflow_documents SET version = version + 1, value = ?
WHERE name = ? AND version = ? AND value IS NOT NULL
RETURNING version"""
_DELETE = """
UPDATE weirflow_documents SET version = version + 1, value = NULL
WHERE name = ? AND version = ? AND value IS NOT NULL
RETURNING version"""


@dataclass(frozen=True)
class Document:
    """A document as it was read. Its version is greater than all earlier ones of this name, even deleted ones."""

    name: str
    version: int
    value: Any = field(hash=False)


@checked
class Documents:
    """The documents of a metadata store, for registrations and catalogues, not for data."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: Name) -> Document | None:
        """The document with that name, or None."""
        require_name("The name of a document", name)
        rows = self._database.run(_GET, (name,))
        return Document(name, rows[0][0], json.loads(rows[0][1])) if rows else None

    def list(self, prefix: str = "") -> tuple[Document, ...]:
        """All documents whose names begin with ``prefix``, by name."""
        if prefix:
            require_name("The prefix of documents", prefix)
        rows = self._database.run(_LIST, (len(prefix), prefix))
        return tuple(Document(name, version, json.loads(value)) for name, version, value in sorted(rows))

    def put(self, name: Name, value: Any, *, expected_version: Count) -> int:
        """Write a document and return its new version.

        Args:
            name: up to 255 printable characters.
            value: what JSON can hold.
            expected_version: the version that was read; 0 if there must be no document of that name.

        Raises:
            DocumentChanged: it has another version; nothing was written.
            MetadataError: the database failed; the message says so if nobody knows whether it was written.
        """
        require_name("The name of a document", name)
        text = to_json(f"The document {name!r}", value)
        if expected_version == 0:
            rows = self._database.run(_CREATE, (name, text), repeatable=False)
        else:
            rows = self._database.run(_REPLACE, (text, name, expected_version), repeatable=False)
        if not rows:
            raise self._changed(name, expected_version)
        version: int = rows[0][0]
        return version

    def delete(self, name: Name, *, expected_version: Positive) -> None:
        """Delete the version that was read. Raises like ``put``."""
        require_name("The name of a document", name)
        if not self._database.run(_DELETE, (name, expected_version), repeatable=False):
            raise self._changed(name, expected_version)

    def _changed(self, name: str, expected: int) -> DocumentChanged:
        there = self.get(name)
        found = f"has version {there.version}" if there else "is not there"
        wanted = f"version {expected} was expected" if expected else "none was expected"
        return DocumentChanged(
            f"The document {name!r} {found}; {wanted}.",
            uri=self._database.uri,
            name=name,
            version=there.version if there else 0,
            hint="read it again, then decide",
        )
