"""``weirflow flow``: what it prints, and how it ends."""

import json

import pytest
from support.damaged_flow import Damage, contents, digests, names, write
from support.flow_engine import FlowEngine
from typer.testing import CliRunner

from weirflow.cli.app import app
from weirflow.ivm.flow import IncrementalFlow


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(app, ["flow", *map(str, arguments)])


@pytest.fixture
def shop(tmp_path):
    return write(tmp_path / "shop", ticks=6, checkpoints=(3,))


def newest_log(path):
    return max(name for name in names(path) if name.endswith(".log"))


@pytest.mark.parametrize("command", ["check", "repair"])
def test_the_help_of_each_command_has_examples(run, command):
    assert f"weirflow flow {command} " in run(command, "--help").stdout.partition("Examples")[2]


def test_a_whole_flow(run, shop):
    before = digests(shop.path)
    result = run("check", shop.path)
    assert result.exit_code == 0
    assert "whole up to epoch 6; nothing is damaged" in result.stdout
    assert all(name in result.stdout for name in names(shop.path))
    assert digests(shop.path) == before
    result = run("repair", shop.path)
    assert (result.exit_code, result.stdout) == (0, "The flow is whole, at epoch 6.\n")
    assert digests(shop.path) == before


def test_a_damaged_flow_is_told_and_repaired(run, shop):
    path = shop.path
    log = newest_log(path)
    Damage(log, "flip", shop.records[7].start + 3).apply(path)  # the fifth tick, behind three definitions
    before = digests(path)
    result = run("check", path)
    assert result.exit_code == 1
    assert "record 8 is wrong" in result.stdout
    assert "whole up to epoch 4; epochs 5 to 6 (records 8 to 9) cannot be reached" in result.stdout
    assert f"weirflow flow repair {path}" in result.stdout
    result = run("repair", path, "--dry-run")
    assert result.exit_code == 1
    assert "The flow opens at epoch 4.\nLost: epochs 5 to 6 (records 8 to 9)." in result.stdout
    assert digests(path) == before
    result = run("repair", path)
    assert result.exit_code == 0
    assert "The flow opens at epoch 4.\nLost: epochs 5 to 6 (records 8 to 9)." in result.stdout
    assert "The sink 'told' is ahead of the flow: make it with resync=True." in result.stdout
    assert run("check", path).exit_code == 0
    with IncrementalFlow("shop", path=path) as flow:
        assert (flow.epoch, contents(flow)) == (4, shop.records[6].contents)


def test_json(run, shop):
    path = shop.path
    Damage("log/tail", "flip", 9).apply(path)
    found = json.loads(run("check", path, "--json").stdout)
    assert {key: found[key] for key in ("path", "whole", "epoch", "open", "lost")} == {
        "path": str(path),
        "whole": False,
        "epoch": 6,
        "open": False,
        "lost": None,
    }
    assert [file for file in found["files"] if file["trouble"]] == [
        {"name": "log/tail", "holds": "", "trouble": "it is not whole"}
    ]
    done = json.loads(run("repair", path, "--json").stdout)
    assert done["aside"].startswith(f"{path}/damaged-")
    assert {key: value for key, value in done.items() if key != "aside"} == {
        "epoch": 6,
        "was_whole": False,
        "lost": None,
        "moved": [],
        "rewritten": ["log/tail"],
        "sinks_ahead": [],
        "sinks_anew": [],
        "dry_run": False,
    }


@pytest.mark.parametrize("command", ["check", "repair"])
def test_what_is_no_flow_ends_with_2(run, tmp_path, command):
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "messages").touch()
    for path in (tmp_path, tmp_path / "nothing"):
        result = run(command, path)
        assert result.exit_code == 2
        assert "There is no flow" in result.stderr
    assert sorted(one.name for one in tmp_path.iterdir()) == ["log"]


def test_an_open_flow_is_checked_but_not_repaired(run, shop):
    with IncrementalFlow("shop", path=shop.path):
        result = run("check", shop.path)
        assert result.exit_code == 0
        assert "It is open in another process" in result.stdout
        Damage(min(shop.checkpoints), "flip", 70).apply(shop.path)
        assert run("check", shop.path).exit_code == 1
        result = run("repair", shop.path)
        assert result.exit_code == 1
        assert "close it there first" in result.stderr


def test_a_flow_that_needs_spark_is_repaired_and_opens_in_a_session(run, tmp_path):
    path = tmp_path / "flow"
    with IncrementalFlow("shop", path=path, engine=FlowEngine()) as flow:
        flow.register_source("orders", "customer STRING, amount BIGINT")
        flow.register_view("names", "SELECT DISTINCT customer FROM orders", mode="diff")
        for amount in (1, 2):
            flow.tick("orders", [{"customer": "ann", "amount": amount}])
    Damage(newest_log(path), "cut", (path / newest_log(path)).stat().st_size - 1).apply(path)
    result = run("repair", path)
    assert result.exit_code == 0
    assert "it opens in a Session" in result.stdout
    assert run("check", path).exit_code == 0
    with IncrementalFlow("shop", path=path, engine=FlowEngine()) as flow:
        assert (flow.epoch, flow.snapshot("names").to_pylist()) == (1, [{"customer": "ann"}])


def test_where_nothing_whole_is_left(run, shop):
    for name in names(shop.path):
        if name.startswith(("manifests", "log/0")):
            Damage(name, "cut", 40).apply(shop.path)
    before = digests(shop.path)
    result = run("repair", shop.path)
    assert result.exit_code == 1
    assert "Nothing whole is left" in result.stderr
    assert digests(shop.path) == before
