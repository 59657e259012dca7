"""``weirflow tokens`` and ``weirflow nodes``, TLS, and a server among nodes."""

from __future__ import annotations

import json
import ssl
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from support.server import client, eventually, make_token, served
from typer.testing import CliRunner

from weirflow.cli.app import app


def _run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_tokens_are_made_listed_and_revoked(tmp_path):
    limits = ["--statements-at-once", 4, "--statement-seconds", 5]
    for_shop = ["--role", "reader", "--flow", "shop", "--days", 1]
    made = _run("tokens", "create", "board", *for_shop, *limits, "--path", tmp_path, "--json")
    assert made.exit_code == 0, made.output
    token = json.loads(made.stdout)
    assert (token["flows"], token["limits"]) == (["shop"], {"statements_at_once": 4, "statement_seconds": 5.0})
    listed = _run("tokens", "list", "--path", tmp_path)
    assert "board" in listed.stdout
    assert "statements_at_once=4" in listed.stdout.replace("\n", "")
    assert token["token"].rpartition("_")[2] not in listed.stdout
    assert _run("tokens", "revoke", token["id"], "--path", tmp_path).exit_code == 0
    assert json.loads(_run("tokens", "list", "--path", tmp_path, "--json").stdout) == {"tokens": []}
    assert _run("tokens", "revoke", token["id"], "--path", tmp_path).exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create", "x", "--role", "god"], "No role is called"),
        (["create", " ", "--role", "reader"], "name"),
        (["create", "x", "--role", "admin", "--flow", "shop"], "for everything"),
    ],
)
def test_what_is_no_token_is_not_made(tmp_path, arguments, said):
    done = _run("tokens", *arguments, "--path", tmp_path)
    assert done.exit_code == 1
    assert said in done.stderr


def test_it_must_be_said_where_tokens_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = _run("tokens", "list")
    assert (done.exit_code, "--path" in done.stderr) == (1, True)


def test_a_server_is_a_node_and_drains_when_it_is_told_to(tmp_path, own_spark):
    own_spark()
    token = make_token(tmp_path / "data")
    with served(tmp_path / "data", node="web-1") as server:
        listed = json.loads(_run("nodes", "list", "--path", tmp_path / "data", "--json").stdout)
        assert [(one["id"], one["state"], one["info"]["kind"]) for one in listed["nodes"]] == [
            ("web-1", "running", "server")
        ]
        assert _run("nodes", "show", "web-1", "--path", tmp_path / "data").exit_code == 0
        assert _run("nodes", "drain", "nobody", "--path", tmp_path / "data").exit_code == 1
        assert _run("nodes", "drain", "web-1", "--path", tmp_path / "data").exit_code == 0
        assert server.wait(20)
        with client(server.http_url, token) as http:
            assert http.get("/v1/nodes").status_code == 200
    assert json.loads(_run("nodes", "list", "--path", tmp_path / "data", "--json").stdout)["nodes"] == []
    with served(tmp_path / "data", node="web-1") as again:
        assert not again.wait(2.5)  # the wish was for the one before


@pytest.fixture
def certificate(tmp_path):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = tmp_path / "server.pem", tmp_path / "server.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return files


def test_http_speaks_tls_and_nothing_else(tmp_path, certificate, own_spark):
    own_spark()
    token = make_token(tmp_path / "data")
    trusted = ssl.create_default_context(cafile=str(certificate[0]))
    with served(tmp_path / "data", tls_certificate=certificate[0], tls_key=certificate[1]) as server:
        url = server.http_url.replace("127.0.0.1", "localhost")
        assert url.startswith("https://")
        with client(url, token, verify=trusted) as http:
            assert http.get("/v1/flows").json() == {"flows": []}
        with client(url, token) as http, pytest.raises(httpx.ConnectError):
            http.get("/v1/flows")
        with client(url.replace("https", "http"), token) as http, pytest.raises(httpx.HTTPError):
            http.get("/v1/flows")
        eventually(lambda: not server.coordinator.under_way)
