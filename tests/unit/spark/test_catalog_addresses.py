"""Addresses of catalogs: the settings and packages they become, what is refused, and where secrets stay."""

import pytest

from weirflow.errors import ConfigError
from weirflow.spark.catalogs.address import parse_catalog

CANARY = "canary-7f3a9c"
S3 = "s3://bucket/lake"

GOOD = [
    # address, options, properties, packages
    (
        "iceberg-rest+https://host:8443/api?warehouse=prod",
        {"token": "t", "s3.endpoint": "http://s3"},
        {
            "type": "rest",
            "uri": "https://host:8443/api",
            "warehouse": "prod",
            "token": "t",
            "s3.endpoint": "http://s3",
            "rest.client.connection-timeout-ms": "2500",
        },
        ("iceberg",),
    ),
    (
        "iceberg-glue",
        {"warehouse": S3, "region": "eu-central-1", "catalog_id": "123"},
        {
            "type": "glue",
            "warehouse": S3,
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "client.region": "eu-central-1",
            "glue.id": "123",
        },
        ("iceberg", "iceberg-aws"),
    ),
    (
        "iceberg-jdbc+sqlite:///data/my%20catalog.db",
        {"warehouse": "file:///data/lake"},
        {
            "type": "jdbc",
            "uri": "jdbc:sqlite:/data/my catalog.db",
            "warehouse": "file:///data/lake",
            "jdbc.schema-version": "V1",
        },
        ("iceberg", "sqlite"),
    ),
    (
        "iceberg-jdbc+postgresql://db:5433/lake",
        {"warehouse": "gs://bucket/lake", "user": "ann", "password": "p"},
        {
            "type": "jdbc",
            "uri": "jdbc:postgresql://db:5433/lake",
            "warehouse": "gs://bucket/lake",
            "io-impl": "org.apache.iceberg.gcp.gcs.GCSFileIO",
            "jdbc.user": "ann",
            "jdbc.password": "p",
            "jdbc.schema-version": "V1",
        },
        ("iceberg", "postgresql", "iceberg-gcp"),
    ),
    (
        "iceberg-hadoop+file:///data/lake",
        {},
        {"type": "hadoop", "warehouse": "file:///data/lake"},
        ("iceberg",),
    ),
    (
        "iceberg-hive+thrift://host",
        {"warehouse": "abfss://c@account.dfs.core.windows.net/lake"},
        {
            "type": "hive",
            "uri": "thrift://host",
            "warehouse": "abfss://c@account.dfs.core.windows.net/lake",
            "io-impl": "org.apache.iceberg.azure.adlsv2.ADLSFileIO",
        },
        ("iceberg", "iceberg-azure"),
    ),
    (
        "iceberg-nessie+http://host:19120/api/v2",
        {"warehouse": "file:///data", "token": "t"},
        {
            "type": "nessie",
            "uri": "http://host:19120/api/v2",
            "ref": "main",
            "warehouse": "file:///data",
            "authentication.type": "BEARER",
            "authentication.token": "t",
        },
        ("iceberg",),
    ),
]


@pytest.mark.parametrize(("address", "options", "properties", "packages"), GOOD)
def test_an_address_becomes_settings_and_packages(address, options, properties, packages):
    catalog = parse_catalog("lake", address, options)
    prefix = "spark.sql.catalog.lake"
    expected = {f"{prefix}.{name}": value for name, value in properties.items()}
    assert catalog.conf(2.5) == {prefix: "org.apache.iceberg.spark.SparkCatalog", **expected}
    assert catalog.packages == packages


@pytest.mark.parametrize(
    ("address", "server"),
    [
        ("iceberg-rest+https://host/api", ("host", 443)),
        ("iceberg-rest+http://[::1]:81/api", ("::1", 81)),
        ("iceberg-hadoop+file:///data", None),
        ("iceberg-hadoop+hdfs://name-node/data", None),
    ],
)
def test_the_server_to_reach_is_known(address, server):
    assert parse_catalog("lake", address, {}).server == server


REFUSED = [
    # name, address, options, what is said, what the hint has
    (
        "lake",
        "iceberg-rst+https://host",
        {},
        "No kind of catalog is called 'iceberg-rst'",
        "did you mean 'iceberg-rest'",
    ),
    ("lake", f"https://ann:{CANARY}@host", {}, "No kind of catalog is called 'https'", "iceberg-rest\\+https"),
    ("lake", CANARY, {}, "No kind of catalog begins the address of 'lake'", "there are"),
    ("lake", "delta+s3://bucket", {}, "Delta, which has no catalogs of its own", r"delta\.`s3://bucket/table`"),
    ("lake", "iceberg-rest", {}, "needs a URI", "write it like iceberg-rest"),
    ("lake", "iceberg-glue+https://host", {"warehouse": S3}, "a catalog of kind iceberg-glue has none", "iceberg-glue"),
    ("lake", "iceberg-rest+ftp://host", {}, "begins with 'ftp'; it can be https:// or http://", "write it like"),
    ("lake", f"iceberg-rest+https://ann:{CANARY}@host", {}, "holds a user or password", "write it like"),
    ("lake", f"iceberg-rest+https://host?token={CANARY}", {}, r"holds a secret \(token\)", "write it like"),
    ("lake", f"iceberg-rest+https://host?s3.secret-access-key={CANARY}", {}, "holds a secret", "write it like"),
    ("lake", "iceberg-rest+https://host:port", {}, "its host or port is none", "write it like"),
    ("lake", "iceberg-rest+https:///path", {}, "has no host", "write it like"),
    ("lake", "iceberg-rest+https://host#x", {}, "has a part after #", "write it like"),
    ("lake", "iceberg-jdbc+sqlite://file.db", {"warehouse": S3}, "names no file or folder", "sqlite:///"),
    ("lake", "iceberg-jdbc+sqlite:///c.db", {}, "needs the option warehouse", "warehouse='s3://bucket/folder'"),
    ("lake", "iceberg-hadoop+s3://bucket/lake", {}, "renames are not atomic", "iceberg-rest, iceberg-glue"),
    ("lake", "iceberg-rest+https://host", {"tokn": CANARY}, "no option 'tokn'", "did you mean 'token'"),
    ("lake", "iceberg-rest+https://host", {"access-key": CANARY}, "no option 'access-key'", "'access_key'"),
    ("lake", "iceberg-hadoop+file:///data", {"warehouse": "x"}, "no option 'warehouse'", "it has none"),
    ("lake", "iceberg-rest+https://host", {"token": ""}, "option token of the catalog 'lake' is empty", ""),
    ("lake", "iceberg-rest+https://host?scope=a", {"scope": "b"}, "scope of the catalog 'lake' is given twice", ""),
    ("a.b", "iceberg-rest+https://host", {}, "A catalog cannot be called 'a.b'", "letters, digits"),
    ("spark_catalog", "iceberg-rest+https://host", {}, "this is Spark's own catalog", "choose another name"),
    ("iceberg", "iceberg-rest+https://host", {}, "the package iceberg", "choose another name"),
]


@pytest.mark.parametrize(("name", "address", "options", "says", "hint"), REFUSED)
def test_what_cannot_be_used_is_refused_in_one_sentence_without_secrets(name, address, options, says, hint):
    with pytest.raises(ConfigError, match=says) as caught:
        parse_catalog(name, address, options)
    error = caught.value
    assert hint.replace("\\", "") in (error.hint or "")
    assert CANARY not in f"{error} {vars(error)} {error.__cause__} {error.__context__}"


def test_a_secret_may_be_in_the_environment(monkeypatch):
    catalog = parse_catalog("lake", "iceberg-rest+https://host", {"token": "env:LAKE_TOKEN", "scope": "env:plain"})
    monkeypatch.delenv("LAKE_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="'LAKE_TOKEN', which is not set"):
        catalog.conf(1.0)
    monkeypatch.setenv("LAKE_TOKEN", CANARY)
    conf = catalog.conf(1.0)
    assert (conf["spark.sql.catalog.lake.token"], conf["spark.sql.catalog.lake.scope"]) == (CANARY, "env:plain")
    assert catalog.stored_secrets == ()
    assert catalog.hiding_secrets(f"no {CANARY} here") == "no *** here"


def test_secrets_are_known_and_not_shown():
    secrets = {"token": CANARY, "s3.secret-access-key": CANARY}
    catalog = parse_catalog("lake", "iceberg-rest+https://host", {**secrets, "warehouse": "prod"})
    assert set(catalog.stored_secrets) == set(secrets)
    assert CANARY not in f"{catalog!r} {catalog.address}"


def test_nessie_alone_does_not_show_older_snapshots():
    kinds = {address.partition("+")[0]: parse_catalog("a", address, options) for address, options, *_ in GOOD}
    assert [kind for kind, catalog in kinds.items() if not catalog.keeps_snapshots] == ["iceberg-nessie"]
