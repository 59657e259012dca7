"""Settings of a server: options over variables over the file."""

from __future__ import annotations

import pytest

from weirflow.errors import ConfigError
from weirflow.server.settings import load_config, parse_address


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def _write(tmp_path, text):
    (tmp_path / "weirflow.toml").write_text(text)


def test_options_go_before_variables_before_the_file(tmp_path, monkeypatch):
    _write(
        tmp_path,
        '[server]\nhttp = "127.0.0.1:1"\nflight = "127.0.0.1:2"\nnode = "file"\n[session]\npath = "kept"\ncores = 1',
    )
    monkeypatch.setenv("WEIRFLOW_SERVER_HTTP", "127.0.0.1:3")
    monkeypatch.setenv("WEIRFLOW_SERVER_FLIGHT", "127.0.0.1:4")
    monkeypatch.setenv("WEIRFLOW_CORES", "2")
    config = load_config(server={"http": "127.0.0.1:5", "node": None})
    assert (config.server.http, config.server.flight, config.server.node) == ("127.0.0.1:5", "127.0.0.1:4", "file")
    assert (config.session.cores, config.session.path.name, config.session.placement) == (2, "kept", "single-node")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[server]\nhtpp = 'x'", "did you mean 'http'"),
        ("[session]\npth = 'x'", "did you mean 'path'"),
        ("[servers]", "nobody reads"),
        ("server = 1", "are tables"),
        ("[server", "cannot be read"),
        ("[server]\nhttp = 'nonsense'", "host:port"),
        ("[server]\nhttp = '0.0.0.0:1'\ninsecure = true", "needs tokens"),
        ("[server]\nissuer = 'x'", "an issuer and its keys"),
        ("[server]\nmessage_bytes = 1", "message_bytes"),
    ],
)
def test_what_cannot_be_used_is_said(tmp_path, text, said):
    _write(tmp_path, text)
    with pytest.raises(ConfigError) as wrong:
        load_config()
    assert said in str(wrong.value)


def test_a_variable_that_nobody_reads_is_refused(monkeypatch):
    monkeypatch.setenv("WEIRFLOW_SERVER_HTPP", "x")
    with pytest.raises(ConfigError, match="WEIRFLOW_SERVER_HTPP"):
        load_config()


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:80", ("127.0.0.1", 80)), ("[::1]:0", ("::1", 0)), ("host.example:65535", ("host.example", 65535))],
)
def test_an_address_is_host_and_port(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "80", ":80", "host", "host:", "host:x", "host:65536", "host:-1", "host:٣"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match="host:port"):
        parse_address(text)
