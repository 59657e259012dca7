"""The connectors Weirflow knows by name: their jars for each Spark line, and the Spark settings they need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from weirflow.errors import ConfigError, PackageUnavailable, did_you_mean
from weirflow.spark.compat import spark_line
from weirflow.spark.jars.artifacts import Artifact, Coordinate, Dependencies
from weirflow.spark.jars.cache import JarCache

if TYPE_CHECKING:
    from pathlib import Path

_EXTENSIONS = "spark.sql.extensions"
_WAREHOUSE = "{warehouse}"


@dataclass(frozen=True)
class Connector:
    """One named connector.

    Attributes:
        jars: for each Spark line, such as "4.1", every jar it needs beyond those Spark ships.
        extensions: the Spark session extensions it brings.
        conf: its other Spark settings; ``{warehouse}`` stands for the session's warehouse folder.
    """

    jars: Mapping[str, tuple[str, ...]]
    extensions: tuple[str, ...] = ()
    conf: Mapping[str, str] = field(default_factory=dict)


_DELTA_BESIDES_SPARK = (
    "io.delta:delta-storage:4.4.0",
    "io.delta:delta-kernel-api:4.4.0",
    "io.delta:delta-kernel-defaults:4.4.0",
    "io.delta:delta-kernel-unitycatalog:4.4.0",
    "io.unitycatalog:unitycatalog-client:0.6.0",
    "io.unitycatalog:unitycatalog-hadoop:0.6.0",
    # Of the Jackson that Spark ships, not the older one Delta asks for.
    "com.fasterxml.jackson.datatype:jackson-datatype-jdk8:2.21.2",
)

# hadoop-aws must be of the very version of Spark's Hadoop.
_S3_OF_HADOOP_3_5 = (
    "org.apache.hadoop:hadoop-aws:3.5.0",
    "software.amazon.awssdk:bundle:2.35.4",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
    "org.wildfly.openssl:wildfly-openssl:2.2.5.Final",
)

_S3_PATHS = {
    # As people write it; s3a:// is Hadoop's own name.
    "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.s3.impl": "org.apache.hadoop.fs.s3a.S3A",
}
_ANY_LINE = ("4.1", "4.2", "4.3")


def _on_any_spark(*jars: str) -> dict[str, tuple[str, ...]]:
    """Jars that do not depend on Spark."""
    return dict.fromkeys(_ANY_LINE, jars)


CONNECTORS: Mapping[str, Connector] = MappingProxyType(
    {
        "kafka": Connector(
            jars={
                "4.1": (
                    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3",
                    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
                    "org.apache.kafka:kafka-clients:3.9.1",
                    "org.apache.commons:commons-pool2:2.12.1",
                ),
                "4.2": (
                    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
                    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
                    "org.apache.kafka:kafka-clients:3.9.2",
                    "org.apache.commons:commons-pool2:2.13.1",
                ),
            },
        ),
        "iceberg": Connector(
            jars={"4.1": ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",)},
            extensions=("org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",),
            conf={
                "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
                "spark.sql.catalog.iceberg.type": "hadoop",
                # The dot keeps it apart from the folders of Spark's own tables, whose names cannot have one.
                "spark.sql.catalog.iceberg.warehouse": f"{_WAREHOUSE}/iceberg.catalog",
            },
        ),
        "delta": Connector(
            jars={
                "4.1": ("io.delta:delta-spark_4.1_2.13:4.4.0", *_DELTA_BESIDES_SPARK),
                "4.2": ("io.delta:delta-spark_4.2_2.13:4.4.0", *_DELTA_BESIDES_SPARK),
            },
            extensions=("io.delta.sql.DeltaSparkSessionExtension",),
            conf={
                "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
                # Delta's parser drops the parameters of a query; bound by the analyser they do not pass through it.
                "spark.sql.legacy.parameterSubstitution.constantsOnly": "true",
            },
        ),
        "s3": Connector(
            jars={
                "4.1": (
                    "org.apache.hadoop:hadoop-aws:3.4.2",
                    "software.amazon.awssdk:bundle:2.29.52",
                    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.2.1",
                    "org.wildfly.openssl:wildfly-openssl:2.1.4.Final",
                ),
                "4.2": _S3_OF_HADOOP_3_5,
                "4.3": _S3_OF_HADOOP_3_5,
            },
            conf=_S3_PATHS,
        ),
        # What Iceberg needs for object stores, and for Glue; its own classes for them come with "iceberg".
        "iceberg-aws": Connector(jars={"4.1": ("org.apache.iceberg:iceberg-aws-bundle:1.12.0",)}),
        "iceberg-gcp": Connector(jars={"4.1": ("org.apache.iceberg:iceberg-gcp-bundle:1.12.0",)}),
        "iceberg-azure": Connector(jars={"4.1": ("org.apache.iceberg:iceberg-azure-bundle:1.12.0",)}),
        # Drivers for catalogs in databases.
        "sqlite": Connector(jars=_on_any_spark("org.xerial:sqlite-jdbc:3.50.3.0")),
        "postgresql": Connector(jars=_on_any_spark("org.postgresql:postgresql:42.7.8")),
    }
)

FILE_SYSTEMS: Mapping[str, str] = MappingProxyType(
    {
        "s3": "s3",
        "s3a": "s3",
        "gs": "com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.26",
        "abfs": "org.apache.hadoop:hadoop-azure:3.4.2",
        "abfss": "org.apache.hadoop:hadoop-azure:3.4.2",
    }
)
"""The package that lets Spark read addresses which begin like this."""


def resolve_jars(
    packages: Sequence[str],
    *,
    spark_version: str,
    cache: Path,
    java: Path,
    ivy_jar: Path,
    ivy_settings: Path | None = None,
    java_options: Sequence[str] = (),
    timeout: float = 300.0,
    on_progress: Callable[[str], None] | None = None,
) -> list[Path]:
    """The jars of ``packages``, for ``spark.jars``: from the cache when they are there, else fetched into it.

    Args:
        packages: names of connectors, and Maven coordinates ``group:artifact:version``. A coordinate comes
            with its dependencies, those that Spark ships excepted.
        spark_version: the Spark they are for, for example "4.1.3".
        cache: the cache folder; see `JarCache` for it and the rest.
        java: the Java that runs Ivy; not touched when all jars are in the cache.
        ivy_jar: the Ivy jar that PySpark ships; likewise.
        ivy_settings: an Ivy settings file that names other repositories.
        java_options: options for that Java.
        timeout: seconds until fetching is given up.
        on_progress: is told, in one line, what is about to be fetched.

    Raises:
        ConfigError: a name is unknown or a coordinate malformed, or the cache folder cannot be written.
        PackageUnavailable: a connector has no jars for this Spark, or jars could not be fetched.
        DependencyMissing: jars must be fetched and Java or Ivy is missing.
    """
    artifacts = [artifact for package in packages for artifact in _artifacts(package, spark_version)]
    jars = JarCache(cache, java, ivy_jar, ivy_settings, java_options, timeout, on_progress)
    return jars.get(artifacts)


def connector_conf(packages: Sequence[str], warehouse: str) -> dict[str, str]:
    """The Spark settings that ``packages`` need together; plain coordinates need none.

    >>> sorted(connector_conf(["kafka", "delta"], "/data/warehouse"))
    ['spark.sql.catalog.spark_catalog', 'spark.sql.extensions', 'spark.sql.legacy.parameterSubstitution.constantsOnly']
    """
    connectors = [CONNECTORS[name] for name in dict.fromkeys(packages) if _is_connector(name)]
    conf = {
        key: value.replace(_WAREHOUSE, warehouse.rstrip("/"))
        for connector in connectors
        for key, value in connector.conf.items()
    }
    extensions = [extension for connector in connectors for extension in connector.extensions]
    return {_EXTENSIONS: ",".join(extensions), **conf} if extensions else conf


def _artifacts(package: str, spark_version: str) -> Iterator[Artifact]:
    if not _is_connector(package):
        yield Artifact(Coordinate.parse(package))
        return
    line = spark_line(spark_version)
    by_line = CONNECTORS[package].jars
    if line not in by_line:
        lines = " and ".join(by_line)
        raise PackageUnavailable(
            f"the {package} connector has no jars for Spark {spark_version}; it has them for Spark {lines}.",
            hint=f"use pyspark {lines.replace('and', 'or')}, or name Maven coordinates made for Spark {line}",
        )
    for coordinate in by_line[line]:
        yield Artifact(Coordinate.parse(coordinate), Dependencies.NONE, purpose=f"{package} connector")


def _is_connector(package: str) -> bool:
    """Whether this is a connector's name rather than a coordinate; a ConfigError when it can be neither."""
    if package in CONNECTORS:
        return True
    if ":" in package:
        return False
    known = f"known connectors are {', '.join(sorted(CONNECTORS))}; or write group:artifact:version"
    near = did_you_mean(package, CONNECTORS)
    raise ConfigError(f"no connector is named {package!r}.", hint=f"{near} {known}" if near else known)
