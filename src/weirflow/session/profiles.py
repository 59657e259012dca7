"""Durability profiles: the one place that says which stores each of them uses, and when it is refused.

============================ ============== ========================= ===========================
concern                      dev-local      single-node-durable       distributed-durable
============================ ============== ========================= ===========================
keyed state                  memory         RocksDB on local disk     RocksDB, restored from checkpoint
Spark state store            in memory      RocksDB, changelog        RocksDB, changelog
checkpoints                  memory://      file://                   s3://, gs://, az://
metadata, leases, savepoints in process     SQLite                    PostgreSQL
============================ ============== ========================= ===========================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from weirflow.errors import ProfileError
from weirflow.extensions import CHECKPOINT_STORES, METADATA_STORES
from weirflow.types import Placement, Profile

if TYPE_CHECKING:
    from pathlib import Path

    from weirflow.config import Settings

_OBJECT_STORES = ("s3", "gs", "az", "abfs", "abfss")
_DEFAULTS = {
    Placement.EMBEDDED: Profile.DEV_LOCAL,
    Placement.SINGLE_NODE: Profile.SINGLE_NODE_DURABLE,
    Placement.DISTRIBUTED: Profile.DEV_LOCAL,
}
_PROVIDERS = "org.apache.spark.sql.execution.streaming.state."
_ROCKSDB_CONF = {
    "spark.sql.streaming.stateStore.providerClass": _PROVIDERS + "RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
_TABLES_CONF = {
    # The partitions of a table are those of its folder: what is listed in Spark's catalog goes with its process.
    "spark.sql.hive.manageFilesourcePartitions": "false",
}
_MEMORY_CONF = {"spark.sql.streaming.stateStore.providerClass": _PROVIDERS + "HDFSBackedStateStoreProvider"}


@dataclass(frozen=True)
class Stores:
    """The concrete stores of a Session. Texts are for people and hold no secrets."""

    profile: Profile
    keyed_state: str
    spark_state: str
    checkpoints: str
    metadata: str
    spark_conf: Mapping[str, str] = field(repr=False)


def resolve_stores(settings: Settings) -> Stores:
    """The stores that the settings amount to. Raises ``ProfileError`` where a promise could not be kept."""
    profile = settings.durability_profile or _DEFAULTS[settings.placement]
    match profile:
        case Profile.DEV_LOCAL:
            return _dev_local(settings)
        case Profile.SINGLE_NODE_DURABLE:
            return _single_node_durable(settings)
        case Profile.DISTRIBUTED_DURABLE:
            return _distributed_durable(settings)


def _dev_local(settings: Settings) -> Stores:
    for name, value in (
        ("path", settings.path),
        ("checkpoint_uri", settings.checkpoint_uri),
        ("metadata_url", settings.metadata_url),
    ):
        if value is not None:
            raise ProfileError(
                f"The profile dev-local keeps everything in memory, so {name} would not be used.",
                hint=f"leave {name} out, or choose single-node-durable or distributed-durable",
            )
    return Stores(Profile.DEV_LOCAL, "memory", "in-memory provider", "memory://", "in process", _MEMORY_CONF)


def _single_node_durable(settings: Settings) -> Stores:
    if settings.placement is Placement.DISTRIBUTED:
        raise ProfileError(
            "The profile single-node-durable keeps state on this host's disk, which executors elsewhere cannot see.",
            hint="choose distributed-durable, or dev-local if nothing has to survive",
        )
    if settings.metadata_url is not None:
        raise ProfileError(
            "The profile single-node-durable keeps metadata in SQLite under path, so metadata_url would not be used.",
            hint="leave metadata_url out, or choose distributed-durable",
        )
    path = _required_path(settings)
    checkpoints = _without_secrets(settings.checkpoint_uri) or (path / "checkpoints").as_uri()
    if _scheme(checkpoints) != "file":
        raise ProfileError(
            f"The profile single-node-durable keeps checkpoints on this host, not at {checkpoints}.",
            hint="give a file path as checkpoint_uri, or choose distributed-durable",
        )
    return Stores(
        Profile.SINGLE_NODE_DURABLE,
        f"RocksDB at {path / 'state'}",
        "RocksDB provider, changelog checkpoints",
        checkpoints,
        f"SQLite at {path / 'metadata.db'}",
        {**_ROCKSDB_CONF, **_TABLES_CONF},
    )


def _distributed_durable(settings: Settings) -> Stores:
    uri = _without_secrets(settings.checkpoint_uri)
    if uri is None or not (_scheme(uri) in _OBJECT_STORES or CHECKPOINT_STORES.has(_scheme(uri))):
        given = f"{uri} is not one" if uri else "none is given"
        raise ProfileError(
            f"The profile distributed-durable needs checkpoints that every host can reach; {given}.",
            hint="set checkpoint_uri to s3://, gs:// or az://",
        )
    url = settings.metadata_url.get_secret_value() if settings.metadata_url else None
    if url is None or not (_scheme(url).startswith("postgresql") or METADATA_STORES.has(_scheme(url))):
        raise ProfileError(
            "The profile distributed-durable needs PostgreSQL for metadata and leases.",
            hint="set metadata_url to postgresql://user:password@host/database",
        )
    where = urlsplit(url)
    database = "PostgreSQL" if _scheme(url).startswith("postgresql") else _scheme(url)
    return Stores(
        Profile.DISTRIBUTED_DURABLE,
        "RocksDB, restored from checkpoint",
        "RocksDB provider, changelog on the object store",
        uri,
        f"{database} at {where.hostname or 'localhost'}{where.path}",
        _ROCKSDB_CONF,
    )


def _required_path(settings: Settings) -> Path:
    if settings.path is None:
        raise ProfileError(
            "The profile single-node-durable needs a folder for its stores.",
            hint="pass path=, or set WEIRFLOW_PATH",
        )
    return settings.path


def _without_secrets(uri: str | None) -> str | None:
    """The URI as it may be shown; one with a password is refused, because credentials come from the environment."""
    parts = urlsplit(uri or "")
    if parts.scheme != "file" and (parts.query or ":" in parts.netloc):
        raise ProfileError(
            f"The checkpoint_uri of scheme {parts.scheme} holds more than a bucket and a prefix.",
            hint="give credentials and endpoints in the AWS_*, GOOGLE_* or AZURE_* environment",
        )
    return uri


def _scheme(uri: str) -> str:
    scheme, separator, _ = uri.partition("://")
    return scheme if separator else "file"
