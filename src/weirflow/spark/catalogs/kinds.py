"""The kinds of catalogs: the options each has, the properties they become, and the packages it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

_REMOTE_FILES = {
    "warehouse": "warehouse",
    "region": "client.region",
    "s3_endpoint": "s3.endpoint",
    "access_key": "s3.access-key-id",
    "secret_key": "s3.secret-access-key",
    "path_style": "s3.path-style-access",
}
SECRETS = frozenset({"token", "credential", "password", "access_key", "secret_key"})
"""Options that are never shown and never stored."""


@dataclass(frozen=True)
class CatalogKind:
    """What there is to know about one kind of catalog.

    Attributes:
        example: an address of this kind.
        schemes: those that its URI may have; none if the address has no URI.
        options: the property of Iceberg that each option becomes.
        implementation: how Iceberg calls it; a short type, or the name of a class.
        required: options it cannot do without.
        packages: what it needs besides Iceberg, whatever its warehouse is.
        fixed: properties that it always has.
        keeps_snapshots: whether tables in it show their older snapshots, from which changes are read.
    """

    example: str
    schemes: tuple[str, ...]
    options: Mapping[str, str]
    implementation: str
    required: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    fixed: Mapping[str, str] = field(default_factory=dict)
    keeps_snapshots: bool = True


KINDS: Mapping[str, CatalogKind] = MappingProxyType(
    {
        "iceberg-rest": CatalogKind(
            example="iceberg-rest+https://host/path",
            schemes=("https", "http"),
            options={
                **_REMOTE_FILES,
                "token": "token",
                "credential": "credential",
                "oauth2_uri": "oauth2-server-uri",
                "scope": "scope",
            },
            implementation="rest",
        ),
        "iceberg-glue": CatalogKind(
            example="iceberg-glue",
            schemes=(),
            options={**_REMOTE_FILES, "catalog_id": "glue.id", "glue_endpoint": "glue.endpoint"},
            implementation="glue",
            required=("warehouse",),
            packages=("iceberg-aws",),
        ),
        "iceberg-jdbc": CatalogKind(
            example="iceberg-jdbc+sqlite:///folder/catalog.db",
            schemes=("sqlite", "postgresql"),
            options={**_REMOTE_FILES, "user": "jdbc.user", "password": "jdbc.password"},
            implementation="jdbc",
            required=("warehouse",),
            fixed={"jdbc.schema-version": "V1"},
        ),
        "iceberg-hadoop": CatalogKind(
            example="iceberg-hadoop+file:///folder",
            schemes=("file", "hdfs"),
            options={},
            implementation="hadoop",
        ),
        "iceberg-hive": CatalogKind(
            example="iceberg-hive+thrift://host:9083",
            schemes=("thrift",),
            options=_REMOTE_FILES,
            implementation="hive",
            required=("warehouse",),
        ),
        "iceberg-nessie": CatalogKind(
            example="iceberg-nessie+https://host/api/v2",
            schemes=("https", "http"),
            options={**_REMOTE_FILES, "ref": "ref", "token": "authentication.token"},
            implementation="nessie",
            required=("warehouse",),
            keeps_snapshots=False,
        ),
    }
)

DRIVERS: Mapping[str, str] = MappingProxyType({"sqlite": "sqlite", "postgresql": "postgresql"})
"""The package with the JDBC driver, by the scheme of a database."""


@dataclass(frozen=True)
class ObjectStore:
    """How Iceberg reads and writes a kind of object store, and the package it takes."""

    file_io: str
    package: str


_S3 = ObjectStore("org.apache.iceberg.aws.s3.S3FileIO", "iceberg-aws")
_GCS = ObjectStore("org.apache.iceberg.gcp.gcs.GCSFileIO", "iceberg-gcp")
_ADLS = ObjectStore("org.apache.iceberg.azure.adlsv2.ADLSFileIO", "iceberg-azure")
OBJECT_STORES: Mapping[str, ObjectStore] = MappingProxyType(
    {"s3": _S3, "s3a": _S3, "gs": _GCS, "abfs": _ADLS, "abfss": _ADLS}
)

MARKERS: Mapping[str, str] = MappingProxyType(
    {
        "iceberg": "org.apache.iceberg.spark.SparkCatalog",
        "iceberg-aws": "software.amazon.awssdk.services.s3.S3Client",
        "iceberg-gcp": "com.google.cloud.storage.Storage",
        "iceberg-azure": "com.azure.storage.file.datalake.DataLakeFileSystemClient",
        "sqlite": "org.sqlite.JDBC",
        "postgresql": "org.postgresql.Driver",
    }
)
"""A class by which it is known that Spark has a package, wherever its jars come from."""
