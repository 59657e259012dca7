import subprocess
import sys
from pathlib import Path

import pytest
from support.storage_contract import listed

from weirflow.checkpoint import open_checkpoint_storage
from weirflow.errors import ConfigError

SECRET = "canary-secret-value"


@pytest.fixture(autouse=True)
def no_cloud_environment(monkeypatch):
    for name in (
        "AWS_ENDPOINT",
        "AWS_ENDPOINT_URL",
        "AWS_BUCKET",
        "AZURE_STORAGE_ACCOUNT_NAME",
        "GOOGLE_BUCKET",
    ):
        monkeypatch.delenv(name, raising=False)


def test_every_way_to_write_a_path(tmp_path, monkeypatch):
    root = tmp_path / "with space"
    open_checkpoint_storage(root).put("a", b"1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    ways = [str(root), root.as_uri(), f"file:{root}", f"file://localhost{root}", "with space", "./with space"]
    for way in [*ways, "~/with space", Path("with space")]:
        storage = open_checkpoint_storage(way)
        assert (listed(storage), storage.uri) == ([("a", 1)], root.as_uri())


@pytest.mark.parametrize(
    ("uri", "options", "shown"),
    [
        ("s3://bucket", {}, "s3://bucket"),
        ("s3://bucket/a/b/", {"region": "eu-west-1"}, "s3://bucket/a/b"),
        ("S3://bucket/a%20b", {}, "s3://bucket/a%20b"),
        ("gs://bucket/a", {"skip_signature": "true"}, "gs://bucket/a"),
        ("az://container/a", {"account_name": "acct"}, "az://container/a"),
        ("abfs://container/a", {"account_name": "acct"}, "abfs://container/a"),
        (
            "abfss://container@acct.dfs.core.windows.net/a",
            {"account_key": "Y2FuYXJ5"},
            "abfss://container@acct.dfs.core.windows.net/a",
        ),
    ],
)
def test_object_stores_open_without_being_contacted(uri, options, shown):
    storage = open_checkpoint_storage(uri, options)
    assert storage.uri == shown
    assert repr(storage) == f"<checkpoint storage {shown}>"
    assert storage.supports_conditional_update


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "nul\0byte",
        "file://",
        "file://otherhost/path",
        "file:///path?query",
        "file:relative",
        "s3:bucket",
        "s3:/bucket",
        "s3://",
        "s3:///path",
        "s3://bucket/../other",
        "s3://bucket/a//b",
        "s3://[bucket",
        "memory://a/../b",
        "memory://a?b",
        f"s3://key:{SECRET}@bucket/path",
        f"s3://{SECRET}@bucket",
        f"s3://bucket:{SECRET}",
        f"gs://{SECRET}@bucket",
        f"az://container/path?sig={SECRET}",
        f"az://container/path#{SECRET}",
        f"abfss://container:{SECRET}@acct.dfs.core.windows.net/a",
        f"memory://{SECRET}@name",
        f"http://user:{SECRET}@host/path",
        f"file://user:{SECRET}@host/path",
    ],
)
def test_a_bad_uri_is_refused_without_repeating_secrets(uri):
    with pytest.raises(ConfigError) as caught:
        open_checkpoint_storage(uri)
    assert SECRET not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(("scheme", "meant"), [("s3a", "s3"), ("memroy", "memory"), ("gcs", "gs"), ("fil", "file")])
def test_an_unknown_scheme_names_the_known_ones(scheme, meant):
    with pytest.raises(ConfigError) as caught:
        open_checkpoint_storage(f"{scheme}://bucket/path")
    assert f"'{meant}'" in caught.value.hint
    assert "memory://, file://, s3://, gs://, az://" in caught.value.hint


@pytest.mark.parametrize(
    ("uri", "options", "told"),
    [
        ("memory://", {"region": "x"}, "region"),
        ("relative/path", {"region": "x"}, "region"),
        ("s3://bucket", {"secret_acess_key": SECRET}, "'secret_access_key'"),
        ("s3://bucket", {"account_key": SECRET}, "account_key"),
        ("gs://bucket", {"region": "x"}, "region"),
        ("gs://bucket", {"service_account_key": "{" + SECRET}, "options for gs://bucket"),
        (
            "az://container",
            {"account_name": "acct", "account_key": f"!{SECRET}!"},
            "options for az://container",
        ),
        ("s3://bucket", {"bucket": "other"}, "contradict"),
        ("s3://bucket", {"aws_bucket_name": "other"}, "contradict"),
        ("az://container", {"container_name": "other"}, "contradict"),
        ("s3://bucket", {"allow_http": "perhaps"}, "options for s3://bucket"),
        ("s3://bucket", {"allow_http": True}, "must be a str"),
        ("s3://bucket", {"endpoint": f"http://user:{SECRET}@host"}, "endpoint"),
        ("s3://bucket", {"read_timeout": "soon"}, "options for s3://bucket"),
    ],
)
def test_a_bad_option_is_refused_without_repeating_secrets(uri, options, told):
    with pytest.raises(ConfigError) as caught:
        open_checkpoint_storage(uri, options)
    assert told in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_local_storage_does_not_load_obstore(tmp_path):
    script = (
        "import sys; from weirflow.checkpoint import open_checkpoint_storage as o;"
        "o(sys.argv[1]).put('a', b'1');"
        "print([name for name in sys.modules if name.startswith(('obstore', 'pyspark'))])"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "x")],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.stdout == "[]\n"
