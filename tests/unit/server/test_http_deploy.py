"""The files in deploy/ speak of settings and commands that are there."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from support.server import make_token
from typer.testing import CliRunner

from weirflow.cli.app import app
from weirflow.config import load_settings
from weirflow.server.settings import load_config
from weirflow.session.profiles import resolve_stores

DEPLOY = Path(__file__).parents[3] / "deploy"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_the_compose_file_is_a_server_that_would_start(monkeypatch):
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert {"server", "postgres", "s3"} <= services.keys()
    for name, value in services["server"]["environment"].items():
        monkeypatch.setenv(name, re.sub(r"\$\{[^}]+\}", "secret", str(value)))
    config = load_config()
    stores = resolve_stores(load_settings())
    assert (config.server.insecure, stores.profile) == (False, "distributed-durable")
    assert stores.metadata == "PostgreSQL at postgres/weirflow"


def test_the_image_has_settings_that_are_there(monkeypatch):
    text = (DEPLOY / "Dockerfile").read_text()
    for name, value in re.findall(r"(WEIRFLOW_\w+)=(\S+)", text):
        monkeypatch.setenv(name, value)
    config = load_config(session={"path": "/var/lib/weirflow"})
    assert (config.server.http, config.server.flight) == ("0.0.0.0:8080", "0.0.0.0:8815")
    extras = re.search(r'"\.\[([^\]]+)\]"', text)
    known = (DEPLOY.parent / "pyproject.toml").read_text()
    assert extras is not None
    assert all(re.search(rf"^{extra} = \[", known, re.MULTILINE) for extra in extras[1].split(","))
    assert "USER weirflow" in text


def test_the_image_is_made_of_what_is_there():
    text = (DEPLOY / "Dockerfile").read_text()
    copied = [name for line in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE) for name in line.split()]
    assert copied
    assert [name for name in copied if not (DEPLOY.parent / name).exists()] == []
    java = re.search(r"openjdk-(\d+)", text)
    assert java is not None
    base = re.search(r"^FROM python:(\S+)", text, re.MULTILINE)
    assert base is not None
    assert (base[1].endswith("-bookworm"), java[1]) == (True, "17")  # later ones of Debian have no Java 17


def test_the_image_runs_a_command_that_is_there(monkeypatch, tmp_path):
    text = (DEPLOY / "Dockerfile").read_text()
    for name, value in re.findall(r"(WEIRFLOW_\w+)=(\S+)", text):
        monkeypatch.setenv(name, value)
    entry, given = (re.search(rf"^{part} (\[.*\])$", text, re.MULTILINE)[1] for part in ("ENTRYPOINT", "CMD"))
    command = [*json.loads(entry), *json.loads(given.replace("/var/lib/weirflow", str(tmp_path)))]
    assert command[:2] == ["weirflow", "serve"]
    make_token(tmp_path)
    done = CliRunner().invoke(app, [*command[1:], "--check"])
    assert (done.exit_code, "0.0.0.0:8815" in done.output) == (0, True), done.output


def test_the_commands_of_the_compose_file_are_there():
    text = (DEPLOY / "compose.yaml").read_text()
    run = re.findall(r"compose.yaml run --rm server (.+)$", text, re.MULTILINE)
    assert run == ["tokens create ann --role admin"]  # test_server_spool_s3 runs it
    assert text.index("run --rm server tokens create") < text.index("up -d")


def test_the_unit_is_one():
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read(DEPLOY / "weirflow.service")
    assert unit["Service"]["ExecStart"].endswith("weirflow serve --config /etc/weirflow/weirflow.toml")
    assert unit["Service"]["KillSignal"] == "SIGTERM"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_takes_the_unit(tmp_path):
    copy = tmp_path / "weirflow.service"
    copy.write_text((DEPLOY / "weirflow.service").read_text().replace("/opt/weirflow/bin/weirflow", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
    assert "Unknown" not in done.stderr
