import pytest

from weirflow import Session
from weirflow.errors import ConfigError, ProfileError

POSTGRES = "postgresql://ann:secret@db.example:5432/flows"
S3 = "s3://bucket/prefix"
ENDPOINT = {"placement": "distributed", "endpoint": "sc://host:15002"}
DURABLE = {"durability_profile": "distributed-durable"}
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"

ALLOWED = [
    # settings, profile, keyed state, checkpoints, metadata, state store provider
    ({}, "dev-local", "memory", "memory://", "in process", MEMORY),
    (ENDPOINT, "dev-local", "memory", "memory://", "in process", MEMORY),
    (
        {"placement": "single-node", "path": "/data"},
        "single-node-durable",
        "RocksDB at /data/state",
        "file:///data/checkpoints",
        "SQLite at /data/metadata.db",
        ROCKSDB,
    ),
    (
        {"placement": "single-node", "path": "/data", "checkpoint_uri": "/elsewhere/kept"},
        "single-node-durable",
        "RocksDB at /data/state",
        "/elsewhere/kept",
        "SQLite at /data/metadata.db",
        ROCKSDB,
    ),
    (
        {"durability_profile": "single-node-durable", "path": "/data"},
        "single-node-durable",
        "RocksDB at /data/state",
        "file:///data/checkpoints",
        "SQLite at /data/metadata.db",
        ROCKSDB,
    ),
    *(
        (
            {**place, **DURABLE, "checkpoint_uri": uri, "metadata_url": POSTGRES},
            "distributed-durable",
            "RocksDB, restored from checkpoint",
            uri,
            "PostgreSQL at db.example/flows",
            ROCKSDB,
        )
        for place in ({}, ENDPOINT)
        for uri in (S3, "gs://bucket/x", "az://container/x", "abfss://c@account.dfs.core.windows.net/x")
    ),
]


@pytest.mark.parametrize(("settings", "expected"), [(row[0], row[1:]) for row in ALLOWED])
def test_stores_of_an_allowed_combination(settings, expected):
    stores = Session(**settings).describe().stores
    provider = stores.spark_conf["spark.sql.streaming.stateStore.providerClass"]
    assert (stores.profile, stores.keyed_state, stores.checkpoints, stores.metadata, provider) == expected


REFUSED = [
    # settings, error, what it says
    ({"path": "/data"}, ProfileError, "path would not be used"),
    ({"checkpoint_uri": S3}, ProfileError, "checkpoint_uri would not be used"),
    ({"metadata_url": POSTGRES}, ProfileError, "metadata_url would not be used"),
    ({"placement": "single-node", "path": "/d", "durability_profile": "dev-local"}, ProfileError, "path would not"),
    ({"durability_profile": "single-node-durable"}, ProfileError, "needs a folder"),
    ({**ENDPOINT, "durability_profile": "single-node-durable"}, ProfileError, "executors elsewhere cannot see"),
    ({"placement": "single-node", "path": "/d", "checkpoint_uri": S3}, ProfileError, "on this host, not at s3"),
    ({"placement": "single-node", "path": "/d", "checkpoint_uri": "memory://"}, ProfileError, "not at memory"),
    ({"placement": "single-node", "path": "/d", "metadata_url": POSTGRES}, ProfileError, "metadata_url would not"),
    ({**ENDPOINT, **DURABLE, "metadata_url": POSTGRES}, ProfileError, "none is given"),
    ({**ENDPOINT, **DURABLE, "checkpoint_uri": "/d", "metadata_url": POSTGRES}, ProfileError, "/d is not one"),
    ({**ENDPOINT, **DURABLE, "checkpoint_uri": "file:///d", "metadata_url": POSTGRES}, ProfileError, "is not one"),
    ({**ENDPOINT, **DURABLE, "checkpoint_uri": "memory://", "metadata_url": POSTGRES}, ProfileError, "is not one"),
    ({**ENDPOINT, **DURABLE, "checkpoint_uri": S3}, ProfileError, "needs PostgreSQL"),
    ({**ENDPOINT, **DURABLE, "checkpoint_uri": S3, "metadata_url": "sqlite:///x.db"}, ProfileError, "PostgreSQL"),
    ({**ENDPOINT, **DURABLE, "checkpoint_uri": S3, "metadata_url": "/x.db"}, ProfileError, "needs PostgreSQL"),
    ({"placement": "distributed"}, ConfigError, "needs an endpoint"),
    ({"placement": "distributed", "endpoint": "host:15002"}, ConfigError, "not one Weirflow can use"),
    ({"placement": "single-node"}, ConfigError, "needs a folder"),
    ({"endpoint": "sc://host:1"}, ConfigError, "endpoint is given, but the placement is embedded"),
    ({"token": "t"}, ConfigError, "token is given, but the placement is embedded"),
    ({"placement": "single-node", "path": "/d", "token": "t"}, ConfigError, "token is given"),
]


@pytest.mark.parametrize(("settings", "error", "says"), REFUSED)
def test_a_combination_that_cannot_keep_its_promise_is_refused(settings, error, says):
    with pytest.raises(error, match=says) as caught:
        Session(**settings)
    assert type(caught.value) is error
    assert caught.value.hint


def test_describe_starts_nothing_and_reads_well():
    info = Session.single_node("/data", packages=["kafka", "delta"]).describe()
    assert str(info).splitlines() == [
        "placement    single-node",
        "spark        not started, will be at local",
        "packages     kafka, delta",
        "catalogs     none",
        "profile      single-node-durable",
        "keyed state  RocksDB at /data/state",
        "Spark state  RocksDB provider, changelog checkpoints",
        "shuffle      local disk, in a folder that is deleted with the Session",
        "checkpoints  file:///data/checkpoints",
        "metadata     SQLite at /data/metadata.db",
    ]


FALLBACK = {"spark.storage.decommission.fallbackStorage.path": "s3a://b/shuffle/"}


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"spark_conf": {"spark.local.dir": "/fast"}}, "local disk at /fast"),
        ({"spark_conf": {"spark.shuffle.sort.io.plugin.class": "a.B"}}, "by the plugin a.B"),
        ({"spark_conf": {"spark.shuffle.manager": "a.C"}}, "by the shuffle manager a.C"),
        ({"spark_conf": {"spark.shuffle.manager": "sort"}}, "local disk, in a folder that is deleted with the Session"),
        (ENDPOINT, "where the Spark Connect server has it"),
        ({"placement": "distributed", "endpoint": "spark://host:7077"}, "local disks of the executors"),
        (
            {"placement": "distributed", "endpoint": "spark://host:7077", "spark_conf": FALLBACK},
            "local disks of the executors; copied to s3a://b/shuffle/ when an executor is taken away",
        ),
    ],
)
def test_describe_says_where_shuffle_data_is(monkeypatch, settings, place):
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    assert Session(**settings).describe().shuffle == place


def test_the_variable_of_sparks_disks_goes_first(monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/a,/b")
    assert Session.embedded(spark_conf={"spark.local.dir": "/c"}).describe().shuffle == "local disk at /a,/b"


def test_a_session_from_the_environment(monkeypatch):
    monkeypatch.setenv("WEIRFLOW_PLACEMENT", "distributed")
    monkeypatch.setenv("WEIRFLOW_ENDPOINT", "sc://host:15002")
    info = Session.from_env().describe()
    assert (info.placement, info.spark) == ("distributed", "not started, will be at sc://host:15002")
