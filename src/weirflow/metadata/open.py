"""From a URI to a metadata store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote

from weirflow.arguments import Hint, Uri, checked
from weirflow.errors import ConfigError, DependencyMissing
from weirflow.extensions import METADATA_STORES
from weirflow.metadata.sqlite import open_memory, open_sqlite
from weirflow.metadata.store import Metadata

if TYPE_CHECKING:
    from weirflow.metadata.database import Database

_USE = "use a path or one of " + ", ".join(f"{scheme}://" for scheme in METADATA_STORES.own)
_WITH_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?")
_MEMORY_NAME = re.compile(r"[\w.-]*")


@checked
def open_metadata(uri: Annotated[Uri, Hint(_USE)]) -> Metadata:
    """Open the metadata store at a URI or path, and create its tables if there are none.

    >>> with open_metadata("memory://") as metadata:
    ...     metadata.acquire("flow/shop", owner="node-1", ttl=10).token
    1

    Args:
        uri: ``memory://`` (private to this call) or ``memory://name`` (shared by name within the process);
            a path or ``sqlite:///absolute/path``, for the processes of one machine;
            ``postgresql://user:password@host:port/database``, for many; or a scheme that another package adds, see
            docs/extending.md.

    Raises:
        ConfigError: the URI cannot be used. It is not repeated, because it may hold a password.
        DependencyMissing: PostgreSQL's driver is not installed.
        MetadataError: the database cannot be reached, or its tables belong to another version of Weirflow.
    """
    database = _open(uri)
    try:
        return Metadata(database)
    except BaseException:
        database.close()
        raise


def _open(uri: str | Path) -> Database:
    if isinstance(uri, Path):
        return open_sqlite(uri.expanduser().absolute())
    match = _WITH_SCHEME.match(uri)
    if match is None:
        return open_sqlite(_path(uri))
    scheme, rest = match[1].lower(), uri[match.end() :]
    if match[2] is None:
        raise _unknown_scheme(scheme)
    if scheme not in METADATA_STORES.own:
        if not METADATA_STORES.has(scheme):
            raise _unknown_scheme(scheme)
        added: Database = METADATA_STORES.make(scheme, uri)
        return added
    if scheme == "memory":
        return _open_memory(rest)
    if scheme == "sqlite":
        return open_sqlite(_sqlite_path(rest))
    return _open_postgresql("postgresql://" + rest)


def _open_memory(name: str) -> Database:
    if not _MEMORY_NAME.fullmatch(name):
        raise ConfigError("This memory:// name cannot be used.", hint="use memory:// or memory://name")
    return open_memory(name)


def _sqlite_path(rest: str) -> Path:
    if not rest.startswith("/") or "?" in rest or "#" in rest:
        raise ConfigError(
            "This sqlite:// URI does not name a local file.",
            hint="write sqlite:///absolute/path, or the path itself",
        )
    # Four slashes, as other libraries write an absolute path, mean the same.
    return _path("/" + unquote(rest).lstrip("/"))


def _path(text: str) -> Path:
    if text in ("", "/") or "\0" in text:
        raise ConfigError("An empty path, or one with NUL, cannot hold metadata.", hint=_USE)
    if Path(text).name == ":memory:":
        raise ConfigError("A file named ':memory:' is not kept in memory.", hint="use memory://")
    return Path(text).expanduser().absolute()


def _open_postgresql(uri: str) -> Database:
    try:
        from weirflow.metadata.postgresql import PostgresDatabase  # noqa: PLC0415  # needs an extra
    except ImportError:
        raise DependencyMissing.extra("postgresql", needed_for="Metadata in PostgreSQL") from None  # noqa: S610  # not Django
    return PostgresDatabase(uri)


def _unknown_scheme(scheme: str) -> ConfigError:
    return METADATA_STORES.unknown(
        scheme, f"Metadata cannot be kept at a URI that begins with '{scheme}:'.", mark="://"
    )
