"""From a URI to a checkpoint storage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote, urlsplit

from weirflow.arguments import Hint, Secret, Uri, checked
from weirflow.checkpoint.storage.local.storage import LocalStorage
from weirflow.errors import ConfigError
from weirflow.extensions import CHECKPOINT_STORES

if TYPE_CHECKING:
    from weirflow.checkpoint.storage.contract import CheckpointStorage

_USE = "use a path or one of " + ", ".join(f"{scheme}://" for scheme in CHECKPOINT_STORES.own)
_WITH_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?")


@checked
def open_checkpoint_storage(
    uri: Annotated[Uri, Hint(_USE)],
    options: Annotated[Mapping[str, str], Secret()] | None = None,
    *,
    private: bool = True,
) -> CheckpointStorage:
    """The checkpoint storage at a URI or path. Nothing is created or contacted before its first call.

    >>> storage = open_checkpoint_storage("memory://")
    >>> storage.put_if_absent("epochs/1", b"whole or not at all").size
    19

    Args:
        uri: ``memory://`` (private to this call), ``memory://name`` (shared by name within the process),
            a path or ``file:///path``, ``s3://bucket/prefix``, ``gs://bucket/prefix``,
            ``az://container/prefix`` or ``abfss://container@account.dfs.core.windows.net/prefix``; or a scheme that
            another package adds, see docs/extending.md.
        options: for object stores: credentials, ``region``, ``endpoint``, ``allow_http`` and the like.
            What is not given comes from the ``AWS_*``, ``GOOGLE_*`` or ``AZURE_*`` environment.
        private: for local folders: whether new files and folders can be read by their owner only, or by whom the umask
            allows; object stores have their own rules.

    Raises:
        ConfigError: the URI or an option cannot be used. Secrets in them are not repeated.
        StorageError: a local path exists and is not a folder.
    """
    options = dict(options or {})
    if isinstance(uri, Path):
        return _open_local(uri, options, private=private)
    match = _WITH_SCHEME.match(uri)
    if match is None:
        return _open_local(Path(uri), options, private=private)
    scheme = match[1].lower()
    # One slash is how Java prints file URIs.
    if match[2] is None and not uri.startswith("file:/"):
        raise _unknown_scheme(scheme)
    if scheme not in CHECKPOINT_STORES.own:
        if not CHECKPOINT_STORES.has(scheme):
            raise _unknown_scheme(scheme)
        added: CheckpointStorage = CHECKPOINT_STORES.make(scheme, uri, options)
        return added
    if scheme == "file":
        return _open_local(_file_path(uri), options, private=private)
    if scheme == "memory":
        from weirflow.checkpoint.storage.memory import open_memory  # noqa: PLC0415  # loads obstore

        _refuse_options(options, "memory://")
        return open_memory(uri)
    from weirflow.checkpoint.storage.objects.remote import open_remote  # noqa: PLC0415  # loads obstore

    return open_remote(uri, options)


@checked
def open_checkpoint_storage_from_uri(
    uri: Annotated[Uri, Hint(_USE)],
    options: Annotated[Mapping[str, str], Secret()] | None = None,
    *,
    private: bool = True,
) -> CheckpointStorage:
    """``open_checkpoint_storage`` by its longer name."""
    return open_checkpoint_storage(uri, options, private=private)


def _open_local(path: Path, options: Mapping[str, str], *, private: bool) -> CheckpointStorage:
    _refuse_options(options, "a local folder")
    return LocalStorage(path.expanduser(), private=private)


def _file_path(uri: str) -> Path:
    parts = urlsplit(uri)
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment or not path or "\0" in path:
        raise ConfigError(
            "This file:// URI does not name a local folder.",
            hint="write file:///absolute/path, or the path itself",
        )
    return Path(path)


def _refuse_options(options: Mapping[str, str], where: str) -> None:
    if options:
        raise ConfigError(f"{where} takes no options; {', '.join(sorted(options))} was given.")


def _unknown_scheme(scheme: str) -> ConfigError:
    return CHECKPOINT_STORES.unknown(
        scheme, f"Checkpoints cannot be stored at a URI that begins with '{scheme}:'.", mark="://"
    )
