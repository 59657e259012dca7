"""The tables, their version, and their creation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weirflow.errors import MetadataError

if TYPE_CHECKING:
    from weirflow.metadata.database import Database

VERSION = 1

# Rows of leases and documents are never deleted, so that their tokens and versions only grow.
_TABLES = (
    """CREATE TABLE IF NOT EXISTS weirflow_leases (
        name TEXT PRIMARY KEY, token BIGINT NOT NULL, claim TEXT, owner TEXT NOT NULL,
        since DOUBLE PRECISION NOT NULL, expires DOUBLE PRECISION NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS weirflow_nodes (
        id TEXT PRIMARY KEY, claim TEXT NOT NULL, address TEXT NOT NULL, state TEXT NOT NULL,
        joined DOUBLE PRECISION NOT NULL, heartbeat DOUBLE PRECISION NOT NULL, info TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS weirflow_documents (
        name TEXT PRIMARY KEY, version BIGINT NOT NULL, value TEXT)""",
    "CREATE TABLE IF NOT EXISTS weirflow_schema (version BIGINT NOT NULL)",
    "INSERT INTO weirflow_schema (version) SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM weirflow_schema)",
)


def prepare(database: Database) -> None:
    """Create the tables where there are none. Safe when several processes begin at once.

    Raises:
        MetadataError: the tables are of another version.
    """
    if not database.has_table("weirflow_schema"):
        database.create(_TABLES)
    ((version,),) = database.run("SELECT max(version) FROM weirflow_schema")
    if version != VERSION:
        raise MetadataError(
            f"The metadata at {database.uri} has version {version}; this Weirflow reads version {VERSION}.",
            uri=database.uri,
            hint="use the Weirflow that wrote it, or another database",
        )
