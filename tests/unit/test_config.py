import os
from pathlib import Path

import pytest

from weirflow import Session
from weirflow.config import Settings, load_settings
from weirflow.errors import ConfigError, WeirflowError
from weirflow.types import Placement, Profile

CANARY = "canary-7f3a9c"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in list(os.environ):
        if name.upper().startswith("WEIRFLOW_"):
            monkeypatch.delenv(name)


def test_defaults():
    settings = load_settings()
    assert settings.placement is Placement.EMBEDDED
    assert settings.durability_profile is None
    assert settings.packages == ()
    assert settings.spark_conf == {}
    assert settings.driver_memory == "2g"
    assert settings.progress == "auto"


@pytest.mark.parametrize(
    ("variable", "text", "field", "value"),
    [
        ("WEIRFLOW_PLACEMENT", "single-node", "placement", Placement.SINGLE_NODE),
        ("WEIRFLOW_DURABILITY_PROFILE", "distributed-durable", "durability_profile", Profile.DISTRIBUTED_DURABLE),
        ("WEIRFLOW_PATH", "/data", "path", Path("/data")),
        ("WEIRFLOW_ENDPOINT", "sc://host:1", "endpoint", "sc://host:1"),
        ("WEIRFLOW_PACKAGES", "kafka, delta ,,org.x:y:1", "packages", ("kafka", "delta", "org.x:y:1")),
        ("WEIRFLOW_PACKAGES", "", "packages", ()),
        ("WEIRFLOW_SPARK_CONF", '{"a.b": "c"}', "spark_conf", {"a.b": "c"}),
        ("WEIRFLOW_CORES", "3", "cores", 3),
        ("WEIRFLOW_CONNECT_TIMEOUT", "2.5", "connect_timeout", 2.5),
        ("WEIRFLOW_CLASS_ARCHIVE", "false", "class_archive", False),
        ("WEIRFLOW_SPARK_LOG_LEVEL", "warn", "spark_log_level", "warn"),
    ],
)
def test_the_environment_is_read(monkeypatch, variable, text, field, value):
    monkeypatch.setenv(variable, text)
    assert getattr(load_settings(), field) == value


def test_arguments_win_over_the_environment(monkeypatch):
    monkeypatch.setenv("WEIRFLOW_CORES", "3")
    monkeypatch.setenv("WEIRFLOW_PACKAGES", "kafka")
    settings = load_settings(cores=1, packages=["delta"])
    assert (settings.cores, settings.packages) == (1, ("delta",))


def test_an_argument_that_is_none_counts_as_not_given(monkeypatch):
    monkeypatch.setenv("WEIRFLOW_CORES", "3")
    settings = load_settings(cores=None, driver_memory=None)
    assert (settings.cores, settings.driver_memory) == (3, "2g")
    assert settings.model_fields_set == {"cores"}


def test_paths_are_absolute_and_know_the_home_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert load_settings(path="~/flows").path == Path("/home/ann/flows")
    assert load_settings(path="flows").path == Path.cwd() / "flows"
    assert load_settings().cache_dir == Path("/home/ann/.cache/weirflow")
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert load_settings().cache_dir == Path("/elsewhere/weirflow")


def test_the_variable_of_the_kernel_is_known(monkeypatch):
    monkeypatch.setenv("WEIRFLOW_COMPILED", "off")
    load_settings()


def test_a_variable_nobody_reads_is_refused_with_the_nearest_name(monkeypatch):
    monkeypatch.setenv("WEIRFLOW_CORSE", "3")
    with pytest.raises(ConfigError, match="No setting is called WEIRFLOW_CORSE") as caught:
        load_settings()
    assert caught.value.hint == "did you mean 'WEIRFLOW_CORES'?"


def test_an_unknown_argument_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match="No setting is called 'drivermemory'") as caught:
        Session(drivermemory="1g")
    assert caught.value.hint == "did you mean 'driver_memory'?"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"cores": 0}, "cores: .*greater than or equal to 1"),
        ({"cores": "many"}, "cores: .*valid integer"),
        ({"driver_memory": "lots"}, "driver_memory"),
        ({"driver_memory": "1g -XX:OnError=sh"}, "driver_memory"),
        ({"connect_timeout": 0}, "connect_timeout"),
        ({"placement": "moon"}, "placement: .*'embedded', 'single-node' or 'distributed'"),
        ({"durability_profile": "forever"}, "durability_profile"),
        ({"progress": "maybe"}, "progress"),
        ({"spark_conf": {"a": {"b": "c"}}}, r"spark_conf\.a"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(arguments, says):
    with pytest.raises(ConfigError, match=says):
        load_settings(**arguments)


def test_broken_json_in_the_environment_is_a_typed_error(monkeypatch):
    monkeypatch.setenv("WEIRFLOW_SPARK_CONF", f"{{not json {CANARY}")
    with pytest.raises(ConfigError, match="spark_conf") as caught:
        load_settings()
    assert CANARY not in everything_shown(caught.value)


def test_settings_are_immutable():
    settings = load_settings()
    with pytest.raises(ValueError, match="frozen"):
        settings.cores = 3


def test_every_setting_says_what_it_is():
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


@pytest.mark.parametrize("variable", ["WEIRFLOW_TOKEN", "WEIRFLOW_METADATA_URL"])
def test_secrets_are_read_and_never_shown(monkeypatch, variable):
    monkeypatch.setenv(variable, f"postgresql://ann:{CANARY}@db/flows")
    settings = load_settings()
    secret = getattr(settings, variable.removeprefix("WEIRFLOW_").lower())
    assert CANARY in secret.get_secret_value()
    assert CANARY not in f"{settings!r} {settings} {settings.model_dump_json()}"


def test_spark_conf_and_endpoint_are_not_in_the_repr():
    settings = load_settings(spark_conf={"spark.hadoop.fs.s3a.secret.key": CANARY}, endpoint=f"sc://h/;x-key={CANARY}")
    assert CANARY not in f"{settings!r} {settings}"


SECRET_SESSIONS = [
    {"placement": "distributed", "endpoint": "sc://host:1", "token": CANARY},
    {"placement": "distributed", "endpoint": f"sc://host:1/;x-key={CANARY}"},
    {
        "placement": "distributed",
        "endpoint": "spark://host:1",
        "token": CANARY,
        "durability_profile": "distributed-durable",
        "checkpoint_uri": "s3://bucket/prefix",
        "metadata_url": f"postgresql://ann:{CANARY}@db:5432/flows?sslpassword={CANARY}",
    },
    {"spark_conf": {"spark.hadoop.fs.s3a.secret.key": CANARY}},
]


@pytest.mark.parametrize("settings", SECRET_SESSIONS)
def test_describe_and_repr_show_no_secret(settings):
    session = Session(**settings)
    info = session.describe()
    assert CANARY not in f"{session!r} {info} {info!r} {info.stores!r} {session.settings!r}"


REFUSED_WITH_SECRETS = [
    {"token": CANARY},
    {"placement": "distributed", "endpoint": f"sc://host:1/;token={CANARY}"},
    {"placement": "distributed", "endpoint": f"sc://ann:{CANARY}@host:1"},
    {"placement": "distributed", "endpoint": f"http://host/{CANARY}"},
    {"placement": "distributed", "endpoint": f"sc://host:1;{CANARY}"},
    {"metadata_url": f"postgresql://ann:{CANARY}@db/flows"},
    {
        "durability_profile": "distributed-durable",
        "checkpoint_uri": f"s3://key:{CANARY}@bucket/prefix",
        "metadata_url": "postgresql://db/flows",
    },
    {"durability_profile": "distributed-durable", "checkpoint_uri": f"s3://bucket/prefix?token={CANARY}"},
    {
        "durability_profile": "distributed-durable",
        "checkpoint_uri": "s3://bucket/prefix",
        "metadata_url": f"mysql://ann:{CANARY}@db/flows",
    },
    {"path": "/data", "durability_profile": "single-node-durable", "checkpoint_uri": f"s3://k:{CANARY}@bucket"},
]


@pytest.mark.parametrize("settings", REFUSED_WITH_SECRETS)
def test_no_error_repeats_a_secret(settings):
    with pytest.raises(WeirflowError) as caught:
        Session(**settings)
    assert CANARY not in everything_shown(caught.value)


def everything_shown(error):
    chain = [error, error.__cause__, None if error.__suppress_context__ else error.__context__]
    return " ".join(f"{link} {link!r} {vars(link)}" for link in chain if link is not None)
